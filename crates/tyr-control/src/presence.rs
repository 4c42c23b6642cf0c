//! What is asked about a client's presence: that it is there, and what is bound to that (M5).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tyr_metadata::Transaction;
use tyr_types::{Error, Result};

use super::client::MetadataClient;
use super::message::{Answer, Request};

/// The shortest time without a word after which a presence is over.
pub const TTL_MIN: Duration = Duration::from_secs(1);

/// The longest.
pub const TTL_MAX: Duration = Duration::from_secs(60);

/// A question about a presence, by the number that the client drew for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// It begins; it is over when nothing was heard for so long.
    Begin {
        /// Its number.
        id: u64,
        /// In milliseconds.
        ttl_ms: u32,
    },
    /// The client is still there.
    Renew {
        /// Its number.
        id: u64,
    },
    /// What this puts is bound to it.
    Bind {
        /// Its number.
        id: u64,
        /// Conditions and changes, all or nothing.
        transaction: Transaction,
    },
    /// It is over.
    End {
        /// Its number.
        id: u64,
    },
}

impl Presence {
    /// Whether asking twice does no more than asking once.
    pub fn is_repeatable(&self) -> bool {
        match self {
            Self::Begin { .. } | Self::Renew { .. } | Self::End { .. } => true,
            Self::Bind { .. } => false,
        }
    }
}

/// Refuses what is too short or too long.
///
/// # Errors
/// `InvalidArgument` with the bounds.
pub fn check_ttl(ttl: Duration) -> Result<()> {
    match (TTL_MIN..=TTL_MAX).contains(&ttl) {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "the time after which a presence is over without a word is {TTL_MIN:?} to {TTL_MAX:?}, \
             not {ttl:?}"
        ))),
    }
}

impl MetadataClient {
    /// Asks about a presence; with `Bind` the answer is the revision.
    ///
    /// # Errors
    /// As [`MetadataClient::ask`]; `NotFound` when it is over.
    pub async fn presence(&self, presence: Presence) -> Result<u64> {
        match self.ask(Request::Presence(presence)).await? {
            Answer::Done => Ok(0),
            answer => answer.into_revision(),
        }
    }
}
