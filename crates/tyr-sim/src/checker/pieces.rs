//! Pieces that were uploaded ahead of their transactions are given back: those that were used,
//! those that their clients dropped, and those that are late (U2). So quotas, which count them, are
//! right.
//!
//! A word that is lost leaves some for a day, and so does a node that does not hold their chunk any
//! more. So this is asked only of runs without such faults.

use tyr_types::{NodeId, PieceId};

use super::history::{Deed, Fate, History, Piece};

/// A piece that a node has in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staged {
    /// The node.
    pub node: NodeId,
    /// The piece.
    pub id: PieceId,
    /// Whether its time was over a while ago.
    pub is_late: bool,
}

/// Checks what nodes have staged in the end.
///
/// # Errors
/// The first piece that is not to be there.
pub fn pieces_are_given_back(
    history: &History,
    staged: impl IntoIterator<Item = Staged>,
) -> Result<(), String> {
    for Staged { node, id, is_late } in staged {
        let piece = history.pieces.get(&id);
        let is_used = |piece: &Piece| match &history.entries[piece.entry].deed {
            Deed::Transaction(attempted) => matches!(attempted.fate, Fate::Committed(_)),
            Deed::Read(_) | Deed::Snapshot(_) | Deed::Moment(_) | Deed::ReadMany(_) => false,
        };
        let why = match piece {
            _ if is_late => "its time was over",
            Some(piece) if piece.is_dropped => "its client dropped it",
            Some(piece) if is_used(piece) => "its transaction was committed",
            // What nobody was answered about, or may be used yet, stays until it is late.
            Some(_) | None => continue,
        };
        return Err(format!("node {} still has piece {:x}: {why}", node.0, id.0));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tyr_types::Timestamp;

    use super::*;
    use crate::checker::{Attempted, Entry};

    #[test]
    fn what_was_used_or_dropped_or_is_late_is_not_to_stay() {
        let entry = |fate| {
            let (id, reads, blobs, answers, calls) = Default::default();
            let deed = Deed::Transaction(Attempted { id, reads, blobs, fate, answers, calls });
            Entry { client: 0, workload: 0, start_us: 0, end_us: None, deed, pages: Vec::new() }
        };
        let fates = [Fate::NotSubmitted, Fate::Committed(Timestamp::ZERO), Fate::Unknown];
        let mut history = History { entries: fates.map(entry).into(), ..History::default() };
        let mut pieces = vec![(10, 0, false), (11, 0, true), (12, 1, false), (13, 2, false)];
        for (id, entry, is_dropped) in pieces.drain(..) {
            history.pieces.insert(PieceId(id), Piece { entry, is_dropped });
        }
        let found = |id, is_late| {
            let staged = Staged { node: NodeId(2), id: PieceId(id), is_late };
            pieces_are_given_back(&history, [staged]).err().unwrap_or_default()
        };
        for id in [10, 13, 99] {
            assert_eq!(found(id, false), "");
            assert!(found(id, true).contains("node 2 still has piece"));
            assert!(found(id, true).contains("its time was over"));
        }
        assert!(found(11, false).contains("its client dropped it"));
        assert!(found(12, false).contains("its transaction was committed"));
    }
}
