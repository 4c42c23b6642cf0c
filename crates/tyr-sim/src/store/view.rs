//! What the commit machine of a simulated node asks of what is applied.

use tyr_protocol::View;
use tyr_types::{BlobName, ByteRange, KeyspaceId, Listed, Number, NumberType, Timestamp};

use super::SimStore;
use super::chunk::Chunk;

impl View for SimStore {
    fn newest_overlapping(
        &self,
        blob: &BlobName,
        range: ByteRange,
        is_attributes: bool,
    ) -> Timestamp {
        let chunk_size = self.chunk_size(blob.keyspace);
        let last = range.end.saturating_sub(1).max(range.start) / chunk_size;
        let first = if is_attributes { 0 } else { range.start / chunk_size };
        let names = (blob.clone(), first)..=(blob.clone(), last);
        let chunks = self.chunks.range(names).map(|(_, chunk)| chunk);
        let newest = |chunk: &Chunk| chunk.newest(range, is_attributes, Timestamp::MAX);
        chunks.map(newest).max().unwrap_or(Timestamp::ZERO)
    }

    fn is_listing_stale(&self, keyspace: KeyspaceId, listed: &Listed, at: Timestamp) -> bool {
        // Which keys there are counts like what is in them.
        let is_listed = |(blob, chunk): &(BlobName, u64)| {
            *chunk == 0 && blob.keyspace == keyspace && listed.keys.contains(blob.key.as_bytes())
        };
        let listed = self.chunks.iter().filter(|(name, _)| is_listed(name));
        let newest = |chunk: &Chunk| chunk.newest(ByteRange::NOTHING, true, Timestamp::MAX);
        listed.map(|(_, chunk)| newest(chunk)).any(|newest| newest > at)
    }

    fn stat(&self, blob: &BlobName) -> Option<u64> {
        self.chunks.get(&(blob.clone(), 0)).and_then(|chunk| chunk.latest().size)
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
        let mut at = offset;
        let mut rest = expected;
        while !rest.is_empty() {
            let name = (blob.clone(), at / chunk_size);
            let range = self.chunk_range(&name);
            let (piece, next) = rest.split_at(rest.len().min((range.end - at) as usize));
            let held = self.chunks.get(&name).map_or(&[][..], |chunk| &chunk.latest().bytes);
            let held = held.get((at - range.start) as usize..).unwrap_or(&[]);
            let (there, beyond) = piece.split_at(piece.len().min(held.len()));
            let is_hole = size.is_some() && beyond.iter().all(|byte| *byte == 0);
            if *there != held[..there.len()] || !beyond.is_empty() && !is_hole {
                return false;
            }
            (at, rest) = (range.end, next);
        }
        true
    }

    fn number(&self, blob: &BlobName, offset: u64, number_type: NumberType) -> Option<Number> {
        let name = (blob.clone(), offset / self.chunk_size(blob.keyspace));
        let at = (offset - self.chunk_range(&name).start) as usize;
        let held = self.chunks.get(&name).map_or(&[][..], |chunk| &chunk.latest().bytes);
        let held = held.get(at..).unwrap_or(&[]);
        Some(Number::load_written(number_type, &held[..held.len().min(number_type.width())]))
    }

    fn chunk_size(&self, keyspace: KeyspaceId) -> u64 {
        *self.config.chunk_sizes.get(&keyspace).expect("only keyspaces of the run are named")
    }
}
