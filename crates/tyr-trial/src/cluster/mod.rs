//! The nodes of a trial: processes on a fabric, with folders, logs and clocks of their own.
//!
//! [`program`] is what runs, [`process`] one node of it, [`control`] asks the monitors how the
//! cluster is. Here they are put together: started, killed, stopped for a while, given back.
//!
//! It must not know what is done to a cluster, and why.

pub mod control;
pub mod process;
pub mod program;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tyr_protocol::map::Membership;
use tyr_types::{Error, NodeId, Result};

pub use self::control::Control;
pub use self::process::{Applied, Process};
pub use self::program::{Program, Sizes};
use crate::fabric::Fabric;

/// How long a cluster may take to be as it should.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of the disk of a node that is to run full: some segments of its log, of 64 MiB each, what
/// has to stay free, and payloads that no fold has given back yet.
const DISK_LEN: &str = "768m";

/// How a cluster is made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Nodes that form it.
    pub nodes: u16,
    /// Where folders and logs go.
    pub folder: PathBuf,
    /// What runs.
    pub program: Program,
    /// The rule that its nodes break, for a test of the checkers.
    pub broken: Option<String>,
    /// The node whose disk is small, so that it can run full.
    pub small_disk: Option<u16>,
    /// What a node may have.
    pub sizes: Sizes,
    /// What nodes log, if that is not what the program does; `tyr serve` alone is told.
    pub log_level: Option<&'static str>,
}

/// A cluster of processes. Dropping it kills them.
pub struct Cluster {
    /// How it was made.
    pub plan: Plan,
    /// The network between the nodes.
    pub fabric: Arc<dyn Fabric>,
    /// Who is asked how it is.
    pub control: Arc<Control>,
    nodes: BTreeMap<u16, Process>,
    addresses: String,
}

impl Cluster {
    /// Starts the nodes, and waits until they are a cluster.
    ///
    /// # Errors
    /// `Unavailable` when a process does not start, or they are no cluster after a minute.
    pub fn form(plan: Plan, fabric: Arc<dyn Fabric>) -> Result<Self> {
        let mut places = Vec::new();
        for number in 0..plan.nodes {
            places.push(fabric.endpoint(number)?.advertise);
        }
        let control = Arc::new(Control::new(&places)?);
        let numbered = places.iter().enumerate().map(|(n, place)| format!("{n}={place}"));
        let addresses = numbered.collect::<Vec<_>>().join(",");
        let mut cluster = Self { plan, fabric, control, nodes: BTreeMap::new(), addresses };
        for number in 0..cluster.plan.nodes {
            cluster.add(number, false)?;
        }
        for number in 0..cluster.plan.nodes {
            cluster.start(number)?;
        }
        cluster.wait_until_whole(PATIENCE)?;
        Ok(cluster)
    }

    /// The numbers of the nodes that there are, running or not.
    pub fn numbers(&self) -> Vec<u16> {
        self.nodes.keys().copied().collect()
    }

    /// A node's process.
    ///
    /// # Panics
    /// When there is no such node.
    pub fn process(&mut self, node: u16) -> &mut Process {
        self.nodes.get_mut(&node).expect("the caller names a node of the cluster")
    }

    /// Makes room for one more node, which is to join.
    ///
    /// # Errors
    /// `Unavailable` when the system refuses.
    pub fn add(&mut self, number: u16, is_joining: bool) -> Result<()> {
        let endpoint = self.fabric.endpoint(number)?;
        let folder = self.plan.folder.join(format!("node-{number}"));
        std::fs::create_dir_all(&folder).map_err(|error| Error::io("the node's folder", error))?;
        let mut process = Process::new(number, endpoint, folder);
        process.broken = self.plan.broken.clone();
        process.sizes = self.plan.sizes;
        process.log_level = self.plan.log_level;
        if self.plan.small_disk == Some(number) {
            process.mount(DISK_LEN)?;
        }
        process.formation = match is_joining {
            true => {
                let others = self.addresses.split(',').filter_map(|it| it.split_once('='));
                program::Formation::Join(others.map(|(_, place)| place.to_owned()).collect())
            }
            false => program::Formation::Initial(self.addresses.clone()),
        };
        self.nodes.insert(number, process);
        Ok(())
    }

    /// Starts a node that does not run.
    ///
    /// # Errors
    /// `Unavailable` when the system refuses.
    pub fn start(&mut self, node: u16) -> Result<()> {
        let program = self.plan.program.clone();
        let process = self.process(node);
        process.start(&program)?;
        let pid = process.pid();
        self.fabric.started(node, pid);
        Ok(())
    }

    /// Stops a node that the cluster does not need any more.
    ///
    /// # Errors
    /// As [`Process::stop`].
    pub fn remove(&mut self, node: u16) -> Result<()> {
        let stopped = self.process(node).stop();
        self.nodes.remove(&node);
        stopped
    }

    /// A node that was killed does not come back.
    pub fn forget(&mut self, node: u16) {
        self.nodes.remove(&node);
    }

    /// Has all nodes write to their logs what they have in flight, for whoever looks for what went
    /// wrong.
    pub fn inquire(&self) {
        self.nodes.values().for_each(|process| process.inquire(&self.plan.program));
        std::thread::sleep(Duration::from_millis(500));
    }

    /// The nodes whose processes ended by themselves.
    pub fn dead(&mut self) -> Vec<u16> {
        let nodes = self.nodes.iter_mut();
        nodes.filter_map(|(node, process)| (!process.is_running()).then_some(*node)).collect()
    }

    /// What nodes found wrong with replicas.
    ///
    /// # Errors
    /// `Unavailable` when a log cannot be read.
    pub fn findings(&self) -> Result<Vec<String>> {
        let findings = self.nodes.values().map(Process::findings);
        Ok(findings.collect::<Result<Vec<_>>>()?.concat())
    }

    /// What monitors said in their logs of when they had applied which revision of the service
    /// metadata; nothing unless they log at `debug`.
    ///
    /// # Errors
    /// As [`Cluster::findings`].
    pub fn applied(&self) -> Result<Vec<Applied>> {
        let applied = self.nodes.values().map(Process::applied);
        Ok(applied.collect::<Result<Vec<_>>>()?.concat())
    }

    /// The node that leads the monitors, as far as they know.
    pub fn leader(&self) -> Option<u16> {
        self.control.leader().ok().flatten().map(|node: NodeId| node.0)
    }

    /// Waits until the map has every node that runs as up, and nothing on its way; answers how long
    /// that took.
    ///
    /// # Errors
    /// `Unavailable` with what is missing.
    pub fn wait_until_whole(&mut self, patience: Duration) -> Result<Duration> {
        wait("the cluster is not whole", patience, || {
            let running: Vec<NodeId> = self
                .nodes
                .iter_mut()
                .filter_map(|(number, process)| process.is_running().then_some(NodeId(*number)))
                .collect();
            match self.control.map() {
                Ok(map) => control::missing(&map, &running),
                Err(error) => Some(error.to_string()),
            }
        })
    }

    /// Waits until the node is in or out, and nothing is on its way; answers how long that took.
    ///
    /// # Errors
    /// `Unavailable` with what it is instead.
    pub fn wait_until(
        &self,
        node: u16,
        wanted: Membership,
        patience: Duration,
    ) -> Result<Duration> {
        wait(&format!("node {node} is not {wanted:?}"), patience, || match self.control.map() {
            Ok(map) if map.next.is_none() && map.membership(NodeId(node)) == wanted => None,
            Ok(map) => {
                let (is, epoch) = (map.membership(NodeId(node)), map.epoch.0);
                Some(format!("it is {is:?} in epoch {epoch}"))
            }
            Err(error) => Some(error.to_string()),
        })
    }

    /// A folder of the trial's.
    pub fn folder(&self) -> &Path {
        &self.plan.folder
    }
}

/// Waits until nothing is missing; answers how long that took.
fn wait(
    what: &str,
    patience: Duration,
    mut missing: impl FnMut() -> Option<String>,
) -> Result<Duration> {
    let begun = Instant::now();
    while let Some(missing) = missing() {
        if begun.elapsed() > patience {
            let seconds = patience.as_secs();
            return Err(Error::unavailable(format!("{what} after {seconds} s: {missing}")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(begun.elapsed())
}
