//! What others have, beside what a node has that returns by difference (D5).
//!
//! ```text
//!   recipient ──Summarize(F, after)──► authority     of a stretch of names: a summary of what is
//!   recipient ◄─Summarized──────────── authority     unchanged since F, and the names of all else
//!       of what is here the same summary: it stands
//!       another:
//!   recipient ──ListSince(F, after)──► authority     the same stretch, name by name
//!   recipient ◄─ListedSince─────────── authority
//! ```
//!
//! As a rule nearly nothing has changed, so each side walks over its names and says next to
//! nothing. Both walk at the same time: with a summary here the next one is asked for at once, and
//! then what is here is looked at. Both take the chunks in the order of their names, each with its
//! version: what is changed, came or went, and what chains have brought to one side only, shows as
//! another summary.

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_types::{Epoch, NodeId, Timestamp};

use super::supply::is_supplied;
use super::{ChunkName, Effect, LocalChunk, Store, Turn};
use crate::level::LEVEL_SUMMARIZING;
use crate::map::ClusterMap;
use crate::message::{Address, Body};
use crate::movement::summary::{Summary, Summing};
use crate::movement::{self, Message};
use crate::rule::Rule;

/// So many pages of own chunks are looked at for one of a list: others may have fewer between two
/// names.
const COMPARED_PAGES: usize = 4;

/// So many pages are one stretch that is summed up: some milliseconds of work.
const SUMMED_PAGES: usize = 4;

/// A page of what another node has: what did not change since then, and what else there is.
#[derive(Clone, Debug)]
pub(super) struct Page<Unchanged> {
    pub since: Timestamp,
    pub after: Option<ChunkName>,
    pub unchanged: Unchanged,
    pub changed: Vec<ChunkName>,
    pub next: Option<ChunkName>,
}

/// A summary that came, until what is here is summed up, too.
#[derive(Clone, Debug)]
pub(super) struct Received {
    epoch: Epoch,
    page: Page<Summary>,
    /// Whether the next one is asked for.
    is_next_asked: bool,
}

/// Up to where lists of nodes are asked for name by name, for what they have is not what is here;
/// and by which map. At most one stretch of each node.
#[derive(Clone, Debug, Default)]
pub(super) struct InFull(BTreeMap<NodeId, (Epoch, Option<ChunkName>)>);

impl InFull {
    fn begin(&mut self, from: NodeId, epoch: Epoch, to: Option<ChunkName>) {
        self.0.insert(from, (epoch, to));
    }

    fn contains(&self, from: NodeId, epoch: Epoch, after: Option<&ChunkName>) -> bool {
        self.0.get(&from).is_some_and(|(of, to)| {
            let is_before_end = to.as_ref().is_none_or(|to| after.is_none_or(|after| after < to));
            *of == epoch && is_before_end
        })
    }
}

impl<S: Store> Turn<'_, S> {
    /// The question for a list of what `to` is the authority of and this node a recipient.
    pub(super) fn question(
        &self,
        to: NodeId,
        after: Option<ChunkName>,
        map: &ClusterMap,
    ) -> Message {
        let difference = &self.member.difference;
        let Some(since) = difference.complete_to else { return Message::List { after } };
        // What was at kept moments shows in no version.
        let may_sum = map.check_level(LEVEL_SUMMARIZING).is_ok() && map.kept.is_empty();
        match may_sum && !difference.in_full.contains(to, map.epoch, after.as_ref()) {
            true => Message::Summarize { since, after },
            false => Message::ListSince { since, after },
        }
    }

    /// Lists a page of the chunks that `to` is a recipient of and this node the authority of, and
    /// says which of them have not changed since then.
    pub(super) fn list_since(&mut self, to: NodeId, since: Timestamp, after: Option<ChunkName>) {
        let Some(map) = self.listed_map() else { return };
        let (held, next) = self.held_for(to, after.as_ref(), &map);
        let (unchanged, changed): (Vec<_>, Vec<_>) =
            held.into_iter().partition(|held| is_unchanged(held, since));
        let unchanged = unchanged.into_iter().map(|held| (held.name, held.version)).collect();
        let changed = changed.into_iter().map(|held| held.name).collect();
        let message = Message::ListedSince { since, after, unchanged, changed, next };
        self.send(Address::Node(to), Body::Movement(message));
    }

    /// The same of a longer stretch, where what has not changed is summed up.
    pub(super) fn summarize(&mut self, to: NodeId, since: Timestamp, after: Option<ChunkName>) {
        let Some(map) = self.listed_map() else { return };
        let (mut summing, mut changed, mut next) = (Summing::default(), Vec::new(), after.clone());
        for _ in 0..SUMMED_PAGES {
            let (held, behind) = self.held_for(to, next.as_ref(), &map);
            for held in held {
                match is_unchanged(&held, since) {
                    true => summing.add(&held.name, held.version),
                    false => changed.push(held.name),
                }
            }
            next = behind;
            if next.is_none() {
                break;
            }
        }
        let unchanged = summing.summary();
        let message = Message::Summarized { since, after, unchanged, changed, next };
        self.send(Address::Node(to), Body::Movement(message));
    }

    /// A page of what an authority has: what did not change since stands, all else is copied.
    pub(super) fn compare(
        &mut self,
        from: NodeId,
        epoch: Epoch,
        page: Page<Vec<(ChunkName, Timestamp)>>,
    ) {
        let Some(map) = self.compared_map(from, epoch, &page) else { return };
        let Page { since, after, unchanged, changed, next } = page;
        let (own, next) = self.own_of((from, since), after.as_ref(), next, (COMPARED_PAGES, &map));
        self.member.recipient.note_compared(own.len());
        let is_in_page = |name: &ChunkName| next.as_ref().is_none_or(|next| name <= next);
        let is_compared = self.member.commit.rules.hold(Rule::D5);
        // What it was at a kept moment above some of what waits, a copy says.
        let unconfirmed = &self.member.difference.unconfirmed;
        let may_stand = |name: &ChunkName| map.kept.is_empty() || !unconfirmed.contains(name);
        let (mut standing, mut wanted) = (Vec::new(), Vec::new());
        let unchanged = unchanged.into_iter().filter(|(name, _)| is_in_page(name));
        let own = pair_up(unchanged, own, |name, version, own| match own {
            Some(own) if own > since => {} // By what chains have brought.
            Some(own) if own == version && may_stand(&name) => standing.push(name),
            Some(_) | None => wanted.push(name),
        });
        let changed = changed.into_iter().filter(is_in_page);
        let known = (&mut standing, &mut wanted);
        let own = pair_up_changed(changed, own, (since, is_compared), known);
        // What is not there any more: a copy says so.
        let gone = own.into_iter().filter(|(_, version)| *version <= since && is_compared);
        wanted.extend(gone.map(|(name, _)| name));
        self.know_page((from, epoch), after, (standing, wanted), (next, false));
    }

    /// A stretch of what an authority has, summed up. It goes on with the next one while this node
    /// looks at what it has itself.
    pub(super) fn receive_summary(&mut self, from: NodeId, epoch: Epoch, page: Page<Summary>) {
        let Some(map) = self.compared_map(from, epoch, &page) else { return };
        let is_next_asked = page.next.is_some() && self.member.recipient.may_list();
        if is_next_asked {
            let question = self.question(from, page.next.clone(), &map);
            self.send(Address::Node(from), Body::Movement(question));
        }
        self.member.difference.received.insert(from, Received { epoch, page, is_next_asked });
        self.effects.push(Effect::Yield);
    }

    /// What came is compared with what is here.
    pub(super) fn compare_received(&mut self) {
        for (from, received) in std::mem::take(&mut self.member.difference.received) {
            self.compare_summary(from, received);
        }
    }

    /// If what is here comes to the same as a summary, it stands; else it is asked for name by
    /// name.
    fn compare_summary(&mut self, from: NodeId, received: Received) {
        let Received { epoch, page, is_next_asked } = received;
        let Some(map) = self.compared_map(from, epoch, &page) else { return };
        let Page { since, after, unchanged, changed, next } = page;
        let pages_max = 2 * SUMMED_PAGES;
        let (own, reached) =
            self.own_of((from, since), after.as_ref(), next.clone(), (pages_max, &map));
        let (compared, is_compared) = (own.len(), self.member.commit.rules.hold(Rule::D5));
        let (mut standing, mut wanted) = (Vec::new(), Vec::new());
        let known = (&mut standing, &mut wanted);
        let own = pair_up_changed(changed.into_iter(), own, (since, is_compared), known);
        let mut summing = Summing::default();
        let of_before = || own.iter().filter(|(_, version)| *version <= since);
        of_before().for_each(|(name, version)| summing.add(name, *version));
        let is_same = reached == next && map.kept.is_empty() && summing.summary() == unchanged;
        if is_compared && !is_same {
            self.member.difference.in_full.begin(from, epoch, next);
            let question = Message::ListSince { since, after };
            return self.send(Address::Node(from), Body::Movement(question));
        }
        self.member.recipient.note_compared(compared);
        let unconfirmed = &self.member.difference.unconfirmed;
        if !unconfirmed.is_empty() {
            let stands = of_before().filter(|(name, _)| unconfirmed.contains(name));
            standing.extend(stands.map(|(name, _)| name.clone()));
        }
        let is_asked = is_next_asked && is_same;
        self.know_page((from, epoch), after, (standing, wanted), (reached, is_asked));
    }

    /// It is known of a page what stands and what is to be copied; and whether the next one is
    /// asked for.
    fn know_page(
        &mut self,
        (from, epoch): (NodeId, Epoch),
        after: Option<ChunkName>,
        (standing, wanted): (Vec<ChunkName>, Vec<ChunkName>),
        (next, is_asked): (Option<ChunkName>, bool),
    ) {
        standing.iter().for_each(|name| self.confirm(name));
        let unconfirmed = &self.member.difference.unconfirmed;
        let heard: Vec<ChunkName> =
            wanted.iter().filter(|name| unconfirmed.contains(*name)).cloned().collect();
        let chunks = wanted;
        self.supply(movement::Event::Listed { from, epoch, after, chunks, next, is_asked });
        heard.into_iter().for_each(|chunk| self.supply(movement::Event::Heard(chunk)));
    }

    /// The map by which a page is compared, if it was asked for and counts.
    fn compared_map<T>(
        &self,
        from: NodeId,
        epoch: Epoch,
        page: &Page<T>,
    ) -> Option<Arc<ClusterMap>> {
        let is_asked = self.member.recipient.is_listing(from, page.after.as_ref());
        let is_due = is_asked && self.member.difference.complete_to == Some(page.since);
        self.member.map.clone().filter(|map| map.epoch == epoch && is_due)
    }

    /// The chunks behind `after` and up to `next` that are here, or are gone by what chains have
    /// brought, or of which there is something at kept moments, and that `from` is the authority
    /// of, in order, with their versions; and up to where that is, which may be less far: so many
    /// pages are looked at.
    fn own_of(
        &self,
        (from, since): (NodeId, Timestamp),
        after: Option<&ChunkName>,
        next: Option<ChunkName>,
        (pages_max, map): (usize, &ClusterMap),
    ) -> (Vec<(ChunkName, Timestamp)>, Option<ChunkName>) {
        let (node, scanned_max) = (self.member.node, self.member.config.list_page);
        let (mut own, mut last, mut looked_at) = (Vec::new(), after.cloned(), 0);
        if !self.member.authorities.contains(&from) {
            return (own, next);
        }
        loop {
            let page = self.store.held_or_kept(last.as_ref(), scanned_max);
            let is_end = page.len() < scanned_max;
            looked_at += page.len();
            last = page.last().map(|held| held.name.clone());
            for held in page {
                if next.as_ref().is_some_and(|next| held.name > *next) {
                    return (own, next);
                }
                let version = self.counted(&held, map);
                let is_known = held.exists || version > since || !map.kept.is_empty();
                if is_known && is_supplied(map, &held.name, (from, node)) {
                    own.push((held.name, version));
                }
            }
            match is_end || (next.is_some() && last >= next) {
                true => return (own, next),
                false if looked_at >= pages_max * scanned_max => return (own, last),
                false => {}
            }
        }
    }
}

/// Goes through what is on a list and what is here, both in the order of their names: for each on
/// the list with its version here, if it is. Answers what is on no list.
fn pair_up<T>(
    listed: impl Iterator<Item = (ChunkName, T)>,
    own: Vec<(ChunkName, Timestamp)>,
    mut each: impl FnMut(ChunkName, T, Option<Timestamp>),
) -> Vec<(ChunkName, Timestamp)> {
    let (mut own, mut left) = (own.into_iter().peekable(), Vec::new());
    for (name, of_list) in listed {
        while let Some(other) = own.next_if(|(own, _)| *own < name) {
            left.push(other);
        }
        let own = own.next_if(|(own, _)| *own == name).map(|(_, version)| version);
        each(name, of_list, own);
    }
    left.extend(own);
    left
}

/// The same with what has changed since: it is to be copied, unless chains have brought it; without
/// a comparison it is taken to stand.
fn pair_up_changed(
    changed: impl Iterator<Item = ChunkName>,
    own: Vec<(ChunkName, Timestamp)>,
    (since, is_compared): (Timestamp, bool),
    (standing, wanted): (&mut Vec<ChunkName>, &mut Vec<ChunkName>),
) -> Vec<(ChunkName, Timestamp)> {
    pair_up(changed.map(|name| (name, ())), own, |name, (), own| match own {
        Some(_) if !is_compared => standing.push(name),
        Some(version) if version > since => {} // By what chains have brought.
        Some(_) | None => wanted.push(name),
    })
}

fn is_unchanged(held: &LocalChunk, since: Timestamp) -> bool {
    held.exists && held.version <= since
}
