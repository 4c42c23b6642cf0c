//! A node of a cluster: its parts, put together.
//!
//! ```text
//!             network ──► gate ──► driver ──► holdings, journal      monitor (by role)
//!                ▲                   │            │   │                 │      ▲
//!                └─── router ◄───────┘         keeper syncer         metadata ──┘ who, where, what
//!                                                                    follower
//! ```
//!
//! Starting: identity (which start this is), network, monitor, number and cluster, store and log,
//! member; then the gate opens. Stopping: the other way round.

mod calls;
mod control;
mod disk;
mod generation;
mod identity;
mod kept_bound;
mod maintenance;
mod metadata_follower;
mod observation;
mod options;
mod report;
mod router;
mod starting;
mod unopened;
mod usage;
mod usage_scan;
mod vigilance;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
pub use tyr_protocol::lease::LeaseConfig;
pub use tyr_protocol::lease::config::RETURNING_SILENT_US;
use tyr_protocol::map::ClusterMap;
use tyr_protocol::member::{ChunkName, Store as _};
pub use tyr_protocol::movement::scrub::ScrubConfig;
use tyr_store::disk::FolderLock;
pub use tyr_types::NodeId;
use tyr_types::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

pub use self::disk::DiskReport;
pub use self::identity::Identity;
pub use self::maintenance::{ROOM_MIN, room};
use self::metadata_follower::MetadataFollower;
pub use self::observation::{
    Health, MovementStatistics, NodeStatistics, Observer, ScrubStatistics,
};
pub use self::options::{Formation, ServerOptions};
pub use self::report::{MapReport, NodeReport, SeatReport};
use crate::driver::Driver;
use crate::gate::Gate;
pub use crate::gate::methods::{Answering, MethodHost, SeatAnswering};
use crate::keeper::Keeper;
use crate::quota::Quotas;
use tyr_control::MetadataClient;
use tyr_control::{NodeRecord, Thread};
use tyr_gossip::Gossip;
pub use tyr_monitors::InitialNode;
use tyr_monitors::Monitor;
use tyr_net::Network;
use tyr_runtime::marking::Marking;
use tyr_trace::Exporter;

/// A node of a cluster that runs. Dropping it stops it.
pub struct Server {
    node: NodeId,
    listen: SocketAddr,
    driver: Arc<Driver>,
    keeper: Arc<Keeper>,
    gate: Arc<Gate>,
    network: Network,
    monitor: Option<Monitor>,
    follower: Arc<MetadataFollower>,
    gossip: Gossip,
    quotas: Arc<Quotas>,
    disk: Arc<disk::NodeDisk>,
    exporter: Option<Exporter>,
    /// What it is looked at by.
    observed: OnceLock<Arc<observation::Parts>>,
    is_stopping: Arc<AtomicBool>,
    running: Mutex<Option<Running>>,
}

/// A node that stops waits so long at most for its log to be durable.
const SETTLE_MAX: Duration = Duration::from_secs(2);

/// And so long for methods that it runs for others.
const CALLS_MAX: Duration = Duration::from_millis(500);

/// And so long for what the cluster log is to know of it: why it stops, perhaps.
const REMARKS_MAX: Duration = Duration::from_millis(500);

/// What a chunk holds, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkSum {
    /// The chunk.
    pub name: ChunkName,
    /// Bytes held of it.
    pub len: u64,
    /// XXH3 of its bytes and attributes.
    pub sum: u64,
}

struct Running {
    threads: Vec<JoinHandle<()>>,
    marking: Marking,
    control: Thread,
    lock: FolderLock,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server(node {} at {})", self.node.0, self.listen)
    }
}

/// Puts lines into the cluster log. A node says at most ten at once and twenty a minute; how many
/// were left out is in the log, too.
#[derive(Clone)]
pub struct Remarker(Arc<Gate>);

impl Remarker {
    /// This has happened. It is lost if the node does not take part yet.
    pub fn say(&self, text: String) {
        if let Some(remarks) = self.0.remarks() {
            remarks.say(text);
        }
    }
}

impl Server {
    /// Starts a node. It takes part as soon as the cluster lets it: see [`Server::is_ready`].
    ///
    /// # Errors
    /// `InvalidArgument` for options that cannot be, or that are not this folder's; `Unavailable`
    /// when the folder or the address is in use, or nobody of the cluster to be joined answers;
    /// `Corrupt` when the store is damaged.
    pub fn start(options: ServerOptions) -> Result<Self> {
        starting::start(options)
    }

    /// Methods of the objects that it is the authority of are run by this from now on; by none, and
    /// so by their callers, before.
    pub fn host_methods_by(&self, host: Arc<dyn MethodHost>) {
        self.gate.methods.host_by(host);
    }

    /// What puts lines into the cluster log, in the name of this node.
    pub fn remarker(&self) -> Remarker {
        Remarker(Arc::clone(&self.gate))
    }

    /// Its number.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Where it listens.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Whether it takes part: it holds a lease.
    pub fn is_ready(&self) -> bool {
        self.driver.look(|engine| engine.failure().is_none() && engine.member().has_lease())
    }

    /// What it is looked at by.
    fn observed(&self) -> Arc<observation::Parts> {
        Arc::clone(self.observed.get_or_init(|| Observer::parts_of(self)))
    }

    /// The map it goes by.
    pub fn map(&self) -> Option<Arc<ClusterMap>> {
        self.driver.look(|engine| engine.member().map().cloned())
    }

    /// Asks the monitors, in the cluster's own name.
    pub fn metadata(&self) -> &MetadataClient {
        self.follower.client()
    }

    /// What the nodes of the cluster tell of themselves.
    pub fn records(&self) -> std::collections::BTreeMap<NodeId, NodeRecord> {
        self.follower.records()
    }

    /// Sums of the newest content of the chunks that the node holds, in order, after this one; at
    /// most `limit`. Chunks that are still being copied here are left out. Equal replicas have
    /// equal sums once nothing is written.
    ///
    /// # Errors
    /// `Corrupt` when what is on disk is damaged; `Unavailable` when the disk fails.
    pub fn chunk_sums(&self, after: Option<&ChunkName>, limit: usize) -> Result<Vec<ChunkSum>> {
        let names = self.driver.look(|engine| engine.holdings().held(after, limit));
        debug_assert!(names.len() <= limit, "no more than was asked for");
        debug_assert!(after.is_none_or(|after| names.iter().all(|name| name > after)), "in order");
        let mut sums = Vec::with_capacity(names.len());
        for name in names {
            let (planned, store) = self.driver.look(|engine| {
                let holdings = engine.holdings();
                (holdings.plan_whole(&name), Arc::clone(holdings.store()))
            });
            let Some(planned) = planned? else { continue };
            let reading = store.finish_chunk_read(planned)?;
            let size = (name.1 == 0).then_some(reading.attributes.size);
            let mut hash = Xxh3::new();
            hash.update(&reading.bytes);
            hash.update(&size.unwrap_or(u64::MAX).to_le_bytes());
            hash.update(&[u8::from(reading.attributes.exists)]);
            sums.push(ChunkSum { name, len: reading.bytes.len() as u64, sum: hash.digest() });
        }
        Ok(sums)
    }

    /// What is in flight in it, a line each, for whoever looks for a failure.
    pub fn brief(&self) -> String {
        self.driver.look(|engine| engine.member().brief())
    }

    /// Stops: what is acknowledged is on disk. Does nothing the second time.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails, or a thread ended otherwise than it should.
    pub fn stop(&self) -> Result<()> {
        let Some(running) = self.running.lock().take() else { return Ok(()) };
        let Running { threads, marking, mut control, lock } = running;
        self.gate.methods.settle(CALLS_MAX);
        // While its monitor hears the others.
        _ = control.handle.block_on(async {
            tokio::time::timeout(REMARKS_MAX, self.driver.remarks.settle()).await
        });
        control.handle.block_on(self.follower.take_leave());
        if let Some(monitor) = &self.monitor {
            control.handle.block_on(monitor.hand_over());
        }
        self.gate.close();
        self.gossip.close();
        self.keeper.close();
        self.is_stopping.store(true, Ordering::Release);
        self.driver.settle(SETTLE_MAX);
        self.driver.close();
        let mut ended = match &self.monitor {
            Some(monitor) => control.handle.block_on(monitor.close()),
            None => Ok(()),
        };
        self.network.close();
        control.close();
        for thread in threads {
            if thread.join().is_err() {
                ended = Err(Error::unavailable("a thread of the node panicked"));
            }
        }
        ended = ended.and(marking.end());
        if let Some(exporter) = &self.exporter {
            self.driver.end_watch();
            exporter.close();
        }
        self.driver.look(|engine| engine.holdings().store().base().close());
        drop(lock);
        ended
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody is left to tell of a failure; whoever wants to know calls `stop`.
        let _ = self.stop();
    }
}
