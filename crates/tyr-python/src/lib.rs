//! `tyr._tyr`: Týr for Python, as far as it is in Rust. Programs import the package `tyr`, whose
//! Python is in `python/tyr`; the guide to it is `docs/guide/python.md`.
//!
//! Reading order: [`border`] keeps forked children away, and [`error`] makes exceptions of errors.
//! What Python gives becomes ours in [`input`] and [`number`]. A call is a future of the public
//! crate; [`call`] waits for it without Python's lock and with an eye on Ctrl-C, or starts it in a
//! [`queue`], which is how `tyr.aio` has its answers. On these stand the classes: [`store`],
//! [`keyspace`], [`transaction`] with [`operation`], [`snapshot`], [`listing`], [`stretch`],
//! [`stream`]. What a program has until it gives it back, or that one call at a time waits for, is
//! in [`holding`]: [`lease`], [`watch`], [`metadata`], [`presence`].
//!
//! ```text
//!   Python ──> input ──> future of `tyr` ──┬── call: wait here, lock given up ──> value
//!                                          └── queue: tag now, completion later ──> value
//! ```
//!
//! No thread of Týr runs Python or waits for its lock. It knows `tyr` alone, and adds no meaning.

mod border;
mod call;
mod error;
mod holding;
mod input;
mod keyspace;
mod lease;
mod listing;
mod metadata;
mod number;
mod operation;
mod presence;
mod queue;
mod snapshot;
mod store;
mod stream;
mod stretch;
mod transaction;
mod watch;

/// The module as Python has it.
#[pyo3::pymodule]
mod _tyr {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::error::Cause;
    #[pymodule_export]
    use crate::keyspace::Keyspace;
    #[pymodule_export]
    use crate::lease::{Lease, Lock, LockInfo};
    #[pymodule_export]
    use crate::listing::{Entries, Entry, Page};
    #[pymodule_export]
    use crate::metadata::{Metadata, MetadataChange, MetadataChanges, MetadataEntry};
    #[pymodule_export]
    use crate::metadata::{MetadataPage, MetadataTransaction, MetadataWatch};
    #[pymodule_export]
    use crate::number::{Stat, Transform, Version};
    #[pymodule_export]
    use crate::operation::{Committed, Operation};
    #[pymodule_export]
    use crate::presence::Presence;
    #[pymodule_export]
    use crate::queue::Queue;
    #[pymodule_export]
    use crate::snapshot::Snapshot;
    #[pymodule_export]
    use crate::store::{Store, connect, open};
    #[pymodule_export]
    use crate::stream::Feed;
    #[pymodule_export]
    use crate::stretch::Stretches;
    #[pymodule_export]
    use crate::transaction::Transaction;
    #[pymodule_export]
    use crate::watch::{Event, Notice, Notified, Watch};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::border::watch_forks(module.py())
    }
}
