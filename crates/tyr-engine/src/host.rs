//! Who drives an engine: what it is told, and what is asked of it.

use std::fmt;

use tyr_protocol::member::{Event, Record};
use tyr_protocol::message::{Address, Envelope, Now};
use tyr_protocol::movement::scrub::Finding;
use tyr_types::Error;

use crate::lists::Listing;
use crate::reads::Fetch;

/// Whoever drives an engine. What a step asks for comes in order.
pub trait Host {
    /// The time.
    fn now(&mut self) -> Now;

    /// The member is about to hear of this.
    fn hears(&mut self, event: &Event, now: Now);

    /// The member has given this record to the log, under this number; the log has it at this
    /// sequence, or did not take it.
    fn logs(&mut self, number: u64, record: &Record, sequence: Option<u64>);

    /// A message to somebody else, on its way; it may be lost (F6).
    fn send(&mut self, to: Address, envelope: Envelope);

    /// The member is to step with [`Event::Continue`], after all that was sent so far went out.
    fn go_on_later(&mut self);

    /// A read that takes the disk: to be [finished](Fetch::finish) and answered later, elsewhere.
    fn fetch(&mut self, fetch: Fetch);

    /// A listing: to be [made](Listing::make) later, elsewhere, and
    /// [brought back](crate::Engine::listed).
    fn list(&mut self, listing: Listing);

    /// This was found in comparing replicas (D4).
    fn found(&mut self, finding: Finding);

    /// Something is wrong with the disk.
    fn trouble(&mut self, trouble: Trouble, error: &Error);
}

/// What is wrong with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The log could not be written or synced.
    Log,
    /// One record is not in the log; the node goes on.
    Record,
    /// The store failed.
    Store,
    /// What a record of the log refers to cannot be read.
    Payload,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Log => "the log takes no more until the node starts again",
            Self::Record => "a record is not in the log",
            Self::Store => "the store fails: the node takes no part any more",
            Self::Payload => "a payload of the log cannot be read",
        })
    }
}
