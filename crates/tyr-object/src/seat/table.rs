//! Who should have which seat, as the service metadata says it: read once, and followed.

use std::collections::{HashMap, HashSet};

use tyr::NodeId;
use tyr::metadata::{Entry, KeyChange, Path};

use super::name::SeatName;
use super::record::{ASSIGNED, Assignment, NODES, SeatMode, decode};

/// Who should have a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seated {
    /// The node.
    pub node: NodeId,
    /// How requests get there.
    pub mode: SeatMode,
}

/// What a node knows of assignments and of who is there.
#[derive(Debug, Default)]
pub struct Table {
    assigned: HashMap<String, Assignment>,
    nodes: HashSet<u16>,
    /// Whether it was read: else it says nothing.
    is_read: bool,
}

impl Table {
    /// What there is; from then on it is told what changes.
    pub fn begin(&mut self, entries: &[(Path, Entry)]) {
        *self = Self { is_read: true, ..Self::default() };
        for (path, entry) in entries {
            self.put(path.as_str(), Some(&entry.value));
        }
    }

    /// What changed.
    pub fn change(&mut self, changes: &[KeyChange]) {
        for change in changes {
            self.put(change.path.as_str(), change.value.as_deref());
        }
    }

    fn put(&mut self, path: &str, value: Option<&[u8]>) {
        if let Some(seat) = path.strip_prefix(ASSIGNED) {
            // What cannot be read assigns nobody.
            match value.and_then(|value| decode(path, value).ok()) {
                Some(assignment) => drop(self.assigned.insert(seat.to_owned(), assignment)),
                None => drop(self.assigned.remove(seat)),
            }
        }
        if let Some(node) = path.strip_prefix(NODES).and_then(|node| node.parse().ok()) {
            let _ = match value {
                Some(_) => self.nodes.insert(node),
                None => self.nodes.remove(&node),
            };
        }
    }

    /// Who should have a seat, of those who are there; `Err` when that is not known here.
    pub fn seated(&self, name: impl FnOnce() -> SeatName) -> Result<Option<Seated>, Unknown> {
        match self {
            Self { is_read: false, .. } => Err(Unknown),
            Self { assigned, .. } if assigned.is_empty() => Ok(None),
            Self { assigned, nodes, .. } => {
                let found = assigned.get(name().as_str());
                let there = found.filter(|it| nodes.contains(&it.node));
                Ok(there.map(|it| Seated { node: NodeId(it.node), mode: it.mode }))
            }
        }
    }
}

/// That the table was not read yet: whoever wants to know has to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

#[cfg(test)]
mod tests {
    use tyr::{Bytes, Key};

    use super::*;
    use crate::seat::record::encode;

    fn name() -> SeatName {
        SeatName::new("zlogs", &Key::new("orders").unwrap())
    }

    fn change(path: &str, value: Option<Vec<u8>>) -> [KeyChange; 1] {
        let path = Path::new(path).unwrap();
        [KeyChange { revision: 7, path, value: value.map(Bytes::from) }]
    }

    #[test]
    fn who_is_assigned_has_the_seat_while_it_is_there_and_nobody_is_known_before() {
        let mut table = Table::default();
        assert_eq!(table.seated(name), Err(Unknown));
        table.begin(&[]);
        assert_eq!(table.seated(name), Ok(None));
        let assignment = Assignment { node: 2, mode: SeatMode::Proxy, by: "alice".to_owned() };
        table.change(&change("seats/assigned/zlogs/orders", Some(encode(&assignment))));
        assert_eq!(table.seated(name), Ok(None), "it is not there");
        table.change(&change("seats/nodes/2", Some(b"{}".to_vec())));
        let seated = Seated { node: NodeId(2), mode: SeatMode::Proxy };
        assert_eq!(table.seated(name), Ok(Some(seated)));
        let other = || SeatName::new("zlogs", &Key::new("others").unwrap());
        assert_eq!(table.seated(other), Ok(None));
        table.change(&change("seats/nodes/2", None));
        assert_eq!(table.seated(name), Ok(None), "it is gone");
        table.change(&change("seats/nodes/2", Some(b"{}".to_vec())));
        table.change(&change("seats/assigned/zlogs/orders", Some(b"{".to_vec())));
        assert_eq!(table.seated(name), Ok(None), "that is no assignment");
    }
}
