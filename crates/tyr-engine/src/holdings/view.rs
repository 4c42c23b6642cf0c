//! What the machines ask of what is applied here (C1, and conditions).

use tyr_protocol::View;
use tyr_types::{BlobName, ByteRange, KeyspaceId, Listed, Number, NumberType, Timestamp, limits};

use super::Holdings;
use super::applying::size_of;

impl View for Holdings {
    fn newest_overlapping(
        &self,
        blob: &BlobName,
        range: ByteRange,
        is_attributes: bool,
    ) -> Timestamp {
        let chunk_size = self.chunk_size(blob.keyspace);
        let last = range.end.saturating_sub(1).max(range.start) / chunk_size;
        let first = if is_attributes { 0 } else { range.start / chunk_size };
        let newest = |chunk: u64| {
            let local = self.place(blob.keyspace, chunk).local(range);
            let is_attributes = is_attributes && chunk == 0;
            self.look(blob, chunk, |state| state.newest_overlapping(local, is_attributes))
        };
        let chunks = self.chunks_here(blob, first, last);
        chunks.into_iter().filter_map(newest).max().unwrap_or(Timestamp::ZERO)
    }

    fn is_listing_stale(&self, keyspace: KeyspaceId, listed: &Listed, at: Timestamp) -> bool {
        // What was deleted where the blobs were before is not known here; and what cannot be read
        // may have changed.
        at < self.known_from || self.store.is_listing_stale(keyspace, listed, at).unwrap_or(true)
    }

    fn stat(&self, blob: &BlobName) -> Option<u64> {
        self.look(blob, 0, size_of)?
    }

    fn matches(&self, blob: &BlobName, offset: u64, expected: &[u8]) -> bool {
        let chunk_size = self.chunk_size(blob.keyspace);
        // Known at version managers only. Elsewhere what is not held counts as the end, not as a
        // hole: then a condition fails that might hold, never the other way round.
        let size = self.stat(blob);
        let is_short = size.map(|size| offset + expected.len() as u64 > size);
        if is_short.unwrap_or(expected.is_empty()) {
            return false;
        }
        let (mut at, mut rest) = (offset, expected);
        while !rest.is_empty() {
            let chunk_end = (at / chunk_size + 1) * chunk_size;
            let (piece, next) = rest.split_at(rest.len().min((chunk_end - at) as usize));
            let range = ByteRange { start: at, end: at + piece.len() as u64 };
            let read = self.plan_read(blob, range, None);
            let held = read.and_then(|read| self.store.finish_chunk_read(read));
            let held = held.map(|reading| reading.bytes).unwrap_or_default();
            let (there, beyond) = piece.split_at(piece.len().min(held.len()));
            let is_hole = size.is_some() && beyond.iter().all(|byte| *byte == 0);
            if *there != held[..there.len()] || !beyond.is_empty() && !is_hole {
                return false;
            }
            (at, rest) = (chunk_end, next);
        }
        true
    }

    fn number(&self, blob: &BlobName, offset: u64, number_type: NumberType) -> Option<Number> {
        let range = ByteRange { start: offset, end: offset + number_type.width() as u64 };
        // A chunk that was never written reads as nothing: what cannot be read is an error.
        let read = self.plan_read(blob, range, None).ok()?;
        let held = self.store.finish_chunk_read(read).ok()?.bytes;
        Some(Number::load_written(number_type, &held))
    }

    fn chunk_size(&self, keyspace: KeyspaceId) -> u64 {
        // What is not in the map is refused before anybody asks for the answer to matter.
        self.keyspaces.get(&keyspace).map_or(limits::CHUNK_SIZE_DEFAULT, |it| it.chunk_size)
    }
}
