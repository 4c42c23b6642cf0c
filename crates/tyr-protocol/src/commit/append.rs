//! Where an append may go before it is known where it goes.
//!
//! A version manager reserves space, not an offset. While everything reserved fits the chunk in
//! which the blob ends, appends commute: whatever order their timestamps give them, they land on
//! the same replicas, and each replica resolves the offset when it applies. So here, at the
//! authority of the blob's attributes:
//!
//! - appends in flight share the end of the blob with each other, but not with writes that move
//!   it by other means: those wait for the appends to be decided, and an append waits for them to
//!   be applied;
//! - an append that would cross the chunk's end takes the end for itself: it waits for those in
//!   flight as a condition does, then has an explicit offset, and keeps others off as a condition
//!   does (C1, C2). It is not refused: appends never abort for being appends.
//!
//! Never more than one of these rules is exact about a blob whose end is moving; each errs towards
//! waiting.

use tyr_types::{BlobName, BlobOperations, ByteRange, NodeId, Operation};

use super::claims::{self, BlobClaims};
use super::in_flight::{Claim, ClaimKind};
use super::record::{Records, Slot};
use crate::chain::Chain;
use crate::view::View;

/// Whether the appends that `slot` claims on `blob` must have the end of the blob for themselves.
///
/// Asked when nothing that moves the end otherwise is in flight.
pub(crate) fn is_crossing(
    records: &Records,
    claims: &BlobClaims,
    slot: Slot,
    node: NodeId,
    blob: &BlobName,
    view: &impl View,
) -> bool {
    let mut own = claims.of(slot).filter(|claim| is_at_end(claim, node));
    let Some(len) = own.clone().find_map(claims::appended) else { return false };
    if own.any(|claim| claim.kind == ClaimKind::Condition) {
        return false; // It has it already.
    }
    let size = view.stat(blob).unwrap_or(0);
    if claims.of(slot).any(|claim| claim.kind.moves_end(size)) {
        return true;
    }
    // Whoever looked after the end for them: that may have been another node, by another map.
    let is_in_flight = |other: Slot| records[other].state.in_flight_at().is_some();
    let reserved = claims.reserved(slot, is_in_flight);
    let chunk_size = view.chunk_size(blob.keyspace);
    debug_assert!(chunk_size > 0, "a keyspace's configuration is checked");
    let chunk_end = (size / chunk_size).saturating_add(1).saturating_mul(chunk_size);
    size.saturating_add(reserved).saturating_add(len) > chunk_end
}

/// Whether a claim is on the end of a blob, at the node that looks after it.
pub(crate) fn is_at_end(claim: &Claim, node: NodeId) -> bool {
    claim.footprint.is_attributes && claim.authority == node
}

/// Whether two writes of different transactions, both at the end of a blob of `size` bytes, do not
/// commute: one appends and the other moves the end, or one cuts and the other grows the blob past
/// what the one that cuts can reach.
pub(crate) fn disagree_on_end(own: ClaimKind, other: ClaimKind, size: u64) -> bool {
    let appends = |kind| matches!(kind, ClaimKind::Append { .. });
    let outgrows = |cut, write| match (cut, write) {
        (ClaimKind::Cut { reach, .. }, ClaimKind::Write { end } | ClaimKind::Cut { end, .. }) => {
            end > reach
        }
        _ => false,
    };
    let is_ending = appends(own) && other.moves_end(size) || appends(other) && own.moves_end(size);
    is_ending || outgrows(own, other) || outgrows(other, own)
}

/// Whether `chain` does not fit `entry`, on a blob of `size` bytes: it lacks chunks that a cut
/// takes off, or was made with a `guess` of the size that misleads.
///
/// Only version managers know where a blob ends, and what they have of it may be of another moment
/// when a log is read again. So every chunk but the first finds the place of an append by the
/// guess: in the piece that has the byte guessed, behind the bytes that are there; or, when the
/// append goes beyond that piece, exactly at the guess. So either guess and size are in one piece,
/// and the append fits it from both on; or the guess is right. `start` is where the first append
/// goes, when it has the end for itself, else the size.
pub(crate) fn is_misguessed(
    entry: &BlobOperations,
    chain: &Chain,
    guess: u64,
    size: u64,
    start: u64,
) -> bool {
    // Not only up to the size: others of its operations may reach beyond, with a gap between.
    let lacks = |from: u64| {
        let cut = ByteRange { start: from, end: size.max(from) };
        !chain.has(&entry.blob, cut)
    };
    let mut is_short = false;
    let mut appended = None;
    for operation in &entry.operations {
        match operation {
            Operation::Append { payload, expected: None } => {
                appended = Some(appended.unwrap_or(0) + payload.len());
            }
            Operation::Truncate { len } => is_short |= lacks(*len),
            Operation::Delete | Operation::Replace { .. } => is_short |= lacks(0),
            Operation::Append { expected: Some(_), .. }
            | Operation::Create
            | Operation::Write { .. }
            | Operation::Clear { .. }
            | Operation::Apply { .. }
            | Operation::Compare { .. }
            | Operation::Expect { .. } => {}
        }
    }
    let is_elsewhere = appended.is_some_and(|len| {
        let from = |start: u64| ByteRange { start, end: start.saturating_add(len.max(1)) };
        let is_near = chain.has_together(&entry.blob, &[from(guess), from(size), from(start)]);
        !is_near && (guess != size || !chain.has(&entry.blob, from(start)))
    });
    is_short || is_elsewhere
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_disagrees_with_what_grows_the_blob_past_its_chunks_be_it_a_cut_too() {
        let cut = |reach, end| ClaimKind::Cut { reach, end };
        for grows in [ClaimKind::Write { end: 65 }, cut(96, 65)] {
            assert!(disagree_on_end(cut(64, 10), grows, 40));
            assert!(disagree_on_end(grows, cut(64, 10), 40));
        }
        for stays in [ClaimKind::Write { end: 64 }, cut(96, 64)] {
            assert!(!disagree_on_end(cut(64, 10), stays, 40));
        }
    }
}
