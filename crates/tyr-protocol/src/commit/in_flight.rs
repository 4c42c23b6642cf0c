//! What the transactions in flight touch, by blob: the index behind every question of overlap.
//!
//! A claim is what one transaction reads, requires or writes of one blob at this node. Reads and
//! conditions are claimed only at their authority, for that is where they are validated (C1);
//! writes wherever they are held.
//!
//! Bounded by the table of records: a record has at most [`CLAIMS_MAX`] claims of one kind and
//! authority on a blob; what is more is merged, which only makes it wait for more.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use smallvec::SmallVec;
use tyr_types::{BlobName, ByteRange, NodeId, Operation, Transaction};

use super::claims::{BlobClaims, Claims, FEW_MAX, Standing};
use super::listed::Listings;
use super::record::Slot;
use crate::chain::{Place, Share};
use crate::footprint::Footprint;
use crate::rule::{Rule, Rules};
use crate::view::View;

/// Claims of one kind and authority that a transaction has on a blob. Looking for overlaps goes
/// over what others claim there, and beyond a few ranges the exact ones are rarely worth it.
pub(crate) const CLAIMS_MAX: usize = 16;

const _: () = assert!(CLAIMS_MAX <= FEW_MAX, "what one transaction writes needs no index");

/// What a transaction wants of what it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClaimKind {
    /// A read that must still hold.
    Read,
    /// A condition, to be looked at when nothing is in flight.
    Condition,
    /// Bytes at known places; the last of them ends at `end`, in this piece or another.
    Write { end: u64 },
    /// A cut or a whole new content: the blob's end moves to `end`, wherever it is. From the cut on
    /// the chain has the blob's chunks up to `reach`.
    Cut { reach: u64, end: u64 },
    /// `len` bytes at the end, wherever that is; counted in the share of the version managers.
    Append { len: u64 },
}

impl ClaimKind {
    pub fn is_write(self) -> bool {
        match self {
            Self::Write { .. } | Self::Cut { .. } | Self::Append { .. } => true,
            Self::Read | Self::Condition => false,
        }
    }

    /// Whether the end of a blob of `size` bytes is elsewhere afterwards, appends aside.
    pub fn moves_end(self, size: u64) -> bool {
        match self {
            Self::Write { end } => end > size,
            Self::Cut { .. } => true,
            Self::Read | Self::Condition | Self::Append { .. } => false,
        }
    }

    /// Both as one, when they are of one kind.
    fn merged(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Write { end: left }, Self::Write { end: right }) => {
                Some(Self::Write { end: left.max(right) })
            }
            (Self::Append { len: left }, Self::Append { len: right }) => {
                Some(Self::Append { len: left.saturating_add(right) })
            }
            (Self::Cut { reach: left, end: one }, Self::Cut { reach: right, end: other }) => {
                Some(Self::Cut { reach: left.min(right), end: one.max(other) })
            }
            (left, right) => (left == right).then_some(left),
        }
    }
}

/// The chunks of a blob that a claim writes in: writes of one chunk are applied in order (C6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Chunks {
    /// From the first one's start to the last one's end.
    pub range: ByteRange,
    /// Whether it is one.
    pub is_one: bool,
}

impl Chunks {
    /// Those of a claim that writes nothing.
    pub const NONE: Self = Self { range: ByteRange::NOTHING, is_one: false };

    fn one(range: ByteRange) -> Self {
        Self { range, is_one: true }
    }

    fn hull(self, other: Self) -> Self {
        let hull = Footprint::bytes(self.range).hull(Footprint::bytes(other.range));
        Self { range: hull.range, is_one: self == other && self.is_one }
    }
}

/// What a transaction claims of a blob.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub slot: Slot,
    pub kind: ClaimKind,
    pub footprint: Footprint,
    pub chunks: Chunks,
    /// The authority of what is claimed.
    pub authority: NodeId,
}

impl Claim {
    /// Whether a write is applied after `other` where that has the lower timestamp (C6, C9): after
    /// writes of the same chunk, and after who has read what it writes.
    pub fn is_applied_after(&self, other: &Self) -> bool {
        debug_assert!(self.kind.is_write(), "who writes nothing is applied beside all others");
        self.chunks.range.overlaps(other.chunks.range) || self.footprint.overlaps(other.footprint)
    }

    /// Whether it writes something of `footprint`.
    pub fn writes(&self, footprint: Footprint) -> bool {
        self.kind.is_write() && self.footprint.overlaps(footprint)
    }
}

/// All claims, by blob.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    /// Hashed once for each question: this is most of what a transaction costs here.
    blobs: HashTable<(BlobName, BlobClaims)>,
    /// Claims on a blob up to which they are not indexed.
    few_max: usize,
    /// Blobs with an index: how others stand matters to them alone.
    indexes: usize,
    /// Those on a blob that nobody claims.
    nobody: BlobClaims,
    /// Ranges of keys that were listed (Q3).
    listings: Listings,
}

impl Default for InFlight {
    fn default() -> Self {
        let (blobs, nobody) = (HashTable::new(), BlobClaims::default());
        Self { blobs, few_max: FEW_MAX, indexes: 0, nobody, listings: Listings::default() }
    }
}

fn hash(blob: &BlobName) -> u64 {
    FixedState::default().hash_one(blob)
}

impl InFlight {
    /// The claims on `blob`.
    pub fn claims(&self, blob: &BlobName) -> &BlobClaims {
        let entry = self.blobs.find(hash(blob), |(other, _)| other == blob);
        entry.map_or(&self.nobody, |(_, claims)| claims)
    }

    /// Adds claims of one transaction on `blob`; `standing` says of each how it stands.
    fn insert(&mut self, blob: &BlobName, own: Claims, standing: &impl Fn(Slot) -> Standing) {
        if own.is_empty() {
            return;
        }
        let slot = own[0].slot;
        debug_assert!(own.iter().all(|it| it.slot == slot), "claims come in by transaction");
        let entry = self.blobs.entry(hash(blob), |(other, _)| other == blob, |it| hash(&it.0));
        let mut entry = entry.or_insert_with(|| (blob.clone(), BlobClaims::default()));
        let claims = &mut entry.get_mut().1;
        let was_indexed = claims.is_indexed();
        let (len, own_len) = (claims.len(), own.len());
        claims.insert(own, self.few_max, standing);
        debug_assert_eq!(claims.len(), len + own_len, "no claim is lost, nor made of another");
        self.indexes += usize::from(claims.is_indexed() && !was_indexed);
    }

    /// Removes what `slot` claims of `blob`.
    pub fn remove(&mut self, blob: &BlobName, slot: Slot) {
        let found = self.blobs.find_entry(hash(blob), |(other, _)| other == blob);
        let Ok(mut entry) = found else { return };
        let claims = &mut entry.get_mut().1;
        if claims.has_others(slot) {
            claims.remove(slot);
        } else {
            self.indexes -= usize::from(claims.is_indexed());
            entry.remove();
        }
        debug_assert!(self.indexes <= self.blobs.len(), "an index is of a blob that has claims");
    }

    /// The ranges of keys that were listed (Q3).
    pub fn listings(&self) -> &Listings {
        &self.listings
    }

    /// Removes the ranges of keys that `slot` has listed.
    pub fn remove_listings(&mut self, slot: Slot) {
        self.listings.remove(slot);
    }

    /// Whether somebody has to be told how transactions stand.
    pub fn has_indexes(&self) -> bool {
        self.indexes > 0
    }

    /// `slot`, which has claims on `blob`, stands so now.
    pub fn rank(&mut self, blob: &BlobName, slot: Slot, standing: Standing) {
        if let Some((_, claims)) = self.blobs.find_mut(hash(blob), |(other, _)| other == blob) {
            claims.rank(slot, standing);
        }
    }

    /// More claims than these on a blob are an index.
    #[cfg(test)]
    pub fn index_above(&mut self, few_max: usize) {
        self.few_max = few_max;
    }

    /// Claims what `transaction` touches at this place of its chain; answers the authorities of
    /// what it writes.
    pub fn claim(
        &mut self,
        slot: Slot,
        place: Place<'_>,
        transaction: &Transaction,
        view: &impl View,
        standing: impl Fn(Slot) -> Standing,
        rules: Rules,
    ) -> SmallVec<[NodeId; 1]> {
        debug_assert!(
            transaction.blobs.iter().all(|it| self.claims(&it.blob).of(slot).next().is_none()),
            "what an attempt claims is given up before the next one claims: {slot:?}"
        );
        let mut authorities = SmallVec::new();
        for entry in &transaction.blobs {
            let mut own = Claims::new();
            // Where an append goes is known when what cuts the blob is applied, and not before.
            let end = || {
                let size = view.stat(&entry.blob).unwrap_or(0);
                self.claims(&entry.blob).lowest_cut().map_or(size, |cut| size.min(cut))
            };
            for operation in &entry.operations {
                claim_operation(&mut own, slot, place, &entry.blob, operation, end);
            }
            if !rules.hold(Rule::C6Chunk) {
                for claim in own.iter_mut().filter(|claim| claim.kind.is_write()) {
                    claim.chunks = Chunks { range: claim.footprint.range, is_one: false };
                }
            }
            for claim in own.iter().filter(|claim| claim.kind.is_write()) {
                if !authorities.contains(&claim.authority) {
                    authorities.push(claim.authority);
                }
            }
            self.insert(&entry.blob, own, &standing);
        }
        for reads in transaction.reads.chunk_by(|left, right| left.blob == right.blob) {
            let (blob, mut own) = (&reads[0].blob, Claims::new());
            for read in reads {
                if let Some(listed) = &read.listed {
                    self.listings.claim(slot, place, read, listed);
                    continue;
                }
                let footprint = Footprint { range: read.range, is_attributes: read.is_attributes };
                claim_read(&mut own, slot, place, blob, footprint, ClaimKind::Read);
            }
            self.insert(blob, own, &standing);
        }
        authorities
    }

    /// Claims the attributes of `blob` as a condition does, for an append that must know the end.
    pub fn claim_end(
        &mut self,
        slot: Slot,
        place: Place<'_>,
        blob: &BlobName,
        standing: impl Fn(Slot) -> Standing,
    ) {
        let mut own = Claims::new();
        claim_read(&mut own, slot, place, blob, Footprint::ATTRIBUTES, ClaimKind::Condition);
        self.insert(blob, own, &standing);
    }

    /// All blobs with their claims, in no order that may matter.
    pub fn iter(&self) -> impl Iterator<Item = (&BlobName, &BlobClaims)> {
        self.blobs.iter().map(|(blob, claims)| (blob, claims))
    }
}

fn claim_operation(
    own: &mut Claims,
    slot: Slot,
    place: Place<'_>,
    blob: &BlobName,
    operation: &Operation,
    lowest_end: impl Fn() -> u64,
) {
    if let Some(required) = Footprint::required(operation) {
        claim_read(own, slot, place, blob, required, ClaimKind::Condition);
    }
    let (size, appended) = match operation {
        Operation::Append { payload, .. } => (lowest_end(), payload.len()),
        Operation::Create
        | Operation::Write { .. }
        | Operation::Clear { .. }
        | Operation::Truncate { .. }
        | Operation::Delete
        | Operation::Apply { .. }
        | Operation::Compare { .. }
        | Operation::Replace { .. }
        | Operation::Expect { .. } => (0, 0),
    };
    let Some(written) = Footprint::written(operation, size) else { return };
    // Once for all pieces: a chain may have thousands.
    let of_all = match operation {
        Operation::Create | Operation::Write { .. } | Operation::Apply { .. } => {
            ClaimKind::Write { end: written.range.end }
        }
        // It leaves the end where it is.
        Operation::Clear { .. } => ClaimKind::Write { end: 0 },
        Operation::Append { .. } => ClaimKind::Append { len: 0 },
        Operation::Truncate { len } => {
            ClaimKind::Cut { reach: place.chain.reach(blob, *len), end: *len }
        }
        Operation::Delete => ClaimKind::Cut { reach: place.chain.reach(blob, 0), end: 0 },
        Operation::Replace { payload } => {
            ClaimKind::Cut { reach: place.chain.reach(blob, 0), end: payload.len() }
        }
        Operation::Compare { .. } | Operation::Expect { .. } => {
            unreachable!("what only looks has no written footprint")
        }
    };
    place.shares(blob, written, |Share { footprint, chunk, authority }| {
        let kind = match of_all {
            // Counted once, though the unknown place has a share in many pieces.
            ClaimKind::Append { .. } if footprint.is_attributes => {
                ClaimKind::Append { len: appended }
            }
            kind => kind,
        };
        push(own, Claim { slot, kind, footprint, chunks: Chunks::one(chunk), authority });
    });
}

/// Claims what of `footprint` this place is the authority of.
fn claim_read(
    own: &mut Claims,
    slot: Slot,
    place: Place<'_>,
    blob: &BlobName,
    footprint: Footprint,
    kind: ClaimKind,
) {
    place.shares(blob, footprint, |Share { footprint, authority, .. }| {
        if authority == place.node() {
            push(own, Claim { slot, kind, footprint, chunks: Chunks::NONE, authority });
        }
    });
}

/// Adds a claim, merged with its like when nothing is lost by it, or when there are many.
fn push(own: &mut Claims, claim: Claim) {
    debug_assert!(!claim.footprint.is_empty(), "what touches nothing is in nobody's way");
    let is_append = matches!(claim.kind, ClaimKind::Append { .. });
    let mut count = 0;
    for other in own.iter_mut().rev() {
        let Some(kind) = other.kind.merged(claim.kind) else { continue };
        if other.authority != claim.authority {
            continue;
        }
        count += 1;
        if is_append || count >= CLAIMS_MAX || other.footprint.adjoins(claim.footprint) {
            other.footprint = other.footprint.hull(claim.footprint);
            other.chunks = other.chunks.hull(claim.chunks);
            other.kind = kind;
            return;
        }
    }
    own.push(claim);
}
