//! From a transaction to its chain.
//!
//! First the chunks that it touches: those it writes, those it reads or requires, and chunk 0 of
//! every blob that it writes, whose replicas are the version managers. Then who has to do with
//! them: of a written chunk every holder and every recipient, of another one the authority alone.
//!
//! What appends and cuts touch depends on where the blob ends. That is guessed here, and checked
//! by the version managers' authority when it validates; so a chain may only hold more chunks than
//! needed. The guesses are [`Ends`]: a place in `Transaction::blobs`, or, from `blobs.len()` on, in
//! `Transaction::reads`, with an end in bytes. The two kinds differ:
//!
//! - of a blob that is written: a guess, without one it is 0; a wrong one may have to be mended;
//! - of a read that also looked at size or existence: the size it was told, which is as true as the
//!   read is, so that nothing behind it was read. Without one, the whole range counts as read.

use smallvec::SmallVec;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Epoch, ErrorKind, KeyspaceConfig, KeyspaceId,
    KeyspaceName, Listed, NodeId, Operation, ReadCheck, Transaction, limits,
};

use super::ClusterMap;
use super::hash::BlobHash;
use crate::abort::Abort;
use crate::chain::{Chain, Ends, Hop, Part, Piece};
use crate::footprint::Footprint;

/// Most chunks that a transaction touches, so that a chain takes some megabytes at most. A blob of
/// the default chunk size is cut in one transaction up to 4 TiB; larger ones in steps, from the
/// end.
pub const CHAIN_CHUNKS_MAX: usize = 65_536;

const _: () = {
    assert!(CHAIN_CHUNKS_MAX == 65_536, "the text of TOO_MANY_CHUNKS says so");
    assert!(CHAIN_CHUNKS_MAX >= limits::TRANSACTION_OPERATIONS_MAX, "each may be in its own chunk");
};

/// A chunk that a transaction touches. They sort by chunk, written ones first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Touch<'a> {
    blob: &'a BlobName,
    chunk: u64,
    is_only_read: bool,
}

/// What a transaction touches; nearly always a few chunks.
struct Touches<'a>(SmallVec<[Touch<'a>; 16]>);

impl ClusterMap {
    /// The chain of a transaction, as this map and these guesses of where blobs end have it.
    ///
    /// # Errors
    /// `Unavailable` when a chunk has no holder that is up, or one to be written has fewer than its
    /// keyspace demands; `NotFound` when a keyspace does not exist; `InvalidArgument` when it
    /// touches nothing, or more than [`CHAIN_CHUNKS_MAX`] chunks, or changes a number that lies in
    /// two.
    pub fn chain(&self, transaction: &Transaction, ends: &Ends) -> Result<Chain, Abort> {
        self.chain_of(transaction, ends, KeyspaceConfig::live_replicas_needed)
    }

    /// The same, however few of those that hold a chunk are up: what has begun is ended with whom
    /// there is (F13).
    ///
    /// # Errors
    /// Those of [`ClusterMap::chain`], `Unavailable` only when a chunk has no holder that is up.
    pub fn remaining_chain(&self, transaction: &Transaction, ends: &Ends) -> Result<Chain, Abort> {
        self.chain_of(transaction, ends, |_| 1)
    }

    fn chain_of(
        &self,
        transaction: &Transaction,
        ends: &Ends,
        needed: impl Fn(&KeyspaceConfig) -> u8,
    ) -> Result<Chain, Abort> {
        let mut hops: SmallVec<[Hop; 8]> = SmallVec::new();
        let mut previous: Option<(&BlobName, BlobHash)> = None;
        for touch in self.touches(transaction, ends)?.sorted()? {
            let config = &self.keyspaces[&touch.blob.keyspace];
            let blob_hash = match previous {
                Some((blob, known)) if blob == touch.blob => known,
                Some(_) | None => config.hash(&touch.blob.key),
            };
            previous = Some((touch.blob, blob_hash));
            let (config, layout) = (&config.config, config.layout());
            let placed = self.placed(blob_hash.place(touch.chunk), layout);
            let Some(authority) = placed.holders.first().copied() else {
                return Err(Abort::at(touch.blob, ErrorKind::Unavailable, NO_HOLDER));
            };
            let piece = Piece {
                blob: touch.blob.clone(),
                range: chunk_range(touch.chunk, config.chunk_size),
                is_attributes: touch.chunk == 0,
                is_written: !touch.is_only_read,
                authority,
            };
            if touch.is_only_read {
                give(&mut hops, authority, piece);
                continue;
            }
            let needed = usize::from(needed(config)).min(placed.replicas);
            if placed.holders.len() < needed {
                return Err(Abort::at(touch.blob, ErrorKind::Unavailable, TOO_FEW_HOLDERS));
            }
            for node in placed.holders.iter().chain(&placed.recipients) {
                give(&mut hops, *node, piece.clone());
            }
        }
        if hops.is_empty() {
            return Err(Abort::new(ErrorKind::InvalidArgument, NOTHING));
        }
        let chain = Chain::new(hops.into_vec(), ends.clone())
            .expect("hops are inserted in node order, each node once, with pieces");
        // Who is not passed cannot validate: then nobody looks at these bytes (C1).
        let has_authority = |piece: &Piece| chain.position(piece.authority).is_some();
        let mut pieces = chain.hops().iter().flat_map(Hop::pieces);
        debug_assert!(pieces.all(has_authority), "an authority of what is touched is passed");
        debug_assert!(!chain.authorities_after(0).any(|it| it >= chain.hops().len()));
        Ok(chain)
    }

    /// Whether all nodes of a chain take part: nothing new is begun where one does not.
    ///
    /// # Errors
    /// `Unavailable`, with the node that alone has what is touched and what can be done.
    pub fn check_served(&self, chain: &Chain) -> Result<(), Abort> {
        let gone = chain.hops().iter().find(|hop| !self.is_live(hop.node));
        let Some(piece) = gone.and_then(|hop| hop.pieces().first().map(|it| (hop.node, it))) else {
            return Ok(());
        };
        Err(self.gone(&piece.1.blob, piece.0))
    }

    /// Whether somebody takes part who can answer for this chunk.
    ///
    /// # Errors
    /// `Unavailable`, with the node that alone has it and what can be done.
    pub fn check_readable(&self, blob: &BlobName, chunk: u64) -> Result<(), Abort> {
        let holders = self.holders(blob, chunk);
        match holders.iter().find(|node| !self.is_live(**node)) {
            Some(gone) => Err(self.gone(blob, *gone)),
            None => Ok(()),
        }
    }

    /// Whether every blob of a keyspace is at a node that takes part.
    ///
    /// # Errors
    /// `Unavailable`, with the node that alone has some and what can be done.
    pub fn check_whole(&self, keyspace: KeyspaceId) -> tyr_types::Result<()> {
        let Some(found) = self.keyspaces.get(&keyspace) else { return Ok(()) };
        match self.missing(found).first() {
            Some(gone) => Err(tyr_types::Error::unavailable(only_replica(*gone, &found.name))),
            None => Ok(()),
        }
    }

    fn gone(&self, blob: &BlobName, node: NodeId) -> Abort {
        let reason = match self.keyspaces.get(&blob.keyspace) {
            Some(keyspace) => only_replica(node, &keyspace.name),
            None => NO_HOLDER.to_owned(),
        };
        Abort { blob: Some(blob.clone()), ..Abort::new(ErrorKind::Unavailable, reason) }
    }

    /// Whether a transaction of an attempt begun in epoch `begun` must be driven anew under this
    /// map (F1): its chain is not the same any more, or a node of it went down, came back or
    /// started again since.
    pub fn is_affected(&self, chain: &Chain, transaction: &Transaction, begun: Epoch) -> bool {
        if self.moved <= begun {
            return false;
        }
        let is_changed = |hop: &Hop| self.nodes.get(&hop.node).is_none_or(|it| it.since > begun);
        chain.hops().iter().any(is_changed)
            || self.chain(transaction, chain.ends()).as_ref() != Ok(chain)
    }

    fn touches<'a>(&self, transaction: &'a Transaction, ends: &Ends) -> Result<Touches<'a>, Abort> {
        let end_of = |index: usize| {
            let found = ends.iter().find(|(place, _)| *place as usize == index);
            found.map(|(_, end)| *end)
        };
        let mut touches = Touches(SmallVec::new());
        for (index, entry) in transaction.blobs.iter().enumerate() {
            let chunk_size = self.chunk_size_of(&entry.blob)?;
            touches.operations(entry, end_of(index).unwrap_or(0), chunk_size)?;
        }
        for (index, read) in transaction.reads.iter().enumerate() {
            let chunk_size = self.chunk_size_of(&read.blob)?;
            if let Some(listed) = &read.listed {
                self.check_listed(read, listed)?;
            }
            let told = end_of(transaction.blobs.len() + index).filter(|_| read.is_attributes);
            let end = told.unwrap_or(u64::MAX).min(read.range.end);
            let range = ByteRange { start: read.range.start, end: end.max(read.range.start) };
            if read.is_attributes || range.is_empty() {
                touches.add(&read.blob, 0, 0, true)?;
            }
            touches.bytes(&read.blob, range, chunk_size, true)?;
        }
        Ok(touches)
    }

    /// Q3: what was listed is of one group, at whose authority it is validated.
    fn check_listed(&self, read: &ReadCheck, listed: &Listed) -> Result<(), Abort> {
        let keyspace = self.keyspaces.get(&read.blob.keyspace);
        let group = keyspace.and_then(|it| it.config.placed_by.group_of(&listed.keys));
        match group == Some(read.blob.key.as_bytes()) && read.is_attributes {
            true => Ok(()),
            false => Err(Abort::at(&read.blob, ErrorKind::InvalidArgument, SEVERAL_GROUPS)),
        }
    }

    fn chunk_size_of(&self, blob: &BlobName) -> Result<u64, Abort> {
        let unknown = || Abort::at(blob, ErrorKind::NotFound, "its keyspace does not exist");
        self.chunk_size(blob.keyspace).ok_or_else(unknown)
    }
}

impl<'a> Touches<'a> {
    /// What operations touch on a blob that ends at `end` before them.
    fn operations(
        &mut self,
        entry: &'a BlobOperations,
        mut end: u64,
        chunk_size: u64,
    ) -> Result<(), Abort> {
        let blob = &entry.blob;
        let mut is_written = false;
        for operation in &entry.operations {
            match operation {
                Operation::Compare { .. } | Operation::Expect { .. } => {
                    check_number(blob, operation, chunk_size)?;
                    let required = Footprint::required(operation).unwrap_or(Footprint::ATTRIBUTES);
                    if required.is_attributes {
                        self.add(blob, 0, 0, true)?;
                    }
                    self.bytes(blob, required.range, chunk_size, true)?;
                    continue;
                }
                Operation::Create => end = 0,
                Operation::Write { .. } | Operation::Apply { .. } => {
                    check_number(blob, operation, chunk_size)?;
                    let written = Footprint::written(operation, end);
                    let range = written.unwrap_or(Footprint::ATTRIBUTES).range;
                    self.bytes(blob, range, chunk_size, false)?;
                    end = end.max(range.end);
                }
                // Wherever the blob ends: who guesses that too low would leave out what is behind.
                Operation::Clear { range } => self.bytes(blob, *range, chunk_size, false)?,
                Operation::Append { payload, expected } => {
                    let from = expected.unwrap_or(end);
                    end = from.saturating_add(payload.len()).min(limits::BLOB_SIZE_MAX);
                    self.add(blob, from / chunk_size, end / chunk_size, false)?;
                }
                Operation::Truncate { len } => {
                    // Also the chunk that it ends in from now on: who has it shall know.
                    let is_inside = !len.is_multiple_of(chunk_size);
                    self.cut(blob, *len, end.max(len + u64::from(is_inside)), chunk_size)?;
                    end = *len;
                }
                Operation::Delete => {
                    self.cut(blob, 0, end, chunk_size)?;
                    end = 0;
                }
                Operation::Replace { payload } => {
                    self.cut(blob, 0, end.max(payload.len()), chunk_size)?;
                    end = payload.len();
                }
            }
            is_written = true;
        }
        if is_written {
            self.add(blob, 0, 0, false)?;
        }
        Ok(())
    }

    /// All chunks from byte `from` up to `end`.
    fn cut(
        &mut self,
        blob: &'a BlobName,
        from: u64,
        end: u64,
        chunk_size: u64,
    ) -> Result<(), Abort> {
        let range = ByteRange { start: from, end: end.max(from) };
        self.bytes(blob, range, chunk_size, false)
    }

    fn bytes(
        &mut self,
        blob: &'a BlobName,
        range: ByteRange,
        chunk_size: u64,
        is_only_read: bool,
    ) -> Result<(), Abort> {
        match range.is_empty() {
            true => Ok(()),
            false => {
                let last = (range.end - 1) / chunk_size;
                self.add(blob, range.start / chunk_size, last, is_only_read)
            }
        }
    }

    /// The chunks from `first` to `last`, the latter included.
    fn add(
        &mut self,
        blob: &'a BlobName,
        first: u64,
        last: u64,
        is_only_read: bool,
    ) -> Result<(), Abort> {
        if last.saturating_sub(first) >= CHAIN_CHUNKS_MAX as u64 {
            return Err(Abort::at(blob, ErrorKind::InvalidArgument, TOO_MANY_CHUNKS));
        }
        self.0.extend((first..=last).map(|chunk| Touch { blob, chunk, is_only_read }));
        match self.0.len() > CHAIN_CHUNKS_MAX + limits::TRANSACTION_OPERATIONS_MAX {
            true => self.tidy(blob),
            false => Ok(()),
        }
    }

    /// Makes room by removing doubles; refuses when what is left is too much.
    fn tidy(&mut self, blob: &BlobName) -> Result<(), Abort> {
        self.0.sort_unstable();
        self.0.dedup_by(|later, first| later.blob == first.blob && later.chunk == first.chunk);
        match self.0.len() > CHAIN_CHUNKS_MAX {
            true => Err(Abort::at(blob, ErrorKind::InvalidArgument, TOO_MANY_CHUNKS)),
            false => Ok(()),
        }
    }

    /// Each chunk once, by blob and number; written if any operation writes it.
    fn sorted(mut self) -> Result<impl Iterator<Item = Touch<'a>>, Abort> {
        if let Some(first) = self.0.first() {
            let blob = first.blob;
            self.tidy(blob)?;
        }
        let is_before = |left: &Touch<'_>, right: &Touch<'_>| {
            (left.blob, left.chunk) < (right.blob, right.chunk)
        };
        debug_assert!(self.0.is_sorted_by(is_before), "a chunk has one piece at a node");
        Ok(self.0.into_iter())
    }
}

/// Why nothing is done with what a node alone has that is down.
pub(super) fn only_replica(node: NodeId, keyspace: &KeyspaceName) -> String {
    format!(
        "node {} is down, and alone has its part of keyspace {keyspace}, of one replica; bring it \
         back with its disk, or accept that this is lost: tyr keyspace loss {keyspace}",
        node.0
    )
}

const NOTHING: &str = "the transaction touches no blob; give it an operation or a read";
const NO_HOLDER: &str = "no node that holds it is up; try again when one is back";
const TOO_FEW_HOLDERS: &str =
    "fewer nodes that hold it are up than its keyspace demands for writes; try again later";
const SEVERAL_GROUPS: &str = "a transaction lists keys of one group (placed-by), which they begin \
                              with; list those of several in a snapshot";
const TOO_MANY_CHUNKS: &str = "the transaction touches more than 65536 chunks; cut large blobs in \
                               steps from the end, and read less in one transaction";

const IN_TWO_CHUNKS: &str = "a number that is changed in place or compared lies in one chunk of \
                             its blob; put it at a multiple of its size";

/// Refuses to change or compare a number that lies in two chunks: nobody may have all its bytes.
fn check_number(blob: &BlobName, operation: &Operation, chunk_size: u64) -> Result<(), Abort> {
    let Some(range) = operation.number_range() else { return Ok(()) };
    match range.start / chunk_size == (range.end - 1) / chunk_size {
        true => Ok(()),
        false => Err(Abort::at(blob, ErrorKind::InvalidArgument, IN_TWO_CHUNKS)),
    }
}

/// The bytes of a chunk.
fn chunk_range(chunk: u64, chunk_size: u64) -> ByteRange {
    debug_assert!(chunk_size > 0, "a keyspace's configuration is checked");
    let start = chunk.saturating_mul(chunk_size).min(limits::BLOB_SIZE_MAX);
    ByteRange { start, end: start.saturating_add(chunk_size).min(limits::BLOB_SIZE_MAX) }
}

/// Gives `piece` to `node`.
fn give(hops: &mut SmallVec<[Hop; 8]>, node: NodeId, piece: Piece) {
    let place = match hops.binary_search_by_key(&node, |hop| hop.node) {
        Ok(place) => place,
        Err(place) => {
            hops.insert(place, Hop { node, part: Part::Pieces(Vec::with_capacity(4)) });
            place
        }
    };
    debug_assert!(hops.is_sorted_by(|left, right| left.node < right.node), "waiting ends by it");
    match &mut hops[place].part {
        Part::Pieces(pieces) => pieces.push(piece),
        Part::Whole => unreachable!("only pieces are inserted above"),
    }
}
