//! What the service metadata has of seats: who should have each, and what nodes say of theirs.
//!
//! ```text
//!   seats/assigned/KEYSPACE/KEY   {"node": 3, "mode": "client"}     who should have it
//!   seats/nodes/N                 {"node": 3}                       N would have seats; bound to
//!                                                                   the node's presence
//!   seat-loads/N                  {"node": 3, "seats": [...]}       what it has, bound likewise
//! ```
//!
//! All nodes follow the first two; loads, which change all the time, are read by who wants them.
//! Records are JSON, for people to read (`tyr meta list seats/`).

use serde::{Deserialize, Serialize};
use tyr::{Error, NodeId, Result};

use super::name::SeatName;

/// Where all of it is but loads.
pub const PREFIX: &str = "seats/";
/// Where it is said who should have a seat.
pub const ASSIGNED: &str = "seats/assigned/";
/// Where nodes say that they are there.
pub const NODES: &str = "seats/nodes/";
/// Where nodes say what they have.
pub const LOADS: &str = "seat-loads/";

/// How requests that come to another node get to a seat (S4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeatMode {
    /// Whoever asks is told which node has the seat, and asks that from then on.
    #[default]
    Client,
    /// The authority of the seat's key passes requests on.
    Proxy,
}

impl SeatMode {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Client, Self::Proxy];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Proxy => "proxy",
        }
    }
}

/// Who should have a seat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The node. While it is not there, it is as if nobody was named.
    pub node: u16,
    /// How requests get there.
    #[serde(default)]
    pub mode: SeatMode,
    /// Who said so: a user, or `balancer`.
    #[serde(default)]
    pub by: String,
}

/// A seat, as the node says that has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeatLoad {
    /// Its name.
    pub name: String,
    /// The class that requests to it call.
    pub kind: String,
    /// Requests a second, of late.
    pub rate: f64,
    /// Requests that are not answered yet.
    #[serde(default)]
    pub waiting: u64,
    /// For how many seconds the node has had it.
    #[serde(default)]
    pub seconds: u64,
}

/// A node that has seats, or would: what it says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeSeats {
    /// Its number.
    pub node: u16,
    /// What part of one core the process took of late; above 1 where it took more than one.
    #[serde(default)]
    pub cpu: f64,
    /// Its seats, by name.
    pub seats: Vec<SeatLoad>,
}

impl NodeSeats {
    /// Requests a second to all its seats.
    pub fn rate(&self) -> f64 {
        self.seats.iter().map(|seat| seat.rate).sum()
    }
}

/// Where it is said who should have a seat.
pub fn assigned_path(name: &SeatName) -> String {
    format!("{ASSIGNED}{name}")
}

/// Where a node says that it is there.
pub fn node_path(node: NodeId) -> String {
    format!("{NODES}{}", node.0)
}

/// Where a node says what it has.
pub fn load_path(node: NodeId) -> String {
    format!("{LOADS}{}", node.0)
}

/// Reads a record.
///
/// # Errors
/// `Corrupt` when it is none, with what to do.
pub fn decode<T: for<'a> Deserialize<'a>>(path: &str, value: &[u8]) -> Result<T> {
    serde_json::from_slice(value).map_err(|error| {
        let text = format!(
            "what the service metadata has at {path} is no record of seats: look at it with `tyr \
             meta get {path}`, and delete it"
        );
        Error::corrupt(text).with_source(error)
    })
}

/// As it is kept.
pub fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    serde_json::to_vec(record).expect("it has names and numbers only")
}
