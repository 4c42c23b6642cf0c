//! A keyspace, for threads: every operation on single blobs.

use std::io::Read;

use tyr_runtime::ticket::Committed;
use tyr_runtime::waiting::block_on;
use tyr_types::{
    BlobName, ByteRange, Bytes, ChunkLocation, Data, Error, ErrorKind, Key, KeyspaceConfig,
    KeyspaceId, Number, Operation, Outcome, Result, Scan, ScanPage, Stat, Stretches, Transform,
    limits,
};

use super::snapshot::pages;
use super::upload::Finished;
use super::{Reader, Snapshot, Upload};
use crate::attempts::Attempts;
use crate::backend::{Answer, Commit, ReadVersions, Space};
use crate::key::ToKey;
use crate::pending::{Pending, Target};

/// A namespace of blobs. Clone it freely.
#[derive(Clone, Debug)]
pub struct Keyspace {
    pub(crate) space: Space,
}

impl AsRef<Keyspace> for Keyspace {
    fn as_ref(&self) -> &Keyspace {
        self
    }
}

impl Keyspace {
    pub(crate) fn new(space: Space) -> Self {
        Self { space }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.space.info().name.as_str()
    }

    /// Its number, which no other keyspace ever gets.
    pub fn id(&self) -> KeyspaceId {
        self.space.info().id
    }

    /// What it was created with.
    pub fn config(&self) -> &KeyspaceConfig {
        &self.space.info().config
    }

    /// The same keyspace, for async code and for [`ReadRequest`](crate::ReadRequest).
    pub fn into_async(self) -> crate::Keyspace {
        crate::Keyspace::from_blocking(self)
    }

    /// Makes an empty blob.
    ///
    /// # Errors
    /// `AlreadyExists`.
    pub fn create(&self, key: impl ToKey) -> Result<()> {
        self.begin(key, |_| Ok(Operation::Create))?.wait().map(drop)
    }

    /// Makes a blob's content `data` and nothing else.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits, `Unavailable` when the disk is full or fails; so for
    /// every operation that writes.
    pub fn put(&self, key: impl ToKey, data: impl Into<Data>) -> Result<()> {
        self.begin_put(key, data.into())?.wait().map(drop)
    }

    /// The same from a reader of any length, which goes to disk as it comes. Readers see the old
    /// blob until all of it is there. Answers its length.
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `Unavailable` when `source` fails. The blob stays as it was.
    pub fn put_reader(&self, key: impl ToKey, source: impl Read) -> Result<u64> {
        let key = key.to_key()?;
        let upload = self.upload(&key, Target::Replace, source)?;
        let len = upload.len();
        self.finish(key, upload)?.wait()?;
        Ok(len)
    }

    /// Writes everything from a reader at `offset`, in one transaction. Answers its length.
    ///
    /// # Errors
    /// As [`Keyspace::put_reader`].
    pub fn write_reader(&self, key: impl ToKey, offset: u64, source: impl Read) -> Result<u64> {
        let key = key.to_key()?;
        let upload = self.upload(&key, Target::Write(offset), source)?;
        let len = upload.len();
        ByteRange::at(offset, len)?;
        self.finish(key, upload)?.wait()?;
        Ok(len)
    }

    /// Writes `data` at `offset`; makes the blob if there is none; a gap reads as zeros.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn write(&self, key: impl ToKey, offset: u64, data: impl Into<Data>) -> Result<()> {
        self.begin_write(key, offset, data.into())?.wait().map(drop)
    }

    /// Appends `data`; makes the blob if there is none. Answers the offset it got.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn append(&self, key: impl ToKey, data: impl Into<Data>) -> Result<u64> {
        offset(&self.begin_append(key, data.into(), None)?.wait()?)
    }

    /// Appends `data` if the blob ends at `expected_offset` (0 for an absent one).
    ///
    /// # Errors
    /// `Conflict` if it does not; else as [`Keyspace::put`].
    pub fn append_at(
        &self,
        key: impl ToKey,
        expected_offset: u64,
        data: impl Into<Data>,
    ) -> Result<u64> {
        offset(&self.begin_append(key, data.into(), Some(expected_offset))?.wait()?)
    }

    /// Appends everything from a reader, in one transaction. Answers the offset it got.
    ///
    /// # Errors
    /// As [`Keyspace::put_reader`].
    pub fn append_reader(&self, key: impl ToKey, source: impl Read) -> Result<u64> {
        let key = key.to_key()?;
        let upload = self.upload(&key, Target::Append(None), source)?;
        offset(&self.finish(key, upload)?.wait()?)
    }

    /// The same if the blob ends at `expected_offset` (0 for an absent one).
    ///
    /// # Errors
    /// `Conflict` if it does not; else as [`Keyspace::put_reader`].
    pub fn append_reader_at(
        &self,
        key: impl ToKey,
        expected_offset: u64,
        source: impl Read,
    ) -> Result<u64> {
        let key = key.to_key()?;
        let upload = self.upload(&key, Target::Append(Some(expected_offset)), source)?;
        offset(&self.finish(key, upload)?.wait()?)
    }

    /// Reads up to `len` bytes at `offset`; fewer where the blob ends.
    ///
    /// # Errors
    /// `NotFound`; `InvalidArgument` above 64 MiB ([`limits::READ_LEN_MAX`]); `Corrupt` naming
    /// file and place.
    pub fn read(&self, key: impl ToKey, offset: u64, len: u64) -> Result<Bytes> {
        let name = self.blob(key)?;
        let range = read_range(offset, len)?;
        let answer = self.space.read(&name, range)?;
        answer.map(|found| found.bytes).ok_or_else(|| self.absent(&name))
    }

    /// The same with the blob's size and version: what [`Keyspace::stat`] tells, of the moment of
    /// the bytes. `len` may be 0.
    ///
    /// # Errors
    /// As [`Keyspace::read`].
    pub fn read_with_stat(&self, key: impl ToKey, offset: u64, len: u64) -> Result<(Stat, Bytes)> {
        let name = self.blob(key)?;
        let range = read_range(offset, len)?;
        self.space.read_stated(&name, range)?.ok_or_else(|| self.absent(&name))
    }

    /// Reads a whole blob.
    ///
    /// # Errors
    /// As [`Keyspace::read`]; `InvalidArgument` for a blob above 64 MiB: use
    /// [`Keyspace::reader`].
    pub fn get(&self, key: impl ToKey) -> Result<Bytes> {
        let name = self.blob(key)?;
        let answer = self.space.read_whole(&name)?;
        self.whole(&name, answer)
    }

    /// Reads any part of a blob as a stream, at one version.
    ///
    /// # Errors
    /// `NotFound`; later, from the stream, `SnapshotTooOld` after 5 minutes.
    pub fn reader(&self, key: impl ToKey, range: ByteRange) -> Result<Reader> {
        let name = self.blob(key)?;
        let view = self.space.view_of(&name)?;
        let (view, size) = view.ok_or_else(|| self.absent(&name))?;
        Ok(Reader::new(Snapshot::new(view), self.clone(), name, range, size))
    }

    /// Cuts a blob to `len` bytes, or extends it with zeros; makes it if there is none.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn truncate(&self, key: impl ToKey, len: u64) -> Result<()> {
        self.begin(key, |_| Ok(Operation::Truncate { len }))?.wait().map(drop)
    }

    /// Makes a hole of `len` bytes at `offset`: they read as zeros, and take no space. What lies
    /// behind the blob's end stays as it is, and so does an absent blob.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn clear(&self, key: impl ToKey, offset: u64, len: u64) -> Result<()> {
        let range = ByteRange::at(offset, len)?;
        self.begin(key, |_| Ok(Operation::Clear { range }))?.wait().map(drop)
    }

    /// Removes a blob; answers whether there was one.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete(&self, key: impl ToKey) -> Result<bool> {
        existed(&self.begin(key, |_| Ok(Operation::Delete))?.wait()?)
    }

    /// A blob's size and version.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn stat(&self, key: impl ToKey) -> Result<Stat> {
        let name = self.blob(key)?;
        self.space.stat(&name)?.ok_or_else(|| self.absent(&name))
    }

    /// Where the parts of a blob lie that are in this range: see [`crate::Keyspace::locations`].
    ///
    /// # Errors
    /// As [`crate::Keyspace::locations`].
    pub fn locations(&self, key: impl ToKey, range: ByteRange) -> Result<Vec<ChunkLocation>> {
        block_on(crate::Keyspace::from_blocking(self.clone()).locations(key, range))
    }

    /// Which bytes of a range of a blob are written: see [`crate::Keyspace::stretches`].
    ///
    /// # Errors
    /// As [`crate::Keyspace::stretches`].
    pub fn stretches(&self, key: impl ToKey, range: ByteRange) -> Result<Stretches> {
        block_on(crate::Keyspace::from_blocking(self.clone()).stretches(key, range))
    }

    /// How many bytes of a blob are written: see [`crate::Keyspace::allocated`].
    ///
    /// # Errors
    /// As [`crate::Keyspace::stretches`].
    pub fn allocated(&self, key: impl ToKey) -> Result<u64> {
        block_on(crate::Keyspace::from_blocking(self.clone()).allocated(key))
    }

    /// Lists blobs in key order: up to `limit` whose keys begin with `prefix` and come after
    /// `after`.
    ///
    /// # Errors
    /// `InvalidArgument` for a limit of 0 or above 10,000.
    pub fn scan(
        &self,
        prefix: &[u8],
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Stat)>> {
        self.at_a_moment(|snapshot| snapshot.scan(self, prefix, after, limit))
    }

    /// Lists all blobs whose keys begin with `prefix`, in key order, page by page; each page is of
    /// its own moment.
    pub fn scan_iter(&self, prefix: &[u8]) -> impl Iterator<Item = Result<(Key, Stat)>> + use<> {
        let (keyspace, prefix) = (self.clone(), prefix.to_vec());
        let mut after: Option<Key> = None;
        let mut is_over = false;
        let next_page = move || {
            if is_over {
                return None;
            }
            let page = keyspace.scan(&prefix, after.as_ref(), limits::SCAN_LIMIT_MAX);
            match &page {
                Ok(page) => {
                    after = page.last().map(|(key, _)| key.clone());
                    is_over = page.len() < limits::SCAN_LIMIT_MAX;
                }
                Err(_) => is_over = true,
            }
            Some(match page {
                Ok(page) => page.into_iter().map(Ok).collect::<Vec<_>>(),
                Err(error) => vec![Err(error)],
            })
        };
        std::iter::from_fn(next_page).flatten()
    }

    /// Lists a page: what `scan` says, with sizes and versions, and first bytes if they are asked
    /// for, all of one moment. [`Scan::resumed`] goes on behind it. In a guarded keyspace a listing
    /// of one group waits for what others hold alone of it (K2).
    ///
    /// # Errors
    /// `InvalidArgument` for a scan out of range; `Unavailable` in a cluster some node of which is
    /// of a release that lists keys with size and version only.
    pub fn scan_page(&self, scan: &Scan) -> Result<ScanPage> {
        if let Some(page) = block_on(self.space.scan_guarded(scan)) {
            return page;
        }
        self.at_a_moment(|snapshot| snapshot.scan_page(self, scan))
    }

    /// What is read at a moment that nobody asked for; at a later one where data has moved since,
    /// and that moment is not known there.
    fn at_a_moment<T>(&self, read: impl Fn(&Snapshot) -> Result<T>) -> Result<T> {
        let mut attempts = Attempts::default();
        loop {
            let error = match read(&Snapshot::new(self.space.backend().view()?)) {
                Err(error) if error.kind() == ErrorKind::SnapshotTooOld => error,
                done => return done,
            };
            let Some(pause) = attempts.pause_after(&error, None) else { return Err(error) };
            std::thread::sleep(pause);
        }
    }

    /// Lists all that `scan` says, page by page; each page is of its own moment. It ends with the
    /// first error.
    pub fn scan_pages(&self, scan: &Scan) -> impl Iterator<Item = Result<ScanPage>> + use<> {
        let keyspace = self.clone();
        pages(scan.clone(), move |scan| keyspace.scan_page(scan))
    }

    /// Does arithmetic in place; answers the new value. Makes or extends the blob with zeros where
    /// nothing is.
    ///
    /// # Errors
    /// As [`Keyspace::put`]; in a cluster `InvalidArgument` for a number that lies in two chunks.
    pub fn apply(&self, key: impl ToKey, offset: u64, transform: Transform) -> Result<Number> {
        value(&self.begin(key, |_| Ok(Operation::Apply { offset, transform }))?.wait()?)
    }

    /// Replaces `expected` at `offset` by `new`, if exactly that is there.
    ///
    /// # Errors
    /// `Conflict` if something else is there, or the blob ends earlier or is absent.
    pub fn compare_and_swap(
        &self,
        key: impl ToKey,
        offset: u64,
        expected: impl Into<Bytes>,
        new: impl Into<Data>,
    ) -> Result<()> {
        self.begin_swap(key, offset, expected.into(), new.into())?.wait().map(drop)
    }

    // -- what both APIs share: a transaction of one operation, begun -----------------------

    pub(crate) fn begin(
        &self,
        key: impl ToKey,
        operation: impl FnOnce(&mut Pending) -> Result<Operation>,
    ) -> Result<Commit> {
        let mut pending = Pending::default();
        let operation = operation(&mut pending)?;
        pending.add(self.blob(key)?, operation)?;
        Ok(self.commit(pending))
    }

    pub(crate) fn begin_put(&self, key: impl ToKey, data: Data) -> Result<Commit> {
        self.begin(key, |pending| {
            let payload = pending.payload(&self.space, data, Target::Replace)?;
            Ok(Operation::Replace { payload })
        })
    }

    pub(crate) fn begin_write(&self, key: impl ToKey, offset: u64, data: Data) -> Result<Commit> {
        ByteRange::at(offset, data.len() as u64)?;
        self.begin(key, |pending| {
            let payload = pending.payload(&self.space, data, Target::Write(offset))?;
            Ok(Operation::Write { offset, payload })
        })
    }

    pub(crate) fn begin_append(
        &self,
        key: impl ToKey,
        data: Data,
        expected: Option<u64>,
    ) -> Result<Commit> {
        self.begin(key, |pending| {
            let payload = pending.payload(&self.space, data, Target::Append(expected))?;
            Ok(Operation::Append { payload, expected })
        })
    }

    pub(crate) fn begin_swap(
        &self,
        key: impl ToKey,
        offset: u64,
        expected: Bytes,
        new: Data,
    ) -> Result<Commit> {
        let name = self.blob(key)?;
        let mut pending = Pending::default();
        pending.add(name.clone(), Operation::Compare { offset, expected: expected.into() })?;
        let payload = pending.payload(&self.space, new, Target::Write(offset))?;
        pending.add(name, Operation::Write { offset, payload })?;
        Ok(self.commit(pending))
    }

    /// Commits an upload as one operation.
    pub(crate) fn finish(&self, key: impl ToKey, upload: Upload) -> Result<Commit> {
        self.begin(key, |pending| {
            let Finished { operation, leases, remote } = upload.finish()?;
            pending.hold(leases, remote);
            Ok(operation)
        })
    }

    fn commit(&self, pending: Pending) -> Commit {
        let backend = self.space.backend();
        pending.commit(&backend, ReadVersions::new(&backend, None))
    }

    fn upload(&self, key: &Key, target: Target, mut source: impl Read) -> Result<Upload> {
        let mut upload = Upload::new(self.space.clone(), self.blob(key)?, target);
        upload.fill_from(&mut source)?;
        Ok(upload)
    }

    pub(crate) fn blob(&self, key: impl ToKey) -> Result<BlobName> {
        Ok(BlobName { keyspace: self.id(), key: key.to_key()? })
    }

    /// A whole blob, if it is not too large to be answered at once.
    pub(crate) fn whole(&self, name: &BlobName, answer: Answer) -> Result<Bytes> {
        let found = answer.ok_or_else(|| self.absent(name))?;
        match found.size {
            Some(size) if size > limits::READ_LEN_MAX => Err(too_large(&name.key, size)),
            Some(_) | None => Ok(found.bytes),
        }
    }

    pub(crate) fn absent(&self, name: &BlobName) -> Error {
        Error::not_found(format!("keyspace {} has no blob \"{}\"", self.name(), name.key))
    }
}

/// The range of one read.
pub(crate) fn read_range(offset: u64, len: u64) -> Result<ByteRange> {
    if len > limits::READ_LEN_MAX {
        return Err(Error::invalid(format!(
            "one read answers at most {} bytes (64 MiB), not {len}; use a reader",
            limits::READ_LEN_MAX
        )));
    }
    if offset > limits::BLOB_SIZE_MAX {
        return ByteRange::at(offset, len);
    }
    Ok(ByteRange { start: offset, end: offset.saturating_add(len).min(limits::BLOB_SIZE_MAX) })
}

pub(crate) fn too_large(key: &Key, size: u64) -> Error {
    Error::invalid(format!(
        "blob \"{key}\" has {size} bytes; `get` answers at most {} (64 MiB), use a reader",
        limits::READ_LEN_MAX
    ))
}

fn unexpected(committed: &Committed) -> Error {
    Error::corrupt(format!("a commit answered {:?} for another operation", committed.outcomes))
}

pub(crate) fn offset(committed: &Committed) -> Result<u64> {
    match committed.outcomes.first() {
        Some(Outcome::Offset(offset)) => Ok(*offset),
        Some(Outcome::Done | Outcome::Value(_) | Outcome::Existed(_)) | None => {
            Err(unexpected(committed))
        }
    }
}

pub(crate) fn value(committed: &Committed) -> Result<Number> {
    match committed.outcomes.first() {
        Some(Outcome::Value(value)) => Ok(*value),
        Some(Outcome::Done | Outcome::Offset(_) | Outcome::Existed(_)) | None => {
            Err(unexpected(committed))
        }
    }
}

pub(crate) fn existed(committed: &Committed) -> Result<bool> {
    match committed.outcomes.first() {
        Some(Outcome::Existed(existed)) => Ok(*existed),
        Some(Outcome::Done | Outcome::Offset(_) | Outcome::Value(_)) | None => {
            Err(unexpected(committed))
        }
    }
}
