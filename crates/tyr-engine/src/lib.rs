//! A node of a cluster, stepped: the member over what it holds and its log.
//!
//! ```text
//!            tyr-protocol: Member (decides)         tyr-store: Store, Log (remember)
//!                         └───────────┬──────────────────────┘
//!    event ──► Engine::step ──────────┤ records ─► journal ─► Piece::step ─► durable
//!                         │           └ chunks ──► holdings
//!                         └─ Host: messages out, reads that take the disk, listings
//!
//!    Folding::step ──► what was applied is in the base, and the log is cut
//! ```
//!
//! Whatever a node does about its own disk is here, as steps that somebody calls: a server from its
//! threads, with real clocks and a real disk; tyr-sim from one thread, with a disk that loses
//! power. So what is simulated is what runs.
//!
//! Reading order: [`engine`] is a step of a node, [`host`] what it asks of whoever drives it;
//! [`holdings`] are the chunks that it holds, [`reads`] and [`lists`] how they are read;
//! [`journal`] is its log, [`fold`] keeps the log short, [`need`] says when, [`tidy`] keeps memory
//! small; [`tally`] is what counts at this node.
//!
//! This crate must not know threads, clocks, sockets or random numbers.

pub mod engine;
pub mod fold;
pub mod holdings;
pub mod host;
pub mod journal;
pub mod lists;
pub mod need;
pub mod reads;
pub mod tally;
pub mod tidy;

pub use engine::Engine;
pub use holdings::{Held, Holdings, Retention};
pub use host::{Host, Trouble};
