//! Messages of other releases, which are not understood at one end: said in the log, once an hour
//! for each kind. They are counted besides.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr_protocol::message::Address;
use tyr_protocol::wire::Unread;
use tyr_runtime::repeats::RepeatLimit;

use super::greeting::name;

/// Kinds that are told apart; what comes beyond them is counted only.
const KINDS_MAX: usize = 64;

/// Of each kind one line is written in this time: an upgrade takes longer.
const LINE_INTERVAL: Duration = Duration::from_secs(3600);

/// What is said: of what came in, by what is unknown of it and its level; and by whom something
/// could not be sent to.
#[derive(Debug)]
pub(super) struct UnknownMessages {
    came: Mutex<RepeatLimit<(&'static str, u8)>>,
    unsent: Mutex<RepeatLimit<Address>>,
}

impl Default for UnknownMessages {
    fn default() -> Self {
        let (came, unsent) = (limit(), limit());
        Self { came, unsent }
    }
}

fn limit<K: Eq + std::hash::Hash>() -> Mutex<RepeatLimit<K>> {
    Mutex::new(RepeatLimit::new(1, LINE_INTERVAL, KINDS_MAX))
}

impl UnknownMessages {
    /// A message came in that is not understood here.
    pub fn note(&self, unread: &Unread) {
        let Unread { from, level, what, .. } = *unread;
        if self.came.lock().admit((what, level), Instant::now()).is_some() {
            let from = name(from);
            tracing::warn!(
                from,
                level,
                "a message was dropped that this program does not understand: {what}. Its sender \
                 is of a later release; upgrade this node. Said once an hour, counted always"
            );
        }
    }

    /// A message was not sent, since its receiver would not understand it.
    pub fn note_unsent(&self, to: Address) {
        if self.unsent.lock().admit(to, Instant::now()).is_some() {
            let to = name(to);
            tracing::warn!(
                to,
                "a message was not sent that its receiver does not understand: it is of an older \
                 release; upgrade it. Said once an hour, counted always"
            );
        }
    }
}
