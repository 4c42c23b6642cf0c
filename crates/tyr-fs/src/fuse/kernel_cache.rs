//! How the kernel is told to drop what it keeps of files.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use fuser::{INodeNo, Notifier};

use super::known::KernelCache;

/// `FUSE_NOTIFY_PRUNE` of `linux/fuse.h`, protocol 7.45 (Linux 6.18): the kernel drops the files of
/// these numbers, as far as nobody uses them.
const NOTIFY_PRUNE: i32 = 9;

/// Bytes of a `fuse_out_header`, and of a `fuse_notify_prune_out`.
const HEADER_LEN: usize = 16;
const PRUNE_LEN: usize = 16;

/// What the kernel keeps of one mount.
pub struct MountCache {
    notifier: Notifier,
    /// Where the kernel is written to; `None` when it does not know the message.
    device: Option<OwnedFd>,
}

impl MountCache {
    /// Of a session, with a descriptor of its own for messages that the library does not have.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub fn new(notifier: Notifier, device: impl AsFd) -> io::Result<Self> {
        Ok(Self { notifier, device: Some(device.as_fd().try_clone_to_owned()?) })
    }
}

impl KernelCache for MountCache {
    fn drop_unused(&mut self, files: &[u64]) -> bool {
        let Some(device) = &self.device else { return false };
        let is_taken = rustix::io::write(device, &prune(files)).is_ok();
        if !is_taken {
            // An older kernel, or the mount is over.
            self.device = None;
        }
        is_taken
    }

    fn drop_name(&mut self, parent: INodeNo, name: &OsStr) {
        // The kernel may have dropped it before.
        let _ = self.notifier.inval_entry(parent, name);
    }
}

/// The message, which goes in one write, in the byte order of the machine:
/// `len:u32 code:i32 0:u64 count:u32 0:u32 0:u64 number:u64*`.
fn prune(files: &[u64]) -> Vec<u8> {
    let len = HEADER_LEN + PRUNE_LEN + size_of_val(files);
    let in_u32 = |number: usize| u32::try_from(number).expect("few files go at a time");
    let mut message = Vec::with_capacity(len);
    message.extend(in_u32(len).to_ne_bytes());
    message.extend(NOTIFY_PRUNE.to_ne_bytes());
    message.extend(0_u64.to_ne_bytes());
    message.extend(in_u32(files.len()).to_ne_bytes());
    message.extend([0; 12]);
    message.extend(files.iter().flat_map(|number| number.to_ne_bytes()));
    debug_assert_eq!(message.len(), len, "the kernel refuses any other length");
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_length_its_code_and_the_numbers() {
        let message = prune(&[7, 9]);
        let word = |at: usize| u64::from_ne_bytes(message[at..at + 8].try_into().unwrap());
        let half = |at: usize| u32::from_ne_bytes(message[at..at + 4].try_into().unwrap());
        assert_eq!((message.len(), half(0), half(4), half(16)), (48, 48, 9, 2));
        assert_eq!([word(8), word(24), word(32), word(40)], [0, 0, 7, 9]);
    }
}
