//! What the read machine asks of its driver.

use tyr_types::{NodeId, Timestamp};

use super::event::{ReadId, Request};
use crate::abort::Abort;

/// What the driver does for the read machine.
///
/// Order rule: executed in order, after the effects of the commit machine that were given before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Answer from the applied state, now. The reply to a read of a whole blob, or a
    /// snapshot's first, carries the timestamp; the chunks that are not here are asked of one
    /// replica each, at that timestamp (R3).
    Serve {
        /// The read.
        id: ReadId,
        /// The timestamp to read at; `None` for the newest.
        at: Option<Timestamp>,
    },
    /// Hand the read to the authority, which answers.
    Forward {
        /// The authority.
        to: NodeId,
        /// The read.
        request: Request,
    },
    /// List the blobs that this node is the authority of, at the timestamp that was asked for
    /// (Q1): everything at or below it is applied.
    List {
        /// The listing.
        id: ReadId,
    },
    /// Answer the clock (R6).
    AnswerClock {
        /// The read.
        id: ReadId,
        /// The clock.
        clock: Timestamp,
    },
    /// Too much waits already.
    Refuse {
        /// The read.
        id: ReadId,
        /// Why.
        abort: Abort,
    },
}
