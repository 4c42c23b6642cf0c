//! The monitors' side: leases, and when a map takes effect.
//!
//! One map is in effect. A change that takes nothing from anybody takes effect at once. One that
//! does is *pending*: all nodes that take part are asked to prepare, and it takes effect when each
//! has, or has no lease any more (M3). A failure withdraws a pending change, which is proposed
//! again afterwards, under a new epoch.
//!
//! ```text
//!   silent for long, without lease ─► Down          started again ─► Return
//!   down for longer ─► Remove                       recipients caught up ─► Settle (M4)
//! ```
//!
//! A node is declared down only after its lease ran out, so a failure waits for those who are alive
//! to answer, and for nobody else.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tyr_types::{Epoch, Error, NodeId, Result};

use super::config::LeaseConfig;
use super::effect::Effect;
use super::event::Event;
use super::node_info::{Back, NodeInfo};
use super::pending::Pending;
use crate::commit::OutcomeRetention;
use crate::map::{Change, ClusterMap, Membership, NodeState, losers};
use crate::rule::{Rule, Rules};

/// Most proposals that wait to be looked at; further ones are refused as `Unavailable`.
pub const PROPOSALS_MAX: usize = 64;

/// Leases and maps, as the monitors have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grants {
    pub(super) config: LeaseConfig,
    pub(super) map: Arc<ClusterMap>,
    pub(super) pending: Option<Pending>,
    /// The highest epoch ever proposed. None is used twice, since nodes were asked to prepare.
    pub(super) epoch_max: Epoch,
    /// One for each node that the map knows.
    pub(super) node_infos: BTreeMap<NodeId, NodeInfo>,
    /// Recipients that have everything by the map in effect.
    pub(super) caught_up: BTreeSet<NodeId>,
    /// Whether a recipient has caught up since it was last seen whether that is enough.
    is_settling: bool,
    /// The epoch of the map that was last looked at for the feature level of its nodes.
    pub(super) leveled_in: Option<Epoch>,
    /// How far all live nodes were done with transactions once, and so for good (F10).
    pub(super) done_to_us: u64,
    /// At most [`PROPOSALS_MAX`].
    pub(super) proposals: VecDeque<(u64, Change)>,
    pub(super) rules: Rules,
}

impl Grants {
    /// Monitors of a cluster with this map, at `now_us`, whose nodes may hold leases.
    pub fn new(config: LeaseConfig, map: Arc<ClusterMap>, now_us: u64) -> Self {
        let mut grants = Self {
            config,
            epoch_max: map.epoch,
            map,
            pending: None,
            node_infos: BTreeMap::new(),
            caught_up: BTreeSet::new(),
            is_settling: false,
            leveled_in: None,
            done_to_us: 0,
            proposals: VecDeque::new(),
            rules: Rules::default(),
        };
        grants.lead(now_us);
        grants
    }

    /// What follows monitors that failed or were cut off: `map` is the newest that took effect,
    /// `reserved` the highest epoch that anybody was ever asked to prepare for.
    ///
    /// Whoever holds a lease from them may hold it as long as one that began just now. Whoever has
    /// an older map gets none before it has this one, since nobody knows by which map somebody lost
    /// something. If there was something pending, nodes have stopped what it would have taken from
    /// them; so that they go on, the same map is published again, above what they prepared for.
    pub fn take_over(
        config: LeaseConfig,
        map: Arc<ClusterMap>,
        reserved: Epoch,
        now_us: u64,
        effects: &mut Vec<Effect>,
    ) -> Self {
        let epoch_min = map.epoch;
        let map = match reserved > map.epoch {
            true => Arc::new(map.at(Epoch(reserved.0 + 1))),
            false => map,
        };
        if map.epoch > epoch_min {
            effects.push(Effect::Publish(Arc::clone(&map)));
        }
        let mut grants = Self::new(config, map, now_us);
        for node_info in grants.node_infos.values_mut() {
            (node_info.epoch_min, node_info.came_us) = (epoch_min, Some(now_us));
        }
        grants
    }

    /// Takes a rule away, for a test that wants to see its checker notice.
    #[cfg(feature = "broken-rules")]
    pub fn break_rule(&mut self, rule: Rule) {
        self.rules.broken = Some(rule);
    }

    /// The map in effect.
    pub fn map(&self) -> &Arc<ClusterMap> {
        &self.map
    }

    /// The map in effect, for a node that asks for it and has one of this epoch; none for one that
    /// has it. Who has none at all says 0.
    pub fn newer_than(&self, epoch: Epoch) -> Option<Arc<ClusterMap>> {
        let is_newer = epoch < self.map.epoch || epoch == Epoch(0);
        is_newer.then(|| Arc::clone(&self.map))
    }

    /// The map that waits for all to have prepared.
    pub fn pending(&self) -> Option<&Arc<ClusterMap>> {
        self.pending.as_ref().map(|pending| &pending.map)
    }

    /// Who has not prepared for the pending map.
    pub fn waiting(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.pending.iter().flat_map(|pending| pending.waiting.iter().copied())
    }

    /// What is known of each node.
    pub fn node_infos(&self) -> &BTreeMap<NodeId, NodeInfo> {
        &self.node_infos
    }

    /// Handles one event at `now_us` of the monitors' monotonic clock.
    pub fn step(&mut self, now_us: u64, event: Event, effects: &mut Vec<Effect>) {
        let before = (self.map.epoch, self.epoch_max, self.done_to_us);
        match event {
            Event::Renew { node, incarnation, epoch, sent_us, retention } => {
                let asked = (incarnation, epoch, sent_us);
                self.renew(now_us, node, asked, retention, effects);
            }
            Event::Prepared { node, incarnation, epoch } => {
                let is_current = self.map.incarnation(node) == Some(incarnation);
                if let Some(pending) = &mut self.pending
                    && is_current
                    && pending.map.epoch == epoch
                {
                    pending.waiting.remove(&node);
                }
            }
            Event::CaughtUp { node, incarnation, epoch } => {
                let is_current = self.map.incarnation(node) == Some(incarnation);
                let is_of_this_move = (self.map.moved..=self.map.epoch).contains(&epoch);
                if is_current && is_of_this_move && self.map.is_live(node) {
                    self.is_settling |= self.caught_up.insert(node);
                    if !self.rules.hold(Rule::D3) {
                        self.caught_up.extend(self.map.live());
                    }
                }
            }
            Event::Return { node, incarnation, epoch, has_disk, level } => {
                let back = Back { incarnation, epoch, has_disk, level };
                self.come_back(now_us, node, back, effects);
            }
            Event::Propose { proposal, change } => self.propose(proposal, change, effects),
            Event::Tick => self.remind(now_us, effects),
            Event::Lead => self.lead(now_us),
        }
        self.advance(now_us, effects);
        self.check_since(before);
    }

    fn renew(
        &mut self,
        now_us: u64,
        node: NodeId,
        (incarnation, epoch, sent_us): (u64, Epoch, u64),
        retention: OutcomeRetention,
        effects: &mut Vec<Effect>,
    ) {
        let is_leaving = self.pending.as_ref().is_some_and(|it| it.change == Change::Down(node));
        let is_live = self.map.is_live(node);
        let is_current = self.map.incarnation(node) == Some(incarnation);
        let Some(node_info) = self.node_infos.get_mut(&node).filter(|_| is_current) else { return };
        node_info.retention = retention;
        if epoch < self.map.epoch {
            effects.push(Effect::Inform { to: node, map: Arc::clone(&self.map) });
        }
        if is_leaving || node_info.back.is_some() {
            return;
        }
        node_info.heard_us = now_us;
        if is_live && epoch >= node_info.epoch_min {
            let duration_us = self.config.duration_us;
            node_info.expires_us = now_us + self.config.counted_us();
            let (to, epoch, retention) = (node, self.map.epoch, self.retention());
            self.done_to_us = retention.done_to_us;
            let grant = Effect::Grant { to, incarnation, sent_us, duration_us, epoch, retention };
            effects.push(grant);
        }
    }

    /// How far all live nodes are done with transactions (F10), and were before one started again.
    /// A node that is down does not count, for should it come back, it begins empty; unless it
    /// alone has something, of which it will ask what became of it.
    pub fn retention(&self) -> OutcomeRetention {
        let nodes = self.map.live().chain(self.map.awaited());
        let of_all = OutcomeRetention::of_all(nodes.map(|node| {
            let said = self.node_infos.get(&node).map(|node_info| node_info.retention);
            (node, said.unwrap_or_default())
        }));
        OutcomeRetention { done_to_us: of_all.done_to_us.max(self.done_to_us), ..of_all }
    }

    fn come_back(&mut self, now_us: u64, node: NodeId, back: Back, effects: &mut Vec<Effect>) {
        let known = self.map.incarnation(node);
        let Some(node_info) = self.node_infos.get_mut(&node) else { return };
        match known {
            // Its program is too old. It is told what shows that; what it left behind goes on
            // being waited for, or is declared down.
            Some(_) if back.level < self.map.level => {
                effects.push(Effect::Inform { to: node, map: Arc::clone(&self.map) });
            }
            Some(known) if known < back.incarnation => {
                node_info.heard_us = now_us;
                match &mut node_info.back {
                    Some(it) if it.incarnation == back.incarnation => {
                        it.epoch = it.epoch.max(back.epoch);
                    }
                    Some(it) if it.incarnation > back.incarnation => {}
                    Some(_) | None => (node_info.back, node_info.kept_in) = (Some(back), None),
                }
                if self.is_behind(node, back) {
                    effects.push(Effect::Inform { to: node, map: Arc::clone(&self.map) });
                }
            }
            Some(known) if known == back.incarnation => {
                effects.push(Effect::Inform { to: node, map: Arc::clone(&self.map) });
            }
            Some(_) | None => {}
        }
    }

    /// Asks those again who have not prepared, when it is time to.
    fn remind(&mut self, now_us: u64, effects: &mut Vec<Effect>) {
        if let Some(pending) = &mut self.pending {
            pending.ask(now_us, effects);
        }
    }

    /// Assumes the worst of what former monitors granted.
    fn lead(&mut self, now_us: u64) {
        for (node, it) in &self.map.nodes {
            let node_info = self.node_infos.entry(*node).or_default();
            let expires_us = now_us + self.config.counted_us();
            node_info.expires_us = if it.is_live() { expires_us } else { 0 };
            (node_info.heard_us, node_info.down_us) = (now_us, now_us);
        }
    }

    /// Does what has become due. Each round changes the map, or is the last.
    fn advance(&mut self, now_us: u64, effects: &mut Vec<Effect>) {
        loop {
            let is_ready = self.pending.as_ref().is_some_and(|pending| {
                pending.waiting.iter().all(|node| self.is_over(*node, now_us))
            });
            let is_changed = if is_ready && let Some(pending) = self.pending.take() {
                self.take_effect(now_us, pending.map, true, pending.proposal, effects);
                true
            } else {
                self.heed_nodes(now_us, effects)
                    || self.heed_proposals(now_us, effects)
                    || self.heal(now_us, effects)
            };
            if !is_changed {
                return;
            }
        }
    }

    /// Declares down who has long been silent, and takes back who has started again.
    fn heed_nodes(&mut self, now_us: u64, effects: &mut Vec<Effect>) -> bool {
        if self.pending.as_ref().is_some_and(Pending::is_failure) {
            return false;
        }
        let nodes: Vec<NodeId> = self.node_infos.keys().copied().collect();
        for node in nodes {
            let change = match self.node_infos[&node].back {
                Some(back) if self.is_replaced(node, back) => {
                    self.is_over(node, now_us).then_some(Change::Down(node))
                }
                Some(back) if !self.is_behind(node, back) => {
                    let Back { incarnation, has_disk, level, .. } = back;
                    Some(Change::Return { node, incarnation, has_disk, level })
                }
                Some(_) | None => self.is_silent(node, now_us).then_some(Change::Down(node)),
            };
            let Some(change) = change else { continue };
            if self.node_infos[&node].kept_in == Some(self.map.epoch) {
                continue;
            }
            match self.try_change(now_us, change, None, effects) {
                Ok(()) => return true,
                Err(_) => self.node_info(node).kept_in = Some(self.map.epoch),
            }
        }
        false
    }

    /// Whether the node must be declared down before it can come back: others count on a disk that
    /// it has lost.
    fn is_replaced(&self, node: NodeId, back: Back) -> bool {
        let is_up = self.map.nodes.get(&node).is_some_and(|it| it.state == NodeState::Up);
        is_up && !back.has_disk && self.map.ring.share(node).is_some()
    }

    /// Whether the node, which was a recipient before it started again, must have the map in effect
    /// before it is let in: by the next one it cannot tell whether it was declared down in between,
    /// unless that is the one that lets it in.
    fn is_behind(&self, node: NodeId, back: Back) -> bool {
        let it = self.map.nodes.get(&node);
        let is_recipient = it.is_some_and(|it| it.state == NodeState::Returning)
            || self.map.membership(node) == Membership::Joining;
        is_recipient && back.epoch < self.map.epoch
    }

    fn is_silent(&self, node: NodeId, now_us: u64) -> bool {
        let node_info = &self.node_infos[&node];
        let is_returning =
            self.map.nodes.get(&node).is_some_and(|it| it.state == NodeState::Returning);
        let patience_us = match self.rules.hold(Rule::M3Wait) {
            true if is_returning => self.config.returning_down_after_us,
            true => self.config.down_after_us,
            false => self.config.duration_us / 2,
        };
        let is_silent = now_us.saturating_sub(node_info.heard_us) >= patience_us;
        self.map.is_live(node) && is_silent && self.is_over(node, now_us)
    }

    /// Whether a change need not wait for the node to prepare.
    fn is_over(&self, node: NodeId, now_us: u64) -> bool {
        !self.has_lease(node, now_us) || !self.rules.hold(Rule::M3Wait)
    }

    /// Whether the node may still hold a lease.
    pub fn has_lease(&self, node: NodeId, now_us: u64) -> bool {
        self.node_infos.get(&node).is_some_and(|node_info| now_us < node_info.expires_us)
    }

    /// Takes up the next proposal, unless an earlier one or a failure is pending.
    fn heed_proposals(&mut self, now_us: u64, effects: &mut Vec<Effect>) -> bool {
        let is_first = |pending: &Pending| pending.proposal.is_some() || pending.is_failure();
        if self.pending.as_ref().is_some_and(is_first) {
            return false;
        }
        let Some((proposal, change)) = self.proposals.pop_front() else { return false };
        let tried = match &change {
            Change::Down(node) if self.is_just_back(*node, now_us) => Err(Error::unavailable(
                format!("node {} has started again just now; it is there", node.0),
            )),
            _ => self.try_change(now_us, change, Some(proposal), effects),
        };
        if let Err(error) = tried {
            effects.push(Effect::Answer { proposal, result: Err(error) });
        }
        true
    }

    /// Whether the node has started again so short ago that who takes it for gone means the one
    /// before. It has its disk: to declare it down would throw away what only it may have.
    fn is_just_back(&self, node: NodeId, now_us: u64) -> bool {
        let Some(node_info) = self.node_infos.get(&node) else { return false };
        let is_new = |came_us: u64| now_us.saturating_sub(came_us) < self.config.duration_us;
        let is_back = node_info.back.is_some() || node_info.came_us.is_some_and(is_new);
        is_back && self.rules.hold(Rule::M4Order)
    }

    /// What follows from the state of things: recipients that have caught up become holders, the
    /// feature level follows what all nodes speak, and who is down for long is not waited for any
    /// more.
    fn heal(&mut self, now_us: u64, effects: &mut Vec<Effect>) -> bool {
        if self.pending.is_some() {
            return false;
        }
        if std::mem::take(&mut self.is_settling) {
            let change = Change::Settle(self.caught_up.clone());
            if self.try_change(now_us, change, None, effects).is_ok() {
                return true;
            }
        }
        if self.is_level_to_rise()
            && self.try_change(now_us, Change::RaiseLevel, None, effects).is_ok()
        {
            return true;
        }
        let Some(patience_us) = self.config.remove_after_us else { return false };
        let is_given_up = |(node, node_info): &(&NodeId, &NodeInfo)| {
            let is_long = now_us.saturating_sub(node_info.down_us) >= patience_us;
            is_long && !self.map.is_live(**node)
        };
        let given_up: Vec<NodeId> =
            self.node_infos.iter().filter(is_given_up).map(|it| *it.0).collect();
        let changes = given_up.into_iter().filter_map(|node| match self.map.membership(node) {
            Membership::In => self.map.next.is_none().then_some(Change::Remove(node)),
            Membership::Joining => Some(Change::CancelMove),
            Membership::Leaving | Membership::Out => None,
        });
        let changes: Vec<Change> = changes.collect();
        changes.into_iter().any(|change| self.try_change(now_us, change, None, effects).is_ok())
    }

    /// Makes a change: at once, or pending when somebody loses by it and others may still go by the
    /// map there is. Withdraws what is pending.
    fn try_change(
        &mut self,
        now_us: u64,
        change: Change,
        proposal: Option<u64>,
        effects: &mut Vec<Effect>,
    ) -> Result<()> {
        let mut map = self.map.at(self.epoch_max).changed(&change)?;
        if let (Change::Return { node, .. }, false) = (&change, self.rules.hold(Rule::M4))
            && let Some(it) = map.nodes.get_mut(node)
        {
            it.state = NodeState::Up;
        }
        if let Change::Return { node, .. } = &change
            && let Some(it) = map.nodes.get_mut(node)
        {
            // That epochs in between were proposed and given up must not look like a map missed.
            it.since = Epoch(self.map.epoch.0 + 1);
        }
        let map = Arc::new(map);
        assert!(map.epoch > self.epoch_max, "M3: who prepared for another would go by this one");
        self.epoch_max = map.epoch;
        if let Some(withdrawn) = self.pending.take() {
            self.is_settling = true;
            let again = withdrawn.proposal.map(|proposal| (proposal, withdrawn.change));
            again.into_iter().for_each(|it| self.proposals.push_front(it));
        }
        let is_taking = !losers(&self.map, &map).is_empty();
        match is_taking && self.map.live().any(|node| !self.is_over(node, now_us)) {
            false => self.take_effect(now_us, map, is_taking, proposal, effects),
            true => {
                // Who has no lease now may get one before the others have prepared.
                let waiting = self.map.live().collect();
                self.pending = Some(Pending::new(map, change, proposal, waiting));
                self.remind(now_us, effects);
            }
        }
        Ok(())
    }

    fn take_effect(
        &mut self,
        now_us: u64,
        map: Arc<ClusterMap>,
        is_taking: bool,
        proposal: Option<u64>,
        effects: &mut Vec<Effect>,
    ) {
        assert!(map.epoch > self.map.epoch, "nobody who has the one before would hear of it");
        let old = std::mem::replace(&mut self.map, map);
        let map = Arc::clone(&self.map);
        for (node, it) in &map.nodes {
            let before = old.nodes.get(node);
            let node_info = self.node_infos.entry(*node).or_default();
            if before.map(|it| it.incarnation) != Some(it.incarnation) {
                // Another process, which never had a lease, and is alive. It may have an old map.
                let (heard_us, came_us, epoch_min) = (now_us, Some(now_us), map.epoch);
                let retention = node_info.retention;
                *node_info =
                    NodeInfo { heard_us, came_us, epoch_min, retention, ..NodeInfo::default() };
            }
            if is_taking {
                node_info.epoch_min = map.epoch;
            }
            if before.is_some_and(|it| it.is_live()) && !it.is_live() {
                node_info.down_us = now_us;
            }
        }
        if old.moved != map.moved {
            self.caught_up.clear();
        }
        if let Some(proposal) = proposal {
            effects.push(Effect::Answer { proposal, result: Ok(map.epoch) });
        }
        effects.push(Effect::Publish(map));
    }

    fn node_info(&mut self, node: NodeId) -> &mut NodeInfo {
        self.node_infos.get_mut(&node).expect("every node that a map knew has a node_info")
    }
}
