//! Which nodes were drained: they stay out until an administrator lets them in again.
//!
//! A node that is out asks to be let in when it starts with `join`, so that one which was taken for
//! lost comes back by itself. Who was drained was sent away on purpose. The map does not tell the
//! one from the other, so the leader notes it beside the map, before the change is proposed.

use tyr_protocol::map::{Change, Membership};
use tyr_protocol::wire;
use tyr_types::{Error, ErrorKind, NodeId};

use tyr_control::Fault;
use tyr_metadata::{Actor, Transaction, reserved};

use crate::monitor::Monitor;

/// What is to be done about a change once its outcome is known.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// These count as drained no more if the change takes effect.
    let_in: Vec<NodeId>,
    /// These count as drained no more if it does not.
    given_up: Vec<NodeId>,
    /// Who is not out counts as drained no more if it takes effect.
    is_reviewed: bool,
}

impl Monitor {
    /// Refuses that nodes come in by themselves which were drained, and notes who is drained.
    pub(super) async fn note_before(&self, actor: &Actor, change: &Change) -> Result<Noted, Fault> {
        match change {
            Change::Join(newcomers) => {
                let nodes: Vec<NodeId> = newcomers.iter().map(|it| it.node).collect();
                let is_own_wish = *actor == Actor::System;
                match nodes.iter().find(|node| is_own_wish && self.was_drained(**node)) {
                    Some(node) => Err(Fault::Refused(drained(*node).into())),
                    None => Ok(Noted { let_in: nodes, ..Noted::default() }),
                }
            }
            Change::Drain(node) if !self.was_drained(*node) => {
                let note = Transaction::new().put(reserved::drained(*node), Vec::new());
                self.write(&Actor::System, note).await?;
                Ok(Noted { given_up: vec![*node], ..Noted::default() })
            }
            Change::Remove(node) => Ok(Noted { let_in: vec![*node], ..Noted::default() }),
            Change::CancelMove => Ok(Noted { is_reviewed: true, ..Noted::default() }),
            Change::Drain(_)
            | Change::SetWeight { .. }
            | Change::Down(_)
            | Change::Return { .. }
            | Change::Settle(_)
            | Change::RaiseLevel
            | Change::CreateKeyspace { .. }
            | Change::DropKeyspace(_)
            | Change::ForgetKeyspace(_)
            | Change::AcceptLoss(_)
            | Change::Keep { .. }
            | Change::DropKept(_) => Ok(Noted::default()),
        }
    }

    /// Takes back what the outcome of the change makes untrue. What stays by a failure keeps a node
    /// out until somebody lets it in, and is no harm while it is in.
    pub(super) async fn note_after<T>(&self, noted: Noted, result: &Result<T, Fault>) {
        let Noted { mut let_in, given_up, is_reviewed } = noted;
        if is_reviewed {
            let_in.extend(self.drained_members());
        }
        let untrue = match result {
            Ok(_) => let_in,
            Err(fault) if Error::from(fault.clone()).kind() == ErrorKind::TimedOut => return,
            Err(_) => given_up,
        };
        let marked = untrue.into_iter().filter(|node| self.was_drained(*node));
        let deletion =
            marked.fold(Transaction::new(), |all, node| all.delete(reserved::drained(node)));
        if !deletion.alterations.is_empty()
            && let Err(fault) = self.write(&Actor::System, deletion).await
        {
            let error = Error::from(fault);
            tracing::warn!(%error, "a node counts as drained that is not");
        }
    }

    fn was_drained(&self, node: NodeId) -> bool {
        self.shared.committed.read().get(reserved::drained(node).as_str()).is_some()
    }

    /// The members that count as drained.
    fn drained_members(&self) -> Vec<NodeId> {
        let bytes = self.shared.committed.read().get(reserved::MAP).map(|it| it.value.clone());
        let Some(map) = bytes.and_then(|bytes| wire::decode_map(&bytes).ok()) else {
            return Vec::new();
        };
        let members = map.nodes.keys().copied();
        members
            .filter(|node| map.membership(*node) != Membership::Out && self.was_drained(*node))
            .collect()
    }
}

fn drained(node: NodeId) -> Error {
    Error::invalid(format!(
        "node {0} was drained, and stays out until an administrator lets it in: tyr node add {0}",
        node.0
    ))
}
