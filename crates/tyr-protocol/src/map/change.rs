//! The rules of change: from one map to the next.
//!
//! Each answers the map of the next epoch, or why it cannot be. None asks whether the time has
//! come; that, and when a change takes effect, is [`crate::lease`]'s.
//!
//! ```text
//!   ring ──Join, Drain, Remove, SetWeight──► ring and next ──Settle──► next is the ring
//!                                                 └────CancelMove────► ring, as before
//!
//!   Up ──Down──► Down ──Return──► Returning ──Settle──► Up
//!   └─Return with its disk─► Up, a new incarnation
//! ```
//!
//! One ring change at a time, and never one that leaves a range without a holder that is up: the
//! cluster waits for such a node instead.

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::{
    Epoch, Error, KeptName, KeyspaceConfig, KeyspaceId, KeyspaceName, NodeId, PlacedBy, Result,
};

use super::route::only_replica;
use super::{ClusterMap, MapKeyspace, MapNode, Membership, NodeState, Ring, Share};
use crate::level::{LEVEL, LEVEL_ALONE, LEVEL_GUARDING, LEVEL_PLACED};

/// A node that is not in the cluster yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newcomer {
    /// The node.
    pub node: NodeId,
    /// Its incarnation. If it was in the cluster before: above the last one.
    pub incarnation: u64,
    /// What it takes of the ring.
    pub share: Share,
    /// The highest feature level that its program speaks.
    pub level: u8,
}

impl Default for Newcomer {
    fn default() -> Self {
        let (node, incarnation) = (NodeId::default(), 0);
        Self { node, incarnation, share: Share::default(), level: LEVEL }
    }
}

/// A change of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// These join, all at once: they are recipients until they have caught up.
    Join(Vec<Newcomer>),
    /// The node leaves, once others have what it holds.
    Drain(NodeId),
    /// The node, which is down, is not waited for any more: others get what it held.
    Remove(NodeId),
    /// The node gets another weight.
    SetWeight {
        /// The node.
        node: NodeId,
        /// The weight, from 1 to [`super::ring::WEIGHT_MAX`].
        weight: u32,
    },
    /// The ring change under way is given up; who was joining is out again.
    CancelMove,
    /// The node takes no part any more.
    Down(NodeId),
    /// The node has started again.
    Return {
        /// The node.
        node: NodeId,
        /// Its new incarnation.
        incarnation: u64,
        /// Whether it still has what it stored. Without, and up in the map, it must be declared
        /// down first.
        has_disk: bool,
        /// The highest feature level that its program speaks.
        level: u8,
    },
    /// These recipients have caught up (M4). Returning ones among them are up again; if all
    /// recipients of a ring change are among them, the next ring is the ring.
    Settle(BTreeSet<NodeId>),
    /// All nodes speak a higher feature level than the one in use.
    RaiseLevel,
    /// A new keyspace; it gets the next number.
    CreateKeyspace {
        /// Its name.
        name: KeyspaceName,
        /// What it is created with.
        config: KeyspaceConfig,
        /// The seed of its hash.
        seed: u64,
    },
    /// The keyspace takes no new transactions any more.
    DropKeyspace(KeyspaceId),
    /// The keyspace, dropped so long ago that nothing of it is in flight, leaves the map.
    ForgetKeyspace(KeyspaceId),
    /// What nodes that are down alone had of the keyspace is lost: others hold those ranges, from
    /// empty on.
    AcceptLoss(KeyspaceId),
    /// What is there where the next epoch begins can be read until it is dropped (V7).
    Keep {
        /// The name of the snapshot.
        name: KeptName,
        /// The day that it is taken for, in microseconds since 1970.
        day_us: u64,
    },
    /// The kept snapshot can be read no more.
    DropKept(KeptName),
}

impl ClusterMap {
    /// The first map of a cluster of these nodes.
    ///
    /// # Errors
    /// `InvalidArgument` when there are none or too many, one is there twice, or a weight is out of
    /// range.
    pub fn form(members: &[Newcomer]) -> Result<Self> {
        let shares: BTreeMap<_, _> = members.iter().map(|it| (it.node, it.share)).collect();
        if shares.len() < members.len() {
            return Err(Error::invalid("a cluster forms with each node once"));
        }
        let epoch = Epoch(1);
        let node = |it: &Newcomer| {
            let (incarnation, level) = (it.incarnation, it.level);
            (it.node, MapNode { incarnation, state: NodeState::Up, since: epoch, level })
        };
        let level = members.iter().map(|it| it.level).min();
        let map = Self {
            epoch,
            moved: epoch,
            level: level.unwrap_or(LEVEL),
            nodes: members.iter().map(node).collect(),
            keyspaces: BTreeMap::new(),
            keyspaces_created: 0,
            ring: Ring::new(shares)?,
            next: None,
            kept: BTreeMap::new(),
        };
        debug_assert!(map.check().is_ok(), "its nodes would not read it: {:?}", map.check());
        Ok(map)
    }

    /// The same map in a later epoch: for epochs that were proposed and given up.
    #[must_use]
    pub fn at(&self, epoch: Epoch) -> Self {
        assert!(epoch >= self.epoch, "epochs grow");
        Self { epoch, ..self.clone() }
    }

    /// The map after this change, in the next epoch.
    ///
    /// # Errors
    /// `NotFound`, `AlreadyExists` and `InvalidArgument` when the change makes no sense for this
    /// map; `Unavailable` when it does not yet: another ring change is under way, or a range would
    /// be left without a holder that is up.
    pub fn changed(&self, change: &Change) -> Result<Self> {
        let mut map = Self { epoch: Epoch(self.epoch.0 + 1), ..self.clone() };
        match change {
            Change::Join(newcomers) => map.join(newcomers)?,
            Change::Drain(node) => {
                map.member(*node)?;
                map.move_to(map.ring.without(*node)?)?;
            }
            Change::Remove(node) => map.remove(*node)?,
            Change::SetWeight { node, weight } => map.set_weight(*node, *weight)?,
            Change::CancelMove => map.cancel_move()?,
            Change::Down(node) => map.down(*node)?,
            Change::Return { node, incarnation, has_disk, level } => {
                map.come_back(*node, *incarnation, *level, *has_disk)?;
            }
            Change::Settle(caught_up) => map.settle(caught_up)?,
            Change::RaiseLevel => map.raise_level()?,
            Change::CreateKeyspace { name, config, seed } => {
                map.create_keyspace(name, config, *seed)?;
            }
            Change::DropKeyspace(id) => {
                map.keyspace_mut(*id, false)?.is_dropped = true;
                map.give_up_dropped();
            }
            Change::ForgetKeyspace(id) => {
                map.keyspace_mut(*id, true)?;
                map.keyspaces.remove(id);
            }
            Change::AcceptLoss(id) => map.accept_loss(*id)?,
            Change::Keep { name, day_us } => map.keep(name, *day_us)?,
            Change::DropKept(name) => map.drop_kept(name)?,
        }
        let is_moving_nothing = match change {
            Change::CreateKeyspace { .. }
            | Change::ForgetKeyspace(_)
            | Change::Keep { .. }
            | Change::DropKept(_) => true,
            // Unless what was of one replica is waited for no more.
            Change::RaiseLevel | Change::DropKeyspace(_) => {
                let lost =
                    |map: &Self| map.keyspaces.values().map(|it| it.lost.len()).sum::<usize>();
                lost(&map) == lost(self)
            }
            Change::Join(_)
            | Change::Drain(_)
            | Change::Remove(_)
            | Change::SetWeight { .. }
            | Change::CancelMove
            | Change::Down(_)
            | Change::Return { .. }
            | Change::Settle(_)
            | Change::AcceptLoss(_) => false,
        };
        if !is_moving_nothing {
            map.moved = map.epoch;
        }
        match map.has_holders_everywhere() {
            true => {
                map.check_follows(self);
                Ok(map)
            }
            false => Err(Error::unavailable(
                "this would leave a range without a node that is up and holds it; wait until \
                 others that hold it are back",
            )),
        }
    }

    fn join(&mut self, newcomers: &[Newcomer]) -> Result<()> {
        let mut members = self.ring.members().clone();
        for newcomer in newcomers {
            let Newcomer { node, incarnation, share, level } = *newcomer;
            self.check_program(level)?;
            if self.membership(node) != Membership::Out || members.insert(node, share).is_some() {
                return Err(Error::new(
                    tyr_types::ErrorKind::AlreadyExists,
                    format!("node {} is in the cluster already", node.0),
                ));
            }
            self.check_incarnation(node, incarnation)?;
            let (state, since) = (NodeState::Up, self.epoch);
            self.nodes.insert(node, MapNode { incarnation, state, since, level });
        }
        self.move_to(Ring::new(members)?)
    }

    fn remove(&mut self, node: NodeId) -> Result<()> {
        if self.member(node)?.is_live() {
            return Err(Error::invalid(format!(
                "node {} is not down; drain it to take it out of the cluster",
                node.0
            )));
        }
        if let Some((_, keyspace)) = self.held_alone(node).find(|(_, it)| !it.is_dropped) {
            return Err(Error::unavailable(only_replica(node, &keyspace.name)));
        }
        self.move_to(self.ring.without(node)?)
    }

    fn set_weight(&mut self, node: NodeId, weight: u32) -> Result<()> {
        self.member(node)?;
        let share = self.ring.share(node).unwrap_or_default();
        if share.weight == weight {
            return Err(Error::invalid(format!("node {} has the weight {weight}", node.0)));
        }
        self.move_to(self.ring.with(node, Share { weight, ..share })?)
    }

    fn cancel_move(&mut self) -> Result<()> {
        let none = || Error::not_found("no ring change is under way");
        let next = self.next.take().ok_or_else(none)?;
        self.take_out(&next);
        Ok(())
    }

    fn down(&mut self, node: NodeId) -> Result<()> {
        let epoch = self.epoch;
        match self.nodes.get_mut(&node).filter(|it| it.is_live()) {
            Some(it) => {
                it.state = NodeState::Down;
                it.since = epoch;
                self.give_up_dropped();
                Ok(())
            }
            None => Err(Error::not_found(format!("node {} takes no part", node.0))),
        }
    }

    fn come_back(
        &mut self,
        node: NodeId,
        incarnation: u64,
        level: u8,
        has_disk: bool,
    ) -> Result<()> {
        self.check_incarnation(node, incarnation)?;
        self.check_program(level)?;
        let membership = self.membership(node);
        let state = match (self.state(node), membership) {
            (_, Membership::Out) => {
                return Err(Error::not_found(format!(
                    "node {} is not in the cluster; let it join",
                    node.0
                )));
            }
            (NodeState::Up, Membership::In | Membership::Leaving) if !has_disk => {
                return Err(Error::unavailable(format!(
                    "node {} lost its disk and is not declared down yet",
                    node.0
                )));
            }
            (NodeState::Returning | NodeState::Down, Membership::In | Membership::Leaving)
                if !has_disk && let Some((_, keyspace)) = self.held_alone(node).next() =>
            {
                let what = only_replica(node, &keyspace.name);
                return Err(Error::unavailable(format!("it lost its disk: {what}")));
            }
            // Who joins holds nothing yet, with a disk or without.
            (NodeState::Up, _) | (_, Membership::Joining) => NodeState::Up,
            (NodeState::Returning | NodeState::Down, Membership::In | Membership::Leaving) => {
                NodeState::Returning
            }
        };
        self.nodes.insert(node, MapNode { incarnation, state, since: self.epoch, level });
        Ok(())
    }

    fn settle(&mut self, caught_up: &BTreeSet<NodeId>) -> Result<()> {
        // Nobody can have caught up with what only a node has that is down, nor has who would.
        let is_complete =
            !self.is_waiting_for_any() && self.recipients_of_any().is_subset(caught_up);
        let mut is_changed = false;
        for node in caught_up {
            if let Some(it) = self.nodes.get_mut(node).filter(|it| is_returning(it)) {
                it.state = NodeState::Up;
                is_changed = true;
            }
        }
        if is_complete && let Some(next) = self.next.take() {
            let old = std::mem::replace(&mut self.ring, next);
            self.take_out(&old);
            is_changed = true;
        }
        // Who is up again has what others held for it meanwhile; who left is not expected back.
        for keyspace in self.keyspaces.values_mut() {
            let (nodes, ring) = (&self.nodes, &self.ring);
            keyspace.lost.retain(|node, _| {
                let is_up = nodes.get(node).is_some_and(|it| it.state == NodeState::Up);
                ring.share(*node).is_some() && !is_up
            });
        }
        self.give_up_dropped();
        match is_changed {
            true => Ok(()),
            false => Err(Error::unavailable("no recipient among these has been waited for")),
        }
    }

    fn create_keyspace(
        &mut self,
        name: &KeyspaceName,
        config: &KeyspaceConfig,
        seed: u64,
    ) -> Result<()> {
        config.validate()?;
        if config.placed_by != PlacedBy::Key {
            self.check_level(LEVEL_PLACED)?;
        }
        if config.is_guarded {
            self.check_level(LEVEL_GUARDING)?;
        }
        if self.keyspace_named(name.as_str()).is_some() {
            let text = format!("keyspace {name} exists");
            return Err(Error::new(tyr_types::ErrorKind::AlreadyExists, text));
        }
        if self.keyspaces.len() >= super::check::KEYSPACES_MAX {
            return Err(Error::unavailable(format!(
                "a cluster has at most {} keyspaces; drop one",
                super::check::KEYSPACES_MAX
            )));
        }
        self.keyspaces_created += 1;
        let (name, config) = (name.clone(), config.explicit());
        // Nobody has anything of it yet, so nothing of it waits for a node that is down.
        let lost = self.down_members();
        let is_single =
            config.replication == 1 && self.is_awaiting() && lost.len() < self.ring.members().len();
        let lost = lost.into_iter().filter(|_| is_single).map(|node| (node, self.epoch)).collect();
        let keyspace = MapKeyspace { name, config, seed, is_dropped: false, lost };
        let before = self.keyspaces.insert(KeyspaceId(self.keyspaces_created), keyspace);
        assert!(before.is_none(), "a number is given once: blobs are named by it for good");
        Ok(())
    }

    fn keyspace_mut(&mut self, id: KeyspaceId, is_dropped: bool) -> Result<&mut MapKeyspace> {
        let found = self.keyspaces.get_mut(&id).filter(|it| it.is_dropped == is_dropped);
        found.ok_or_else(|| {
            let what = if is_dropped { "dropped keyspace" } else { "keyspace" };
            Error::not_found(format!("there is no {what} {}", id.0))
        })
    }

    /// What nodes that are down alone had of a keyspace is not waited for any more.
    fn accept_loss(&mut self, id: KeyspaceId) -> Result<()> {
        self.check_level(LEVEL_ALONE)?;
        let (down, members, epoch) = (self.down_members(), self.ring.members().len(), self.epoch);
        let keyspace = self.keyspace_mut(id, false)?;
        if !keyspace.layout().is_single() {
            return Err(Error::invalid(format!(
                "keyspace {} has {} replicas: with one of them it loses nothing, and the cluster \
                 waits for the last",
                keyspace.name, keyspace.config.replication
            )));
        }
        let fresh: Vec<NodeId> =
            down.into_iter().filter(|node| !keyspace.lost.contains_key(node)).collect();
        if fresh.is_empty() {
            let text = format!("nothing of keyspace {} is lost: no node is down", keyspace.name);
            return Err(Error::not_found(text));
        }
        keyspace.lost.extend(fresh.into_iter().map(|node| (node, epoch)));
        match keyspace.lost.len() < members {
            true => Ok(()),
            false => Err(Error::unavailable("no node is up that could hold it")),
        }
    }

    /// Nobody waits for what nodes that are down had of what was dropped.
    fn give_up_dropped(&mut self) {
        self.give_up_dropped_of(&self.down_members());
    }

    /// The same of these members.
    pub(super) fn give_up_dropped_of(&mut self, away: &[NodeId]) {
        let (members, epoch) = (self.ring.members().len(), self.epoch);
        if !self.is_awaiting() || away.len() >= members {
            return;
        }
        let dropped = self.keyspaces.values_mut().filter(|it| it.is_dropped);
        for keyspace in dropped.filter(|it| it.layout().is_single()) {
            for node in away {
                keyspace.lost.entry(*node).or_insert(epoch);
            }
        }
    }

    /// The nodes on the ring that are down.
    fn down_members(&self) -> Vec<NodeId> {
        let members = self.ring.members().keys().copied();
        members.filter(|node| !self.is_live(*node)).collect()
    }

    /// The node, which must be on the ring.
    fn member(&self, node: NodeId) -> Result<&MapNode> {
        let known = self.nodes.get(&node).filter(|_| self.ring.share(node).is_some());
        known.ok_or_else(|| Error::not_found(format!("node {} is not in the cluster", node.0)))
    }

    fn move_to(&mut self, next: Ring) -> Result<()> {
        if self.next.is_some() {
            return Err(Error::unavailable(
                "another change of the ring is under way; wait for it, or cancel it",
            ));
        }
        if next == self.ring {
            return Err(Error::invalid("this changes nothing"));
        }
        self.next = Some(next);
        Ok(())
    }

    /// Nodes of `former` that are on no ring any more take no part any more.
    fn take_out(&mut self, former: &Ring) {
        for node in former.members().keys() {
            if self.membership(*node) == Membership::Out
                && let Some(it) = self.nodes.get_mut(node)
            {
                it.state = NodeState::Down;
                it.since = self.epoch;
            }
        }
        let is_left = |node: &NodeId| self.membership(*node) == Membership::Out;
        let mut left = former.members().keys().filter(|node| is_left(node));
        debug_assert!(left.all(|node| !self.is_live(*node)), "who is on no ring takes no part");
    }

    fn check_incarnation(&self, node: NodeId, incarnation: u64) -> Result<()> {
        match self.incarnation(node) {
            Some(known) if known >= incarnation => Err(Error::invalid(format!(
                "node {} was here as incarnation {known}, so it cannot come as {incarnation}",
                node.0
            ))),
            Some(_) | None => Ok(()),
        }
    }
}

fn is_returning(node: &MapNode) -> bool {
    node.state == NodeState::Returning
}
