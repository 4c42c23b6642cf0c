//! Numbers at places of stored bytes: little-endian, as the store's arithmetic has them.

use tyr::{Timestamp, limits};

/// The number at `at`, of bytes that are long enough.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("the caller has looked at the length"))
}

/// The same of four bytes.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("the caller has looked at the length"))
}

/// The stamp at `at`; `None` where what is there is none.
pub fn stamp_at(bytes: &[u8], at: usize) -> Option<Timestamp> {
    let stamp: &[u8; limits::STAMP_LEN] = bytes[at..].first_chunk()?;
    Timestamp::from_stamp(stamp)
}
