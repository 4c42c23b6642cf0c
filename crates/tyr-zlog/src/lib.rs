//! ZLog on Týr: a shared log in the design of CORFU (Balakrishnan et al., NSDI 2012), made of
//! object classes and key leases, as Malacology has it (Sevilla et al., EuroSys 2017).
//!
//! Every entry has a *position*, a number without gaps in strict order, which its appender gets
//! from a *sequencer* before the data is anywhere, and then writes, once, at the storage object
//! that the position is at. Who dies in between leaves a *hole*, which readers fill. A *view* says
//! which objects there are; it has an *epoch*, which all requests carry. When the sequencer is lost
//! the objects are *sealed* with the next epoch, so that nobody of the last one writes any more,
//! and a new sequencer begins behind all that is written. Readers need no sequencer, and are never
//! held up by its loss.
//!
//! ```text
//!   append ──► sequencer (capability: a key lease, the counter in memory)
//!      │          └─ recovery: the counter that was left, or seal and maximum
//!      ▼
//!   client: view, place of a position ──► class zlog of the object (write, read, fill, trim, seal)
//!      ▲                                class zlog_view of the head  (create_view, read_views)
//!   reader ── tail, holes      trim ── whole stripes go
//! ```
//!
//! Reading order: [`class`] has the two classes, in Lua and in Rust; `view` and `layout` say what
//! views and keys are; `client` calls the classes; `sequencer`, `capability`, `seat` and `recovery`
//! are who hands out positions; `append`, `reader` and `trim` are what users do.
//!
//! It stands beside the log of `tyr-log`, which needs neither sequencer nor holes, and is what to
//! use where nothing asks for positions before the data is there. This crate knows only public API.
//!
//! ```
//! use tyr_zlog::{Log, Options};
//!
//! # tokio::runtime::Builder::new_multi_thread().build().unwrap().block_on(async {
//! # let folder = tempfile::tempdir().unwrap();
//! let store = tyr::Tyr::open(folder.path()).await?;
//! let orders = Log::create(&store, "orders", &Options::default()).await?;
//! assert_eq!(orders.append("two books").await?, 0);
//! assert_eq!(orders.append("a pen").await?, 1);
//!
//! let mut reader = orders.reader(0);
//! let entries = reader.next().await?;
//! assert_eq!(entries.iter().map(|entry| entry.position).collect::<Vec<_>>(), [0, 1]);
//! assert_eq!(orders.read(1).await?.data, "a pen");
//! assert_eq!(orders.tail().await?, 2);
//! orders.close().await?;
//! # Ok::<(), tyr::Error>(())
//! # }).unwrap();
//! ```

mod append;
mod capability;
pub mod class;
mod client;
mod layout;
mod log;
mod name;
mod options;
mod reader;
mod recovery;
mod seat;
mod sequencer;
mod status;
mod trim;
mod view;

pub use class::ENTRY_LEN_MAX;
pub use log::Log;
pub use name::NAME_LEN_MAX;
pub use options::{
    KEYSPACE_DEFAULT, Methods, Opening, Options, Policy, SLOTS_MAX, Sequencing, WIDTH_MAX,
};
pub use reader::{Entry, Reader, Slot};
pub use seat::SequencerKind;
pub use sequencer::{Given, Sequencer};
pub use status::Status;
pub use trim::Trimmed;
