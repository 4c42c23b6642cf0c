//! The control plane: how nodes and clients ask for service metadata, leases and maps (M1).
//!
//! What is neither data nor lease travels here, few and small.
//!
//! A connection begins with `TYR-CTRL`, so that it can share the node's port with the data plane.
//! Then it is frames: many questions in flight, each answered under its number, in any order.
//!
//! ```text
//!   client ── TYR-CTRL, version, Hello ──► server     who is there, of which cluster
//!   client ◄───────────────── Welcome ─── server
//!   client ── Ask ────────────────────► server        Raft, metadata, proposals, status
//!   client ◄──────────────────── Reply ── server
//! ```
//!
//! Reading order: what is agreed on is a value of `tyr-metadata`; [`record`], [`status`], [`usage`]
//! and [`refusal`] are values that travel beside it. Then [`hello`], [`message`] with [`proposal`],
//! [`presence`] and [`call`], [`frame`]; [`connect`], [`connection`] and [`peers`], by which a node
//! asks others; [`client`] is what clients and the command line have, and [`thread`] where it runs.
//!
//! This crate must not know what is done about a request: a node's monitor answers.

pub mod call;
pub mod client;
pub mod connect;
pub mod connection;
pub mod frame;
pub mod hello;
pub mod message;
pub mod peers;
pub mod presence;
pub mod proposal;
pub mod record;
pub mod refusal;
pub mod status;
pub mod thread;
pub mod usage;

#[cfg(test)]
mod tests;

pub use self::client::{ClientOptions, ClientWatch, MetadataClient};
pub use self::connect::{Connect, Opening, Stream, TcpConnect};
pub use self::connection::{Answers, CallError, Connection};
pub use self::hello::{Hello, Identity, Sender};
pub use self::message::{Answer, Fault, Question, Request};
pub use self::peers::{Peers, SayHello};
pub use self::proposal::{Joiner, Keyspace, Proposal};
pub use self::record::NodeRecord;
pub use self::thread::Thread;
pub use tyr_protocol::map::{Change, ClusterMap, MapKeyspace, Membership, NodeState};
