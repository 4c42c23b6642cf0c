//! Who watches what at a node, and what they are to be told (K5).
//!
//! What was told and not heard yet is told again; what changes meanwhile is kept and told as one:
//! so each watch has two changes at most, however often something happens, and however slow its
//! client is.

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::limits::WATCHES_OF_NODE_MAX;
use tyr_types::{BlobName, Changes, ErrorKind, Timestamp, WatchTarget, Watcher};

use super::{Message, RENEWED_MAX, Targets};
use crate::abort::Abort;

/// What was told and not heard is told again with the next renewal after so long, in microseconds.
const TELL_AGAIN_US: u64 = 500_000;

/// A client renews its watches each second; one that was not heard for so long, in microseconds in
/// which the node could hear, is gone.
const SILENT_US: u64 = 10_000_000;

#[derive(Clone, Debug)]
struct Watch {
    target: WatchTarget,
    /// When its client was heard last, in the time in which the node could hear.
    heard_us: u64,
    /// How often something was told of it.
    told: u64,
    /// What was told last and not heard yet, since when.
    unheard: Option<(Changes, u64)>,
    /// What has changed since.
    pending: Option<Changes>,
}

impl Watch {
    /// Tells what is to be told, when what was told before is heard.
    fn tell(&mut self, now_us: u64, watcher: Watcher, said: &mut Vec<(u64, Message)>) {
        if self.unheard.is_some() {
            return;
        }
        if let Some(changes) = self.pending.take() {
            self.told += 1;
            self.unheard = Some((changes.clone(), now_us));
            let Watcher { client, watch } = watcher;
            said.push((client, Message::Changed { watch, told: self.told, changes }));
        }
    }

    fn heard(&mut self, told: u64) {
        if told >= self.told {
            self.unheard = None;
        }
    }
}

/// The watches at a node.
#[derive(Clone, Debug, Default)]
pub struct Table {
    watches: BTreeMap<Watcher, Watch>,
    targets: Targets<Watcher>,
    /// Who was heard last when: the first is the first to be gone.
    heard: BTreeSet<(u64, Watcher)>,
    /// How long the node could hear so far, and when that was looked at last.
    hearing_us: u64,
    ticked_us: Option<u64>,
}

impl Table {
    /// The number of watches.
    pub fn len(&self) -> usize {
        self.watches.len()
    }

    /// Whether nobody watches.
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    /// A client watches something.
    ///
    /// # Errors
    /// `Unavailable` when there are too many.
    pub fn ask(
        &mut self,
        watcher: Watcher,
        target: WatchTarget,
        said: &mut Vec<(u64, Message)>,
    ) -> Result<(), Abort> {
        self.end(watcher); // It begins anew: its client has heard nothing of it, or forgot.
        if self.watches.len() >= WATCHES_OF_NODE_MAX {
            return Err(Abort::new(ErrorKind::Unavailable, TOO_MANY));
        }
        self.targets.insert(&target, watcher);
        let (unheard, pending) = (None, None);
        let watch = Watch { target, heard_us: self.hearing_us, told: 0, unheard, pending };
        self.watches.insert(watcher, watch);
        self.heard.insert((self.hearing_us, watcher));
        said.push((watcher.client, Message::Watching { watch: watcher.watch }));
        Ok(())
    }

    /// A client watches these on, and has heard so much of each.
    pub fn renew(
        &mut self,
        now_us: u64,
        client: u64,
        watches: &[(u64, u64)],
        said: &mut Vec<(u64, Message)>,
    ) {
        let mut unknown = Vec::new();
        for (number, told) in watches.iter().take(RENEWED_MAX) {
            let watcher = Watcher { client, watch: *number };
            let Some(watch) = self.watches.get_mut(&watcher) else {
                unknown.push(*number);
                continue;
            };
            self.heard.remove(&(watch.heard_us, watcher));
            self.heard.insert((self.hearing_us, watcher));
            watch.heard_us = self.hearing_us;
            watch.heard(*told);
            match &mut watch.unheard {
                Some((changes, at_us)) if now_us.saturating_sub(*at_us) >= TELL_AGAIN_US => {
                    *at_us = now_us;
                    let (told, changes) = (watch.told, changes.clone());
                    said.push((client, Message::Changed { watch: *number, told, changes }));
                }
                Some(_) => {}
                None => watch.tell(now_us, watcher, said),
            }
        }
        said.push((client, Message::Renewed { unknown }));
    }

    /// A client has heard what was told.
    pub fn heard(
        &mut self,
        now_us: u64,
        watcher: Watcher,
        told: u64,
        said: &mut Vec<(u64, Message)>,
    ) {
        if let Some(watch) = self.watches.get_mut(&watcher) {
            watch.heard(told);
            watch.tell(now_us, watcher, said);
        }
    }

    /// A client watches something no more.
    pub fn end(&mut self, watcher: Watcher) {
        if let Some(watch) = self.watches.remove(&watcher) {
            self.targets.remove(&watch.target, watcher);
            self.heard.remove(&(watch.heard_us, watcher));
        }
    }

    /// A blob was changed.
    pub fn changed(
        &mut self,
        now_us: u64,
        at: Timestamp,
        blob: &BlobName,
        said: &mut Vec<(u64, Message)>,
    ) {
        for watcher in self.targets.watchers(blob) {
            let watch = self.watches.get_mut(&watcher).expect("who is found watches");
            watch.pending.get_or_insert_default().add(at, &blob.key);
            watch.tell(now_us, watcher, said);
        }
    }

    /// Who watches this key.
    pub fn watchers(&self, blob: &BlobName) -> BTreeSet<Watcher> {
        self.targets.watchers(blob)
    }

    /// Time has passed: who was not heard for long watches no more. Time in which the node could
    /// not hear does not count.
    pub fn tick(&mut self, now_us: u64, can_hear: bool) {
        let before_us = self.ticked_us.replace(now_us).unwrap_or(now_us);
        if can_hear {
            self.hearing_us += now_us.saturating_sub(before_us);
        }
        while let Some((heard_us, watcher)) = self.heard.first().copied()
            && self.hearing_us.saturating_sub(heard_us) >= SILENT_US
        {
            self.end(watcher);
        }
    }

    /// Checks what must hold between two steps.
    ///
    /// # Panics
    /// When it does not.
    pub fn invariants(&self) {
        self.targets.invariants();
        assert_eq!(self.heard.len(), self.watches.len(), "each is heard of some time");
        assert!(self.watches.len() <= WATCHES_OF_NODE_MAX, "they are bounded");
        for (watcher, watch) in &self.watches {
            assert!(self.heard.contains(&(watch.heard_us, *watcher)), "who is silent is noticed");
            let is_told = watch.pending.is_none() || watch.unheard.is_some();
            assert!(is_told, "K5: what is not told waits for what was told to be heard");
        }
    }
}

const TOO_MANY: &str = "the node has as many watches as it may; end some, or try again later";

#[cfg(test)]
mod tests {
    use tyr_types::{Bytes, Key, KeyspaceId};

    use super::*;

    const WATCHER: Watcher = Watcher { client: 1, watch: 7 };

    fn target() -> WatchTarget {
        let prefix = Bytes::from_static(b"a");
        WatchTarget { keyspace: KeyspaceId(1), prefix, is_exact: false }
    }

    fn at(clock: u64) -> Timestamp {
        Timestamp { clock, ..Timestamp::ZERO }
    }

    #[derive(Default)]
    struct Stand {
        table: Table,
        now_us: u64,
        said: Vec<(u64, Message)>,
    }

    impl Stand {
        fn ask(&mut self, client: u64) -> Result<(), Abort> {
            self.table.ask(Watcher { client, watch: 7 }, target(), &mut self.said)
        }

        fn tick(&mut self, us: u64, can_hear: bool) {
            self.now_us += us;
            self.table.tick(self.now_us, can_hear);
        }

        fn change(&mut self, key: &str, clock: u64) {
            let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new(key).unwrap() };
            self.table.changed(self.now_us, at(clock), &blob, &mut self.said);
        }

        fn renew(&mut self, told: u64) {
            self.table.renew(self.now_us, 1, &[(7, told)], &mut self.said);
        }

        /// What the client was told of changes since this was asked last: how often it was told
        /// something with this, up to when, how many keys.
        fn told(&mut self) -> Vec<(u64, u64, usize)> {
            self.table.invariants();
            let told = self.said.drain(..).filter_map(|(client, message)| match message {
                Message::Changed { watch: 7, told, changes } if client == 1 => {
                    Some((told, changes.at.clock, changes.keys.len()))
                }
                _ => None,
            });
            told.collect()
        }
    }

    /// K5.
    #[test]
    fn what_changes_before_the_last_is_heard_is_told_as_one() {
        let mut stand = Stand::default();
        stand.change("a1", 1);
        stand.ask(1).unwrap();
        stand.change("b", 2);
        assert_eq!(stand.told(), []);
        stand.change("a1", 3);
        assert_eq!(stand.told(), [(1, 3, 1)], "at once");
        stand.change("a2", 4);
        stand.change("a1", 5);
        stand.change("a2", 6);
        assert_eq!(stand.told(), []);
        stand.table.heard(stand.now_us, WATCHER, 1, &mut stand.said);
        assert_eq!(stand.told(), [(2, 6, 2)]);
        stand.table.heard(stand.now_us, WATCHER, 1, &mut stand.said);
        stand.change("a3", 7);
        assert_eq!(stand.told(), [], "that was heard before");
    }

    /// K5: messages may be lost.
    #[test]
    fn what_is_not_heard_is_told_again() {
        let mut stand = Stand::default();
        stand.ask(1).unwrap();
        stand.change("a1", 3);
        assert_eq!(stand.told(), [(1, 3, 1)]);
        stand.change("a2", 4);
        stand.renew(0);
        assert_eq!(stand.told(), [], "it may be on its way");
        stand.now_us += TELL_AGAIN_US;
        stand.renew(0);
        assert_eq!(stand.told(), [(1, 3, 1)]);
        stand.renew(1);
        assert_eq!(stand.told(), [(2, 4, 1)]);
    }

    #[test]
    fn who_is_silent_watches_no_more_and_hears_so() {
        let mut stand = Stand::default();
        stand.tick(0, true);
        stand.ask(1).unwrap();
        stand.tick(SILENT_US - 1, true);
        stand.renew(0);
        assert!(stand.said.contains(&(1, Message::Renewed { unknown: vec![] })));
        stand.tick(SILENT_US, true);
        assert!(stand.table.is_empty());
        stand.renew(0);
        assert!(stand.said.contains(&(1, Message::Renewed { unknown: vec![7] })));
    }

    /// K6: a node that has had no lease for long knows all who watch when it has one again.
    #[test]
    fn nobody_is_gone_for_what_the_node_could_not_hear() {
        let mut stand = Stand::default();
        stand.tick(0, true);
        stand.ask(1).unwrap();
        stand.tick(5 * SILENT_US, false);
        stand.tick(SILENT_US - 1, true);
        assert_eq!(stand.table.len(), 1);
        stand.tick(1, true);
        assert!(stand.table.is_empty());
    }

    #[test]
    fn watches_are_bounded() {
        let mut stand = Stand::default();
        for client in 0..WATCHES_OF_NODE_MAX as u64 {
            stand.ask(client).unwrap();
        }
        let refused = stand.ask(u64::MAX).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Unavailable);
        stand.ask(5).unwrap();
    }
}
