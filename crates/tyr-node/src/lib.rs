//! A node of Týr: the only place with threads, clocks, random numbers and disks.
//!
//! ```text
//!   callers ──> query router      which keyspace, is the request well-formed      router/
//!                 │
//!               query processor   the commit machine under one lock, snapshots    processor/
//!                 │
//!               storage agent     group commit, folding, cache, files             agent/
//!
//!   cluster manager    what all nodes agree on: metadata, maps, leases   monitors/
//! ```
//!
//! The machines of `tyr-protocol` decide, the store of `tyr-store` remembers, `tyr-engine` is both
//! together, step by step; this crate gives them time and carries out what they say. Reading order:
//! [`node`], `processor`, `agent`.

mod agent;
#[cfg(feature = "broken-rules")]
pub mod broken;
pub mod client;
pub mod clock;
pub mod gossip;
pub mod histogram;
pub mod level;
pub mod monitors;
pub mod node;
pub mod options;
mod priority;
mod processor;
pub mod router;
pub mod server;
pub mod statistics;
pub mod ticket;
pub mod trace;

pub use node::Node;
pub use options::Options;
pub use processor::Held;
pub use processor::snapshot::SnapshotGuard;
pub use router::{KeyspaceEntry, network};
pub use statistics::Statistics;
pub use ticket::{Committed, Ticket};
pub use tyr_store::base::KeyspaceInfo;
pub use tyr_store::check::{
    Finding as CheckFinding, Report as CheckReport, Severity as CheckSeverity,
};
pub use tyr_store::log::TornTail;
pub use tyr_store::recent::ExtentLease;
pub use tyr_store::store::Attributes;
