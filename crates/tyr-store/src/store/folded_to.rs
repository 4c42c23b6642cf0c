//! How late what is in the base may be.
//!
//! A fold's moment is on disk before the fold changes anything, since it may end in the middle. So
//! also after a restart it is known up to when nothing in the base has changed since, without a
//! look at what it holds. The file lies among the [promises](super::promises): a program that does
//! not know of it removes it from there, and folds as it likes. Where there is none nothing is
//! known until a fold has ended.
//!
//! ```text
//!   promises/folded-to    "TYRF" 01 epoch:u32 clock:u64 node:u16 crc32c:u32
//! ```

use std::io;

use parking_lot::Mutex;
use tyr_types::{Epoch, Timestamp};

use super::promises::FOLDER;
use crate::disk::{Disk, OpenMode};

/// The file's name in the folder of promises.
pub(super) const NAME: &str = "folded-to";
const MAGIC: &[u8; 5] = b"TYRF\x01";
const BODY_LEN: usize = MAGIC.len() + 4 + 8 + 2;

/// No version in the base is above this; `Timestamp::MAX` while that is not known.
#[derive(Debug)]
pub(super) struct FoldedTo(Mutex<Timestamp>);

impl Default for FoldedTo {
    fn default() -> Self {
        Self(Mutex::new(Timestamp::MAX))
    }
}

impl FoldedTo {
    /// What is known.
    pub fn get(&self) -> Timestamp {
        *self.0.lock()
    }

    /// What the file says is known again.
    pub fn load(&self, disk: &dyn Disk) {
        *self.0.lock() = read(disk).unwrap_or(Timestamp::MAX);
    }

    /// A fold begins.
    pub fn begin(&self, at: Timestamp) {
        let mut folded_to = self.0.lock();
        *folded_to = at.max(*folded_to);
    }

    /// It has ended: what one before it may have left in the base it had in its own log, too.
    pub fn end(&self, at: Timestamp) {
        *self.0.lock() = at;
    }
}

fn path(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

fn encode(at: Timestamp) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&at.epoch.0.to_le_bytes());
    bytes.extend_from_slice(&at.clock.to_le_bytes());
    bytes.extend_from_slice(&at.node.to_le_bytes());
    debug_assert_eq!(bytes.len(), BODY_LEN, "a file of another length is not read");
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<Timestamp> {
    let (body, checksum) = bytes.split_last_chunk::<4>()?;
    let rest = body.strip_prefix(MAGIC)?;
    let (epoch, rest) = rest.split_first_chunk()?;
    let (clock, node) = rest.split_first_chunk()?;
    let is_sound = crc32c::crc32c(body) == u32::from_le_bytes(*checksum);
    is_sound.then_some(Timestamp {
        epoch: Epoch(u32::from_le_bytes(*epoch)),
        clock: u64::from_le_bytes(*clock),
        node: u16::from_le_bytes(node.try_into().ok()?),
    })
}

fn read(disk: &dyn Disk) -> Option<Timestamp> {
    let file = disk.open(&path(NAME), OpenMode::Existing).ok()?;
    // One byte more than there should be, so that a longer file is noticed.
    let mut bytes = [0; BODY_LEN + 4 + 1];
    let len = file.read_at(&mut bytes, 0).ok()?;
    decode(&bytes[..len])
}

/// Writes the file; it is durable when its folder is synced.
pub(super) fn write(disk: &dyn Disk, at: Timestamp) -> io::Result<()> {
    let new = path("folded-to.new");
    let file = disk.open(&new, OpenMode::CreateOrOpen)?;
    file.set_len(0)?; // One that was not finished may be there.
    file.write_at(&encode(at), 0)?;
    file.sync()?;
    disk.rename(&new, &path(NAME))
}
