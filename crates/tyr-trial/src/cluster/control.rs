//! Who asks the monitors: where everybody is, who leads, and whether the cluster is whole.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tyr_control::status::Bootstrap;
use tyr_control::{ClientOptions, MetadataClient, TcpConnect};
use tyr_net::NodeAddresses;
use tyr_protocol::map::{Change, ClusterMap, Membership, NodeState};
use tyr_types::{Epoch, Error, NodeId, Result};

/// How long a question may take.
const PATIENCE: Duration = Duration::from_secs(6);

/// How long the monitors may be without a leader.
const LEADERLESS_MAX: Duration = Duration::from_secs(20);

/// A client of the monitors, with a thread of its own.
pub struct Control {
    runtime: Runtime,
    client: MetadataClient,
    addresses: Vec<String>,
}

impl Control {
    /// Asks at these addresses.
    ///
    /// # Errors
    /// `Unavailable` when no thread starts.
    pub fn new(addresses: &[String]) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| Error::io("no thread for questions", error))?;
        let options = ClientOptions { patience: PATIENCE, ..ClientOptions::at(addresses) };
        let client = MetadataClient::new(options, Arc::new(TcpConnect))?;
        Ok(Self { runtime, client, addresses: addresses.to_vec() })
    }

    /// Where nodes of the cluster are reached.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    fn ask<T>(&self, question: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime.block_on(async {
            let patience = PATIENCE + Duration::from_secs(1);
            match tokio::time::timeout(patience, question).await {
                Ok(answer) => answer,
                Err(_) => Err(Error::unavailable("the monitors do not answer")),
            }
        })
    }

    /// What a client needs to begin.
    ///
    /// # Errors
    /// `Unavailable` while nobody answers.
    pub fn bootstrap(&self) -> Result<Bootstrap> {
        self.ask(self.client.bootstrap())
    }

    /// Lets a node in that was drained before: it does not come in by itself.
    ///
    /// # Errors
    /// As [`Control::propose`].
    pub fn let_in(&self, node: NodeId) -> Result<()> {
        let bootstrap = self.bootstrap()?;
        let map = bootstrap.cluster_map()?;
        let (Some(record), Some(last)) = (bootstrap.nodes.get(&node.0), map.incarnation(node))
        else {
            return Ok(()); // It is new.
        };
        let mut newcomer = record.newcomer(node);
        newcomer.incarnation = newcomer.incarnation.max(last + 1);
        match map.membership(node) {
            Membership::Out => self.propose(Change::Join(vec![newcomer])).map(drop),
            Membership::In | Membership::Joining | Membership::Leaving => Ok(()),
        }
    }

    /// The map in effect, as new as the leader knows it; waits for a leader for a while.
    ///
    /// # Errors
    /// As [`Control::bootstrap`].
    pub fn map(&self) -> Result<ClusterMap> {
        let begun = Instant::now();
        loop {
            match self.ask(self.client.newest()).and_then(|newest| newest.cluster_map()) {
                Err(error) if begun.elapsed() > LEADERLESS_MAX => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
                Ok(map) => return Ok(map),
            }
        }
    }

    /// Who leads the monitors.
    ///
    /// # Errors
    /// As [`Control::bootstrap`].
    pub fn leader(&self) -> Result<Option<NodeId>> {
        self.ask(self.client.leader())
    }

    /// Proposes a change of the map.
    ///
    /// # Errors
    /// Why it cannot be, and as [`Control::bootstrap`].
    pub fn propose(&self, change: Change) -> Result<Epoch> {
        self.ask(self.client.propose(change))
    }
}

/// Where the nodes are.
pub fn addresses(bootstrap: &Bootstrap) -> BTreeMap<NodeId, NodeAddresses> {
    let place = |(node, record): (&u16, &tyr_control::NodeRecord)| {
        let addresses = record.addresses.clone();
        (NodeId(*node), NodeAddresses { addresses, tls_name: None })
    };
    bootstrap.nodes.iter().map(place).collect()
}

/// What a map lacks for these nodes to be all there; `None` when nothing does.
pub fn missing(map: &ClusterMap, running: &[NodeId]) -> Option<String> {
    let silent = running.iter().find(|node| {
        let known = map.nodes.get(node);
        let is_out = map.membership(**node) == tyr_protocol::map::Membership::Out;
        !is_out && known.is_none_or(|node| node.state != NodeState::Up)
    });
    if let Some(node) = silent {
        let state = map.nodes.get(node).map_or("unknown", |node| node.state.name());
        return Some(format!("node {} is {state} in epoch {}", node.0, map.epoch.0));
    }
    map.next.is_some().then(|| format!("data moves in epoch {}", map.epoch.0))
}
