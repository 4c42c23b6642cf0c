//! Who should have which seat, as the service metadata says it: read once, and followed.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

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

/// For so long what the metadata said of a seat is not asked again: a node that is asked for seats
/// that it should not have reads the metadata forty times a second for each, however often that is.
const LOOKED_FOR: Duration = Duration::from_millis(25);

/// Seats of which that is kept; when there are more all are forgotten.
const LOOKED_MAX: usize = 1_024;

/// What the metadata was found to say, a moment ago.
#[derive(Debug, Default)]
pub struct Looked {
    seats: HashMap<SeatName, (Option<Seated>, Instant)>,
}

impl Looked {
    /// Who should have a seat, if that was asked just now.
    pub fn find(&self, name: &SeatName, now: Instant) -> Option<Option<Seated>> {
        let (seated, at) = self.seats.get(name)?;
        (now.saturating_duration_since(*at) < LOOKED_FOR).then_some(*seated)
    }

    /// Notes what was found.
    pub fn note(&mut self, name: SeatName, seated: Option<Seated>, now: Instant) {
        if self.seats.len() >= LOOKED_MAX {
            self.seats.clear();
        }
        self.seats.insert(name, (seated, now));
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
    fn what_the_metadata_said_is_kept_for_a_moment_and_is_bounded() {
        let (mut looked, now) = (Looked::default(), Instant::now());
        assert_eq!(looked.find(&name(), now), None);
        looked.note(name(), None, now);
        let almost = now + LOOKED_FOR - Duration::from_millis(1);
        assert_eq!(looked.find(&name(), almost), Some(None));
        assert_eq!(looked.find(&name(), now + LOOKED_FOR), None);
        for number in 0..3 * LOOKED_MAX {
            let key = Key::new(number.to_string()).unwrap();
            looked.note(SeatName::new("zlogs", &key), None, now);
        }
        assert!(looked.seats.len() <= LOOKED_MAX);
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
