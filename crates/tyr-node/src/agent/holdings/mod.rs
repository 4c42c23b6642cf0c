//! What a node of a cluster holds: chunks, and what is still to come of them.
//!
//! The member's view of the store (`tyr_protocol::member::Store`): it names chunks and chains, the
//! store below names what it keeps. In between lies only what no store can know: chunks whose base
//! is still on its way here, with what was applied to them meanwhile; and down to where versions
//! are still read (V2 to V4).
//!
//! ```text
//!   Member ──apply, install, release──► Holdings ──► Store (recent, base)
//!                                          └── awaited: pieces of bases, operations laid aside
//! ```
//!
//! Nothing here answers an error: the log has it all already. When the disk fails, that is noted
//! ([`Holdings::failure`]), and the node must do nothing more: what it says then is not so.

mod expected;
mod floor;
pub(crate) mod staging;
mod touched;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
use tyr_protocol::commit::{Answered, Outcomes};
use tyr_protocol::map::{ClusterMap, MapKeyspace};
use tyr_protocol::member::{self, ChunkName, Member, Record};
use tyr_protocol::movement::{ChunkCopy, ChunkVersion};
use tyr_protocol::versions::Usage;
use tyr_protocol::{Abort, Chain, View};
use tyr_store::recent::Readers;
use tyr_store::recent::chunk::{Installed, Place, Start};
use tyr_store::store::Store;
use tyr_store::store::chunks::{ChunkRead, chunk_name, later, stored_name};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Error, ErrorKind, ExtentRef, KeyspaceId, NodeId,
    Operation, Outcome, Payload, Result, Timestamp, Transaction, TransactionId, limits,
};

pub(crate) use self::expected::Expected;
pub(crate) use self::floor::{Floors, Retention};
use self::staging::{Staging, Written};

/// Chunks that an overlap is looked for in one by one; with more, those that are here are listed.
const LOOKED_UP_MAX: u64 = 64;

/// Names that are listed at a time.
const PAGE: usize = 1024;

/// A keyspace as far as the chunks of its blobs need it.
#[derive(Clone, Copy, Debug)]
struct Keyspace {
    chunk_size: u64,
    is_multi_versioned: bool,
    is_compressed: bool,
}

/// The chunks that a node holds.
pub(crate) struct Holdings {
    node: NodeId,
    store: Arc<Store>,
    keyspaces: HashMap<KeyspaceId, Keyspace, RandomState>,
    map: Option<Arc<ClusterMap>>,
    /// Chunks whose base is still to come.
    expected: BTreeMap<ChunkName, Expected>,
    floors: Floors,
    staging: Staging,
    failure: Option<Error>,
}

impl std::fmt::Debug for Holdings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Holdings(node {}, {:?})", self.node.0, self.store)
    }
}

impl Holdings {
    /// What the node has in `store`.
    pub fn new(node: NodeId, store: Arc<Store>, retention: Retention) -> Self {
        Self {
            node,
            store,
            keyspaces: HashMap::default(),
            map: None,
            expected: BTreeMap::new(),
            floors: Floors::new(retention),
            staging: Staging::default(),
            failure: None,
        }
    }

    /// The store below.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Why the node must do nothing more.
    pub fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// Down to where versions are read.
    pub fn floors(&mut self) -> &mut Floors {
        &mut self.floors
    }

    /// Bytes that wait for the bases of their chunks, roughly.
    pub fn expected_bytes(&self) -> usize {
        self.expected.values().map(Expected::bytes).sum()
    }

    /// Knows of the keyspaces of a map, before the member is told of it.
    pub fn learn(&mut self, map: &Arc<ClusterMap>) {
        if self.map.as_ref().is_some_and(|known| known.epoch >= map.epoch) {
            return;
        }
        for (id, keyspace) in &map.keyspaces {
            let MapKeyspace { name, config, .. } = keyspace;
            if !self.keyspaces.contains_key(id) {
                let adopted = self.store.adopt_keyspace(*id, name, config);
                self.note(adopted);
                let known = Keyspace {
                    chunk_size: config.chunk_size,
                    is_multi_versioned: config.is_multi_versioned,
                    is_compressed: config.is_compressed,
                };
                self.keyspaces.insert(*id, known);
            }
        }
        self.map = Some(Arc::clone(map));
    }

    /// Writes the large payloads of a transaction that is about to be logged; answers it as the log
    /// is to keep it, `None` when that is as it is.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or refuses.
    pub fn stage(&mut self, transaction: &Transaction) -> Result<Option<Transaction>> {
        let keyspaces = &self.keyspaces;
        self.staging.stage(&self.store, transaction, |entry| {
            let known = keyspaces.get(&entry.blob.keyspace);
            known.map_or((limits::CHUNK_SIZE_DEFAULT, false), |it| (it.chunk_size, it.is_compressed))
        })
    }

    /// A transaction is over here without having been applied.
    pub fn forget_staged(&mut self, id: TransactionId) {
        self.staging.end(id);
    }

    /// The transaction with all its payloads by value.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn inlined(&self, transaction: &Transaction) -> Result<Transaction> {
        let inlined = |entry: &BlobOperations| {
            let operations = staging::inline(&self.store, &entry.operations)?;
            Ok(BlobOperations { blob: entry.blob.clone(), operations })
        };
        let blobs: Result<Vec<_>> = transaction.blobs.iter().map(inlined).collect();
        let (id, reads) = (transaction.id, transaction.reads.clone());
        Ok(Transaction { id, blobs: blobs?, reads })
    }

    /// Takes in a record of the log at a start, in the order they were written; adds the extents
    /// that it refers to.
    ///
    /// # Errors
    /// What the disk says.
    pub fn replay(
        &mut self,
        member: &mut Member,
        record: Record,
        extents: &mut Vec<ExtentRef>,
    ) -> Result<()> {
        match &record {
            Record::Map(map) => self.learn(map),
            Record::Validated { transaction, .. } => {
                let operations = transaction.blobs.iter().flat_map(|entry| &entry.operations);
                for payload in operations.filter_map(|operation| operation.payload()) {
                    if let Payload::Extents(of) = payload {
                        extents.extend(of);
                    }
                }
            }
            Record::Standing { map, .. } => map.iter().for_each(|map| self.learn(map)),
            Record::Fenced { .. }
            | Record::Decided { .. }
            | Record::Answered { .. }
            | Record::Aborted { .. }
            | Record::Recalled { .. }
            | Record::Remembered { .. }
            | Record::Aside { .. }
            | Record::Installed { .. } => {}
        }
        member.replay(record, self);
        match &self.failure {
            None => Ok(()),
            Some(failure) => Err(failure.duplicate()),
        }
    }

    /// Whether what a request is about is in memory; else it is better brought there first.
    pub fn is_resident(&self, blob: &BlobName, chunk: u64) -> bool {
        self.store.is_chunk_resident(&stored_name(blob, chunk))
    }

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
        let cell = self.store.chunk(&stored_name(blob, number))?;
        self.store.plan_chunk_read(&cell, place, range, at)
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

    /// Takes note of a failure of the disk.
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.failure.get_or_insert(error)).ok()
    }

    fn place(&self, keyspace: KeyspaceId, chunk: u64) -> Place {
        let size = self.chunk_size(keyspace);
        Place { range: ByteRange { start: chunk * size, end: (chunk + 1) * size } }
    }

    /// Who may read older versions of the blob than what is written at `at`.
    fn readers(&self, blob: &BlobName, at: Timestamp) -> Readers<'static> {
        let is_multi = self.keyspaces.get(&blob.keyspace).is_none_or(|it| it.is_multi_versioned);
        self.floors.readers(blob, at, is_multi)
    }

    /// Who may read older versions of what is kept under this name, now.
    pub fn readers_now(&self, stored: &BlobName, now: Timestamp) -> Readers<'static> {
        match chunk_name(stored) {
            Some((blob, _)) => self.readers(&blob, now),
            None => Readers::NONE,
        }
    }

    /// The chunk's state, if it is one of those here.
    fn look<T>(
        &self,
        blob: &BlobName,
        chunk: u64,
        look: impl FnOnce(&tyr_store::recent::BlobState) -> T,
    ) -> Option<T> {
        let stored = stored_name(blob, chunk);
        if let Some(cell) = self.store.recent().find(&stored) {
            return Some(look(&cell.lock()));
        }
        let is_placed = |map: &Arc<ClusterMap>| {
            map.placement(blob, chunk).is_some_and(|placed| placed.has(self.node))
        };
        if !self.map.as_ref().is_none_or(is_placed) {
            return None;
        }
        // A disk that fails here fails again when the transaction is applied, and is noted then.
        let cell = self.store.chunk(&stored).ok()?;
        let state = cell.lock();
        Some(look(&state))
    }

    /// The operations as they are applied: large payloads by reference, if each piece lies in one
    /// chunk.
    fn operations<'e>(
        &mut self,
        id: TransactionId,
        (number, entry): (usize, &'e BlobOperations),
        append_at: u64,
    ) -> (Cow<'e, [Operation]>, Vec<(ExtentRef, ByteRange)>, Option<Written>) {
        let chunk_size = self.chunk_size(entry.blob.keyspace);
        let whole = |operations: &[Operation]| staging::spans(operations, append_at, chunk_size);
        if let Some((operations, written)) = self.staging.take(id, number, entry) {
            return match whole(&operations) {
                Some(spans) => (Cow::Owned(operations), spans, Some(written)),
                None => (Cow::Borrowed(&entry.operations), Vec::new(), None),
            };
        }
        match whole(&entry.operations) {
            Some(spans) => (Cow::Borrowed(&entry.operations), spans, None),
            None => {
                let inlined = staging::inline(&self.store, &entry.operations);
                (Cow::Owned(self.note(inlined).unwrap_or_default()), Vec::new(), None)
            }
        }
    }

    fn apply_blob(
        &mut self,
        (id, at): (TransactionId, Timestamp),
        (place_in, entry): (usize, &BlobOperations),
        chunks: &[u64],
        guess: u64,
    ) -> Vec<(usize, Outcome)> {
        let blob = &entry.blob;
        let is_known = chunks.first() == Some(&0) && !self.is_expected(blob, 0);
        let start = match is_known {
            true => Start::Known(self.stat(blob).unwrap_or(0)),
            false => Start::Guessed(guess),
        };
        let readers = self.readers(blob, at);
        let append_at = match start {
            Start::Known(size) => size,
            Start::Guessed(guess) => guess,
        };
        let (operations, spans, written) = self.operations(id, (place_in, entry), append_at);
        let mut outcomes = Vec::new();
        for number in chunks {
            if self.is_expected(blob, *number) {
                self.lay_aside((blob, *number), at, entry, start);
                continue;
            }
            let place = self.place(blob.keyspace, *number);
            let applied = self.store.chunk(&stored_name(blob, *number)).and_then(|cell| {
                self.store.apply_chunk(&cell, place, (&operations, start), (at, readers))
            });
            if let Some(written) = &written {
                let is_placed = |extent: &ExtentRef| {
                    spans.iter().any(|(of, span)| of == extent && place.range.contains(*span))
                };
                written.adopt(is_placed);
            }
            let answers = self.note(applied).unwrap_or_default();
            let is_told = |outcome: &Outcome| match outcome {
                Outcome::Value(_) => true,
                Outcome::Offset(_) | Outcome::Existed(_) => *number == 0,
                Outcome::Done => false,
            };
            outcomes.extend(answers.into_iter().filter(|(_, outcome)| is_told(outcome)));
        }
        outcomes.sort_unstable_by_key(|(operation, _)| *operation);
        outcomes
    }

    /// Keeps what is applied to a chunk whose base is still to come, by value.
    fn lay_aside(
        &mut self,
        (blob, chunk): (&BlobName, u64),
        at: Timestamp,
        entry: &BlobOperations,
        start: Start,
    ) {
        let inlined = staging::inline(&self.store, &entry.operations);
        let Some(operations) = self.note(inlined) else { return };
        if let Some(expected) = self.expected.get_mut(&(blob.clone(), chunk)) {
            expected.lay_aside(at, operations, start);
        }
    }

    fn is_expected(&self, blob: &BlobName, chunk: u64) -> bool {
        !self.expected.is_empty() && self.expected.contains_key(&(blob.clone(), chunk))
    }

    /// The base of a chunk is complete.
    fn install_whole(&mut self, name: &ChunkName, expected: Expected) {
        let (copies, aside) = expected.into_parts();
        let place = self.place(name.0.keyspace, name.1);
        let newest = |copy: &ChunkCopy| copy.newest().clone();
        let versions: Vec<ChunkVersion> = copies.iter().map(newest).collect();
        let pieces: Vec<_> = copies
            .iter()
            .zip(&versions)
            .map(|(copy, version)| (copy.range.start - place.range.start, version.bytes.clone()))
            .collect();
        let highest = |of: fn(&ChunkVersion) -> Timestamp| {
            versions.iter().map(of).max().unwrap_or(Timestamp::ZERO)
        };
        let copied_at = copies.iter().map(|copy| copy.at).max().unwrap_or(Timestamp::ZERO);
        let copy = Installed {
            at: copied_at,
            version: highest(|version| version.version),
            pieces: &pieces,
            size: place.is_first().then(|| versions.iter().find_map(|it| it.size.flatten())),
            size_version: highest(|version| version.size_version),
        };
        let stored = stored_name(&name.0, name.1);
        let installed = self.store.install_chunk(&stored, place, copy);
        self.note(installed);
        for (at, laid) in aside {
            let readers = self.readers(&name.0, at);
            let applied = self.store.chunk(&stored).and_then(|cell| {
                let what = (&laid.operations[..], laid.start);
                self.store.apply_chunk(&cell, place, what, (at, readers))
            });
            self.note(applied);
        }
    }
}

impl member::Store for Holdings {
    fn apply(&mut self, transaction: &Transaction, chain: &Chain, at: Timestamp) -> Outcomes {
        let mut outcomes = Outcomes::new();
        let position = chain.position(self.node);
        let part = &chain.hops()[position.expect("a node applies what it is in the chain of")].part;
        for (number, entry) in (0u32..).zip(&transaction.blobs) {
            if !entry.operations.iter().any(Operation::is_write) {
                continue;
            }
            let guess = chain.ends().iter().find(|(place, _)| *place == number);
            let guess = guess.map_or(0, |(_, end)| *end);
            let size = || self.stat(&entry.blob).unwrap_or(0);
            let chunk_size = self.chunk_size(entry.blob.keyspace);
            let chunks = touched::chunks(entry, part, chunk_size, size);
            let place = (number as usize, entry);
            let answers = self.apply_blob((transaction.id, at), place, &chunks, guess);
            outcomes.extend(answers.into_iter().map(|(operation, outcome)| {
                let operation = u32::try_from(operation).expect("operations are few");
                Answered { blob: number, operation, outcome }
            }));
        }
        self.staging.end(transaction.id);
        outcomes
    }

    fn await_base(&mut self, name: &ChunkName) {
        if self.is_expected(&name.0, name.1) {
            return;
        }
        let stored = stored_name(&name.0, name.1);
        let is_here = |cell: &Arc<tyr_store::recent::BlobCell>| {
            let state = cell.lock();
            state.attributes().version > Timestamp::ZERO || state.included_to() > Timestamp::ZERO
        };
        let known = self.store.chunk(&stored).map(|cell| is_here(&cell));
        if self.note(known) == Some(false) {
            self.expected.insert(name.clone(), Expected::default());
        }
    }

    fn is_awaited(&self, name: &ChunkName) -> bool {
        self.is_expected(&name.0, name.1)
    }

    fn install(&mut self, name: &ChunkName, copy: &ChunkCopy) {
        assert!(copy.is_sound(), "a copy of {name:?} is installed that is not sound");
        let start = self.place(name.0.keyspace, name.1).range.start;
        let mut expected = self.expected.remove(name).unwrap_or_default();
        expected.add(copy.clone(), start);
        match copy.is_last {
            true => self.install_whole(name, expected),
            false => {
                self.expected.insert(name.clone(), expected);
            }
        }
    }

    fn release(&mut self, name: &ChunkName) {
        self.expected.remove(name);
        let released = self.store.release_chunk(&stored_name(&name.0, name.1));
        self.note(released);
    }

    fn clear(&mut self) {
        self.expected.clear();
        self.staging.clear();
        self.floors.clear();
        let cleared = self.store.clear_chunks();
        self.note(cleared);
    }

    fn held(&self, after: Option<&ChunkName>, limit: usize) -> Vec<ChunkName> {
        let mut names = Vec::new();
        let mut keyspaces: Vec<KeyspaceId> = self.keyspaces.keys().copied().collect();
        keyspaces.sort_unstable();
        for keyspace in keyspaces {
            let after = after
                .filter(|(blob, _)| blob.keyspace == keyspace)
                .or_else(|| after.filter(|(blob, _)| blob.keyspace > keyspace));
            if after.is_some_and(|(blob, _)| blob.keyspace > keyspace) {
                continue;
            }
            names.extend(self.held_in(keyspace, after, limit - names.len()));
            if names.len() >= limit {
                break;
            }
        }
        names
    }

    fn usage(&mut self, blob: &BlobName, usage: &Usage) {
        self.floors.update(blob, usage.as_of());
    }
}

impl Holdings {
    /// Chunks of one keyspace, in order, after this one of it.
    fn held_in(
        &self,
        keyspace: KeyspaceId,
        after: Option<&ChunkName>,
        limit: usize,
    ) -> Vec<ChunkName> {
        let first_after = after.map(|(blob, _)| &blob.key);
        let later_after = after.map(|(blob, chunk)| blob.key.of_chunk(*chunk));
        let listed = [
            self.store.stored_chunks(keyspace, first_after, limit),
            self.store.stored_chunks(later(keyspace), later_after.as_ref(), limit),
        ];
        let mut names: Vec<ChunkName> = listed
            .into_iter()
            .flat_map(|names| names.unwrap_or_default())
            .filter_map(|stored| chunk_name(&stored))
            .collect();
        let lowest = BlobName { keyspace, key: tyr_types::Key::lowest() };
        let from = match after {
            Some(after) => std::ops::Bound::Excluded(after.clone()),
            None => std::ops::Bound::Included((lowest, 0)),
        };
        let expected =
            self.expected.range((from, std::ops::Bound::Unbounded)).map(|(name, _)| name);
        let here = expected.take_while(|(blob, _)| blob.keyspace == keyspace).take(limit);
        names.extend(here.cloned());
        names.sort_unstable();
        names.dedup();
        names.truncate(limit);
        names
    }

    /// The chunks of a blob from `first` to `last` of which something is here.
    fn chunks_here(&self, blob: &BlobName, first: u64, last: u64) -> Vec<u64> {
        if last - first < LOOKED_UP_MAX {
            return (first..=last).collect();
        }
        let mut here = Vec::from_iter((first == 0).then_some(0));
        let mut after = blob.key.of_chunk(first.max(1) - 1);
        loop {
            let page = self.store.stored_chunks(later(blob.keyspace), Some(&after), PAGE);
            let page = page.unwrap_or_default();
            let names = page.iter().filter_map(chunk_name);
            here.extend(names.filter(|(of, _)| of == blob).map(|(_, chunk)| chunk));
            match page.last() {
                Some(name) if page.len() == PAGE && here.last() < Some(&last) => {
                    after = name.key.clone();
                }
                Some(_) | None => break,
            }
        }
        here.retain(|chunk| (first..=last).contains(chunk));
        here
    }
}

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

    fn stat(&self, blob: &BlobName) -> Option<u64> {
        let attributes = self.look(blob, 0, |state| state.attributes())?;
        attributes.exists.then_some(attributes.size)
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

    fn chunk_size(&self, keyspace: KeyspaceId) -> u64 {
        // What is not in the map is refused before anybody asks for the answer to matter.
        self.keyspaces.get(&keyspace).map_or(limits::CHUNK_SIZE_DEFAULT, |it| it.chunk_size)
    }
}

/// What a client is told when the store cannot answer.
pub(crate) fn refusal(blob: &BlobName, error: &Error) -> Abort {
    let kind = match error.kind() {
        ErrorKind::SnapshotTooOld => ErrorKind::SnapshotTooOld,
        ErrorKind::Corrupt => ErrorKind::Corrupt,
        _ => ErrorKind::Unavailable,
    };
    Abort { kind, reason: error.to_string().into(), blob: Some(blob.clone()) }
}

#[cfg(test)]
mod tests;
