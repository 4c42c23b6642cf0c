//! Any stream, in pieces of any size: a hello and frames, or an error. The pieces do not matter.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use tyr_protocol::wire::{Decoder, Frame, Hello};

/// What a stream was read as: a hello, frames, and whether it ended with an error.
type Seen = (Option<Hello>, Vec<Frame>, bool);

fuzz_target!(|input: &[u8]| {
    let Some((piece, stream)) = input.split_first() else { return };
    let stream = &mended(stream)[..];
    let whole = read(stream, stream.len().max(1));
    let in_pieces = read(stream, usize::from(*piece) + 1);
    // NaNs differ from themselves, their text does not.
    assert_eq!(format!("{whole:?}"), format!("{in_pieces:?}"));
});

/// The stream with the checksums that its hello and its frames should have, up to the first that
/// the fuzzer left open by a checksum of zeros: nobody comes upon a right one by chance.
fn mended(stream: &[u8]) -> Vec<u8> {
    let mut mended = stream.to_vec();
    let Some(prefix) = stream.first_chunk::<16>() else { return mended };
    let mut at = 16 + usize::from(u16::from_le_bytes([prefix[10], prefix[11]]));
    let Some(content) = stream.get(16..at) else { return mended };
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&prefix[..12]), content);
    mended[12..16].copy_from_slice(&checksum.to_le_bytes());
    while let Some(prefix) = stream.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let [l0, l1, l2, l3, checksum @ ..] = *prefix;
        let start = at + 8;
        let Some(end) = start.checked_add(u32::from_le_bytes([l0, l1, l2, l3]) as usize) else {
            break;
        };
        let Some(content) = stream.get(start..end) else { break };
        if checksum == [0; 4] {
            break;
        }
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&prefix[..4]), content);
        mended[at + 4..start].copy_from_slice(&checksum.to_le_bytes());
        at = end;
    }
    mended
}

fn read(stream: &[u8], piece: usize) -> Seen {
    let mut pieces = stream.chunks(piece);
    let mut head = BytesMut::new();
    let hello = loop {
        match Hello::take(&mut head) {
            Ok(Some(hello)) => break hello,
            Ok(None) => {}
            Err(_) => return (None, Vec::new(), true),
        }
        match pieces.next() {
            Some(piece) => head.extend_from_slice(piece),
            None => return (None, Vec::new(), false),
        }
    };
    let mut decoder = Decoder::new();
    decoder.feed(&head);
    let mut messages = Vec::new();
    loop {
        match decoder.frame() {
            Ok(Some(message)) => messages.push(message),
            Ok(None) => match pieces.next() {
                Some(piece) => {
                    let buffer = decoder.buffer();
                    assert!(buffer.capacity() > buffer.len(), "there is room to read into");
                    buffer.extend_from_slice(piece);
                }
                None => return (Some(hello), messages, false),
            },
            Err(_) => return (Some(hello), messages, true),
        }
        assert!(decoder.pending() <= stream.len());
    }
}
