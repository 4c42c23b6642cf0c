//! A frame's head: who says it, and what it is about. Every program reads it, also that of a
//! message which it cannot read.

use tyr_types::{Epoch, TransactionId};

use super::encoded::{Encoded, encoded_enum, encoded_struct};
use super::input::{Input, Malformed};
use crate::commit::{self, recovery};
use crate::key_lease;
use crate::key_watch;
use crate::level::LEVEL_FIRST;
use crate::message::{Address, Asked, Body, Envelope, Unread};
use crate::upload;

/// What a message is about: where in it, from its tag on, the id or the number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// Nothing that anybody waits for.
    Nothing,
    /// A transaction that is submitted, or asked about.
    Asked(u8),
    /// A transaction on its way over its chain that nobody has decided.
    Forwarded(u8),
    /// A read, or a listing.
    Read(u8),
}

encoded_enum!(About, "thing to be about", {
    0 => Nothing,
    1 => Asked(at),
    2 => Forwarded(at),
    3 => Read(at),
});

impl About {
    /// Ids and numbers come right after the tags, of which there are one or two.
    fn of(body: &Body) -> Self {
        match body {
            Body::Commit(commit::Message::Forward { known: None, .. }) => Self::Forwarded(2),
            Body::Recovery(recovery::Message::Ask { .. }) => Self::Asked(2),
            Body::Submit { .. } => Self::Asked(1),
            Body::Read(_) | Body::ListKeys(_) | Body::Scan(_) | Body::Moment { .. } => {
                Self::Read(1)
            }
            Body::KeyLease(
                key_lease::Message::Ask { .. } | key_lease::Message::AskGroup { .. },
            )
            | Body::KeyWatch(key_watch::Message::Ask { .. } | key_watch::Message::Notify { .. })
            | Body::Upload(upload::Message::Stage { .. } | upload::Message::Copy { .. }) => {
                Self::Read(2)
            }
            // Answers, and what is said again until it shows that it was heard.
            Body::Commit(_)
            | Body::Recovery(_)
            | Body::Movement(_)
            | Body::Upload(_)
            | Body::CancelRead { .. }
            | Body::SnapshotEnded { .. }
            | Body::FetchMap
            | Body::Reply { .. }
            | Body::Part(_)
            | Body::Refused { .. }
            | Body::NewerMap(_)
            | Body::NotHere(_)
            | Body::NotUnderstood { .. }
            | Body::KeyLease(_)
            | Body::KeyWatch(_)
            | Body::Keys { .. }
            | Body::Scanned { .. }
            | Body::Renew { .. }
            | Body::Granted { .. }
            | Body::Prepare(_)
            | Body::Prepared { .. }
            | Body::Effective(_)
            | Body::CaughtUp { .. }
            | Body::Return { .. } => Self::Nothing,
        }
    }
}

/// A frame's head, after the level.
pub(super) struct Head {
    epoch: Epoch,
    incarnation: u64,
    from: Address,
    about: About,
}

encoded_struct!(Head, 4, { epoch, incarnation, from, about });

impl Head {
    /// Bytes of it at most: an epoch, an incarnation, a tag with a client's number, and what it is
    /// about.
    pub const LEN_MAX: usize = 5 + 10 + (1 + 10) + 2;

    pub fn new(envelope: &Envelope) -> Self {
        let Envelope { epoch, incarnation, from, body } = envelope;
        let about = About::of(body);
        Self { epoch: *epoch, incarnation: *incarnation, from: *from, about }
    }

    /// Whether it says what this message is about.
    pub fn is_of(&self, body: &Body) -> bool {
        self.about == About::of(body)
    }

    pub fn envelope(self, body: Body) -> Envelope {
        let Self { epoch, incarnation, from, about: _ } = self;
        Envelope { epoch, incarnation, from, body }
    }

    /// What it tells of a message that cannot be read and begins at this byte of the frame.
    pub fn unread(
        &self,
        frame: &[u8],
        message_at: usize,
        level: u8,
        what: &'static str,
    ) -> Result<Unread, Malformed> {
        let Self { epoch, incarnation, from, about } = *self;
        let input = |at: u8| Input::new(frame, None, message_at + usize::from(at), LEVEL_FIRST);
        let asked = match about {
            About::Nothing => None,
            About::Asked(at) | About::Forwarded(at) => {
                Some(Asked::Transaction(TransactionId::decode(&mut input(at))?))
            }
            About::Read(at) => Some(Asked::Read(u64::decode(&mut input(at))?)),
        };
        let is_forwarded = matches!(about, About::Forwarded(_));
        Ok(Unread { epoch, incarnation, from, asked, is_forwarded, level, what })
    }
}
