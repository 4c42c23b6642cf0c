//! Watches: a client is told when a key, or one with a prefix, changes (K5).
//!
//! ```text
//!   client                                     authority of the first chunks
//!     │ Ask ─────────────────────────────────────► │  registered
//!     │ ◄──────────────────────────────── Watching │
//!     │                                            │  a transaction that changes it is applied
//!     │ ◄───────────────────────────────── Changed │
//!     │ Heard ───────────────────────────────────► │  what changed meanwhile, as one
//!     │ Renew (all watches at the node) ─────────► │  at least each second
//!     │ ◄───────────────────────────────── Renewed │
//!     │ End ─────────────────────────────────────► │
//!
//!   who sends a notice                         authority            who watches
//!     │ Notify ──────────────────────────────────► │ Notice ──────────► │
//!     │                                            │ ◄───── Acknowledge │
//!     │ ◄──────────────────────────────── Notified │  all have, or the time is over
//! ```
//!
//! Nothing of it is on disk, and nothing moves: a node that does not know a watch says so, and its
//! client registers anew. Whoever registers looks at what is there: so what changed while nobody
//! watched is missed by nobody.
//!
//! It must not know how messages travel.

mod notices;
mod table;
mod targets;

use tyr_types::{BlobName, Bytes, Changes, Key, Notice, NoticeId, Notified, WatchTarget};

pub use self::notices::{Notices, Sent};
pub use self::table::Table;
pub use self::targets::Targets;
use crate::map::{ClusterMap, Nodes};

/// The nodes that tell of changes of what is watched, each of what it is the authority of by this
/// map: one, if it is a key or what keys of one group begin with (H); else all.
pub fn tellers(target: &WatchTarget, map: &ClusterMap) -> Nodes {
    let WatchTarget { keyspace, prefix, is_exact } = target;
    match Key::new(prefix.clone()).ok().filter(|_| *is_exact) {
        Some(key) => {
            let holders = map.holders(&BlobName { keyspace: *keyspace, key }, 0);
            holders.into_iter().take(1).collect()
        }
        None => map.listers(*keyspace, prefix),
    }
}

/// What is said about watches. A watch has the number that its client gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A client watches something. The same again changes nothing.
    Ask {
        /// Its number.
        watch: u64,
        /// What it watches.
        target: WatchTarget,
    },
    /// A client watches these on.
    Renew {
        /// By number, what it has heard last of each, at most [`RENEWED_MAX`].
        watches: Vec<(u64, u64)>,
    },
    /// A client has heard what was told.
    Heard {
        /// The number of the watch.
        watch: u64,
        /// The number of what was told.
        told: u64,
    },
    /// A client watches something no more.
    End {
        /// Its number.
        watch: u64,
    },
    /// From now on the client is told.
    Watching {
        /// The number of the watch.
        watch: u64,
    },
    /// Something that is watched has changed.
    Changed {
        /// The number of the watch.
        watch: u64,
        /// How often something was told of it, with this.
        told: u64,
        /// What.
        changes: Changes,
    },
    /// The answer to `Renew`.
    Renewed {
        /// Those that the node does not know.
        unknown: Vec<u64>,
    },
    /// A client sends a notice to who watches a key. The same again changes nothing.
    Notify {
        /// Its number.
        number: u64,
        /// The key.
        blob: BlobName,
        /// What is said.
        payload: Bytes,
        /// How long who watches has to acknowledge it, in microseconds.
        timeout_us: u64,
    },
    /// Who watches gets a notice.
    Notice {
        /// The number of the watch.
        watch: u64,
        /// The notice.
        notice: Notice,
    },
    /// Who watches acknowledges a notice.
    Acknowledge {
        /// The number of the watch.
        watch: u64,
        /// The notice.
        id: NoticeId,
        /// What is replied.
        reply: Bytes,
    },
    /// The answer to `Notify`.
    Notified {
        /// The number of the notice.
        number: u64,
        /// What became of it.
        notified: Notified,
    },
}

/// Watches in one `Renew`, at most.
pub const RENEWED_MAX: usize = 4_096;
