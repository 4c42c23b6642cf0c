//! What a node keeps that was declared down, and alone has part of a keyspace of one replica.
//!
//! Others went on without it. What they hold too they know better by now: of that it keeps nothing,
//! and gets it by copy (M4). Of what only it holds nobody could decide anything meanwhile: the
//! chunks are as it left them, what was in flight on them waits for it at the others too, and what
//! it remembers of such transactions may be known to nobody else.
//!
//! So it goes on, with those, as a node does that has started again: its chains have changed (F1),
//! and what is in flight is asked about (F2).

use std::collections::BTreeSet;

use tyr_types::KeyspaceId;

use super::checkpoint::CHECKPOINT_PAGE;
use super::{Member, Record, Store, Turn};
use crate::commit::recovery::held_alone;
use crate::commit::{self, Marked};
use crate::map::{ClusterMap, MapKeyspace};

/// What is kept of transactions.
#[derive(Debug, Default)]
pub(super) struct KeptAlone {
    remembered: Vec<Marked>,
    /// As the log has it.
    in_flight: Vec<Record>,
}

impl Member {
    /// The keyspaces of one replica of which this node has part, or may get part.
    pub(super) fn singles(&self, map: &ClusterMap) -> BTreeSet<KeyspaceId> {
        let is_single =
            |it: &MapKeyspace| it.layout().is_single() && !it.lost.contains_key(&self.node);
        map.keyspaces.iter().filter(|(_, it)| is_single(it)).map(|(id, _)| *id).collect()
    }

    /// What is known here of transactions that touch what only this node has by `map`.
    pub(super) fn kept_alone(&self, map: &ClusterMap) -> KeptAlone {
        let singles: BTreeSet<KeyspaceId> = map.held_alone(self.node).map(|(id, _)| id).collect();
        let mut kept = KeptAlone::default();
        if singles.is_empty() {
            return kept;
        }
        let mut from = Some(0);
        while let Some(after) = from {
            let (page, next) = self.remembered_page(after, CHECKPOINT_PAGE);
            let is_kept = |it: &Marked| it.singles.iter().any(|id| singles.contains(id));
            kept.remembered.extend(page.into_iter().filter(is_kept));
            debug_assert!(next.is_none_or(|next| next > after), "pages go on, or never end");
            from = next;
        }
        let is_kept = |record: &commit::record::Record| {
            held_alone(&record.chain, record.position, &singles).next().is_some()
        };
        self.add_applied(&is_kept, &mut kept.in_flight);
        self.add_in_flight(&is_kept, &mut kept.in_flight);
        kept
    }
}

impl<S: Store> Turn<'_, S> {
    /// Goes on with what was kept, in a member that knows of nothing else: as if the log said so,
    /// but that what was applied is in the chunks that it keeps.
    pub(super) fn keep(&mut self, kept: KeptAlone) {
        let KeptAlone { remembered, in_flight } = kept;
        self.member.remember(remembered);
        for record in in_flight {
            self.take_on(record);
        }
    }
}
