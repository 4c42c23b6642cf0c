//! That a file without a name is still there, since the program of a session has it open, or
//! because it is too large to be deleted at once: `session u64`.

use crate::error::{Error, Result};

/// The bytes of an orphan of this session.
pub fn encode(session: u64) -> [u8; 8] {
    session.to_le_bytes()
}

/// The session of an orphan.
///
/// # Errors
/// `EIO` for what is none.
pub fn decode(from: &[u8]) -> Result<u64> {
    let bytes = from
        .try_into()
        .map_err(|_| Error::damaged(format!("an orphan has 8 bytes, this has {}", from.len())))?;
    Ok(u64::from_le_bytes(bytes))
}
