//! A descriptor that is readable while something waits to be taken.
//!
//! It is made when somebody asks for it: who waits in [`take`](crate::Queue::take) pays no system
//! call for it.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};
use tyr::{Error, Result};

/// An eventfd, or none as long as nobody has asked.
#[derive(Debug, Default)]
pub struct Bell(Option<OwnedFd>);

impl Bell {
    /// The descriptor, which rings already if `is_ringing`.
    ///
    /// # Errors
    /// `Unavailable` when the process has no descriptor left.
    pub fn descriptor(&mut self, is_ringing: bool) -> Result<RawFd> {
        if let Some(made) = &self.0 {
            return Ok(made.as_raw_fd());
        }
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let made = eventfd(u32::from(is_ringing), flags);
        let made = made.map_err(|error| {
            Error::io("cannot make a descriptor for a queue of completions", error.into())
        })?;
        Ok(self.0.insert(made).as_raw_fd())
    }

    /// Makes it readable.
    pub fn ring(&self) {
        if let Some(made) = &self.0 {
            // It fails only when it has been rung 2^64 - 1 times: then it is readable anyway.
            let _ = write(made, &1_u64.to_ne_bytes());
        }
    }

    /// Makes it silent.
    pub fn silence(&self) {
        if let Some(made) = &self.0 {
            // It fails only when it is silent.
            let _ = read(made, &mut [0_u8; size_of::<u64>()]);
        }
    }
}
