//! The monitors: how the nodes of a cluster agree on what they go by, and who leads (M1, M3).
//!
//! ```text
//!   control: requests ─────────► leads here? ─► Raft ─► metadata, the same at every monitor
//!                                                ▲
//!   data plane: Renew, ... ─► leadership ────────┘ maps and epochs, committed before they are told
//!                             Grants, while a quorum says that it leads
//! ```
//!
//! Reading order: what is agreed on, and how requests for it travel, is `tyr-control`'s;
//! [`consensus`] is how several monitors have the same. [`monitor`] is one monitor, with its
//! [`options`]; [`responder`] takes control connections and notes what users change (`audit`),
//! `requests` answers them and [`watch`] watches, `leadership` is what the leader does for leases
//! and maps, `handover` what it does before it stops, `cluster_log` what is kept of what happened,
//! `presence` which clients are there, `guards` what values may be.

mod audit;
mod cluster_log;
pub mod consensus;
mod drained;
mod guards;
mod handover;
mod leadership;
pub mod monitor;
pub mod options;
mod presence;
mod requests;
pub mod responder;
pub mod watch;

#[cfg(test)]
mod tests;

pub use self::monitor::Monitor;
pub use self::options::{Describe, InitialNode, MonitorOptions};
pub use self::responder::{Answering, Authenticate, Responder, RunCall, Running};
