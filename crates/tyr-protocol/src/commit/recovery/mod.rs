//! What becomes of a transaction whose chain lost a node or a message (F1..F14).
//!
//! A ballot over everyone who may know: the first live node of the chain asks all live nodes of the
//! old chain and the new one; whoever answers takes part in no older attempt any more. When all
//! have answered, what one of them knows stands; if nobody knows, nothing was shown to anyone, and
//! the transaction passes over its chain again as a new attempt.
//!
//! ```text
//!   Tick, Ask, Retry, Install
//!        │ inquire
//!        ▼
//!     Query ──► everyone: Fence … Fenced ──► Report
//!        │ all have reported
//!        ├─ someone knows it committed at T ──────────► Forward, known at T
//!        ├─ someone knows it aborted ─────────────────► Abort to everyone … Aborted: Reply (F9)
//!        ├─ the tail of an attempt validated it ──────► it is decided (C5): Forward, known at the
//!        │                                              tail's proposal
//!        ├─ someone may have forgotten it ────────────► Abort to everyone, outcome unknown (F11)
//!        ├─ a client asked, and nobody has it ────────► Abort to everyone (F12)
//!        └─ nobody knows ─────────────────────────────► Clear to everyone, Forward anew
//! ```
//!
//! Between the answer and the `Clear` what was validated still counts: it may be decided. Only
//! then it is withdrawn, so that the new attempt waits for nobody who waits for the old.
//!
//! The parts: [`message`] is what nodes say; [`inquiry`] asks and concludes, [`inquiries`] says
//! whose turn it is; [`answer`] is the side that is asked; [`triggers`] finds what is held up, by
//! time or by a new map; [`untold`] is what a new authority has to tell the others; [`unread`] is
//! what a node does not understand; [`restore`] is what is known after a restart; [`done`] is how
//! far this node is done, so that outcomes can be forgotten.
//!
//! It is a part of the commit machine, not a machine beside it: it works on the same records, and
//! what it concludes passes over the chain again as any transaction does. An embedded store has a
//! commit machine without it.

mod answer;
pub mod done;
mod heard;
pub(crate) mod inquiries;
mod inquiry;
pub mod message;
mod restore;
#[cfg(test)]
mod tests;
mod triggers;
mod unread;
mod untold;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tyr_types::{KeyspaceId, NodeId, TransactionId};

pub use self::inquiries::BALLOTS_MAX;
pub(crate) use self::inquiries::{Inquiries, Turn};
#[cfg(feature = "broken-rules")]
pub(crate) use self::inquiry::Inquiry;
pub(crate) use self::inquiry::{NEVER_BEGUN, chain_of_begun};
pub use self::message::{Known, Message};
pub use self::restore::Restored;
use self::untold::Untold;
use crate::chain::Chain;
use crate::commit::memory::Memory;
use crate::commit::{Attempt, OUTCOME_WINDOW_US};
use crate::map::ClusterMap;

/// After how long without getting further a transaction is asked about, in microseconds; twice as
/// long after each time, up to [`ASK_AFTER_DOUBLED_MAX`] times.
pub const ASK_AFTER_US: u64 = 500_000;

/// How often the time until the next question is doubled.
pub const ASK_AFTER_DOUBLED_MAX: u8 = 4;

const _: () = {
    assert!(ASK_AFTER_US << ASK_AFTER_DOUBLED_MAX == 8_000_000, "F6: up to 8 s, as is written");
    assert!(ASK_AFTER_US << ASK_AFTER_DOUBLED_MAX < OUTCOME_WINDOW_US, "F10: asked while known");
};

/// What a node of a cluster keeps beside its records.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    /// The newest map installed.
    pub map: Option<Arc<ClusterMap>>,
    /// Outcomes and fences.
    pub memory: Memory,
    /// The ballots that this node coordinates; at most one a transaction in flight.
    pub inquiries: Inquiries,
    /// What the others have yet to be told to be stable, by that map (F5).
    pub untold: Untold,
    /// Whether by that map every chunk has the same authority, so that nobody waits for what is
    /// before at another (C9).
    pub has_one_authority: bool,
    /// The clock of the last tick.
    pub elapsed_us: u64,
    /// What the cluster's clock was.
    pub past: self::done::Past,
    /// Up to where this node is done (F10).
    pub done_to_us: u64,
    /// Whether the monitors have said how far all nodes are, since this one started.
    pub has_heard: bool,
    /// For how long outcomes are remembered at least.
    pub window_us: u64,
    /// Which node the others cannot forget for, as the monitors said last.
    pub slowest: Option<NodeId>,
    /// Aborts that somebody asked for, with the attempt in which; said when they are durable (F9).
    pub owed: BTreeMap<TransactionId, Attempt>,
    /// How many transactions were in flight and not applied at the last tick.
    pub crowd: u64,
    /// The keyspaces of one replica of which this node's part is not given up.
    pub singles: BTreeSet<KeyspaceId>,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            map: None,
            memory: Memory::default(),
            inquiries: Inquiries::default(),
            untold: Untold::default(),
            has_one_authority: false,
            elapsed_us: 0,
            past: self::done::Past::default(),
            done_to_us: 0,
            has_heard: false,
            window_us: OUTCOME_WINDOW_US,
            slowest: None,
            owed: BTreeMap::new(),
            crowd: 0,
            singles: BTreeSet::new(),
        }
    }
}

/// The keyspaces among `singles` of which a chain has chunks that its node at this place has, or
/// gets: a recipient may be the only one to have them by the time it is asked.
pub(crate) fn held_alone<'a>(
    chain: &'a Chain,
    position: usize,
    singles: &'a BTreeSet<KeyspaceId>,
) -> impl Iterator<Item = KeyspaceId> + 'a {
    let pieces = chain.hops()[position].pieces().iter();
    pieces.map(|it| it.blob.keyspace).filter(|keyspace| singles.contains(keyspace))
}
