//! Copies of blobs, whole or in part, inside a store (U5).
//!
//! ```text
//!   source at S ──which bytes are written──► stretches ──► extents, or pieces that nodes fill
//!                                                              └──► writes of one transaction
//! ```
//!
//! What is read is read at one moment, a few MiB at a time; of a cluster by its nodes. Where
//! nothing was written there are holes in the copy too.
//!
//! It must not know how nodes fill a piece, nor when its transaction commits.

use std::fmt;
use std::sync::Arc;

use tyr_types::{BlobName, ByteRange, Bytes, Data, Error, Operation, Payload, Result, limits};

use crate::backend::{ExtentLease, PlacedCopy, RemoteUpload, Space, View};
use crate::blocking;
use crate::key::ToKey;
use crate::offload::offload;
use crate::pending::{Pending, Target};

/// Holes that are shorter are filled with zeros: what would be told of them takes more.
const HOLE_LEN_MIN: u64 = 4 << 10;

/// Stretches of one copy; of more, those with the shortest holes between them are copied as one.
const STRETCHES_MAX: usize = 16_384;

const _: () = assert!(STRETCHES_MAX < limits::TRANSACTION_OPERATIONS_MAX / 2);

/// What is copied to where; see [`Tyr::copy`](crate::Tyr::copy) and
/// [`Transaction::copy`](crate::Transaction::copy).
///
/// ```no_run
/// # fn example(images: &tyr::blocking::Keyspace, tyr: &tyr::blocking::Tyr) -> tyr::Result<()> {
/// use tyr::{BlobCopy, ByteRange};
///
/// tyr.copy(&BlobCopy::new(images, "disk.img", images, "disk-of-monday.img")?)?;
/// let header = ByteRange { start: 0, end: 4096 };
/// tyr.copy(&BlobCopy::new(images, "disk.img", images, "other.img")?.range(header, 0))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct BlobCopy {
    from: blocking::Keyspace,
    from_name: BlobName,
    to: blocking::Keyspace,
    to_name: BlobName,
    part: Option<(ByteRange, u64)>,
    progress: Option<Arc<Progress>>,
}

/// What is told how far it is.
type Progress = dyn Fn(u64) -> Result<()> + Send + Sync;

impl fmt::Debug for BlobCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from_name, to_name, part, .. } = self;
        write!(f, "BlobCopy({from_name} to {to_name}, {part:?})")
    }
}

impl BlobCopy {
    /// A copy of a whole blob: then the other one has its content, its size and its holes, and
    /// nothing else. Both keyspaces are of one store, for threads or for async code.
    ///
    /// # Errors
    /// `InvalidArgument` for a key beyond the limits, and for keyspaces of two stores.
    pub fn new(
        from: &impl AsRef<blocking::Keyspace>,
        from_key: impl ToKey,
        to: &impl AsRef<blocking::Keyspace>,
        to_key: impl ToKey,
    ) -> Result<Self> {
        let (from, to) = (from.as_ref().clone(), to.as_ref().clone());
        if !from.space.backend().is(&to.space.backend()) {
            return Err(Error::invalid(format!(
                "keyspaces {} and {} are of two stores; a copy is inside one: read here and write \
                 there",
                from.name(),
                to.name()
            )));
        }
        let (from_name, to_name) = (from.blob(from_key)?, to.blob(to_key)?);
        Ok(Self { from, from_name, to, to_name, part: None, progress: None })
    }

    /// Of the bytes of this range alone, which go to `offset` of the other blob; what else that has
    /// stays. Where the source ends within the range, fewer are copied.
    #[must_use]
    pub fn range(mut self, range: ByteRange, offset: u64) -> Self {
        self.part = Some((range, offset));
        self
    }

    /// Calls `progress` with how many bytes of the range are copied or on their way, holes among
    /// them, every few MiB. An error that it answers ends the copy, which has changed nothing then.
    #[must_use]
    pub fn on_progress(
        mut self,
        progress: impl Fn(u64) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }

    pub(crate) fn source(&self) -> (&blocking::Keyspace, &BlobName) {
        (&self.from, &self.from_name)
    }

    /// The range of the source that is copied when it has this size; refuses what cannot be.
    pub(crate) fn range_in(&self, size: u64) -> Result<ByteRange> {
        let all = ByteRange { start: 0, end: size };
        let Some((range, offset)) = self.part else {
            if self.from_name == self.to_name {
                return Err(Error::invalid(
                    "a blob is not copied onto itself; name another, or a range and where it goes",
                ));
            }
            self.check_chunks(0, size)?;
            return Ok(all);
        };
        if range.start > range.end {
            return Err(Error::invalid("a range ends at or after its start"));
        }
        let start = range.start.min(size);
        let range = ByteRange { start, end: range.end.min(size).max(start) };
        ByteRange::at(offset, range.len())?;
        self.check_chunks(offset, range.len())?;
        Ok(range)
    }

    /// Whether the answer depends on where the source ends, when it has this size.
    pub(crate) fn is_sized(&self, size: u64) -> bool {
        self.part.is_none_or(|(range, _)| range.end > size)
    }

    /// Refuses what a transaction of a cluster cannot write, before anything is copied.
    fn check_chunks(&self, offset: u64, len: u64) -> Result<()> {
        let Space::Remote(space) = &self.to.space else { return Ok(()) };
        let size = space.info().config.chunk_size;
        let chunks = (offset % size + len).div_ceil(size);
        if chunks > limits::LOCATIONS_MAX {
            return Err(Error::invalid(format!(
                "a transaction writes at most {} chunks, and the copy would have {chunks}; copy \
                 ranges one by one",
                limits::LOCATIONS_MAX
            )));
        }
        space.check_copies()
    }

    /// Reads the range at the view's moment, as far as anything is written there, into extents or
    /// pieces.
    pub(crate) async fn gather(&self, view: &View, range: ByteRange) -> Result<Gathered<'_>> {
        let stretches = self.stretches(view, range).await?;
        let mut gathered = Gathered::new(self, range);
        for stretch in stretches {
            gathered.copy(view, stretch).await?;
        }
        gathered.settle().await?;
        self.tell(range.len())?;
        Ok(gathered)
    }

    /// What is written of the range, in order, without holes that are not worth it.
    async fn stretches(&self, view: &View, range: ByteRange) -> Result<Vec<ByteRange>> {
        let (mut all, mut hole_len_min) = (Vec::new(), HOLE_LEN_MIN);
        let mut next = Some(range.start).filter(|_| !range.is_empty());
        while let Some(start) = next {
            let rest = ByteRange { start, end: range.end };
            let page = view.stretches(&self.from.space, &self.from_name, rest).await?;
            let page = page.ok_or_else(|| self.from.absent(&self.from_name))?;
            for stretch in page.written {
                join(&mut all, stretch.intersection(range), hole_len_min);
            }
            while all.len() > STRETCHES_MAX {
                hole_len_min *= 2;
                let before = std::mem::take(&mut all);
                before.into_iter().for_each(|stretch| join(&mut all, stretch, hole_len_min));
            }
            next = page.resume.filter(|next| *next < range.end);
        }
        Ok(all)
    }

    /// Reads a stretch and writes it to extents, a piece at a time. All that is copied begins at
    /// `begin`.
    async fn copy_embedded(&self, view: &View, stretch: ByteRange, begin: u64) -> Result<Content> {
        let (mut rest, mut leases) = (stretch, Vec::new());
        while !rest.is_empty() {
            let len = rest.len().min(limits::EXTENT_LEN_MAX.into());
            let (view, copy, start) = (view.clone(), self.clone(), rest.start);
            let piece = move || {
                let mut bytes = vec![0; len as usize];
                if !view.read_into(&copy.from.space, &copy.from_name, start, &mut bytes)? {
                    return Err(copy.from.absent(&copy.from_name));
                }
                match &copy.to.space {
                    Space::Embedded(space) => space.upload(&bytes),
                    Space::Remote(_) => Err(changed(&copy.from_name)),
                }
            };
            leases.push(offload(piece).await?);
            rest.start += len;
            self.tell(rest.start - begin)?;
        }
        Ok(Content::Extents(leases))
    }

    fn tell(&self, done: u64) -> Result<()> {
        self.progress.as_ref().map_or(Ok(()), |progress| progress(done))
    }
}

/// Adds a stretch behind the others, as one with the last if there is hardly a hole between them.
fn join(all: &mut Vec<ByteRange>, stretch: ByteRange, hole_len_min: u64) {
    match all.last_mut() {
        _ if stretch.is_empty() => {}
        Some(last) if stretch.start < last.end.saturating_add(hole_len_min) => {
            last.end = last.end.max(stretch.end);
        }
        Some(_) | None => all.push(stretch),
    }
}

/// What was read of a stretch.
enum Content {
    Bytes(Bytes),
    Extents(Vec<Arc<ExtentLease>>),
    /// In pieces, which are settled together.
    Pieces(u64),
    Payload(Payload),
}

/// What was read for a copy, and is to be written.
pub(crate) struct Gathered<'a> {
    copy: &'a BlobCopy,
    range: ByteRange,
    /// Where each begins there.
    parts: Vec<(u64, u64, Content)>,
    /// Bytes that the transaction is to carry.
    carried: u64,
    remote: Option<RemoteUpload>,
}

impl<'a> Gathered<'a> {
    fn new(copy: &'a BlobCopy, range: ByteRange) -> Self {
        Self { copy, range, parts: Vec::new(), carried: 0, remote: None }
    }

    /// How many bytes are copied, holes among them.
    pub fn len(&self) -> u64 {
        self.range.len()
    }

    async fn copy(&mut self, view: &View, stretch: ByteRange) -> Result<()> {
        let copy = self.copy;
        let start = copy.part.map_or(0, |(_, offset)| offset);
        let (at, len) = (start + (stretch.start - self.range.start), stretch.len());
        let is_short = len < limits::EXTENT_PAYLOAD_MIN as u64;
        let content = if is_short && self.carried + len <= limits::UPLOAD_MIN as u64 {
            self.carried += len;
            let found = view.fetch(&copy.from.space, &copy.from_name, stretch).await?;
            let bytes = found.ok_or_else(|| copy.from.absent(&copy.from_name))?.bytes;
            if bytes.len() as u64 != len {
                return Err(changed(&copy.from_name));
            }
            Content::Bytes(bytes)
        } else {
            match &copy.to.space {
                Space::Embedded(_) => copy.copy_embedded(view, stretch, self.range.start).await?,
                Space::Remote(space) => {
                    let upload = self.remote.get_or_insert_with(|| space.copy(&copy.to_name));
                    let placed = PlacedCopy { range: stretch, offset: at };
                    let from = copy.from.space.info().config.chunk_size;
                    let tell = |done_to| copy.tell(done_to - self.range.start);
                    upload.copy(&copy.from_name, from, view.at(), placed, &tell).await?;
                    Content::Pieces(len)
                }
            }
        };
        self.parts.push((at, len, content));
        copy.tell(stretch.end - self.range.start)
    }

    /// All that nodes fill is filled.
    async fn settle(&mut self) -> Result<()> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        let lens = self.parts.iter().filter_map(|(_, _, content)| match content {
            Content::Pieces(len) => Some(*len),
            Content::Bytes(_) | Content::Extents(_) | Content::Payload(_) => None,
        });
        let mut payloads = remote.payloads(&lens.collect::<Vec<_>>()).await?.into_iter();
        for (_, _, content) in &mut self.parts {
            if matches!(content, Content::Pieces(_)) {
                let payload = payloads.next().expect("each stretch has its payload");
                *content = Content::Payload(payload);
            }
        }
        Ok(())
    }

    /// Adds the writes to a transaction.
    pub fn add_to(self, pending: &mut Pending) -> Result<()> {
        let Self { copy, range, parts, remote, .. } = self;
        let (to, name, len) = (&copy.to, &copy.to_name, range.len());
        let start = copy.part.map_or(0, |(_, offset)| offset);
        let written: u64 = parts.iter().map(|(_, len, _)| len).sum();
        let (is_whole, has_holes) = (copy.part.is_none(), written < len);
        if !is_whole && range.is_empty() {
            return Ok(());
        }
        if is_whole && (has_holes || parts.len() != 1) {
            pending.add(name.clone(), Operation::Truncate { len: 0 })?;
        } else if !is_whole && has_holes {
            let range = ByteRange { start, end: start + len };
            pending.add(name.clone(), Operation::Clear { range })?;
        }
        let is_alone = is_whole && !has_holes && parts.len() == 1;
        let mut end = start;
        for (at, len, content) in parts {
            let target = if is_alone { Target::Replace } else { Target::Write(at) };
            let payload = match content {
                Content::Bytes(bytes) => pending.payload(&to.space, Data::Bytes(bytes), target)?,
                Content::Extents(leases) => {
                    let extents = leases.iter().map(|lease| lease.extent()).collect();
                    pending.hold(leases, None);
                    Payload::Extents(extents)
                }
                Content::Payload(payload) => payload,
                Content::Pieces(_) => unreachable!("pieces are settled before they are written"),
            };
            pending.add(name.clone(), target.operation(payload))?;
            end = at + len;
        }
        if end < start + len {
            // It ends in a hole.
            match is_whole {
                true => pending.add(name.clone(), Operation::Truncate { len })?,
                false => {
                    let (offset, zero) = (start + len - 1, Bytes::from_static(&[0]));
                    let payload = Payload::Inline(zero);
                    pending.add(name.clone(), Operation::Write { offset, payload })?
                }
            };
        }
        pending.hold(Vec::new(), remote);
        Ok(())
    }
}

/// What was there at the moment is not.
fn changed(name: &BlobName) -> Error {
    Error::corrupt(format!("{name} has fewer bytes than its size says, at one version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(stretches: &[(u64, u64)], hole_len_min: u64) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        for (start, end) in stretches {
            join(&mut all, ByteRange { start: *start, end: *end }, hole_len_min);
        }
        all.into_iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn stretches_with_hardly_a_hole_between_them_are_one() {
        let stretches = [(0, 10), (10, 20), (25, 30), (40, 40), (60, 70)];
        assert_eq!(joined(&stretches, 1), [(0, 20), (25, 30), (60, 70)]);
        assert_eq!(joined(&stretches, 6), [(0, 30), (60, 70)]);
        assert_eq!(joined(&stretches, 31), [(0, 70)]);
    }
}
