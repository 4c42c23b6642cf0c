//! What is asked and answered on the control plane.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tyr_types::{Epoch, Error};

use super::call::{CallAnswer, Called};
use super::hello::{
    LEVEL_CALLS, LEVEL_FIRST, LEVEL_PRESENCE, LEVEL_REMARKS, LEVEL_REPORT, LEVEL_SEATS, LEVEL_USAGE,
};
use super::presence::Presence;
use super::proposal::Proposal;
use crate::record::NodeRecord;
use crate::refusal::Refusal;
use crate::status::{Bootstrap, Status};
use crate::usage::NodeUsage;
use tyr_metadata::{Actor, Entry, KeyChange, Path, Transaction};

/// A watch hears that it is still there so often, even if nothing changed.
pub const WATCH_QUIET: Duration = Duration::from_secs(5);

/// From the client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Ask {
    /// A question; answered under the same number, a watch many times.
    Question {
        /// A number of the client's, of which no open question is.
        number: u64,
        /// The question, and who asks.
        question: Question,
    },
    /// Nobody waits for the answer any more.
    Cancel {
        /// The number of the question.
        number: u64,
    },
}

/// A request with what a node that hands it on says about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Question {
    /// Who asked first, when a node hands it on; a user's word for it counts for nothing.
    pub actor: Option<Actor>,
    /// Whether it was handed on before: then it is not again.
    pub is_handed_on: bool,
    /// How long the asker waits, in milliseconds; who answers gives up before, and says why.
    pub patience_ms: u32,
    /// The request.
    pub request: Request,
}

/// To the client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reply {
    /// The number of the question.
    pub number: u64,
    /// The answer.
    pub result: Result<Answer, Fault>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The node does not lead, and nothing was done.
    NotLeader,
    /// Nobody was found in time who leads; nothing was done. What is known of that.
    Leaderless(Refusal),
    /// It will not be, or cannot be.
    Refused(Refusal),
}

impl From<Fault> for Error {
    /// The error that a caller gets for it.
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NotLeader => no_leader(),
            Fault::Leaderless(refusal) | Fault::Refused(refusal) => refusal.into(),
        }
    }
}

/// What whoever needs the leader gets while there is none.
pub fn no_leader() -> Error {
    Error::unavailable("no monitor leads now; try again later")
}

/// What can be asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Raft's own, from one monitor to another.
    Raft(Bytes),
    /// What a key holds.
    Get(Path),
    /// Keys of a prefix, in order.
    List {
        /// The prefix.
        prefix: String,
        /// Only keys after this one.
        after: Option<String>,
        /// At most so many.
        limit: u32,
    },
    /// Conditions and changes, all or nothing.
    Transact(Transaction),
    /// What changes under a prefix from now on.
    Watch {
        /// The prefix.
        prefix: String,
        /// What changed in later revisions than this one.
        after: u64,
    },
    /// A change of the map.
    Propose(Proposal),
    /// How the monitors are.
    Status,
    /// What a client needs to begin.
    Bootstrap,
    /// Who leads the monitors, by node.
    Leader,
    /// A node asks for a number, and that others know where it is.
    Admit {
        /// The number that it wants; `None` for the next free one.
        wanted: Option<u16>,
        /// What it tells of itself.
        record: NodeRecord,
    },
    /// A node becomes a monitor, or is one no more.
    Appoint {
        /// The node.
        node: u16,
        /// Whether it is to be one.
        is_monitor: bool,
    },
    /// How the node that is asked stands: nobody else answers for it. Of level 2.
    Report,
    /// How much there is with the node that is asked: nobody else answers for it. Of level 3.
    Usage,
    /// What happened at a node, for the cluster log; only nodes say it. Of level 4.
    Remark(Remarks),
    /// About a client's presence. Of level 5.
    Presence(Presence),
    /// A method of an object, of which the node that is asked is the authority. Of level 6.
    Call(Called),
    /// A request to a seat, which the node that is asked may have though it is not the authority of
    /// its key. Of level 7.
    Seat(Called),
}

/// What happened at a node, for who looks after the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remarks {
    /// The node.
    pub node: u16,
    /// A number drawn when the node started.
    pub run: u64,
    /// The number of the first of these in that run, counted from 0; the others follow. What comes
    /// twice is noted once.
    pub first: u64,
    /// At most [`REMARKS_MAX`], in order.
    pub remarks: Vec<Remark>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// How long ago, in milliseconds.
    pub ago_ms: u64,
    /// What; cut to [`REMARK_LEN_MAX`].
    pub text: String,
}

/// Remarks of one request.
pub const REMARKS_MAX: usize = 16;
/// Bytes of one: a sentence that names a blob, whose key may be 1,024 bytes.
pub const REMARK_LEN_MAX: usize = 2048;

impl Request {
    /// Whether asking twice does no more than asking once.
    pub fn is_repeatable(&self) -> bool {
        match self {
            Self::Raft(_)
            | Self::Get(_)
            | Self::List { .. }
            | Self::Watch { .. }
            | Self::Status
            | Self::Bootstrap
            | Self::Leader
            | Self::Admit { .. }
            | Self::Appoint { .. }
            | Self::Report
            | Self::Usage
            | Self::Remark(_) => true,
            Self::Presence(presence) => presence.is_repeatable(),
            Self::Transact(_) | Self::Propose(_) | Self::Call(_) | Self::Seat(_) => false,
        }
    }

    /// The level from which on a program understands it: to one of a lower level it is not sent,
    /// since that would end the connection.
    pub fn level(&self) -> u8 {
        match self {
            Self::Raft(_)
            | Self::Get(_)
            | Self::List { .. }
            | Self::Transact(_)
            | Self::Watch { .. }
            | Self::Propose(_)
            | Self::Status
            | Self::Bootstrap
            | Self::Leader
            | Self::Admit { .. }
            | Self::Appoint { .. } => LEVEL_FIRST,
            Self::Report => LEVEL_REPORT,
            Self::Usage => LEVEL_USAGE,
            Self::Remark(_) => LEVEL_REMARKS,
            Self::Presence(_) => LEVEL_PRESENCE,
            Self::Call(_) => LEVEL_CALLS,
            Self::Seat(_) => LEVEL_SEATS,
        }
    }
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// To `Raft`.
    Raft(Bytes),
    /// To `Get`: what it holds, if there is such a key.
    Entry(Option<Entry>),
    /// To `List`: the entries, and the revision they are of.
    Entries {
        /// In order of their keys.
        entries: Vec<(Path, Entry)>,
        /// A watch from here on misses nothing.
        revision: u64,
    },
    /// To `Transact`, and to `Bind`: the store's revision.
    Revision(u64),
    /// To `Watch`, again and again.
    Changes {
        /// What changed.
        changes: Vec<KeyChange>,
        /// Up to this revision that is everything.
        revision: u64,
    },
    /// To `Propose`: the epoch in which it took effect.
    Epoch(u32),
    /// To `Status`.
    Status(Status),
    /// To `Bootstrap`.
    Bootstrap(Bootstrap),
    /// To `Leader`.
    Leader(Option<u16>),
    /// To `Admit`: the number.
    Admitted(u16),
    /// To `Appoint`, `Remark`, and `Presence` but for `Bind`.
    Done,
    /// To `Report`: what the node answers at `/status`, as JSON.
    Report(Bytes),
    /// To `Usage`.
    Usage(NodeUsage),
    /// To `Call` and to `Seat`.
    Called(CallAnswer),
}

impl Answer {
    /// The answer to `Get`.
    ///
    /// # Errors
    /// As [`Answer::into_revision`].
    pub fn into_entry(self) -> Result<Option<Entry>, Error> {
        match self {
            Self::Entry(entry) => Ok(entry),
            other => Err(other.unexpected()),
        }
    }

    /// The answer to `List`: the entries, and the revision they are of.
    ///
    /// # Errors
    /// As [`Answer::into_revision`].
    pub fn into_entries(self) -> Result<(Vec<(Path, Entry)>, u64), Error> {
        match self {
            Self::Entries { entries, revision } => Ok((entries, revision)),
            other => Err(other.unexpected()),
        }
    }

    /// The answer to `Transact`.
    ///
    /// # Errors
    /// `Unavailable` when it is another one: the other end is of another version.
    pub fn into_revision(self) -> Result<u64, Error> {
        match self {
            Self::Revision(revision) => Ok(revision),
            other => Err(other.unexpected()),
        }
    }

    /// The answer to `Propose`.
    ///
    /// # Errors
    /// As [`Answer::into_revision`].
    pub fn into_epoch(self) -> Result<Epoch, Error> {
        match self {
            Self::Epoch(epoch) => Ok(Epoch(epoch)),
            other => Err(other.unexpected()),
        }
    }

    /// The error for an answer to another question.
    pub fn unexpected(&self) -> Error {
        Error::unavailable(format!(
            "the answer is to another question ({self:?}); is the other end of another version?"
        ))
    }
}
