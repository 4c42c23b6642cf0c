//! Frames: one message each, with its length and checksum, and the cutting of a stream into them.
//!
//! ```text
//!   0        4          8       9
//!   | length | checksum | flags | epoch, incarnation, from | body |
//!              of length and of all from flags on
//! ```

use bytes::{Buf, BytesMut};
use tyr_types::{Bytes, Error, Result, limits};

use super::input::{Input, Malformed};
use super::output::{Outgoing, Output, SHARED_LEN_MIN};
use crate::message::Envelope;

/// Bytes of a frame's length and checksum.
pub(super) const PREFIX_LEN: usize = 8;

/// Room in the largest frame for what is around the payload.
const ROOM_LEN: usize = 1 << 20;

/// The most bytes that follow a frame's length and checksum: the largest answer to a read and what
/// is around it. A transaction with all the payload it may carry leaves room for 49 MiB of names,
/// reads and chain; one that is larger yet cannot be sent, and is refused where it is encoded.
pub const FRAME_LEN_MAX: usize = limits::READ_LEN_MAX as usize + ROOM_LEN;

const _: () = assert!(limits::TRANSACTION_INLINE_MAX + ROOM_LEN <= FRAME_LEN_MAX);

/// Bytes of a connection's read buffer: what is read at once, unless a larger frame has begun.
pub const READ_BUFFER_LEN: usize = 64 << 10;

/// The flags, of which there are none yet. A later version may give them a meaning.
const FLAGS: u8 = 0;

/// Puts `envelope` into `outgoing` as one frame. Its large payloads are shared, not copied.
///
/// # Errors
/// `InvalidArgument` when it takes more than [`FRAME_LEN_MAX`] bytes; `outgoing` is as before.
pub fn encode(envelope: &Envelope, outgoing: &mut Outgoing) -> Result<()> {
    let (mark, before) = (outgoing.mark(), outgoing.remaining());
    outgoing.raw(&[0; PREFIX_LEN]);
    outgoing.raw(&[FLAGS]);
    Output::put(envelope, outgoing);
    let len = outgoing.remaining() - before - PREFIX_LEN;
    if len > FRAME_LEN_MAX {
        outgoing.rewind(mark);
        return Err(Error::invalid(format!(
            "a message has at most {FRAME_LEN_MAX} bytes, this one would have {len}; split the \
             transaction or the read"
        )));
    }
    let prefix = (len as u32).to_le_bytes();
    let pieces = outgoing.pieces_since(mark, PREFIX_LEN);
    let checksum = pieces.fold(crc32c::crc32c(&prefix), crc32c::crc32c_append);
    let place = outgoing.raw_since(mark);
    place[..4].copy_from_slice(&prefix);
    place[4..PREFIX_LEN].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

/// The message in a whole frame. Its large payloads share the frame's memory.
///
/// # Errors
/// `Corrupt` when the bytes are no frame of this version, with what is wrong and where. The stream
/// that it came from cannot be trusted any more: close the connection.
pub fn decode(frame: &Bytes) -> Result<Envelope> {
    decode_from(frame, Some(frame))
}

/// Decodes `frame`, which is in `memory` if that may be shared.
fn decode_from(frame: &[u8], memory: Option<&Bytes>) -> Result<Envelope> {
    let Some((prefix, content)) = frame.split_first_chunk::<PREFIX_LEN>() else {
        return Err(Error::corrupt(format!(
            "not a frame: it has {} bytes, its length and checksum alone take {PREFIX_LEN}",
            frame.len()
        )));
    };
    let (len, checksum) = prefix_parts(prefix);
    if len as usize != content.len() {
        return Err(Error::corrupt(format!(
            "not a frame: it says that {len} bytes follow, there are {}",
            content.len()
        )));
    }
    if len as usize > FRAME_LEN_MAX {
        return Err(too_long(len));
    }
    if crc32c::crc32c_append(crc32c::crc32c(&prefix[..4]), content) != checksum {
        return Err(Error::corrupt(format!(
            "not a frame: its {len} bytes do not have its checksum; they changed on the way"
        )));
    }
    let input = Input::new(frame, memory, PREFIX_LEN);
    decode_content(input).map_err(|malformed| malformed.error("a message", frame.len()))
}

fn decode_content(mut input: Input<'_>) -> Result<Envelope, Malformed> {
    match input.byte()? {
        FLAGS => input.all(),
        _ => Err(input.malformed_last("flags that this version does not know")),
    }
}

fn prefix_parts(prefix: &[u8; PREFIX_LEN]) -> (u32, u32) {
    let [l0, l1, l2, l3, c0, c1, c2, c3] = *prefix;
    (u32::from_le_bytes([l0, l1, l2, l3]), u32::from_le_bytes([c0, c1, c2, c3]))
}

fn too_long(len: u32) -> Error {
    Error::corrupt(format!(
        "not a frame: it says that {len} bytes follow, at most {FRAME_LEN_MAX} may; the sender \
         speaks another protocol, or the stream lost its place"
    ))
}

/// Cuts a stream of bytes into frames, and decodes them.
///
/// Holds at most one frame that has not ended, and what was read with it. A frame's memory grows
/// with the bytes that came, not with the length that it announces.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: BytesMut,
}

impl Decoder {
    /// At the beginning of a stream, or just after its hello.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the next bytes of the stream go: read into its spare room, of which there is some.
    /// Whole frames in it are taken out by [`Decoder::message`] before more is read.
    pub fn buffer(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < READ_BUFFER_LEN / 4 {
            // At least as much again as there is: a long frame is moved a few times only.
            self.buffer.reserve(self.buffer.len().max(READ_BUFFER_LEN));
        }
        &mut self.buffer
    }

    /// Takes the next bytes of the stream in, by copying.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message; `None` until more of the stream is in. A large payload shares the memory
    /// that it came in; a frame that can have none leaves the buffer to what comes after it.
    ///
    /// # Errors
    /// `Corrupt` as for [`decode`], and when more than [`FRAME_LEN_MAX`] bytes are announced:
    /// close the connection.
    pub fn message(&mut self) -> Result<Option<Envelope>> {
        let Some(prefix) = self.buffer.first_chunk::<PREFIX_LEN>() else { return Ok(None) };
        let (len, _) = prefix_parts(prefix);
        if len as usize > FRAME_LEN_MAX {
            return Err(too_long(len));
        }
        let whole = PREFIX_LEN + len as usize;
        if self.buffer.len() < whole {
            return Ok(None);
        }
        if whole >= SHARED_LEN_MIN {
            return decode(&self.buffer.split_to(whole).freeze()).map(Some);
        }
        let envelope = decode_from(&self.buffer[..whole], None)?;
        self.buffer.advance(whole);
        Ok(Some(envelope))
    }

    /// Bytes that wait for the rest of their frame.
    pub fn pending(&self) -> usize {
        self.buffer.len()
    }
}
