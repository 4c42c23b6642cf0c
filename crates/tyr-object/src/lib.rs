//! Objects: blobs with methods that run beside them, atomically, and a sorted map each.
//!
//! ```text
//!   Classes ── install, enable, retire, call
//!    ├─ record      what is known of a class: its versions, where it may be called
//!    ├─ catalog     the records and scripts, in the service metadata
//!    ├─ kept        records that need not be read again, for a moment
//!    ├─ loaded      classes that were compiled, or are in this program
//!    ├─ library     which of these a call runs
//!    ├─ host        queues of calls; several calls of an object as one transaction
//!    ├─ hosting     calls that come from elsewhere, at a node of a cluster
//!    ├─ seat        services with a state in memory, at one node at a time
//!    └─ access      an object in a transaction of this store
//! ```
//!
//! An *object* is a blob and its companion, which has its map: the key of the blob and `\0m`. In a
//! keyspace that is placed by what comes before the first `\0` of a key both lie on the same nodes,
//! and a call passes no more of them than a write of the blob. A *class* has methods, in Lua or in
//! Rust ([`tyr_class`]). What a call does is one transaction: what it reads stands still, what it
//! writes takes effect at once or not at all, and where it meets others it runs again.
//!
//! The method runs in this process, wherever the store is. So its script sees what the user of this
//! store may see, and nothing is called by whom could not have done the same by hand.
//!
//! ```
//! use tyr_object::{Call, blocking::Classes};
//!
//! # fn main() -> tyr::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! let store = tyr::blocking::Tyr::open(folder.path())?;
//! let keyspace = store.create_keyspace("registers", tyr_object::keyspace_config())?;
//!
//! let classes = Classes::of(&store);
//! classes.install(None, br#"
//!     return { name = "register", methods = {
//!         set = { kind = "call", run = function(cx, blob, input)
//!             if blob:size() > 0 then cx:fail("AlreadyExists", "it is set") end
//!             blob:write(0, input)
//!         end } } }"#)?;
//! classes.enable("register", "registers")?;
//!
//! classes.call(&keyspace, "one", &Call::new("register", "set", "first"))?;
//! let failure = classes.call(&keyspace, "one", &Call::new("register", "set", "second"));
//! assert_eq!(failure.unwrap_err().text(), "it is set");
//! assert_eq!(keyspace.get("one")?, "first");
//! # Ok(())
//! # }
//! ```

mod access;
mod begun;
pub mod blocking;
mod call;
mod catalog;
mod classes;
mod host;
mod hosting;
mod kept;
mod library;
mod loaded;
mod record;
mod rule;
mod seat;

use tyr::{KeyspaceConfig, PlacedBy, Result};
use tyr_class::testing::run_tests;

pub use begun::Begun;
pub use call::Call;
pub use catalog::Installed;
pub use classes::Classes;
pub use hosting::{HostedStore, Hosting, SeatAnswering};
pub use record::{ClassRecord, VersionRecord, describe_change};
pub use seat::directory::{Proviso, SeatDirectory, SeatListing};
pub use seat::name::SeatName;
pub use seat::record::{Assignment, NodeSeats, SeatLoad, SeatMode};
pub use seat::{Answering, Seat, SeatKind};
pub use tyr_class::testing::TestOutcome;
pub use tyr_class::{COMPANION, Class, Failure, Limits};

/// Runs the tests that a script brings, in memory: no store is needed. `name` is that of the class
/// where the script does not say it.
///
/// # Errors
/// `InvalidArgument` when it is no class, with the line.
pub fn test(name: Option<&str>, script: &[u8]) -> Result<Vec<TestOutcome>> {
    Ok(run_tests(&loaded::Loaded::default().compile_new(name, script)?))
}

/// How a keyspace of objects is best made: an object's blob and its companion lie on the same
/// nodes. Any other keyspace does, too, with more nodes in each transaction.
pub fn keyspace_config() -> KeyspaceConfig {
    KeyspaceConfig { placed_by: PlacedBy::UpTo(0), ..KeyspaceConfig::default() }
}
