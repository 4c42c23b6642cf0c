//! Reading what is here: the version is chosen at once, its bytes are fetched by whoever may wait.

use tyr_protocol::member::ChunkName;
use tyr_protocol::{Abort, View};
use tyr_store::store::chunks::{ChunkRead, stored_name};
use tyr_store::store::too_old;
use tyr_types::{BlobName, ByteRange, Error, ErrorKind, Result, Timestamp};

use super::Holdings;

impl Holdings {
    /// Chooses what a read of `range`, which lies in one chunk, sees.
    ///
    /// # Errors
    /// `SnapshotTooOld` when that version is gone; `Corrupt`, `Unavailable`.
    pub fn plan_read(
        &self,
        blob: &BlobName,
        range: ByteRange,
        at: Option<Timestamp>,
    ) -> Result<ChunkRead> {
        let place = self.place(blob.keyspace, range.start / self.chunk_size(blob.keyspace));
        let number = range.start / place.range.len();
        let awaited = self.expected.contains_key(&(blob.clone(), number));
        assert!(!awaited, "{blob}: chunk {number} is read before its base is here (D1)");
        let stored = stored_name(blob, number);
        let cell = self.store.chunk(&stored)?;
        let read = self.store.plan_chunk_read(&cell, place, range, at)?;
        // What was deleted where the chunk was before is not known here.
        match read.is_absent() && at.is_some_and(|at| at < self.known_from) {
            true => Err(too_old(&stored)),
            false => Ok(read),
        }
    }

    /// Chooses what a reading of a whole chunk sees now; `None` while its base is still to come.
    ///
    /// # Errors
    /// `Corrupt`, `Unavailable`.
    pub fn plan_whole(&self, name: &ChunkName) -> Result<Option<ChunkRead>> {
        if self.is_expected(&name.0, name.1) {
            return Ok(None);
        }
        let range = self.place(name.0.keyspace, name.1).range;
        self.plan_read(&name.0, range, None).map(Some)
    }
}

/// What a client is told when the store cannot answer.
pub fn refusal(blob: Option<&BlobName>, error: &Error) -> Abort {
    let kind = match error.kind() {
        // A kept snapshot that was dropped is not found.
        ErrorKind::SnapshotTooOld | ErrorKind::NotFound => ErrorKind::SnapshotTooOld,
        ErrorKind::Corrupt => ErrorKind::Corrupt,
        _ => ErrorKind::Unavailable,
    };
    Abort { blob: blob.cloned(), ..Abort::new(kind, error.to_string()) }
}
