//! A call that scans: every node is asked for a page of the blobs that it is the authority of, and
//! the pages are merged up to where the first of them ended (Q1, Q2).
//!
//! ```text
//!   a scan, at S ─► all nodes that list some of it ─► their pages ─► one page
//!                      ▲  silent: after a second   │
//!                      │  not here: after a pause  │
//!                      └─ other places: all anew ◄─┘
//! ```
//!
//! All of them answer by one placement, so each blob is in the page of one node. Where the prefix
//! is of one group that is one node (H). What a node answers at S it would answer again: who has
//! answered is not asked twice while chunks stay where they are.
//!
//! In a cluster that does not know scans yet, keys are asked for in the older words, if those say
//! what is wanted.

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_types::scan::just_behind;
use tyr_types::{
    Bytes, Epoch, ErrorKind, Key, KeyspaceId, NodeId, Scan, ScanEntry, ScanPage, Stat, Timestamp,
    limits,
};

use super::effect::{Answer, Effect};
use super::event::CallId;
use super::{Session, Task, fail};
use crate::abort::Abort;
use crate::level::LEVEL_SCANNING;
use crate::map::DROPPED;
use crate::message::{Body, ListRequest, ListedBlob, ScanRequest};

/// After how long a node is asked again: a message may have been lost. It reads from its disk.
const AGAIN_US: u64 = 1_000_000;

/// A node that does not list just now is asked again after so long.
const PAUSE_US: u64 = 20_000;

const _: () = assert!(PAUSE_US < AGAIN_US, "who must be asked anew is, first");

/// A node that is asked.
#[derive(Clone, Debug)]
struct Lister {
    number: u64,
    /// When it is asked again.
    due_us: u64,
    is_silent: bool,
    page: Option<ScanPage>,
}

/// A call that scans.
#[derive(Clone, Debug)]
pub(super) struct Scanning {
    keyspace: KeyspaceId,
    scan: Scan,
    at: Option<Timestamp>,
    /// The placement that all go by, by when it began; `None` before anybody was asked.
    moved: Option<Epoch>,
    /// Bounded by the nodes of the map, and [`limits::SCAN_BYTES_MAX`] for each.
    listers: BTreeMap<NodeId, Lister>,
}

impl Scanning {
    pub fn new(keyspace: KeyspaceId, scan: Scan, at: Option<Timestamp>) -> Self {
        Self { keyspace, scan, at, moved: None, listers: BTreeMap::new() }
    }

    /// The questions without an answer, with who was asked.
    pub fn open(&self) -> impl Iterator<Item = (u64, NodeId)> + '_ {
        let open = self.listers.iter().filter(|(_, lister)| lister.page.is_none());
        open.map(|(node, lister)| (lister.number, *node))
    }

    /// What the node is asked, in words that all nodes of this level know.
    fn question(&self, number: u64, is_new: bool) -> Body {
        if is_new {
            let request = ScanRequest::new(number, self.keyspace, &self.scan, self.at);
            return Body::Scan(Arc::new(request));
        }
        let (keyspace, at) = (self.keyspace, self.at);
        let limit = u32::try_from(self.scan.get_limit()).unwrap_or(u32::MAX);
        let (prefix, start) = (self.scan.get_prefix().clone(), self.scan.keys().start);
        let after = if start <= prefix { None } else { just_before(&start) };
        Body::ListKeys(ListRequest { number, keyspace, prefix, after, limit, at })
    }

    /// Whether a node can have answered this.
    fn is_answered_by(&self, page: &ScanPage) -> bool {
        let keys = self.scan.keys();
        let is_far = |resume: &Bytes| *resume > keys.start && keys.is_before_end(resume);
        let are_keys = page.entries.iter().all(|entry| keys.contains(entry.key.as_bytes()));
        let has_groups = self.scan.get_delimiter().is_some() || page.groups.is_empty();
        page.resume.as_ref().is_none_or(is_far)
            && are_keys
            && has_groups
            && page.entries.len() + page.groups.len() <= limits::SCAN_LIMIT_MAX
    }

    /// What was listed in the older words, as a page; `None` when it cannot be the answer.
    fn page(&self, listed: Vec<ListedBlob>, is_end: bool) -> Option<ScanPage> {
        let keys = self.scan.keys();
        let last = listed.last().map(|blob| blob.key.clone());
        let resume = match is_end {
            true => None,
            false => Some(Bytes::from(just_behind(&last?))),
        };
        let wanted = listed.into_iter().filter(|blob| keys.contains(&blob.key));
        let entry = |ListedBlob { key, size, version }: ListedBlob| {
            let stat = (!self.scan.is_keys_only()).then_some(Stat { size, version });
            Some(ScanEntry { key: Key::new(key).ok()?, stat, bytes: Bytes::new() })
        };
        let entries = wanted.map(entry).collect::<Option<Vec<_>>>()?;
        let resume = resume.filter(|resume| keys.is_before_end(resume));
        Some(ScanPage { entries, groups: Vec::new(), resume })
    }
}

/// The highest key before `start`; `None` when there is none.
fn just_before(start: &[u8]) -> Option<Bytes> {
    let (last, head) = start.split_last()?;
    if *last == 0 {
        return (!head.is_empty()).then(|| Bytes::copy_from_slice(head));
    }
    let mut before = [head, &[last - 1]].concat();
    before.resize(limits::KEY_LEN_MAX.max(before.len()), 0xFF);
    debug_assert!(*before < *start, "it comes before");
    Some(before.into())
}

impl Session {
    /// A scan goes on: all who list some of it are asked, by the newest map.
    pub(super) fn scan(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(Task::Scan(scanning)) = self.calls.get(&call).map(|it| &it.task) else { return };
        let (keyspace, scan) = (scanning.keyspace, &scanning.scan);
        if self.map.is_dropped(keyspace) {
            return self.give_up(call, Abort::new(ErrorKind::NotFound, DROPPED), effects);
        }
        let Some(chunk_size) = self.map.chunk_size(keyspace) else {
            return self.is_stuck(call, effects);
        };
        let check = || {
            scan.validate_in(chunk_size)?;
            if !scan.is_plain() {
                self.map.check_level(LEVEL_SCANNING)?;
            }
            self.map.check_whole(keyspace)
        };
        if let Err(error) = check() {
            let abort = Abort::new(error.kind(), error.message().to_owned());
            return self.give_up(call, abort, effects);
        }
        let is_empty = scan.keys().is_empty();
        let listers = self.map.listers(keyspace, scan.get_prefix());
        if listers.is_empty() && !is_empty {
            let reason = "no node of the cluster is up by its map; retry later";
            return self.give_up(call, Abort::new(ErrorKind::Unavailable, reason), effects);
        }
        self.withdraw_scan(call, effects);
        let moved = self.map.moved;
        let mut numbered = BTreeMap::new();
        for node in listers.into_iter().filter(|_| !is_empty) {
            self.questions_begun += 1;
            let number = self.numbers.of(self.questions_begun);
            self.scans.insert(number, call);
            let due_us = self.now_us;
            numbered.insert(node, Lister { number, due_us, is_silent: false, page: None });
        }
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Scan(scanning) = &mut in_flight.task else { return };
        in_flight.stuck = None;
        scanning.moved = Some(moved);
        scanning.listers = numbered;
        self.ask_listers(call, effects);
        self.merge_if_complete(call, effects);
    }

    /// Time has passed, or somebody is not ready: those are asked again whose turn it is.
    pub(super) fn resume_scan(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(Task::Scan(scanning)) = self.calls.get(&call).map(|it| &it.task) else { return };
        match scanning.moved {
            Some(moved) if moved == self.map.moved => self.ask_listers(call, effects),
            Some(_) | None => self.scan(call, effects),
        }
    }

    fn ask_listers(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let (now_us, is_new) = (self.now_us, self.map.level >= LEVEL_SCANNING);
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Scan(scanning) = &mut in_flight.task else { return };
        let (mut asked, mut silent) = (Vec::new(), None);
        for (node, lister) in &mut scanning.listers {
            if lister.page.is_none() && lister.due_us <= now_us {
                silent = silent.or(lister.is_silent.then_some(*node));
                (lister.due_us, lister.is_silent) = (now_us + AGAIN_US, true);
                asked.push((*node, lister.number));
            }
        }
        let say = |&(node, number): &(NodeId, u64)| (node, scanning.question(number, is_new));
        let said: Vec<(NodeId, Body)> = asked.iter().map(say).collect();
        let open = scanning.listers.values().filter(|lister| lister.page.is_none());
        let due_us = open.map(|lister| lister.due_us).min();
        for (node, body) in said {
            self.send(node, body, effects);
        }
        if let Some(due_us) = due_us {
            self.resume_in(call, due_us.saturating_sub(now_us));
        }
        if let Some(silent) = silent {
            self.routing.is_late(silent, now_us);
            self.ask_others_than(silent, effects);
        }
    }

    /// A node has listed, in the words of now.
    pub(super) fn scanned(
        &mut self,
        from: NodeId,
        number: u64,
        page: ScanPage,
        effects: &mut Vec<Effect>,
    ) {
        let Some(call) = self.scans.get(&number).copied() else { return };
        let Some(Task::Scan(scanning)) = self.calls.get_mut(&call).map(|it| &mut it.task) else {
            return;
        };
        if !scanning.is_answered_by(&page) {
            return; // Not understood.
        }
        match scanning.listers.get_mut(&from).filter(|lister| lister.number == number) {
            Some(lister) => lister.page = Some(page),
            None => return,
        }
        self.scans.remove(&number);
        self.routing.has_answered(from);
        self.merge_if_complete(call, effects);
    }

    /// A node has listed, in the older words.
    pub(super) fn listed(
        &mut self,
        from: NodeId,
        number: u64,
        listed: (Vec<ListedBlob>, bool),
        effects: &mut Vec<Effect>,
    ) {
        let call = self.scans.get(&number).and_then(|call| self.calls.get(call));
        let Some(Task::Scan(scanning)) = call.map(|it| &it.task) else { return };
        if let Some(page) = scanning.page(listed.0, listed.1) {
            self.scanned(from, number, page, effects);
        }
    }

    fn merge_if_complete(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(Task::Scan(scanning)) = self.calls.get(&call).map(|it| &it.task) else { return };
        if scanning.open().next().is_some() {
            return;
        }
        debug_assert_eq!(scanning.moved, Some(self.map.moved), "all went by one placement");
        let Some(Task::Scan(scanning)) = self.leave(call, effects) else { return };
        let Scanning { scan, listers, .. } = scanning;
        let pages = listers.into_values().filter_map(|lister| lister.page).collect();
        let page = ScanPage::merge(pages, &scan);
        effects.push(Effect::Done { call, answer: Answer::Page(page) });
    }

    /// A node refuses to list, or does not know the question: it would again.
    pub(super) fn scan_refused(&mut self, number: u64, abort: Abort, effects: &mut Vec<Effect>) {
        match self.scans.get(&number).copied() {
            Some(call) => {
                self.leave(call, effects);
                fail(call, abort, effects);
            }
            None => self.piece_refused(number, abort, effects),
        }
    }

    /// A node does not list just now: it has no lease, or goes by another map.
    pub(super) fn scan_not_here(&mut self, from: NodeId, number: u64) {
        let Some(call) = self.scans.get(&number).copied() else {
            return self.piece_not_here(number);
        };
        let due_us = self.now_us + PAUSE_US;
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Scan(scanning) = &mut in_flight.task else { return };
        let Some(lister) = scanning.listers.get_mut(&from) else { return };
        (lister.due_us, lister.is_silent) = (due_us, false);
        let is_sooner = in_flight.due_us.is_none_or(|before_us| due_us < before_us);
        if is_sooner {
            self.resume_in(call, PAUSE_US);
        }
    }

    /// Chunks are elsewhere by the newest map: all are asked anew.
    pub(super) fn reroute_scan(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(Task::Scan(scanning)) = self.calls.get(&call).map(|it| &it.task) else { return };
        if scanning.moved != Some(self.map.moved) {
            self.scan(call, effects);
        }
    }

    /// Nobody waits for what this call asked any more.
    fn withdraw_scan(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(Task::Scan(scanning)) = self.calls.get(&call).map(|it| &it.task) else { return };
        let open: Vec<(u64, NodeId)> = scanning.open().collect();
        self.withdraw_listers(&open, effects);
    }

    pub(super) fn withdraw_listers(&mut self, open: &[(u64, NodeId)], effects: &mut Vec<Effect>) {
        for (number, node) in open {
            self.scans.remove(number);
            self.send(*node, Body::CancelRead { read: *number }, effects);
        }
    }
}
