//! What a node of the explored cluster has applied: who wrote what, in order, and the bytes.

use std::hash::{Hash, Hasher};

use tyr_protocol::View;
use tyr_types::{
    BlobName, ByteRange, Existence, KeyspaceId, NumberType, Operation, Payload, Timestamp,
    Transaction,
};

use super::case::{Number, number};

/// A write that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Written {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub by: Number,
    /// From where to where.
    range: (u64, u64),
    /// Whether the blob was longer or shorter afterwards.
    is_resized: bool,
}

/// A blob as a node, or everybody, has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Content {
    /// Its writes, in the order applied.
    pub writes: Vec<Written>,
    /// Its bytes; `None` when it is absent.
    pub bytes: Option<Vec<u8>>,
}

/// The two blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedContent {
    names: [BlobName; 2],
    contents: [Content; 2],
}

impl AppliedContent {
    /// Nothing is written yet.
    pub fn new(names: [BlobName; 2]) -> Self {
        Self { names, contents: Default::default() }
    }

    /// The content of the first or second blob.
    pub fn content(&self, blob: usize) -> &Content {
        &self.contents[blob]
    }

    /// Feeds what is here to `hasher`.
    pub fn fingerprint(&self, hasher: &mut impl Hasher) {
        self.contents.hash(hasher);
    }

    /// Does what `transaction` writes to the blobs that `is_here` is asked about.
    ///
    /// # Errors
    /// When something newer, or the same, was applied before.
    pub fn apply(
        &mut self,
        transaction: &Transaction,
        at: Timestamp,
        is_here: impl Fn(&BlobName) -> bool,
    ) -> Result<(), String> {
        for entry in transaction.blobs.iter().filter(|entry| is_here(&entry.blob)) {
            for operation in entry.operations.iter().filter(|it| it.is_write()) {
                let blob = self.index(&entry.blob);
                self.write(blob, operation, at, number(transaction.id))?;
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        blob: usize,
        operation: &Operation,
        at: Timestamp,
        by: Number,
    ) -> Result<(), String> {
        let content = &mut self.contents[blob];
        if let Some(last) = content.writes.last()
            && last.at >= at
        {
            let (last_by, last_at) = (last.by, last.at);
            return Err(format!(
                "blob {blob}: transaction {by} at {at} is applied after {last_by} at {last_at}"
            ));
        }
        let size = content.bytes.as_ref().map(Vec::len);
        let (start, data) = match operation {
            Operation::Write { offset, payload: Payload::Inline(data) } => {
                (usize::try_from(*offset).expect("small"), data)
            }
            Operation::Append { payload: Payload::Inline(data), .. } => (size.unwrap_or(0), data),
            other => return Err(format!("no case has this operation: {other:?}")),
        };
        let bytes = content.bytes.get_or_insert_default();
        let end = start + data.len();
        bytes.resize(bytes.len().max(end), 0);
        bytes[start..end].copy_from_slice(data);
        let is_resized = size != Some(bytes.len());
        content.writes.push(Written { at, by, range: (start as u64, end as u64), is_resized });
        Ok(())
    }

    /// Whether everything that `transaction` read or requires is so.
    pub fn explains(&self, transaction: &Transaction) -> bool {
        let is_read = |read: &tyr_types::ReadCheck| {
            self.newest_overlapping(&read.blob, read.range, read.is_attributes) == read.at
        };
        let is_met = |(blob, operation): (&BlobName, &Operation)| match operation {
            Operation::Compare { offset, expected } => self.is_as_expected(blob, *offset, expected),
            Operation::Create => self.stat(blob).is_none(),
            Operation::Expect { existence } => Existence::of(self.stat(blob)) == *existence,
            Operation::Append { expected, .. } => {
                expected.is_none_or(|end| end == self.stat(blob).unwrap_or(0))
            }
            Operation::Write { .. }
            | Operation::Truncate { .. }
            | Operation::Clear { .. }
            | Operation::Delete
            | Operation::Apply { .. }
            | Operation::Replace { .. } => true,
        };
        let operations = transaction
            .blobs
            .iter()
            .flat_map(|entry| entry.operations.iter().map(|operation| (&entry.blob, operation)));
        transaction.reads.iter().all(is_read) && operations.into_iter().all(is_met)
    }

    fn index(&self, blob: &BlobName) -> usize {
        usize::from(*blob != self.names[0])
    }
}

impl View for AppliedContent {
    fn newest_overlapping(
        &self,
        blob: &BlobName,
        range: ByteRange,
        is_attributes: bool,
    ) -> Timestamp {
        let is_over = |written: &&Written| {
            let (start, end) = written.range;
            ByteRange { start, end }.overlaps(range) || is_attributes && written.is_resized
        };
        let writes = self.contents[self.index(blob)].writes.iter().filter(is_over);
        writes.map(|written| written.at).max().unwrap_or(Timestamp::ZERO)
    }

    fn is_listing_stale(&self, _: KeyspaceId, listed: &tyr_types::Listed, _: Timestamp) -> bool {
        panic!("no case lists: {listed:?}")
    }

    fn stat(&self, blob: &BlobName) -> Option<u64> {
        self.contents[self.index(blob)].bytes.as_ref().map(|bytes| bytes.len() as u64)
    }

    fn number(&self, _: &BlobName, _: u64, number_type: NumberType) -> Option<tyr_types::Number> {
        panic!("no case compares numbers: {number_type:?}")
    }

    fn matches(&self, blob: &BlobName, offset: u64, expected: &[u8]) -> bool {
        let start = usize::try_from(offset).expect("small");
        let bytes = self.contents[self.index(blob)].bytes.as_deref();
        bytes.and_then(|bytes| bytes.get(start..start + expected.len())) == Some(expected)
    }

    fn chunk_size(&self, _keyspace: KeyspaceId) -> u64 {
        4096
    }
}
