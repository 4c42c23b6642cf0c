//! How much room there is, as of some seconds ago: a store counts all that it has for that.

use std::time::{Duration, Instant};

use fuser::ReplyStatfs;
use parking_lot::Mutex;
use tyr::DiskSpace;
use tyr::blocking::Tyr;

use crate::error::Result;
use crate::layout::name::NAME_LEN_MAX;

/// How long what was told of the room that there is may be gone by, at least.
const LIFETIME: Duration = Duration::from_secs(5);

/// The part of the time, one in so many, that counting it may take.
const SHARE: u32 = 20;

/// Bytes of what the kernel counts room in.
const BLOCK_LEN: u32 = 4_096;

/// What was counted last, and until when that is gone by.
#[derive(Default)]
pub struct Space(Mutex<Option<(DiskSpace, Instant)>>);

impl Space {
    /// How much room the disks of a store have.
    pub fn of(&self, store: &Tyr) -> Result<DiskSpace> {
        let mut space = self.0.lock();
        if let Some((known, until)) = *space
            && Instant::now() < until
        {
            return Ok(known);
        }
        let begun = Instant::now();
        let found = store.usage()?.disk();
        let lifetime = LIFETIME.max(begun.elapsed() * SHARE);
        *space = Some((found, Instant::now() + lifetime));
        Ok(found)
    }
}

/// Tells the kernel of so many bytes in all, and free ones among them.
pub fn tell(reply: ReplyStatfs, size_bytes: u64, free_bytes: u64) {
    let [all, free] = [size_bytes, free_bytes].map(|bytes| bytes / u64::from(BLOCK_LEN));
    let names = u32::try_from(NAME_LEN_MAX).expect("255");
    reply.statfs(all, free, free, 0, 0, BLOCK_LEN, names, BLOCK_LEN);
}
