//! Who holds which lease, and who waits for one: the authority's table (K1).
//!
//! Those who wait stand in line, key by key: one that would be in nobody's way waits behind one
//! that is, so that none waits for ever. A group and its keys stand in one line, as far as they are
//! in each other's way ([`group`]). Time passes by [`Table::tick`]; what is to be said to clients
//! is collected in `said`. [`guard`] is whom leases keep off, [`entry`] what there is of one key.

mod entry;
mod group;
mod guard;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::limits::{LEASES_OF_NODE_MAX, LEASES_WAITING_MAX};
use tyr_types::{BlobName, ErrorKind, KeyspaceId, LeaseMode, Leased, PlacedBy};

use self::entry::{Entry, Held, Holder, RECALL_AGAIN_US, Waiting, is_due};
use self::group::{Together, keys_of};
use self::guard::Wanted;

use super::{Message, Wish, counted_us};
use crate::abort::Abort;

/// Who waits asks again each second; one that was not heard for so long, in microseconds, is gone.
const SILENT_US: u64 = 5_000_000;

const _: () = assert!(4 * RECALL_AGAIN_US < SILENT_US, "some messages may be lost");

/// A question for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Who asks.
    pub client: u64,
    /// The number that it gave the lease.
    pub lease: u64,
    /// Of what.
    pub of: Leased,
    /// How.
    pub mode: LeaseMode,
    /// How long it lasts, in microseconds.
    pub duration_us: u64,
    /// When it was sent, by the client's clock.
    pub sent_us: u64,
    /// What is to be done when somebody is in the way.
    pub wish: Wish,
}

/// The leases that a node has given, and those that wait.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// How the keys of keyspaces are placed, which says what their groups are.
    placed: BTreeMap<KeyspaceId, PlacedBy>,
    entries: BTreeMap<Leased, Entry>,
    /// What is known of groups with anything in them.
    groups: BTreeMap<BlobName, Together>,
    /// What each lease that is held or waited for is of.
    leases: BTreeMap<Holder, Leased>,
    /// Until when each lease is held.
    ends: BTreeSet<(u64, Holder)>,
    /// What is held by one alone.
    alone: BTreeSet<Leased>,
    /// What somebody waits for.
    contended: BTreeSet<Leased>,
    /// What transactions or reads wait for: they come before those who ask for leases.
    wanted: BTreeMap<Leased, Wanted>,
    waiting: usize,
    /// How many ever had to wait: gives each its place in line.
    arrivals: u64,
}

impl Table {
    /// These are all keyspaces there are: the others have no leases any more. How one is placed
    /// never changes.
    pub fn know(&mut self, placed: BTreeMap<KeyspaceId, PlacedBy>) {
        if self.placed != placed {
            self.retain(|of| placed.contains_key(&of.keyspace()));
            self.placed = placed;
        }
    }

    /// There is this keyspace too.
    pub fn place(&mut self, keyspace: KeyspaceId, placed_by: PlacedBy) {
        self.placed.insert(keyspace, placed_by);
    }

    /// Nothing is held or waited for.
    pub fn forget(&mut self) {
        let placed = std::mem::take(&mut self.placed);
        *self = Self { placed, ..Self::default() };
    }

    /// Somebody asks for a lease. `is_open` says whether such leases may be given yet.
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
        let Ask { client, lease, of, mode, duration_us, sent_us, wish } = ask;
        let holder = (client, lease);
        if let Some(known) = self.leases.get(&holder) {
            if *known != of {
                return Err(Abort::at(of.name(), ErrorKind::InvalidArgument, OTHER_KEY));
            }
            self.ask_again(now_us, (holder, sent_us), said);
            return Ok(());
        }
        let is_free = self.is_free(&of, mode);
        let is_first = self.entries.get(&of).is_none_or(|it| it.waiting.is_empty())
            && !self.is_behind(&of, mode, u64::MAX);
        let is_given = match wish {
            Wish::Wait | Wish::Try => is_open && !self.is_wanted(&of, mode) && is_free && is_first,
            // Once others are given leases, what an earlier authority gave is over (K3).
            Wish::Keep => !is_open && is_free,
        };
        let arrival = self.arrivals + 1;
        let asked = Waiting { holder, mode, duration_us, sent_us, heard_us: now_us, arrival };
        if is_given {
            if self.ends.len() >= LEASES_OF_NODE_MAX {
                return Err(Abort::at(of.name(), ErrorKind::Unavailable, TOO_MANY_HELD));
            }
            self.leases.insert(holder, of.clone());
            self.give(now_us, &of, asked, said);
            return Ok(());
        }
        match wish {
            Wish::Try => Err(Abort::at(of.name(), ErrorKind::Conflict, HELD_BY_ANOTHER)),
            Wish::Keep => Err(Abort::at(of.name(), ErrorKind::Conflict, NOT_KEPT)),
            Wish::Wait if self.waiting >= LEASES_WAITING_MAX => {
                Err(Abort::at(of.name(), ErrorKind::Unavailable, TOO_MANY_WAIT))
            }
            Wish::Wait => {
                self.wait(&of, asked);
                said.push((client, Message::Waits { lease }));
                self.recall(now_us, &of, said);
                Ok(())
            }
        }
    }

    /// Stands in line, behind all others.
    fn wait(&mut self, of: &Leased, waiting: Waiting) {
        self.arrivals = waiting.arrival;
        self.leases.insert(waiting.holder, of.clone());
        self.note_waiting(of, waiting.mode, waiting.arrival);
        self.entries.entry(of.clone()).or_default().waiting.push_back(waiting);
        self.waiting += 1;
        self.contended.insert(of.clone());
    }

    /// The same question once more: the answer was lost, or it waits on.
    fn ask_again(
        &mut self,
        now_us: u64,
        (holder, sent_us): (Holder, u64),
        said: &mut Vec<(u64, Message)>,
    ) {
        let (client, lease) = holder;
        let of = self.leases.get(&holder);
        let Some(entry) = of.and_then(|of| self.entries.get_mut(of)) else { return };
        if let Some(waiting) = entry.waiting.iter_mut().find(|it| it.holder == holder) {
            (waiting.heard_us, waiting.sent_us) = (now_us, waiting.sent_us.max(sent_us));
            said.push((client, Message::Waits { lease }));
            return;
        }
        self.renew_one(now_us, holder);
        said.push((client, Message::Granted { lease, sent_us }));
    }

    /// A client holds these on. Of what is not renewed here any more nothing is said.
    pub fn renew(
        &mut self,
        now_us: u64,
        (client, sent_us): (u64, u64),
        leases: &[u64],
        is_renewed: impl Fn(&Leased) -> bool,
        said: &mut Vec<(u64, Message)>,
    ) {
        let (mut held, mut unknown) = (Vec::new(), Vec::new());
        for lease in leases {
            let holder = (client, *lease);
            if self.leases.get(&holder).is_some_and(|of| !is_renewed(of)) {
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
        let Some(of) = self.leases.get(&holder) else { return false };
        let entry = self.entries.get_mut(of);
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
        is_open: impl Fn(&Leased) -> bool,
        said: &mut Vec<(u64, Message)>,
    ) {
        if let Some(of) = self.remove(holder) {
            self.give_next(now_us, &of, &is_open, said);
        }
    }

    /// Time has passed: what is over ends, and who waits is seen to. `is_open` says what may be
    /// given.
    pub fn tick(
        &mut self,
        now_us: u64,
        is_open: impl Fn(&Leased) -> bool,
        said: &mut Vec<(u64, Message)>,
    ) {
        while let Some((until_us, holder)) = self.ends.first().copied()
            && until_us <= now_us
        {
            self.remove(holder).expect("what ends is held"); // Who waits for it is contended.
        }
        self.wanted.retain(|_, wanted| wanted.until_us > now_us);
        let contended: Vec<Leased> = self.contended.iter().cloned().collect();
        for of in &contended {
            self.forget_silent(now_us, of);
        }
        for of in &contended {
            self.give_in_line(now_us, of, &is_open, said);
            self.recall(now_us, of, said);
        }
    }

    /// Those who wait and were not heard of for long wait no more.
    fn forget_silent(&mut self, now_us: u64, of: &Leased) {
        let Some(entry) = self.entries.get(of) else { return };
        let is_gone = |it: &&Waiting| now_us.saturating_sub(it.heard_us) >= SILENT_US;
        let gone: Vec<Holder> = entry.waiting.iter().filter(is_gone).map(|it| it.holder).collect();
        for holder in gone {
            self.remove(holder);
        }
    }

    /// Only this is the node's affair from now on: of a group and its keys all, or nothing.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&Leased) -> bool) {
        self.entries.retain(|of, _| is_kept(of));
        let entries = &self.entries;
        self.leases.retain(|_, of| entries.contains_key(of));
        self.contended.retain(|of| entries.contains_key(of));
        self.alone.retain(|of| entries.contains_key(of));
        self.groups.retain(|group, _| is_kept(&Leased::Group(group.clone())));
        self.wanted.clear(); // Who waits says so again.
        let leases = &self.leases;
        self.ends.retain(|(_, holder)| leases.contains_key(holder));
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

    fn remove(&mut self, holder: Holder) -> Option<Leased> {
        let of = self.leases.remove(&holder)?;
        let entry = self.entries.get_mut(&of).expect("a lease is of something");
        let place = entry.held.iter().position(|held| held.holder == holder);
        let held = place.map(|place| entry.held.remove(place));
        let place = entry.waiting.iter().position(|waiting| waiting.holder == holder);
        let waiting = place.and_then(|place| entry.waiting.remove(place));
        if entry.waiting.is_empty() {
            self.contended.remove(&of);
        }
        if entry.is_empty() {
            self.entries.remove(&of);
        }
        if let Some(held) = held {
            self.ends.remove(&(held.until_us, holder));
            self.note_given_back(&of, held.mode);
        }
        if let Some(waiting) = waiting {
            self.waiting -= 1;
            self.note_waited(&of, waiting.arrival);
        }
        Some(of)
    }

    /// Of this, and of what is in one group with it, those first in line get it, as far as nobody
    /// is in their way.
    pub fn give_next(
        &mut self,
        now_us: u64,
        of: &Leased,
        is_open: impl Fn(&Leased) -> bool,
        said: &mut Vec<(u64, Message)>,
    ) {
        if self.contended.is_empty() {
            return;
        }
        self.give_in_line(now_us, of, &is_open, said);
        match of {
            Leased::Key(blob) => {
                if let Some(group) = self.group_of(blob).map(Leased::Group) {
                    self.give_in_line(now_us, &group, &is_open, said);
                }
            }
            Leased::Group(group) => {
                for key in self.contended_in(group) {
                    self.give_in_line(now_us, &key, &is_open, said);
                }
            }
        }
    }

    fn give_in_line(
        &mut self,
        now_us: u64,
        of: &Leased,
        is_open: impl Fn(&Leased) -> bool,
        said: &mut Vec<(u64, Message)>,
    ) {
        while self.ends.len() < LEASES_OF_NODE_MAX {
            let first = self.entries.get(of).and_then(|entry| entry.waiting.front()).copied();
            let is_next = |it: &Waiting| {
                self.is_free(of, it.mode)
                    && !self.is_behind(of, it.mode, it.arrival)
                    && !self.is_wanted(of, it.mode)
            };
            let Some(next) = first.filter(is_next) else { return };
            if !is_open(of) {
                return; // Asked last: it costs the most.
            }
            let entry = self.entries.get_mut(of).expect("somebody waits for it");
            entry.waiting.pop_front();
            self.waiting -= 1;
            if entry.waiting.is_empty() {
                self.contended.remove(of);
            }
            self.note_waited(of, next.arrival);
            self.give(now_us, of, next, said);
        }
    }

    fn give(&mut self, now_us: u64, of: &Leased, given: Waiting, said: &mut Vec<(u64, Message)>) {
        let Waiting { holder, mode, duration_us, sent_us, .. } = given;
        debug_assert!(self.is_free(of, mode), "K1: nobody is in the way");
        let until_us = now_us.saturating_add(counted_us(duration_us));
        let held = Held { holder, mode, duration_us, until_us, recalled_us: None };
        self.entries.entry(of.clone()).or_default().held.push(held);
        self.note_held(of, mode);
        self.ends.insert((until_us, holder));
        said.push((holder.0, Message::Granted { lease: holder.1, sent_us }));
    }

    /// Those who are in the way of the first in line are told, now and then.
    fn recall(&mut self, now_us: u64, of: &Leased, said: &mut Vec<(u64, Message)>) {
        let Some(entry) = self.entries.get_mut(of) else { return };
        let Some(mode) = entry.waiting.front().map(|it| it.mode) else { return };
        let is_in_way = |held: &Held| !held.mode.is_beside(mode);
        entry.recall(now_us, is_in_way, said);
        match of {
            Leased::Key(blob) => {
                let group = self.group_of(blob).map(Leased::Group);
                if let Some(entry) = group.and_then(|group| self.entries.get_mut(&group)) {
                    entry.recall(now_us, is_in_way, said);
                }
            }
            Leased::Group(group) => {
                let Some(together) = self.groups.get_mut(group) else { return };
                if !is_due(now_us, together.recalled_us) {
                    return; // It may have many keys.
                }
                together.recalled_us = Some(now_us);
                let (start, is_one) = keys_of(group);
                let keys = self.entries.range_mut(start..).take_while(|(key, _)| is_one(key));
                keys.for_each(|(_, entry)| entry.recall(now_us, is_in_way, said));
            }
        }
    }

    /// Checks what must hold between two steps.
    ///
    /// # Panics
    /// When it does not.
    pub fn invariants(&self) {
        let (mut held, mut waiting) = (0, 0);
        for (of, entry) in &self.entries {
            assert!(!entry.is_empty(), "an entry is for what is in it");
            let is_exclusive = |it: &Held| it.mode == LeaseMode::Exclusive;
            let is_alone = entry.held.len() == 1 || !entry.held.iter().any(is_exclusive);
            assert!(is_alone, "K1: who holds it exclusively holds it alone");
            for it in &entry.held {
                assert!(self.ends.contains(&(it.until_us, it.holder)), "what is held ends");
                assert_eq!(self.leases.get(&it.holder), Some(of));
            }
            for it in &entry.waiting {
                assert_eq!(self.leases.get(&it.holder), Some(of));
            }
            assert_eq!(self.contended.contains(of), !entry.waiting.is_empty());
            (held, waiting) = (held + entry.held.len(), waiting + entry.waiting.len());
        }
        assert_eq!((held, waiting), (self.ends.len(), self.waiting), "all are counted");
        assert_eq!(held + waiting, self.leases.len(), "a lease is held or waited for");
        assert!(held <= LEASES_OF_NODE_MAX && waiting <= LEASES_WAITING_MAX, "they are bounded");
        self.check_groups();
    }
}

const OTHER_KEY: &str = "a lease of this number is of something else";
const HELD_BY_ANOTHER: &str = "another holds a lease that excludes this one; wait for it, or try \
                               again later";
const NOT_KEPT: &str = "the lease was over before the node that looks after it now heard of it";
const TOO_MANY_HELD: &str = "the node has given as many leases as it may; give some back, or try \
                             again later";
const TOO_MANY_WAIT: &str = "too many wait for leases at the node; try again later";
