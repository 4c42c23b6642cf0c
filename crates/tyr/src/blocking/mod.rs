//! The same API for threads: every method blocks until it has its answer.
//!
//! The types have the names and the methods of the async API. Both can be used on one store at
//! once: [`Tyr::into_async`] and [`crate::Tyr::blocking`] lead from one to the other.

mod keyspace;
mod lease;
mod listing;
mod metadata;
mod method;
mod reader;
mod snapshot;
mod store;
mod transaction;
mod upload;
mod watch;

pub use keyspace::Keyspace;
pub use lease::{Lease, Lock};
pub use metadata::{Metadata, MetadataWatch, Presence};
pub use reader::Reader;
pub use snapshot::Snapshot;
pub use store::Tyr;
pub use transaction::Transaction;
pub use watch::Watch;

pub(crate) use keyspace::{existed, offset, read_range, too_large, value};
pub(crate) use upload::Upload;
