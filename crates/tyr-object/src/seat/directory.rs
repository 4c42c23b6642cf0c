//! For who looks at seats, and says who should have them.

use tyr::blocking::{Metadata, Tyr};
use tyr::metadata::{Expected, Path, Transaction};
use tyr::{Error, ErrorKind, Result};

use super::name::SeatName;
use super::record::{
    ASSIGNED, Assignment, LOADS, NODES, NodeSeats, SeatLoad, SeatMode, assigned_path, decode,
    encode,
};

/// Entries of a page of the metadata.
const PAGE: usize = 1_024;

/// The seats of a cluster, as the service metadata has them: for administrators.
#[derive(Clone, Debug)]
pub struct SeatDirectory {
    metadata: Metadata,
}

/// All there is, at about one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeatListing {
    /// The nodes that have seats, or would, by number.
    pub nodes: Vec<NodeSeats>,
    /// Who should have which seat, by name.
    pub assigned: Vec<(SeatName, Assignment)>,
}

impl SeatListing {
    /// The node that says that it has a seat, and what it says of that.
    pub fn find(&self, name: &SeatName) -> Option<(u16, &SeatLoad)> {
        let mut seats =
            self.nodes.iter().flat_map(|it| it.seats.iter().map(|seat| (it.node, seat)));
        seats.find(|(_, seat)| seat.name == name.as_str())
    }
}

/// On what condition a seat is assigned: that an entry of the metadata is still of this revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proviso {
    /// The entry.
    pub path: String,
    /// The revision of its last change.
    pub revision: u64,
}

impl SeatDirectory {
    /// Those of a store.
    pub fn of(store: &Tyr) -> Self {
        Self { metadata: store.metadata() }
    }

    /// All there is.
    ///
    /// # Errors
    /// `Unavailable` when the monitors do not answer; `Corrupt` for a record that is none.
    pub fn list(&self) -> Result<SeatListing> {
        let read_node = |path: &str, value: &[u8]| decode::<NodeSeats>(path, value);
        let there = self.entries(NODES, |path, value| read_node(path, value))?;
        let loads = self.entries(LOADS, |path, value| read_node(path, value))?;
        let load_of = |node: NodeSeats| {
            let load = loads.iter().find(|load| load.node == node.node);
            load.cloned().unwrap_or(node)
        };
        let mut nodes: Vec<NodeSeats> = there.into_iter().map(load_of).collect();
        nodes.sort_by_key(|node| node.node);
        let assigned = self.entries(ASSIGNED, |path, value| {
            let name = path.trim_start_matches(ASSIGNED).parse::<SeatName>()?;
            Ok((name, decode(path, value)?))
        })?;
        Ok(SeatListing { nodes, assigned })
    }

    /// Says who should have a seat: whoever has it now hands it over. `None`: the authority of its
    /// key. Nothing else changes if the proviso does not hold any more.
    ///
    /// # Errors
    /// `NotFound` when the node is not there; `Conflict` when the proviso does not hold, or the
    /// node goes just now; `PermissionDenied`; `Unavailable`; `TimedOut` when it is not known
    /// whether it was said.
    pub fn assign(
        &self,
        name: &SeatName,
        assignment: Option<&Assignment>,
        proviso: Option<&Proviso>,
    ) -> Result<()> {
        let path = Path::new(assigned_path(name))?;
        let mut transaction = Transaction::new();
        if let Some(Proviso { path, revision }) = proviso {
            transaction = transaction.when(Path::new(path.clone())?, Expected::Revision(*revision));
        }
        let transaction = match assignment {
            None => transaction.delete(path),
            Some(assignment) => {
                let node = Path::new(format!("{NODES}{}", assignment.node))?;
                if self.metadata.get(node.as_str())?.is_none() {
                    return Err(Error::not_found(format!(
                        "node {} is not there to have seats: `tyr seat list` shows who is",
                        assignment.node
                    )));
                }
                transaction.when(node, Expected::Present).put(path, encode(assignment))
            }
        };
        self.metadata.transact(transaction).map(drop)
    }

    /// Assigns a seat to a node, in the name of a user.
    ///
    /// # Errors
    /// As [`SeatDirectory::assign`].
    pub fn move_to(&self, name: &SeatName, node: u16, mode: SeatMode, by: &str) -> Result<()> {
        let assignment = Assignment { node, mode, by: by.to_owned() };
        match self.assign(name, Some(&assignment), None) {
            Err(error) if error.kind() == ErrorKind::Conflict => Err(Error::new(
                ErrorKind::Conflict,
                format!("node {node} is just going; nothing was moved"),
            )),
            done => done,
        }
    }

    fn entries<T>(&self, prefix: &str, read: impl Fn(&str, &[u8]) -> Result<T>) -> Result<Vec<T>> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let page = self.metadata.list(prefix, after.as_deref(), PAGE)?;
            let Some((last, _)) = page.entries.last() else { return Ok(all) };
            after = Some(last.as_str().to_owned());
            for (path, entry) in &page.entries {
                all.push(read(path.as_str(), &entry.value)?);
            }
        }
    }
}
