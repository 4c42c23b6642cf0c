//! The feature level in use: the lowest that all nodes of the cluster speak.
//!
//! Each node says what its program speaks when it joins and whenever it comes back, so the map has
//! it. Nodes that are down count as they were: they may come back as they were.

use tyr_types::{Error, Leased, NodeId, Result};

use super::{ClusterMap, Membership, NodeState};
use crate::level::{LEVEL_ALONE, LEVEL_GROUP_LEASING, LEVEL_LEASING};

impl ClusterMap {
    /// The same cluster with programs of this level; for simulations and tests.
    #[must_use]
    pub fn speaking(mut self, level: u8) -> Self {
        self.nodes.values_mut().for_each(|node| node.level = level);
        self.level = level;
        self
    }

    /// The lowest feature level that the nodes on the ring, or on the next, speak.
    pub fn spoken(&self) -> u8 {
        let members = self.nodes.iter().filter(|(node, _)| self.is_in(**node));
        members.map(|(_, it)| it.level).min().unwrap_or(self.level)
    }

    /// The nodes that do not speak this level.
    pub fn behind(&self, level: u8) -> impl Iterator<Item = NodeId> + '_ {
        let members = self.nodes.iter().filter(|(node, _)| self.is_in(**node));
        members.filter(move |(_, it)| it.level < level).map(|(node, _)| *node)
    }

    /// Checks that something which needs this level may be begun.
    ///
    /// # Errors
    /// `Unavailable` with the nodes that have to be upgraded first.
    pub fn check_level(&self, needed: u8) -> Result<()> {
        if needed <= self.level {
            return Ok(());
        }
        let behind: Vec<String> = self.behind(needed).map(|node| node.0.to_string()).collect();
        let who = match &behind[..] {
            [] => "all nodes speak it, and will use it in a moment".to_owned(),
            [one] => format!("node {one} is of an older release; upgrade it"),
            several => format!("nodes {} are of older releases; upgrade them", several.join(", ")),
        };
        Err(Error::unavailable(format!(
            "this needs feature level {needed}, and the cluster uses {}: {who}",
            self.level
        )))
    }

    /// Checks that there may be such a lease, if its keyspace is in the map (K1, K7).
    ///
    /// # Errors
    /// `InvalidArgument` of a group that the keyspace does not have; `Unavailable` as above.
    pub fn check_leased(&self, of: &Leased) -> Result<()> {
        match of {
            Leased::Key(_) => self.check_level(LEVEL_LEASING),
            Leased::Group(group) => {
                if let Some(keyspace) = self.keyspaces.get(&group.keyspace) {
                    keyspace.config.placed_by.check_group(group.key.as_bytes())?;
                }
                self.check_level(LEVEL_GROUP_LEASING)
            }
        }
    }

    /// Checks that a program which speaks this level may take part.
    ///
    /// # Errors
    /// `InvalidArgument` when it is too old for what the cluster uses.
    pub fn check_program(&self, level: u8) -> Result<()> {
        match level >= self.level {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "this cluster uses feature level {}; this program speaks up to {level}: it is of \
                 an older release; upgrade it",
                self.level
            ))),
        }
    }

    /// Whether what has one replica waits for its node in whatever state that is. By maps of a
    /// lower level it has a holder only while its node is up, so nobody who has some is declared
    /// down.
    pub(super) fn is_awaiting(&self) -> bool {
        self.level >= LEVEL_ALONE
    }

    fn is_up(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|it| it.state == NodeState::Up)
    }

    /// Whether the node is on the ring or on the next one.
    fn is_in(&self, node: NodeId) -> bool {
        match self.membership(node) {
            Membership::In | Membership::Joining | Membership::Leaving => true,
            Membership::Out => false,
        }
    }

    /// All nodes speak a higher level than the one in use: it is used from now on.
    pub(super) fn raise_level(&mut self) -> Result<()> {
        let spoken = self.spoken();
        if spoken <= self.level {
            return Err(Error::unavailable("not all nodes speak a higher feature level"));
        }
        let was_awaiting = self.is_awaiting();
        self.level = spoken;
        debug_assert_eq!(self.behind(spoken).next(), None, "nobody is left behind");
        if was_awaiting {
            return Ok(());
        }
        // Who came back under the rule of before has nothing of what has one replica.
        let members = self.ring.members().keys().copied();
        let away: Vec<NodeId> = members.filter(|node| !self.is_up(*node)).collect();
        self.give_up_dropped_of(&away);
        Ok(())
    }
}
