//! Notices: word that reaches who watches a key, and who of them acknowledged it.

use std::time::Duration;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::id::Key;
use crate::limits;

/// Which notice: no two have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NoticeId {
    /// The client that sent it.
    pub client: u64,
    /// Its number there.
    pub number: u64,
}

/// One who watches: no two have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watcher {
    /// The client that watches.
    pub client: u64,
    /// The number of its watch.
    pub watch: u64,
}

/// A notice, as who watches gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// By which it is acknowledged.
    pub id: NoticeId,
    /// The key that it was sent to.
    pub key: Key,
    /// What is said: at most [`limits::NOTICE_LEN_MAX`] bytes.
    pub payload: Bytes,
}

/// What became of a notice: each who watched is named once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notified {
    /// Those who acknowledged it in time, with what they replied.
    pub acknowledged: Vec<(Watcher, Bytes)>,
    /// Those who did not: they may have got it all the same.
    pub missed: Vec<Watcher>,
}

/// Whether a notice may have this payload, and be waited for so long.
///
/// # Errors
/// `InvalidArgument` with the bounds.
pub fn check_notice(payload: &[u8], timeout: Duration) -> Result<()> {
    if payload.len() > limits::NOTICE_LEN_MAX {
        return Err(Error::invalid(format!(
            "a notice has at most {} bytes, this has {}; put more into a blob, and say where",
            limits::NOTICE_LEN_MAX,
            payload.len()
        )));
    }
    let (least, most) = (limits::NOTICE_TIMEOUT_MIN, limits::NOTICE_TIMEOUT_MAX);
    if timeout < least || timeout > most {
        return Err(Error::invalid(format!(
            "who watches has {least:?} to {most:?} to acknowledge a notice, not {timeout:?}"
        )));
    }
    Ok(())
}

/// Whether a notice may be acknowledged with this.
///
/// # Errors
/// `InvalidArgument` with the bound.
pub fn check_reply(reply: &[u8]) -> Result<()> {
    match reply.len() <= limits::NOTICE_REPLY_LEN_MAX {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "a notice is acknowledged with at most {} bytes, these are {}",
            limits::NOTICE_REPLY_LEN_MAX,
            reply.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_notices_are_said() {
        let second = Duration::from_secs(1);
        assert!(check_notice(&[0; 64 << 10], second).is_ok());
        let long = check_notice(&[0; (64 << 10) + 1], second).unwrap_err();
        assert!(long.message().contains("65536") && long.message().contains("65537"), "{long}");
        for timeout in [Duration::ZERO, Duration::from_secs(31)] {
            let error = check_notice(b"", timeout).unwrap_err();
            assert!(error.message().contains("30s"), "{error}");
        }
        assert!(check_reply(&[0; 4096]).is_ok());
        assert!(check_reply(&[0; 4097]).unwrap_err().message().contains("4096"));
    }
}
