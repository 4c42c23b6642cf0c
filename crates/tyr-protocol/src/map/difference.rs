//! What is different in a map from the one before it, in words: for who looks back.

use tyr_types::NodeId;

use super::{ClusterMap, MapKeyspace, MapNode, Membership, NodeState};

impl ClusterMap {
    /// What is different from the map `before`, a line each: nodes first, in their order. May be
    /// nothing, when only the epoch is.
    pub fn differences(&self, before: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (id, node) in &self.nodes {
            lines.extend(self.membership_line(before, *id));
            // Who is on no ring is down in any case.
            let told = before.nodes.get(id).filter(|_| self.membership(*id) != Membership::Out);
            let what = told.and_then(|before| node_line(before, node));
            lines.extend(what.map(|what| format!("node {} {what}", id.0)));
        }
        for (id, keyspace) in &self.keyspaces {
            keyspace_lines(before.keyspaces.get(id), keyspace, &mut lines);
        }
        for name in self.kept.keys().filter(|name| !before.kept.contains_key(*name)) {
            lines.push(format!("snapshot {name} is kept"));
        }
        for name in before.kept.keys().filter(|name| !self.kept.contains_key(*name)) {
            lines.push(format!("kept snapshot {name} was dropped"));
        }
        if self.level != before.level {
            lines.push(format!("feature level {} is used, {} before", self.level, before.level));
        }
        lines
    }

    /// What a node has to do with the ring that it had not, or with another weight.
    fn membership_line(&self, before: &Self, node: NodeId) -> Option<String> {
        let weight = |map: &Self| {
            let next = map.next.as_ref().unwrap_or(&map.ring);
            next.share(node).map(|share| share.weight)
        };
        let (was, is) = (before.membership(node), self.membership(node));
        let what = match (was, is) {
            (Membership::In, Membership::In) if weight(before) != weight(self) => {
                let weight = weight(self).unwrap_or_default();
                return Some(format!("node {} takes a share of weight {weight}", node.0));
            }
            (Membership::In, Membership::In)
            | (Membership::Joining, Membership::Joining)
            | (Membership::Leaving, Membership::Leaving)
            | (Membership::Out, Membership::Out) => return None,
            (Membership::Leaving, Membership::In) => "stays",
            (Membership::Joining | Membership::Out, Membership::In) => "has joined",
            (_, Membership::Joining) => "joins",
            (_, Membership::Leaving) => "leaves",
            (Membership::Joining, Membership::Out) => "does not join any more",
            (Membership::In | Membership::Leaving, Membership::Out) => "has left",
        };
        Some(format!("node {} {what}", node.0))
    }
}

fn node_line(before: &MapNode, node: &MapNode) -> Option<&'static str> {
    match (before.state, node.state) {
        (NodeState::Up, NodeState::Up) if before.incarnation != node.incarnation => {
            Some("has started again")
        }
        (NodeState::Up, NodeState::Up)
        | (NodeState::Returning, NodeState::Returning)
        | (NodeState::Down, NodeState::Down) => None,
        (NodeState::Up | NodeState::Returning, NodeState::Down) => Some("is down"),
        (NodeState::Up | NodeState::Down, NodeState::Returning) => Some("is back, and catches up"),
        (NodeState::Returning | NodeState::Down, NodeState::Up) => Some("is up again"),
    }
}

fn keyspace_lines(before: Option<&MapKeyspace>, is: &MapKeyspace, lines: &mut Vec<String>) {
    let name = &is.name;
    if before.is_none() {
        lines.push(format!("keyspace {name} was created"));
    }
    if is.is_dropped && before.is_none_or(|before| !before.is_dropped) {
        lines.push(format!("keyspace {name} was dropped"));
    }
    for node in is.lost.keys() {
        if before.is_none_or(|before| !before.lost.contains_key(node)) {
            lines.push(format!("what node {} alone had of keyspace {name} is given up", node.0));
        }
    }
}
