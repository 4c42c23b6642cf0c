//! Messages of other releases, which are not understood at one end: said in the log, once for each
//! kind. They are counted besides.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tyr_protocol::message::Address;
use tyr_protocol::wire::Unread;

use super::greeting::name;

/// Kinds that are told apart; what comes beyond them is counted only.
const KINDS_MAX: usize = 64;

/// What was said already: what came in, by what is unknown of it and its level; and to whom
/// something could not be sent.
#[derive(Debug, Default)]
pub(super) struct UnknownMessages {
    came: Mutex<BTreeSet<(&'static str, u8)>>,
    unsent: Mutex<BTreeSet<Address>>,
}

impl UnknownMessages {
    /// A message came in that is not understood here.
    pub fn note(&self, unread: &Unread) {
        let Unread { from, level, what, .. } = *unread;
        if is_new(&self.came, (what, level)) {
            let from = name(from);
            tracing::warn!(
                from,
                level,
                "a message was dropped that this program does not understand: {what}. Its sender \
                 is of a later release; upgrade this node. Said once, counted always"
            );
        }
    }

    /// A message was not sent, since its receiver would not understand it.
    pub fn note_unsent(&self, to: Address) {
        if is_new(&self.unsent, to) {
            let to = name(to);
            tracing::warn!(
                to,
                "a message was not sent that its receiver does not understand: it is of an older \
                 release; upgrade it. Said once, counted always"
            );
        }
    }
}

fn is_new<T: Ord>(said: &Mutex<BTreeSet<T>>, kind: T) -> bool {
    let mut said = said.lock();
    said.len() < KINDS_MAX && said.insert(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_said_once_and_not_more_kinds_than_are_told_apart() {
        let said = Mutex::default();
        assert!(is_new(&said, 0) && !is_new(&said, 0));
        let count = (0..2 * KINDS_MAX).filter(|kind| is_new(&said, *kind)).count();
        assert_eq!(count, KINDS_MAX - 1);
    }
}
