//! How a control connection begins: who is there, and whether they belong together.
//!
//! ```text
//!   client ── "TYR-CTRL" | version (4 bytes) | Hello ──► server
//!   client ◄───────────────────────── Welcome ────────── server
//! ```
//!
//! The eight bytes tell a control connection from one of the data plane on the same port.

use serde::{Deserialize, Deserializer, Serialize};
use tyr_types::NodeId;

use crate::refusal::Refusal;
use tyr_metadata::Actor;

/// What a control connection begins with.
pub const MAGIC: &[u8; 8] = b"TYR-CTRL";
/// The version of everything that follows; written after [`MAGIC`], little-endian.
pub const VERSION: u32 = 2;
/// The requests that are understood here, by [`Request::level`](super::Request::level): a welcome
/// tells, and a later request is not sent to who would not know what it is.
pub const LEVEL: u8 = LEVEL_SEATS;
/// What a program understands that tells nothing of it.
pub const LEVEL_FIRST: u8 = 1;
/// From here on nodes say how they stand.
pub const LEVEL_REPORT: u8 = 2;
/// From here on nodes say how much there is with them.
pub const LEVEL_USAGE: u8 = 3;
/// From here on nodes' remarks are noted in the cluster log.
pub const LEVEL_REMARKS: u8 = 4;
/// From here on entries of the service metadata are bound to clients' presences.
pub const LEVEL_PRESENCE: u8 = 5;
/// From here on nodes run methods of objects.
pub const LEVEL_CALLS: u8 = 6;
/// From here on nodes answer requests to seats whose keys are not theirs.
pub const LEVEL_SEATS: u8 = 7;
/// Bytes of a hello: names and tokens are short.
pub const HELLO_LEN_MAX: usize = 8 << 10;

/// Who begins the connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sender {
    /// A node, by its number.
    Node(u16),
    /// A user or a program, by the user's name; empty for one that has none.
    User(String),
}

/// What the client says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The cluster that it means; `None` for whichever it finds.
    pub cluster: Option<u128>,
    /// Who it is.
    pub sender: Sender,
    /// What proves that; empty when nothing is asked for.
    pub token: String,
}

/// What the server answers: the cluster, if there is one yet, or why it does not listen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The cluster that the node is of.
    pub cluster: Option<u128>,
    /// Why the connection ends here.
    pub refusal: Option<Refusal>,
    /// The requests that are understood there ([`LEVEL`]). Programs of before do not say it, and
    /// pass over what comes after what they know.
    #[serde(deserialize_with = "level_or_first")]
    pub level: u8,
}

/// The level, or the first where the message ends before it.
fn level_or_first<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    Ok(u8::deserialize(deserializer).unwrap_or(LEVEL_FIRST))
}

/// Who is at the other end, as far as this node is sure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A node of the cluster, or one that is to be: it speaks for others, and for Raft.
    Node(NodeId),
    /// A user.
    User {
        /// The name.
        name: String,
        /// Whether everything is allowed that is not the system's own.
        is_administrator: bool,
    },
}

impl Identity {
    /// In whose name it asks.
    pub fn actor(&self) -> Actor {
        match self {
            Self::Node(_) => Actor::System,
            Self::User { name, is_administrator } => {
                Actor::User { name: name.clone(), is_administrator: *is_administrator }
            }
        }
    }
}
