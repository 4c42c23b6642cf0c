//! Týr, a transactional blob store.
//!
//! A *blob* is a sparse array of bytes, named by a key in a *keyspace*. Blobs take random writes
//! and appends of any length, arithmetic in place, and transactions over as many of them as you
//! like, while readers see one version of everything. A store is a directory, and runs inside your
//! process; or it is a cluster, and your process connects to it. The API is the same.
//!
//! # A tour
//!
//! Everything below runs as it stands, on any executor. Threads use [`blocking`], which has the
//! same names without `async`.
//!
//! ```
//! # async fn tour() -> tyr::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path();
//! use std::io::Read;
//!
//! use tyr::{BlobCopy, ByteRange, ErrorKind, KeyspaceConfig, LeaseOptions, Number, Relation};
//! use tyr::{Scan, Transform, TransformKind, Tyr};
//!
//! // One process at a time has a store open. A keyspace fixes how its blobs are kept.
//! let tyr = Tyr::open(path).await?;
//! let data = tyr.create_keyspace("data", KeyspaceConfig::default()).await?;
//!
//! // Single operations. Each takes effect at once, and is on disk when it answers.
//! data.put("greeting", "hello").await?;
//! let offset = data.append("greeting", " world").await?;
//! assert_eq!(offset, 5);
//! data.write("greeting", 20, "!").await?; // the gap reads as zeros
//! assert_eq!(data.read("greeting", 6, 5).await?, "world");
//! assert_eq!(data.stat("greeting").await?.size, 21);
//!
//! // Arithmetic in place: one round trip, no read, no conflict. Little-endian numbers.
//! let visits = data.apply("visits", 0, Transform::add(Number::U64(1))).await?;
//! assert_eq!(visits, Number::U64(1));
//!
//! // A transaction: all of it or nothing. Without reads and conditions it never aborts.
//! let mut measurement = tyr.begin();
//! measurement.append(&data, "series/cpu", 0.75f64.to_le_bytes().to_vec())?;
//! let count = measurement.apply(&data, "count", 0, Transform::add(Number::U64(1)))?;
//! let committed = measurement.commit().await?;
//! assert_eq!(committed.value(count), Some(Number::U64(1)));
//!
//! // Reads in a transaction are of one version and are validated; `transact` retries conflicts.
//! let moved = tyr
//!     .transact(async |transaction| {
//!         let old = transaction.get(&data, "greeting").await?;
//!         transaction.put(&data, "archive/greeting", old.clone())?;
//!         transaction.delete(&data, "greeting")?;
//!         Ok(old.len())
//!     })
//!     .await?;
//! assert_eq!(moved, 21);
//!
//! // Conditions: the blob must end here; these bytes must be there.
//! assert_eq!(data.append_at("log", 0, "first").await?, 0);
//! let late = data.append_at("log", 0, "late").await.unwrap_err();
//! assert_eq!(late.kind(), ErrorKind::Conflict);
//! data.compare_and_swap("log", 0, "first", "FIRST").await?;
//!
//! // And in a transaction: there must be a blob, or none, and enough of something; which of them
//! // does not hold is told.
//! let mut sale = tyr.begin();
//! sale.expect_present(&data, "log")?;
//! let is_new = sale.expect_absent(&data, "receipt")?;
//! let one = Number::U64(1);
//! let is_left = sale.compare_number(&data, "stock", 0, Relation::GreaterOrEqual, one)?;
//! sale.apply(&data, "stock", 0, Transform::new(TransformKind::Sub, one)?)?;
//! let refused = sale.commit().await.unwrap_err();
//! assert_eq!(refused.kind(), ErrorKind::Conflict);
//! assert_eq!(refused.operation(), Some(is_left));
//! assert_ne!(is_new, is_left);
//!
//! // A snapshot: everything as it was, for as long as you hold it (up to 5 minutes).
//! let snapshot = tyr.snapshot().await?;
//! data.put("log", "rewritten").await?;
//! assert_eq!(snapshot.get(&data, "log").await?, "FIRST");
//!
//! // Kept, it can be read until it is dropped, also after a restart.
//! tyr.keep("before").await?;
//! data.put("log", "rewritten again").await?;
//! let before = tyr.kept_snapshot("before").await?;
//! assert_eq!(before.get(&data, "log").await?, "rewritten");
//! tyr.drop_kept("before").await?;
//! data.put("log", "rewritten").await?;
//!
//! // A lock, and a transaction that takes effect only while nobody else has got it since.
//! let lock = data.lock("locks/nightly", &LeaseOptions::exclusive().no_wait()).await?;
//! let mut fenced = tyr.begin();
//! fenced.fence(&lock)?;
//! fenced.append(&data, "log", " by night")?;
//! fenced.commit().await?;
//! lock.unlock().await?;
//! data.delete("locks/nightly").await?;
//!
//! // Listings are in key order, with sizes and versions.
//! let keys = data.scan(b"", None, 100).await?;
//! let keys: Vec<String> = keys.iter().map(|(key, _)| key.to_string()).collect();
//! assert_eq!(keys, ["archive/greeting", "count", "log", "series/cpu", "visits"]);
//!
//! // Or a page of what a scan says: first bytes of each, and one line for all of a folder.
//! let page = data.scan_page(&Scan::new().delimiter("/").first_bytes(3).limit(10)).await?;
//! assert_eq!(page.groups, ["archive/", "series/"]);
//! assert_eq!((page.entries[1].bytes.as_ref(), page.is_end()), (&b"rew"[..], true));
//!
//! // Blobs of any size stream in and out; a `put` of any length is one transaction.
//! let blocking = tyr.blocking();
//! let large = blocking.keyspace("data")?;
//! let written = large.put_reader("large", std::io::repeat(7).take(5 << 20))?;
//! assert_eq!(written, 5 << 20);
//! let mut reader = large.reader("large", ByteRange::at(1 << 20, 10)?)?;
//! let mut ten = Vec::new();
//! reader.read_to_end(&mut ten).unwrap();
//! assert_eq!(ten, [7; 10]);
//!
//! // Inside a store they are copied, whole or in part.
//! let copied = tyr.copy(&BlobCopy::new(&data, "large", &data, "copy of large")?).await?;
//! assert_eq!(copied, written);
//! tyr.close().await
//! # }
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(tour()).unwrap();
//! ```
//!
//! # Clusters
//!
//! ```no_run
//! # async fn connect() -> tyr::Result<()> {
//! let tyr = tyr::Tyr::connect("tyr://node-1:7070,node-2:7070").await?;
//! let data = tyr.keyspace("data").await?;
//! data.append("log", "hello").await?;
//! # Ok(())
//! # }
//! ```
//!
//! One connection of a process is enough for all its threads and tasks. What differs from a store
//! in the process:
//!
//! - A commit may end as [`ErrorKind::TimedOut`]: nobody said in time what became of it.
//!   [`Tyr::outcome`] asks again; it takes effect once at most.
//! - A transaction carries at most 16 MiB of small and of stamped payloads. Where its payloads come
//!   to 1 MiB, those of 32 KiB and more are uploaded ahead of it. It touches at most 65,536 chunks.
//!   An append of more than 16 MiB expects the blob to end where it did, and may end as
//!   [`ErrorKind::Conflict`]. A number that is changed in place lies in one chunk: put it at a
//!   multiple of its size.
//! - Inside a transaction each blob is read at one version; that those of several blobs belong
//!   together shows at the commit, which fails with `Conflict` otherwise.
//! - A snapshot over several nodes is one moment for what is read of it, but what other programs
//!   begin while it is taken may come before or after it.
//! - [`Tyr::check`] is of the folders of nodes, and [`Tyr::statistics`] counts this client's calls.
//!
//! # What is promised
//!
//! - A transaction takes effect entirely or not at all, also when the process or the power dies.
//! - Transactions and single operations are strictly serializable; snapshots are serializable and
//!   never conflict.
//! - Inside a transaction reads repeat.
//! - A transaction without reads and conditions never aborts.
//! - A writer never waits for a reader, nor a snapshot for a writer that began after it.
//! - With [`Durability::Sync`], the default, what was acknowledged survives the loss of power.
//!
//! # Features
//!
//! `embedded` is [`Tyr::open`], `cluster` is [`Tyr::connect`]; both are on by default. With one of
//! them alone (`default-features = false`) the other half is neither there nor built: an embedder
//! builds no network, and a client no store.
//!
//! # Errors
//!
//! Every error has a [`kind`](Error::kind) that says what you can do about it, and a text that says
//! what was wrong. State changes only when there is no error, except after
//! [`ErrorKind::TimedOut`], which leaves it open. All bounds are in [`limits`].

#[cfg(not(any(feature = "embedded", feature = "cluster")))]
compile_error!("tyr needs its feature `embedded`, `cluster`, or both, which is the default");

mod attempts;
// A build without one half never comes to its arms.
#[cfg_attr(
    not(all(feature = "embedded", feature = "cluster")),
    allow(dead_code, unreachable_code, unreachable_patterns, unused_variables)
)]
mod backend;
mod committed;
#[cfg(feature = "cluster")]
mod connect;
mod copying;
mod key;
mod keyspace;
mod lease;
pub mod metadata;
mod offload;
mod overlay;
mod pages;
mod pending;
mod presence;
mod reader;
mod snapshot;
mod store;
mod transaction;
mod watch;

pub mod blocking;

pub use committed::Committed;
#[cfg(feature = "cluster")]
pub use connect::ConnectOptions;
pub use copying::BlobCopy;
pub use key::ToKey;
pub use keyspace::Keyspace;
pub use lease::{Lease, LeaseOptions, Lock, LockInfo};
pub use reader::Reader;
pub use snapshot::Snapshot;
#[cfg(feature = "embedded")]
pub use store::{Options, check};
pub use store::{ReadRequest, Tyr};
pub use transaction::Transaction;
pub use watch::Watch;

#[cfg(feature = "embedded")]
pub use tyr_embedded::{CheckFinding, CheckReport, CheckSeverity, TornTail};
pub use tyr_runtime::statistics::Statistics;
pub use tyr_types::{
    BlobName, ByteRange, Bytes, Changes, ChunkLocation, Data, DiskSpace, Durability, Error,
    ErrorKind, FailureCause, KeptName, KeptSnapshot, Key, KeyspaceConfig, KeyspaceId, KeyspaceInfo,
    KeyspaceName, KeyspaceSize, LeaseMode, MethodAnswer, MethodCall, MethodFailure, NodeId,
    NodeSpace, Notice, NoticeId, Notified, Number, NumberType, OperationId, PlacedBy, Relation,
    Replica, Result, Scan, ScanEntry, ScanPage, SeatAnswer, SizeLimit, Stamped, Stat, Stretches,
    Timestamp, Transform, TransformKind, Usage, WatchEvent, Watcher, limits,
};
