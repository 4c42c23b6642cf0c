//! Who holds which lease, and who waits for one: the authority's table (K1).
//!
//! Those who wait stand in line, key by key: one that would be in nobody's way waits behind one
//! that is, so that none waits for ever. Time passes by [`Table::tick`]; what is to be said to
//! clients is collected in `said`.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use smallvec::SmallVec;
use tyr_types::limits::{LEASES_OF_NODE_MAX, LEASES_WAITING_MAX};
use tyr_types::{BlobName, ErrorKind, LeaseMode};

use super::{Message, Wish, counted_us};
use crate::abort::Abort;

/// A holder is told again after so long that somebody waits, in microseconds.
const RECALL_AGAIN_US: u64 = 1_000_000;

/// Who waits asks again each second; one that was not heard for so long, in microseconds, is gone.
const SILENT_US: u64 = 5_000_000;

/// A transaction that waits is looked at again with each tick, a read too; one that was not for so
/// long, in microseconds, waits no more.
const WANTED_US: u64 = 300_000;

const _: () = assert!(4 * RECALL_AGAIN_US < SILENT_US, "some messages may be lost");

/// A lease of a client: nobody else gives the same.
type Holder = (u64, u64);

/// A question for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Who asks.
    pub client: u64,
    /// The number that it gave the lease.
    pub lease: u64,
    /// Of which key.
    pub blob: BlobName,
    /// How.
    pub mode: LeaseMode,
    /// How long it lasts, in microseconds.
    pub duration_us: u64,
    /// When it was sent, by the client's clock.
    pub sent_us: u64,
    /// What is to be done when somebody is in the way.
    pub wish: Wish,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    holder: Holder,
    mode: LeaseMode,
    duration_us: u64,
    until_us: u64,
    /// When it was last told that somebody waits.
    recalled_us: Option<u64>,
}

impl Held {
    /// Whether it keeps off what this client needs the key for (K2).
    fn is_in_way(&self, client: u64, mode: LeaseMode) -> bool {
        self.holder.0 != client && !self.mode.is_beside(mode)
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    holder: Holder,
    mode: LeaseMode,
    duration_us: u64,
    sent_us: u64,
    heard_us: u64,
}

/// A transaction or a read waits for the key (K2).
#[derive(Clone, Copy, Debug)]
struct Wanted {
    mode: LeaseMode,
    /// It waits until then, unless it says so again.
    until_us: u64,
}

/// What there is of a key: somebody holds it, or waits.
#[derive(Clone, Debug, Default)]
struct Entry {
    held: SmallVec<[Held; 1]>,
    waiting: VecDeque<Waiting>,
}

impl Entry {
    fn is_free_for(&self, mode: LeaseMode) -> bool {
        self.held.iter().all(|held| held.mode.is_beside(mode))
    }

    fn is_empty(&self) -> bool {
        self.held.is_empty() && self.waiting.is_empty()
    }

    /// Those who hold it and are in somebody's way are told, now and then.
    fn recall(
        &mut self,
        now_us: u64,
        is_in_way: impl Fn(&Held) -> bool,
        said: &mut Vec<(u64, Message)>,
    ) {
        let is_due = |at_us: u64| now_us.saturating_sub(at_us) >= RECALL_AGAIN_US;
        for held in self.held.iter_mut().filter(|held| is_in_way(held)) {
            if held.recalled_us.is_none_or(is_due) {
                held.recalled_us = Some(now_us);
                let (client, lease) = held.holder;
                said.push((client, Message::Recall { lease }));
            }
        }
    }
}

/// The leases that a node has given, and those that wait.
#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: BTreeMap<BlobName, Entry>,
    /// The key of each lease that is held or waited for.
    keys: BTreeMap<Holder, BlobName>,
    /// Until when each lease is held.
    ends: BTreeSet<(u64, Holder)>,
    /// Keys that somebody waits for.
    contended: BTreeSet<BlobName>,
    /// Keys that transactions or reads wait for: they come before those who ask for leases.
    wanted: BTreeMap<BlobName, Wanted>,
    waiting: usize,
}

impl Table {
    /// Somebody asks for a lease. `is_open` says whether leases of this key may be given yet.
    ///
    /// # Errors
    /// `Conflict` when somebody is in the way of who does not wait; `Unavailable` when there is no
    /// room.
    pub fn ask(
        &mut self,
        now_us: u64,
        ask: Ask,
        is_open: bool,
        said: &mut Vec<(u64, Message)>,
    ) -> Result<(), Abort> {
        let Ask { client, lease, blob, mode, duration_us, sent_us, wish } = ask;
        let holder = (client, lease);
        if let Some(known) = self.keys.get(&holder) {
            if *known != blob {
                return Err(Abort::at(&blob, ErrorKind::InvalidArgument, OTHER_KEY));
            }
            self.ask_again(now_us, (holder, sent_us), said);
            return Ok(());
        }
        let entry = self.entries.get(&blob);
        let is_free = entry.is_none_or(|it| it.is_free_for(mode));
        let is_clear = is_open;
        let is_open = is_clear && !self.is_wanted(&blob, mode);
        let is_first = entry.is_none_or(|it| it.waiting.is_empty());
        let is_given = match wish {
            Wish::Wait | Wish::Try => is_open && is_free && is_first,
            // Once others are given leases, what an earlier authority gave is over (K3).
            Wish::Keep => !is_clear && is_free,
        };
        if is_given {
            if self.ends.len() >= LEASES_OF_NODE_MAX {
                return Err(Abort::at(&blob, ErrorKind::Unavailable, TOO_MANY_HELD));
            }
            let given = Waiting { holder, mode, duration_us, sent_us, heard_us: now_us };
            self.keys.insert(holder, blob.clone());
            self.give(now_us, &blob, given, said);
            return Ok(());
        }
        match wish {
            Wish::Try => Err(Abort::at(&blob, ErrorKind::Conflict, HELD_BY_ANOTHER)),
            Wish::Keep => Err(Abort::at(&blob, ErrorKind::Conflict, NOT_KEPT)),
            Wish::Wait if self.waiting >= LEASES_WAITING_MAX => {
                Err(Abort::at(&blob, ErrorKind::Unavailable, TOO_MANY_WAIT))
            }
            Wish::Wait => {
                let waiting = Waiting { holder, mode, duration_us, sent_us, heard_us: now_us };
                self.keys.insert(holder, blob.clone());
                self.entries.entry(blob.clone()).or_default().waiting.push_back(waiting);
                self.waiting += 1;
                self.contended.insert(blob.clone());
                said.push((client, Message::Waits { lease }));
                self.recall(now_us, &blob, said);
                Ok(())
            }
        }
    }

    /// The same question once more: the answer was lost, or it waits on.
    fn ask_again(
        &mut self,
        now_us: u64,
        (holder, sent_us): (Holder, u64),
        said: &mut Vec<(u64, Message)>,
    ) {
        let (client, lease) = holder;
        let Some(entry) = self.keys.get(&holder).and_then(|blob| self.entries.get_mut(blob)) else {
            return;
        };
        if let Some(waiting) = entry.waiting.iter_mut().find(|it| it.holder == holder) {
            (waiting.heard_us, waiting.sent_us) = (now_us, waiting.sent_us.max(sent_us));
            said.push((client, Message::Waits { lease }));
            return;
        }
        self.renew_one(now_us, holder);
        said.push((client, Message::Granted { lease, sent_us }));
    }

    /// A client holds these on. Of keys that are not renewed here any more nothing is said.
    pub fn renew(
        &mut self,
        now_us: u64,
        (client, sent_us): (u64, u64),
        leases: &[u64],
        is_renewed: impl Fn(&BlobName) -> bool,
        said: &mut Vec<(u64, Message)>,
    ) {
        let (mut held, mut unknown) = (Vec::new(), Vec::new());
        for lease in leases {
            let holder = (client, *lease);
            if self.keys.get(&holder).is_some_and(|blob| !is_renewed(blob)) {
                continue;
            }
            match self.renew_one(now_us, holder) {
                true => held.push(*lease),
                false => unknown.push(*lease),
            }
        }
        said.push((client, Message::Renewed { sent_us, held, unknown }));
    }

    /// Whether it is held; then it is for as long again.
    fn renew_one(&mut self, now_us: u64, holder: Holder) -> bool {
        let Some(blob) = self.keys.get(&holder) else { return false };
        let entry = self.entries.get_mut(blob);
        let held = entry.and_then(|it| it.held.iter_mut().find(|held| held.holder == holder));
        let Some(held) = held else { return false };
        let was_in = self.ends.remove(&(held.until_us, holder));
        debug_assert!(was_in, "K1: what is held ends");
        // A duplicate that comes late does not shorten it.
        held.until_us = held.until_us.max(now_us.saturating_add(counted_us(held.duration_us)));
        self.ends.insert((held.until_us, holder));
        true
    }

    /// A lease is given back, or waited for no more.
    pub fn give_back(
        &mut self,
        now_us: u64,
        holder: (u64, u64),
        is_open: impl Fn(&BlobName) -> bool,
        said: &mut Vec<(u64, Message)>,
    ) {
        if let Some(blob) = self.remove(holder) {
            self.give_next(now_us, &blob, &is_open, said);
        }
    }

    /// Time has passed: what is over ends, and who waits is seen to. `is_open` says of which keys
    /// leases may be given.
    pub fn tick(
        &mut self,
        now_us: u64,
        is_open: impl Fn(&BlobName) -> bool,
        said: &mut Vec<(u64, Message)>,
    ) {
        while let Some((until_us, holder)) = self.ends.first().copied()
            && until_us <= now_us
        {
            let blob = self.remove(holder).expect("what ends is held");
            // Who waits for it is contended.
            debug_assert!(self.contended.contains(&blob) || self.is_free(&blob));
        }
        self.wanted.retain(|_, wanted| wanted.until_us > now_us);
        let contended: Vec<BlobName> = self.contended.iter().cloned().collect();
        for blob in contended {
            self.forget_silent(now_us, &blob);
            self.give_next(now_us, &blob, &is_open, said);
            self.recall(now_us, &blob, said);
        }
    }

    fn is_free(&self, blob: &BlobName) -> bool {
        self.entries.get(blob).is_none_or(|entry| entry.waiting.is_empty())
    }

    /// Those who wait and were not heard of for long wait no more.
    fn forget_silent(&mut self, now_us: u64, blob: &BlobName) {
        let Some(entry) = self.entries.get(blob) else { return };
        let is_gone = |it: &&Waiting| now_us.saturating_sub(it.heard_us) >= SILENT_US;
        let gone: Vec<Holder> = entry.waiting.iter().filter(is_gone).map(|it| it.holder).collect();
        for holder in gone {
            self.remove(holder);
        }
    }

    /// Only the keys for which this is so are this node's affair from now on.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&BlobName) -> bool) {
        self.entries.retain(|blob, _| is_kept(blob));
        let entries = &self.entries;
        self.keys.retain(|_, blob| entries.contains_key(blob));
        self.contended.retain(|blob| entries.contains_key(blob));
        self.wanted.clear(); // Who waits says so again.
        let keys = &self.keys;
        self.ends.retain(|(_, holder)| keys.contains_key(holder));
        self.waiting = entries.values().map(|entry| entry.waiting.len()).sum();
    }

    /// The leases that are held.
    pub fn held(&self) -> usize {
        self.ends.len()
    }

    /// Those that are waited for.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    fn remove(&mut self, holder: Holder) -> Option<BlobName> {
        let blob = self.keys.remove(&holder)?;
        let entry = self.entries.get_mut(&blob).expect("a lease is of a key");
        if let Some(place) = entry.held.iter().position(|held| held.holder == holder) {
            let held = entry.held.remove(place);
            self.ends.remove(&(held.until_us, holder));
        } else {
            let before = entry.waiting.len();
            entry.waiting.retain(|waiting| waiting.holder != holder);
            self.waiting -= before - entry.waiting.len();
        }
        if entry.waiting.is_empty() {
            self.contended.remove(&blob);
        }
        if entry.is_empty() {
            self.entries.remove(&blob);
        }
        Some(blob)
    }

    /// Those first in line get it, as far as nobody is in their way.
    pub fn give_next(
        &mut self,
        now_us: u64,
        blob: &BlobName,
        is_open: impl Fn(&BlobName) -> bool,
        said: &mut Vec<(u64, Message)>,
    ) {
        while self.ends.len() < LEASES_OF_NODE_MAX {
            let Some(entry) = self.entries.get_mut(blob) else { return };
            let wanted = self.wanted.get(blob);
            let is_beside = |mode| wanted.is_none_or(|it| it.mode.is_beside(mode));
            let is_next = |it: &&Waiting| entry.is_free_for(it.mode) && is_beside(it.mode);
            let Some(next) = entry.waiting.front().filter(is_next).copied() else { return };
            if !is_open(blob) {
                return; // Asked last: it costs the most.
            }
            entry.waiting.pop_front();
            self.waiting -= 1;
            if entry.waiting.is_empty() {
                self.contended.remove(blob);
            }
            self.give(now_us, blob, next, said);
        }
    }

    fn give(
        &mut self,
        now_us: u64,
        blob: &BlobName,
        given: Waiting,
        said: &mut Vec<(u64, Message)>,
    ) {
        let Waiting { holder, mode, duration_us, sent_us, heard_us: _ } = given;
        let entry = self.entries.entry(blob.clone()).or_default();
        debug_assert!(entry.is_free_for(mode), "K1: nobody is in the way");
        let until_us = now_us.saturating_add(counted_us(duration_us));
        entry.held.push(Held { holder, mode, duration_us, until_us, recalled_us: None });
        self.ends.insert((until_us, holder));
        said.push((holder.0, Message::Granted { lease: holder.1, sent_us }));
    }

    /// Whether others than this client hold leases that exclude such a one (K2).
    pub fn is_in_way(&self, client: u64, blob: &BlobName, mode: LeaseMode) -> bool {
        let Some(entry) = self.entries.get(blob) else { return false };
        entry.held.iter().any(|held| held.is_in_way(client, mode))
    }

    /// A transaction or a read of a client waits for the key (K2): who is in its way is told, and
    /// for a while nobody else is given what excludes it.
    pub fn want(
        &mut self,
        now_us: u64,
        (client, mode): (u64, LeaseMode),
        blob: &BlobName,
        said: &mut Vec<(u64, Message)>,
    ) {
        let until_us = now_us.saturating_add(WANTED_US);
        let is_full = self.wanted.len() >= LEASES_WAITING_MAX;
        match self.wanted.get_mut(blob) {
            Some(wanted) => {
                wanted.until_us = until_us;
                if !mode.is_beside(LeaseMode::Shared) {
                    wanted.mode = mode;
                }
            }
            None if !is_full => {
                self.wanted.insert(blob.clone(), Wanted { mode, until_us });
            }
            None => {} // Others may come before it.
        }
        if let Some(entry) = self.entries.get_mut(blob) {
            entry.recall(now_us, |held| held.is_in_way(client, mode), said);
        }
    }

    /// Nothing waits for the key any more but who asks for leases.
    pub fn want_no_more(&mut self, blob: &BlobName) {
        self.wanted.remove(blob);
    }

    /// Whether a transaction or a read waits for the key that such a lease would exclude.
    fn is_wanted(&self, blob: &BlobName, mode: LeaseMode) -> bool {
        self.wanted.get(blob).is_some_and(|wanted| !wanted.mode.is_beside(mode))
    }

    /// Those who are in the way of the first in line are told, now and then.
    fn recall(&mut self, now_us: u64, blob: &BlobName, said: &mut Vec<(u64, Message)>) {
        let Some(entry) = self.entries.get_mut(blob) else { return };
        let Some(mode) = entry.waiting.front().map(|it| it.mode) else { return };
        entry.recall(now_us, |held| !held.mode.is_beside(mode), said);
    }

    /// Checks what must hold between two steps.
    ///
    /// # Panics
    /// When it does not.
    pub fn invariants(&self) {
        let (mut held, mut waiting) = (0, 0);
        for (blob, entry) in &self.entries {
            assert!(!entry.is_empty(), "an entry is for what is in it");
            let is_exclusive = |it: &Held| it.mode == LeaseMode::Exclusive;
            let is_alone = entry.held.len() == 1 || !entry.held.iter().any(is_exclusive);
            assert!(is_alone, "K1: who holds it exclusively holds it alone");
            for it in &entry.held {
                assert!(self.ends.contains(&(it.until_us, it.holder)), "what is held ends");
                assert_eq!(self.keys.get(&it.holder), Some(blob));
            }
            for it in &entry.waiting {
                assert_eq!(self.keys.get(&it.holder), Some(blob));
            }
            assert_eq!(self.contended.contains(blob), !entry.waiting.is_empty());
            (held, waiting) = (held + entry.held.len(), waiting + entry.waiting.len());
        }
        assert_eq!((held, waiting), (self.ends.len(), self.waiting), "all are counted");
        assert_eq!(held + waiting, self.keys.len(), "a lease is held or waited for");
        assert!(held <= LEASES_OF_NODE_MAX && waiting <= LEASES_WAITING_MAX, "they are bounded");
    }
}

const OTHER_KEY: &str = "a lease of this number is of another key";
const HELD_BY_ANOTHER: &str = "another holds a lease that excludes this one; wait for it, or try \
                               again later";
const NOT_KEPT: &str = "the lease was over before the node that looks after it now heard of it";
const TOO_MANY_HELD: &str = "the node has given as many leases as it may; give some back, or try \
                             again later";
const TOO_MANY_WAIT: &str = "too many wait for leases at the node; try again later";
