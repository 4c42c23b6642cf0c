//! A frame: 4096 bytes of an extent file, with the checksum of where it lies and what it holds.
//!
//! ```text
//! 0        4                                                          4096
//! | crc32c | payload ................................................... |
//! ```
//!
//! The checksum begins with the file's number and the frame's, so that a frame that the disk put
//! elsewhere, or an older one that was never overwritten, is noticed like a flipped bit. A frame of
//! zeros never verifies: it is what a hole reads as.

use tyr_types::limits;

/// Bytes of a frame.
pub const FRAME_LEN: usize = 4096;
/// Bytes of payload in a frame.
pub const FRAME_PAYLOAD: usize = FRAME_LEN - CHECKSUM_LEN;

/// Bytes of the checksum before it.
pub const CHECKSUM_LEN: usize = 4;

const _: () = {
    assert!(CHECKSUM_LEN == size_of::<u32>(), "a checksum is a crc32c");
    // So no place in an extent is beyond 32 bits, also with the checksums between.
    assert!(limits::EXTENT_LEN_MAX as usize / FRAME_PAYLOAD < u32::MAX as usize / FRAME_LEN);
};

/// Where a frame lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FramePlace {
    /// The file's number.
    pub file: u32,
    /// The frame's number in it; frame 0 is the file's header.
    pub frame: u64,
}

impl FramePlace {
    /// The next frame of the file.
    #[must_use]
    pub fn next(self) -> Self {
        Self { frame: self.frame + 1, ..self }
    }

    /// The checksum of a frame here with this payload, all [`FRAME_PAYLOAD`] bytes of it.
    pub fn checksum(self, payload: &[u8]) -> [u8; CHECKSUM_LEN] {
        debug_assert_eq!(payload.len(), FRAME_PAYLOAD, "what is behind it counts, too: zeros");
        let mut place = [0; 12];
        place[..4].copy_from_slice(&self.file.to_le_bytes());
        place[4..].copy_from_slice(&self.frame.to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&place), payload);
        // Zero is left to holes.
        checksum.max(1).to_le_bytes()
    }
}

/// Frames that hold `len` bytes of payload.
pub fn frames_for(len: usize) -> usize {
    len.div_ceil(FRAME_PAYLOAD)
}

/// Fills a frame with at most [`FRAME_PAYLOAD`] bytes; the rest is zeros.
pub fn seal(frame: &mut [u8], place: FramePlace, payload: &[u8]) {
    debug_assert_eq!(frame.len(), FRAME_LEN);
    debug_assert!(payload.len() <= FRAME_PAYLOAD);
    let (head, body) = frame.split_at_mut(CHECKSUM_LEN);
    body[..payload.len()].copy_from_slice(payload);
    body[payload.len()..].fill(0);
    head.copy_from_slice(&place.checksum(body));
}

/// The payload of a frame, if it is the one that was written at this place.
pub fn open(frame: &[u8], place: FramePlace) -> Option<&[u8]> {
    debug_assert_eq!(frame.len(), FRAME_LEN);
    let (head, body) = frame.split_at(CHECKSUM_LEN);
    (head == place.checksum(body)).then_some(body)
}
