//! What a node is told.

use crate::message::{Envelope, Unread};

/// What a node is told, with the time it is told at.
#[derive(Clone, Debug)]
pub enum Event {
    /// A message arrived.
    Receive(Envelope),
    /// A message arrived that this program does not understand.
    Unread(Unread),
    /// The answer to [`super::Effect::Persist`]: the record of this number is durable.
    Persisted {
        /// The number.
        number: u64,
    },
    /// The answer to [`super::Effect::Persist`]: the record is not known to be durable.
    PersistFailed {
        /// The number.
        number: u64,
    },
    /// The answer to [`super::Effect::Resume`]: everything before it is executed.
    Resume,
    /// The answer to [`super::Effect::Yield`]: what was sent before is on its way.
    Continue,
    /// Some time has passed: every 50 ms or so. The first tick starts the node.
    Tick,
}
