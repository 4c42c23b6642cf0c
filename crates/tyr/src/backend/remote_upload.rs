//! Payloads that go to a cluster ahead of their transaction, in pieces, a few at a time.
//!
//! ```text
//!   bytes ──cut where chunks end──► pieces ──► nodes        at most PIECES_IN_FLIGHT are in memory
//!                                     └ names ──► the transaction
//! ```
//!
//! What is copied inside a cluster does not come by here: nodes fill its pieces (U5), and here are
//! their names.
//!
//! What was uploaded and is not committed is dropped with the [`RemoteUpload`]: the nodes give its
//! space back.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tyr_client::answer::Waiting;
use tyr_client::{Client, Lease, PieceSource, Place, Want};
use tyr_runtime::ticket::Committed;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Error, ErrorKind, Operation, Payload, PieceId,
    PieceRef, ReadCheck, Result, Timestamp, Uploaded, limits,
};

use super::PlacedCopy;

/// Pieces of one payload on their way at a time: 16 MiB at most.
const PIECES_IN_FLIGHT: usize = 4;

/// Pieces of one copy that nodes fill at a time: 32 MiB at most, of several nodes.
const COPIES_IN_FLIGHT: usize = 8;

/// A payload on its way, at a place of a blob.
#[derive(Debug)]
pub(crate) struct RemoteUpload {
    client: Arc<Client>,
    name: BlobName,
    chunk_size: u64,
    /// Where the next byte goes.
    at: u64,
    /// On their way, each with its chunk.
    waiting: VecDeque<(u64, Waiting<PieceRef>)>,
    done: Vec<(u64, PieceRef)>,
    is_kept: bool,
}

impl RemoteUpload {
    /// What comes goes to `offset` of the blob.
    pub fn new(client: &Arc<Client>, name: BlobName, chunk_size: u64, offset: u64) -> Self {
        debug_assert!(chunk_size > 0, "a chunk has bytes");
        let (waiting, done) = (VecDeque::new(), Vec::new());
        let client = Arc::clone(client);
        Self { client, name, chunk_size, at: offset, waiting, done, is_kept: false }
    }

    /// Sends some more bytes, and waits while too many are on their way.
    pub async fn push(&mut self, mut bytes: Bytes) -> Result<()> {
        while !bytes.is_empty() {
            if self.waiting.len() >= PIECES_IN_FLIGHT {
                self.settle_one().await?;
            }
            let to_chunk_end = self.chunk_size - self.at % self.chunk_size;
            let len = to_chunk_end.min(limits::PIECE_LEN_MAX.into()).min(bytes.len() as u64);
            let (chunk, piece) = (self.at / self.chunk_size, bytes.split_to(len as usize));
            let waiting = self.client.upload(self.name.clone(), chunk, piece);
            self.waiting.push_back((chunk, waiting));
            self.at += len;
        }
        Ok(())
    }

    /// Has nodes fill what goes to a place with a range of another blob of this chunk size, as it
    /// was at a moment (U5); waits while too many pieces are on their way. `tell` is told up to
    /// where of the source it is.
    pub async fn copy(
        &mut self,
        from: &BlobName,
        from_size: u64,
        at: Timestamp,
        PlacedCopy { range, offset }: PlacedCopy,
        tell: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<()> {
        let mut rest = range;
        self.at = offset;
        while !rest.is_empty() {
            if self.waiting.len() >= COPIES_IN_FLIGHT {
                self.settle_one().await?;
                tell(rest.start)?;
            }
            let to_chunk_end = self.chunk_size - self.at % self.chunk_size;
            let from_chunk_end = from_size - rest.start % from_size;
            let len = to_chunk_end.min(from_chunk_end);
            let len = len.min(limits::PIECE_LEN_MAX.into()).min(rest.len());
            let (chunk, range) = (self.at / self.chunk_size, ByteRange::at(rest.start, len)?);
            let source = PieceSource { blob: from.clone(), range, at };
            let waiting = self.client.copy(self.name.clone(), chunk, source);
            self.waiting.push_back((chunk, waiting));
            (self.at, rest.start) = (self.at + len, range.end);
        }
        Ok(())
    }

    /// All of it is durable; the payloads of these lengths that name it, one after the other.
    pub async fn payloads(&mut self, lens: &[u64]) -> Result<Vec<Payload>> {
        while !self.waiting.is_empty() {
            self.settle_one().await?;
        }
        let mut pieces = self.done.iter().map(|(_, piece)| *piece);
        let payload = |len: &u64| {
            let mut rest = *len;
            let of_payload = std::iter::from_fn(|| {
                let piece = if rest > 0 { pieces.next()? } else { return None };
                rest = rest.saturating_sub(piece.len.into());
                Some(piece)
            });
            Uploaded::of(of_payload.collect::<Vec<_>>())
        };
        let uploaded: Result<Vec<Uploaded>> = lens.iter().map(payload).collect();
        Ok(uploaded?.into_iter().map(|it| Payload::Uploaded(Arc::new(it))).collect())
    }

    /// All of it is durable; the payload that names it.
    pub async fn payload(&mut self) -> Result<Payload> {
        while !self.waiting.is_empty() {
            self.settle_one().await?;
        }
        let uploaded = Uploaded::of(self.done.iter().map(|(_, piece)| *piece))?;
        Ok(Payload::Uploaded(Arc::new(uploaded)))
    }

    /// A commit that refers to it has ended so. What may be used yet is left, and goes by itself in
    /// a day if it is not; what was used is not there any more, but where it was sent twice.
    pub fn end(&mut self, committed: &Result<Committed>) {
        let is_open = |error: &Error| error.kind() == ErrorKind::TimedOut;
        self.is_kept = committed.as_ref().is_err_and(is_open);
    }

    async fn settle_one(&mut self) -> Result<()> {
        if let Some((chunk, waiting)) = self.waiting.pop_front() {
            self.done.push((chunk, waiting.answer().await?));
        }
        Ok(())
    }
}

impl Drop for RemoteUpload {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let mut by_chunk: BTreeMap<u64, Vec<PieceId>> = BTreeMap::new();
        for (chunk, piece) in &self.done {
            by_chunk.entry(*chunk).or_default().push(piece.id);
        }
        for (chunk, ids) in by_chunk {
            self.client.drop_pieces(self.name.clone(), chunk, ids);
        }
    }
}

/// Whether payloads of this transaction are better uploaded ahead of it than carried.
pub(super) fn is_large(client: &Client, blobs: &[BlobOperations]) -> bool {
    let operations = blobs.iter().flat_map(|entry| &entry.operations);
    let lens = operations.filter(|it| is_worth_it(it)).filter_map(Operation::payload);
    let len: u64 = lens.map(Payload::len).sum();
    len >= limits::UPLOAD_MIN as u64 && client.may_upload()
}

/// Whether the payload of an operation may be uploaded ahead. Of an append it must be known where
/// it goes; one that a transaction can carry takes any place, and never fails for it.
fn is_worth_it(operation: &Operation) -> bool {
    let Some(Payload::Inline(bytes)) = operation.payload() else { return false };
    match operation {
        Operation::Append { expected: None, .. } => bytes.len() > limits::TRANSACTION_INLINE_MAX,
        Operation::Append { .. }
        | Operation::Write { .. }
        | Operation::Replace { .. }
        | Operation::Create
        | Operation::Truncate { .. }
        | Operation::Clear { .. }
        | Operation::Delete
        | Operation::Apply { .. }
        | Operation::Compare { .. }
        | Operation::Expect { .. } => bytes.len() >= limits::EXTENT_PAYLOAD_MIN,
    }
}

/// Uploads the large payloads of a transaction, then commits it.
pub(super) async fn commit(
    client: &Arc<Client>,
    mut blobs: Vec<BlobOperations>,
    reads: Vec<ReadCheck>,
    leases: Vec<Lease>,
) -> Result<Committed> {
    let mut uploads = Vec::new();
    for entry in &mut blobs {
        // Where the blob ends, when that was asked for.
        let mut known_size = None;
        for number in 0..entry.operations.len() {
            if !is_worth_it(&entry.operations[number]) {
                continue;
            }
            let offset = match &entry.operations[number] {
                Operation::Write { offset, .. } => *offset,
                Operation::Append { expected: Some(expected), .. } => *expected,
                Operation::Append { expected: None, .. } => {
                    if known_size.is_none() {
                        known_size = Some(size_of(client, &entry.blob).await?);
                    }
                    let before = entry.operations[..number].iter();
                    let size = before.fold(known_size.flatten(), |size, it| it.size_after(size));
                    size.unwrap_or(0)
                }
                _ => 0,
            };
            let operation = &mut entry.operations[number];
            let Some(Payload::Inline(bytes)) = operation.payload().cloned() else { continue };
            let Some(chunk_size) = client.map().chunk_size(entry.blob.keyspace) else {
                continue; // The session knows what to say.
            };
            let mut upload = RemoteUpload::new(client, entry.blob.clone(), chunk_size, offset);
            upload.push(bytes).await?;
            let payload = upload.payload().await?;
            uploads.push(upload);
            *operation = operation.with_payload(payload);
            if let Operation::Append { expected, .. } = operation {
                *expected = Some(offset);
            }
        }
    }
    let committed = client.commit(blobs, reads, leases).await;
    uploads.iter_mut().for_each(|upload| upload.end(&committed));
    committed
}

/// Where the blob ends; `None` when it is absent.
pub(super) async fn size_of(client: &Client, name: &BlobName) -> Result<Option<u64>> {
    let sight = client.read(Want::stat(name.clone()), Place::Newest).answer().await?;
    Ok(sight.seen.size.flatten())
}
