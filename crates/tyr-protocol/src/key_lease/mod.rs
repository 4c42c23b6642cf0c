//! Leases of keys and groups: what a client holds of the authority, for seconds (K1, K3, K7).
//!
//! ```text
//!   holder                                     authority of chunk 0
//!     │ Ask ─────────────────────────────────────► │  nobody in the way: held from now on
//!     │ ◄───────────────────────────────── Granted │  else it waits in line, and who is in
//!     │                                            │  the way is told: Recall
//!     │ Renew (all leases of the node) ──────────► │  held for as long again
//!     │ ◄───────────────────────────────── Renewed │
//!     │ GiveBack ────────────────────────────────► │  the next in line
//! ```
//!
//! The holder counts from when it *asked*, the authority from when it *answered*, and a tenth
//! longer: so whatever is lost or late, the holder knows first that its lease is over. That tenth
//! is also how much faster than the other's one clock may run.
//!
//! The authority's [`Table`] is all there is, and nothing of it is on disk. Whoever becomes the
//! authority waits until what its predecessor gave is over, and lets those who held something hold
//! it on meanwhile (K3).
//!
//! It must not know how messages travel, nor who is the authority of what.

mod table;

use tyr_types::{BlobName, LeaseMode, Leased};

pub use self::table::{Ask, Table};

/// What is said about leases of keys. A lease has the number that its holder gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A client asks for a lease. The same again is the same question.
    Ask {
        /// Its number.
        lease: u64,
        /// Of which key.
        blob: BlobName,
        /// How.
        mode: LeaseMode,
        /// How long it lasts, in microseconds.
        duration_us: u64,
        /// When this was sent, by the client's monotonic clock.
        sent_us: u64,
        /// What is to be done when somebody is in the way.
        wish: Wish,
    },
    /// A client asks for a lease of a group. The same again is the same question.
    AskGroup {
        /// Its number.
        lease: u64,
        /// Of which group, by what its keys begin with.
        group: BlobName,
        /// How.
        mode: LeaseMode,
        /// How long it lasts, in microseconds.
        duration_us: u64,
        /// When this was sent, by the client's monotonic clock.
        sent_us: u64,
        /// What is to be done when somebody is in the way.
        wish: Wish,
    },
    /// A client holds these leases on.
    Renew {
        /// When this was sent, by the client's monotonic clock.
        sent_us: u64,
        /// Their numbers, at most [`RENEWED_MAX`].
        leases: Vec<u64>,
    },
    /// A client needs a lease no more, or does not wait for it any more.
    GiveBack {
        /// Its number.
        lease: u64,
    },
    /// The lease is held from when `Ask` was sent.
    Granted {
        /// Its number.
        lease: u64,
        /// `sent_us` of the question.
        sent_us: u64,
    },
    /// Somebody is in the way; the question waits in line.
    Waits {
        /// Its number.
        lease: u64,
    },
    /// The answer to `Renew`.
    Renewed {
        /// `sent_us` of the question.
        sent_us: u64,
        /// Those that are held from when `Renew` was sent.
        held: Vec<u64>,
        /// Those that the node does not know.
        unknown: Vec<u64>,
    },
    /// Somebody waits for what this lease excludes.
    Recall {
        /// Its number.
        lease: u64,
    },
}

impl Message {
    /// What the client that sent `ask` says; the number of a client is not in it.
    pub fn asking(ask: Ask) -> Self {
        let Ask { client: _, lease, of, mode, duration_us, sent_us, wish } = ask;
        match of {
            Leased::Key(blob) => Self::Ask { lease, blob, mode, duration_us, sent_us, wish },
            Leased::Group(group) => {
                Self::AskGroup { lease, group, mode, duration_us, sent_us, wish }
            }
        }
    }
}

/// What a client wishes when somebody is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To wait in line.
    Wait,
    /// To be refused.
    Try,
    /// To hold on what another authority gave (K3); else to be refused.
    Keep,
}

/// Leases in one `Renew`, at most: a message of some 40 KiB.
pub const RENEWED_MAX: usize = 4_096;

/// How long the authority counts with a lease that it has given for `duration_us`.
pub const fn counted_us(duration_us: u64) -> u64 {
    duration_us.saturating_add(duration_us.div_ceil(10))
}
