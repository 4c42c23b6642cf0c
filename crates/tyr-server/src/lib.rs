//! A server: what a process runs to be a node of a cluster.
//!
//! ```text
//!   network ──> gate       who may do what, how much of it, is there room       gate, quota, room
//!                 │
//!               driver     the engine's steps, all machines of a member together      driver/
//!                 │
//!               keeper     folding, cutting the log, memory kept small                keeper
//!
//!               remarks    what the cluster log is told of it
//!
//!   server      all of it put together, with a monitor, gossip and traces             server/
//! ```
//!
//! The machines of `tyr-protocol` decide, the store of `tyr-store` remembers, `tyr-engine` is both
//! together, step by step; this crate gives them time and carries out what they say. Who knows what
//! stands where: `server` sees all of it, the gate the driver, and the driver nobody.
//!
//! Reading order: `server`, `gate`, `driver`, `keeper`.

mod driver;
mod full_nodes;
mod gate;
mod giver;
pub mod histogram;
mod keeper;
mod memory_pressure;
pub mod quota;
mod remarks;
mod server;

pub use self::server::{
    Answering, ChunkSum, DiskReport, Formation, Health, Identity, InitialNode, LeaseConfig,
    MapReport, MethodHost, MovementStatistics, NodeId, NodeReport, NodeStatistics, Observer,
    RETURNING_SILENT_US, ROOM_MIN, Remarker, ScrubConfig, ScrubStatistics, SeatAnswering,
    SeatReport, Server, ServerOptions, room,
};
