//! What the targets share: a frame around any bytes, and what must hold of a decoded value.

use bytes::Bytes;
use tyr_types::Result;

/// The frame of `content`, with the length and checksum that it should have: without them the
/// fuzzer would only ever see the checksum refused.
pub fn sealed(content: &[u8]) -> Bytes {
    let len = (content.len() as u32).to_le_bytes();
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&len), content);
    [&len[..], &checksum.to_le_bytes(), content].concat().into()
}

/// Decodes `bytes` and writes what they say again: the same bytes, or where a blob's name was
/// spelt out twice, fewer, which then stay the same.
///
/// `again` decodes and encodes. Any error is welcome.
pub fn assert_settled(bytes: &Bytes, again: impl Fn(&Bytes) -> Result<Bytes>) {
    let Ok(written) = again(bytes) else { return };
    if written != *bytes {
        // What was written before there were feature levels is written with one.
        let is_first = bytes.first() == Some(&1) && written.first() == Some(&2);
        let is_short = written.len() <= bytes.len() || is_first;
        assert!(is_short, "the same takes more bytes than it came in");
        let twice = again(&written).expect("what was encoded here is read here");
        assert_eq!(twice, written, "what was encoded here changes when it is read");
    }
}
