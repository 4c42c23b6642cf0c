//! The embedded store: transactions over one folder, for the threads of one process.
//!
//! ```text
//!   callers ──> store        which keyspace, is the request well-formed         keyspaces
//!                 │
//!               inner        the commit machine under one lock, snapshots       arbiter, commit,
//!                 │                                                             read, snapshot
//!               threads      group commit, folding, memory and log kept small   committer, folder
//! ```
//!
//! The machines of `tyr-protocol` decide, the store of `tyr-store` remembers; this crate gives them
//! threads and time, for a chain of one, where the commit machine's fast path is inlined. It must
//! not know of other nodes: no socket, no message.
//!
//! Reading order: [`store`], `inner`, `arbiter`, `commit`, `committer`, `folder`; `metadata` is
//! kept beside the keyspaces, `leases` are those of keys, `watches` who is told when they change,
//! `notices` what is sent to those,
//! `usage` is how much there is, `kept` the snapshots that last.

mod arbiter;
mod commit;
mod committer;
mod folder;
mod inner;
mod kept;
mod keyspaces;
mod leases;
mod metadata;
mod notices;
pub mod options;
mod read;
mod snapshot;
pub mod store;
mod usage;
mod watches;

pub use commit::Held;
pub use keyspaces::KeyspaceEntry;
pub use leases::{AwaitedLease, EmbeddedLease};
pub use metadata::{EmbeddedPresence, MetadataWatch};
pub use notices::AwaitedNotice;
pub use options::Options;
pub use snapshot::SnapshotGuard;
pub use store::EmbeddedStore;
pub use tyr_store::check::{
    Finding as CheckFinding, Report as CheckReport, Severity as CheckSeverity,
};
pub use tyr_store::log::TornTail;
pub use tyr_store::recent::ExtentLease;
pub use tyr_store::store::Attributes;
pub use watches::EmbeddedWatch;
