//! How a node stands, for people and programs that look at one node: plain values, and where
//! control connections get them.
//!
//! As JSON they are what `/status` answers, and what the control plane carries. Fields are added,
//! so that programs of several releases read each other's; what an older one does not tell has a
//! default.

use std::sync::{Arc, OnceLock, Weak};

use serde::{Deserialize, Serialize};
use tyr_types::Bytes;

use super::disk::DiskReport;
use super::observation::{MovementStatistics, Observer, Parts, ScrubStatistics};
use crate::quota::QuotaReport;

/// How a node stands, for people and programs that look at one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Its number.
    pub node: u16,
    /// The program's version.
    pub version: String,
    /// Where it listens.
    pub listen: String,
    /// How long it has run, in seconds.
    pub uptime_s: f64,
    /// How often it was started.
    pub starts: u64,
    /// Whether it serves.
    pub is_ready: bool,
    /// Why not.
    pub reasons: Vec<String>,
    /// How long its lease lasts yet, in milliseconds.
    pub lease_left_ms: u64,
    /// Transactions in flight.
    pub in_flight: u64,
    /// Transactions committed for clients since the start.
    pub commits: u64,
    /// Reads answered to clients since the start.
    pub reads: u64,
    /// Clients connected.
    pub clients: usize,
    /// Whether it leads the monitors.
    pub is_leading: bool,
    /// What it is a recipient of.
    pub movement: MovementStatistics,
    /// What it has compared with other replicas.
    #[serde(default)]
    pub scrub: ScrubStatistics,
    /// How keyspaces with a quota stand in the whole cluster, as far as heard here.
    #[serde(default)]
    pub quotas: Vec<QuotaReport>,
    /// How full its disk is.
    #[serde(default)]
    pub disk: Option<DiskReport>,
    /// The map it goes by; `None` before it has one.
    pub map: Option<MapReport>,
}

/// A cluster map, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapReport {
    /// Its version.
    pub epoch: u32,
    /// Whether the ring is being changed.
    pub is_moving: bool,
    /// The nodes.
    pub nodes: Vec<SeatReport>,
    /// The keyspaces, but those that were dropped.
    pub keyspaces: Vec<String>,
}

/// A node as the map has it, and how well it is reached from here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatReport {
    /// Its number.
    pub node: u16,
    /// `up`, `returning` or `down`.
    pub state: String,
    /// `in`, `joining`, `leaving` or `out`.
    pub membership: String,
    /// Its weight; 0 when it is on no ring.
    pub weight: u32,
    /// Its failure domain.
    pub domain: Option<u32>,
    /// Whether there is a connection with it; a node has one with itself.
    pub is_connected: bool,
    /// What gossip says of it here: `alive`, `suspect`, `down`, `unknown`; nothing of itself.
    pub gossip: Option<String>,
    /// Why the last attempt to reach it failed, if this node connects to it.
    pub last_error: Option<String>,
}

/// Where control connections find how the node stands. They are there before its parts are, and
/// must not keep those once it has stopped.
#[derive(Clone, Default)]
pub(super) struct ReportSource(Arc<OnceLock<Weak<Parts>>>);

impl ReportSource {
    /// The node runs.
    pub fn open(&self, parts: &Arc<Parts>) {
        let is_first = self.0.set(Arc::downgrade(parts)).is_ok();
        assert!(is_first, "a node starts once");
    }

    /// How it stands, as JSON; `None` when it does not run yet, or any more.
    pub fn report(&self) -> Option<Bytes> {
        let report = self.observer()?.report();
        Some(serde_json::to_vec(&report).expect("numbers and texts are JSON").into())
    }

    /// Who looks at the node, while it runs.
    pub fn observer(&self) -> Option<Observer> {
        self.0.get()?.upgrade().map(Observer::from)
    }
}
