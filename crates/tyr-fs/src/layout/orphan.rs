//! That a file without a name is still there, and the sessions that may have it open, or that
//! delete it since it is too large to go at once: `session u64` of each.

use crate::error::{Error, Result};

/// Bytes of a session.
const SESSION_LEN: usize = 8;

/// The bytes of an orphan of these sessions.
pub fn encode(sessions: &[u64]) -> Vec<u8> {
    sessions.iter().flat_map(|session| session.to_le_bytes()).collect()
}

/// The sessions of an orphan, one at least.
///
/// # Errors
/// `EIO` for what is none.
pub fn decode(from: &[u8]) -> Result<Vec<u64>> {
    let (sessions, rest) = from.as_chunks::<SESSION_LEN>();
    match sessions.is_empty() || !rest.is_empty() {
        false => Ok(sessions.iter().map(|session| u64::from_le_bytes(*session)).collect()),
        true => Err(Error::damaged(format!(
            "an orphan has {SESSION_LEN} bytes a session, this has {}",
            from.len()
        ))),
    }
}
