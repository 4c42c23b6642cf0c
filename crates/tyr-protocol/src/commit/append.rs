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

use super::in_flight::{Claim, ClaimKind};
use super::record::{Records, Slot};
use crate::chain::Chain;
use crate::view::View;

/// Whether the appends that `slot` claims on `blob` must have the end of the blob for themselves.
///
/// Asked when nothing that moves the end otherwise is in flight.
pub(crate) fn is_crossing(
    records: &Records,
    claims: &[Claim],
    (slot, node): (Slot, NodeId),
    blob: &BlobName,
    view: &impl View,
) -> bool {
    let at_end = || claims.iter().filter(|claim| is_at_end(claim, node));
    let mut own = at_end().filter(|claim| claim.slot == slot);
    let Some(len) = own.clone().find_map(appended) else { return false };
    if own.any(|claim| claim.kind == ClaimKind::Condition) {
        return false; // It has it already.
    }
    let size = view.stat(blob).unwrap_or(0);
    if own_moves_end(claims, slot, size) {
        return true;
    }
    let others = at_end().filter(|claim| claim.slot != slot);
    let in_flight = others.filter(|claim| records[claim.slot].state.in_flight_at().is_some());
    let reserved = in_flight.filter_map(appended).fold(0, u64::saturating_add);
    let chunk_size = view.chunk_size(blob.keyspace);
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
        (ClaimKind::Cut { reach }, ClaimKind::Write { end }) => end > reach,
        _ => false,
    };
    let is_ending = appends(own) && other.moves_end(size) || appends(other) && own.moves_end(size);
    is_ending || outgrows(own, other) || outgrows(other, own)
}

/// Whether `chain` lacks chunks that `entry` touches: those of an append from `start` on, or those
/// that a cut takes off a blob of `size` bytes.
pub(crate) fn is_beyond(entry: &BlobOperations, chain: &Chain, size: u64, start: u64) -> bool {
    let mut appended = start;
    entry.operations.iter().any(|operation| match operation {
        Operation::Append { payload, .. } => {
            let range = ByteRange { start: appended, end: appended.saturating_add(payload.len()) };
            appended = range.end;
            !chain.has(&entry.blob, range)
        }
        Operation::Truncate { len } => *len < size && chain.reach(&entry.blob) < size,
        Operation::Delete | Operation::Replace { .. } => chain.reach(&entry.blob) < size,
        Operation::Create
        | Operation::Write { .. }
        | Operation::Apply { .. }
        | Operation::Compare { .. } => false,
    })
}

fn own_moves_end(claims: &[Claim], slot: Slot, size: u64) -> bool {
    claims.iter().any(|claim| claim.slot == slot && claim.kind.moves_end(size))
}

fn appended(claim: &Claim) -> Option<u64> {
    match claim.kind {
        ClaimKind::Append { len } => Some(len),
        ClaimKind::Read
        | ClaimKind::Condition
        | ClaimKind::Write { .. }
        | ClaimKind::Cut { .. } => None,
    }
}
