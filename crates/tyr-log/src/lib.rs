//! A shared log on Týr: appends from many, one order for all, groups of consumers.
//!
//! A log is a row of entries that only grows at its end, or several such rows, its *partitions*,
//! that are read as one. An append is one transaction of one trip, without a sequencer in front,
//! and leaves no holes. **Which order holds:** entries of one partition are in one strict order,
//! that in which they were appended. Entries of several partitions are in one order that all
//! readers see, that of their stamps; in a cluster, of two in different partitions the one that was
//! acknowledged first may come second, unless it was read in the transaction that appended the
//! other. In a *strict* log, and in a directory, all partitions have one strict order; in a strict
//! log entries also have numbers without gaps.
//!
//! ```text
//!   append ──► frame ──► segment of a partition ──(full)──► roll: the next segment
//!                            │            │
//!              lane: one     │            └─ checkpoint ─► start: numbers, times; trim, retention
//!   reader ◄── partition ◄───┘
//!     │   merged by stamps
//!     ├─► subscription    follows, told by watches
//!     └─► group           consumers that share entries
//! ```
//!
//! Reading order: [`layout`] says which blobs there are, [`description`], [`segment`] and [`frame`]
//! what is in them. [`append`], [`gather`] and [`roll`] write, [`lane`] and [`reader`] read, from
//! where [`start`] finds with [`checkpoint`]s; [`trim`] lets go. [`group`] has the consumers.
//!
//! This crate knows only the public API of `tyr`, as any other layer does.
//!
//! ```
//! use tyr_log::{Batch, Log, Options, Start};
//!
//! # tokio::runtime::Builder::new_multi_thread().build().unwrap().block_on(async {
//! # let folder = tempfile::tempdir().unwrap();
//! let store = tyr::Tyr::open(folder.path()).await?;
//! let orders = Log::create(&store, "orders", &Options::default()).await?;
//! let first = orders.append("one book").await?;
//! orders.append_batch(&Batch::of(["a pen", "ink"])?).await?;
//!
//! let mut reader = orders.reader(&Start::Oldest).await?;
//! let entries = reader.next(100).await?;
//! assert_eq!(entries.iter().map(|entry| &entry.data[..]).collect::<Vec<_>>(), [
//!     &b"one book"[..],
//!     b"a pen",
//!     b"ink"
//! ]);
//! assert_eq!(orders.read(first.position).await?.data, "one book");
//! # Ok::<(), tyr::Error>(())
//! # }).unwrap();
//! ```

mod append;
mod arrivals;
mod bytes;
mod checkpoint;
mod description;
mod entry;
mod frame;
mod gather;
mod group;
mod lane;
mod last;
mod layout;
mod log;
mod name;
mod options;
mod position;
mod reader;
mod roll;
mod segment;
mod start;
mod status;
mod subscription;
mod tries;
mod trim;

pub use append::{Appended, Appending};
pub use arrivals::Arrivals;
pub use entry::Entry;
pub use frame::{Batch, ENTRIES_MAX, FRAME_LEN_MAX};
pub use group::{Delivery, Fetched, Group, GroupStatus, LENT_MAX};
pub use log::Log;
pub use name::NAME_LEN_MAX;
pub use options::{KEYSPACE_DEFAULT, Options, PARTITIONS_MAX, Retention, SEGMENT_BYTES_MIN};
pub use position::{Cut, Position};
pub use reader::Reader;
pub use start::Start;
pub use status::{PartitionStatus, Status};
pub use subscription::Subscription;
pub use trim::Trimmed;
