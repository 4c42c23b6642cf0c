//! The clients of the explored cluster: what they submit and ask, and what they are told.
//!
//! A client submits at the beginning, or when the transaction is answered that it comes after. What
//! it was told once stays so, whatever it is told later: but that nobody can tell any more (F11) is
//! no answer, and goes with any.

use std::sync::Arc;

use tyr_types::{ErrorKind, NodeId, Transaction};

use super::case::{self, Number};
use super::node::{Ending, Happening};
use super::table::{Posted, Source};
use super::world::{Explorer, World};

/// A client's side of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// Not submitted yet.
    Idle,
    /// Submitted, not answered.
    Waiting,
    /// Answered.
    Answered(Ending),
}

impl Explorer {
    /// A client is told what became of its transaction.
    ///
    /// What only writes is aborted when a client asks before anyone has it (F12), else never.
    ///
    /// # Errors
    /// What is wrong with the answer.
    pub fn answer(
        &mut self,
        world: &mut World,
        number: Number,
        ending: Ending,
    ) -> Result<(), String> {
        let known = match world.clients[number] {
            Client::Idle => return Err(format!("transaction {number} is answered, but never was")),
            Client::Waiting => None,
            Client::Answered(known) => Some(known),
        };
        let Some(both) = known.unwrap_or(ending).and(ending) else {
            return Err(format!("transaction {number} was {known:?}, and is now {ending:?}"));
        };
        let is_abortable = |kind| {
            let is_asked_early = kind == ErrorKind::Unavailable && world.left != self.mishaps;
            self.is_conditional[number] || is_asked_early
        };
        match ending {
            Ending::Aborted(kind) if !is_abortable(kind) => {
                return Err(format!("transaction {number} only writes, and is aborted: {kind:?}"));
            }
            Ending::GivenUp if self.era(world) == 0 => {
                return Err(format!("transaction {number} is forgotten, though all is new"));
            }
            Ending::Committed(_) | Ending::Aborted(_) | Ending::GivenUp => {}
        }
        // Who goes on has made use of what it was told first.
        if known.is_none() || !self.is_followed(number) {
            world.clients[number] = Client::Answered(both);
        }
        for other in 0..self.case.plans.len() {
            if self.case.plans[other].after == Some(number) && world.clients[other] == Client::Idle
            {
                self.submit(world, other);
            }
        }
        Ok(())
    }

    /// A client submits its transaction.
    pub fn submit(&mut self, world: &mut World, number: Number) {
        world.clients[number] = Client::Waiting;
        world.eras[number] = self.era(world);
        let (transaction, begun_us) = self.submitted(world, number);
        self.send(world, number, Happening::Submit(transaction, begun_us));
    }

    /// A client asks again.
    pub fn ask(&mut self, world: &mut World, number: Number) {
        let (transaction, begun_us) = self.submitted(world, number);
        self.send(world, number, Happening::Retry(transaction, begun_us));
    }

    /// A transaction, and the clock at which its client first submitted it.
    fn submitted(&self, world: &World, number: Number) -> (Arc<Transaction>, u64) {
        let transaction = Arc::new(self.transaction(world, number));
        (transaction, self.begun_us(world.eras[number], self.heads[number][0]))
    }

    /// From a client to the head, by the newest map.
    fn send(&mut self, world: &mut World, number: Number, happening: Happening) {
        let epoch = self.newest(world).epoch;
        let place = world.down.map_or(0, |node| 1 + usize::from(node.0));
        let to = self.heads[number][place];
        let posted = Posted { to, from: Source::Client, epoch, happening };
        world.post(self.table.keep_event(posted));
    }

    /// Transactions answered by this node, so that nobody has made use of the answer yet.
    pub fn answered_last(&self, world: &World, node: NodeId) -> impl Iterator<Item = Number> {
        (0..self.case.plans.len()).filter(move |number| {
            let is_used = |(other, plan): (usize, &case::Plan)| {
                plan.after == Some(*number) && world.clients[other] != Client::Idle
            };
            matches!(world.clients[*number], Client::Answered(_))
                && self.heads[*number][0] == node
                && !self.case.plans.iter().enumerate().any(is_used)
        })
    }

    /// Whether another is submitted when this one is answered.
    fn is_followed(&self, number: Number) -> bool {
        self.case.plans.iter().any(|plan| plan.after == Some(number))
    }

    /// The transaction of this number, as it is submitted by what its client was told.
    pub fn transaction(&self, world: &World, number: Number) -> Transaction {
        let committed = |other: Number| match world.clients[other] {
            Client::Answered(ending) => ending.committed_at(),
            Client::Idle | Client::Waiting => None,
        };
        self.case.transaction(number, &self.names, committed)
    }
}
