//! The cluster manager: what the nodes of a cluster agree on, and how (M1, M3).
//!
//! ```text
//!   control: requests ─► desk ─► leads here? ─► Raft ─► metadata, the same at every monitor
//!                                                ▲
//!   data plane: Renew, ... ─► leadership ────────┘ maps and epochs, committed before they are told
//!                             Grants, while a quorum says that it leads
//! ```
//!
//! Reading order: [`metadata`] is what is agreed on, a plain value; [`consensus`] how several
//! monitors have the same; [`control`] how requests travel. [`monitor`] is one monitor, with its
//! [`options`]; [`desk`] answers requests and [`watch`] watches, [`leadership`] is what the leader
//! does for leases and maps. [`record`] and [`status`] are plain values that travel.

pub mod consensus;
pub mod control;
mod desk;
mod drained;
mod leadership;
pub mod metadata;
pub mod monitor;
pub mod options;
pub mod record;
pub mod refusal;
pub mod status;
pub mod watch;

#[cfg(test)]
mod tests;

pub use self::monitor::Monitor;
pub use self::options::{InitialNode, MonitorOptions};
pub use self::record::NodeRecord;
pub use tyr_protocol::map::{Change, ClusterMap, MapKeyspace, Membership, NodeState};
