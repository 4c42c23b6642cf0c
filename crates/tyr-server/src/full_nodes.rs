//! Which other nodes have said that they are full of something.

use std::collections::BTreeSet;

use parking_lot::RwLock;
use tyr_types::NodeId;

use tyr_gossip::{Heard, Rumour};

/// What was heard of a node counts for this long, in microseconds.
pub(crate) const HEARD_MAX_US: u64 = 3_000_000;

/// Other nodes that are full, as far as heard: nearly always there are none.
#[derive(Debug, Default)]
pub(crate) struct FullNodes(RwLock<BTreeSet<NodeId>>);

impl FullNodes {
    /// What the others told.
    pub fn hear(&self, heard: &[Heard], is_full: impl Fn(&Rumour) -> bool) {
        let counts = |it: &&Heard| it.age_us < HEARD_MAX_US && is_full(&it.rumour);
        *self.0.write() = heard.iter().filter(counts).map(|it| it.node).collect();
    }

    /// The first of these that is full. They are asked for only when any is.
    pub fn first_of<I: IntoIterator<Item = NodeId>>(
        &self,
        nodes: impl FnOnce() -> I,
    ) -> Option<NodeId> {
        let full = self.0.read();
        if full.is_empty() {
            return None;
        }
        nodes().into_iter().find(|node| full.contains(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_full_was_heard_of_just_now() {
        let told = |node, is_disk_full, age_us| Heard {
            node: NodeId(node),
            incarnation: 1,
            rumour: Rumour { is_disk_full, ..Rumour::default() },
            age_us,
        };
        let full = FullNodes::default();
        let first_of = |nodes: [u16; 2]| full.first_of(|| nodes.map(NodeId));
        assert_eq!(full.first_of(|| -> [NodeId; 0] { panic!("nobody is full") }), None);
        let heard = [told(1, false, 0), told(2, true, 0), told(3, true, HEARD_MAX_US)];
        full.hear(&heard, |rumour| rumour.is_disk_full);
        assert_eq!((first_of([1, 2]), first_of([1, 3])), (Some(NodeId(2)), None));
        full.hear(&[told(2, false, 0)], |rumour| rumour.is_disk_full);
        assert_eq!(first_of([1, 2]), None);
    }
}
