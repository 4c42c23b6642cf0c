//! What clients do under locks: one step after the other, and for how long they held leases.

use tyr_protocol::session::{Answer, Call};

use super::Runner;
use crate::checker::{Deed, Entry, Holding, Seen};
use crate::workload::locking::LockStep;

impl Runner {
    /// The next thing that a client does under a lock, if that is a call of its own; a deed is
    /// taken up.
    pub(super) fn go_on_locked(&mut self, number: u16, now_us: u64) -> Option<Call> {
        let client = &mut self.clients[usize::from(number)];
        let (workload, locking) = client.locking.as_mut()?;
        let workload = *workload;
        match locking.step() {
            LockStep::Call(call) => {
                if let Call::GiveBack { lease } = call {
                    self.end_holding(number, lease, now_us);
                }
                self.clients[usize::from(number)].is_locking = true;
                Some(call)
            }
            LockStep::Work(work) => {
                self.take_up(number, workload, work, now_us, false);
                None
            }
            LockStep::Look(seen) => {
                let lease = locking.lease();
                client.next_us = now_us + locking.pause_us();
                self.look((number, workload), lease, seen, now_us);
                None
            }
            LockStep::Over => {
                client.locking = None;
                None
            }
        }
    }

    /// A client goes by what it has read under a lease, if it takes itself for its holder: those
    /// are reads that take no time.
    fn look(
        &mut self,
        (client, workload): (u16, usize),
        lease: Option<u64>,
        seen: Vec<Seen>,
        now_us: u64,
    ) {
        let mut held = self.history.holdings.iter().rev();
        let held = held.find(|it| it.client == client && Some(it.lease) == lease);
        if held.is_none_or(|it| it.until_us <= now_us) {
            return;
        }
        for seen in seen {
            let seen = Seen { start_us: now_us, end_us: Some(now_us), ..seen };
            let (start_us, end_us) = (now_us, Some(now_us));
            let (deed, pages) = (Deed::Read(seen), Vec::new());
            let entry = Entry { client, workload, start_us, end_us, deed, pages };
            self.history.entries.push(entry);
        }
    }

    /// Somebody waits for a client's lease.
    pub fn recalled(&mut self, client: u16, lease: u64) {
        if let Some((_, locking)) = &mut self.clients[usize::from(client)].locking {
            locking.recalled(lease);
        }
    }

    /// A lease of a client is held until then, unless it is over already.
    pub fn hold_on(&mut self, client: u16, lease: u64, until_us: u64) {
        let mut held = self.history.holdings.iter_mut().rev();
        if let Some(held) = held.find(|it| it.client == client && it.lease == lease) {
            held.until_us = held.until_us.max(until_us);
        }
    }

    /// A client takes a lease for over.
    pub fn end_holding(&mut self, client: u16, lease: u64, now_us: u64) {
        let mut held = self.history.holdings.iter_mut().rev();
        if let Some(held) = held.find(|it| it.client == client && it.lease == lease) {
            held.until_us = held.until_us.min(now_us);
        }
    }

    /// The answer to a call about a lock.
    pub(super) fn locked(&mut self, number: u16, answer: &Answer, now_us: u64) {
        let client = &mut self.clients[usize::from(number)];
        let Some((_, locking)) = client.locking.as_mut() else { return };
        client.next_us = now_us + locking.pause_us();
        match *answer {
            Answer::Leased { lease, until_us } => {
                locking.leased(Some(lease));
                let (of, mode) = (locking.lock().clone(), locking.mode());
                let (client, from_us) = (number, now_us);
                let holding = Holding { client, lease, of, mode, from_us, until_us };
                self.history.holdings.push(holding);
            }
            _ => locking.leased(None),
        }
    }
}
