//! Frames: one message each, with its length and checksum, and the cutting of a stream into them.
//!
//! ```text
//!   0        4          8      9       10
//!   | length | checksum | head | level | epoch, incarnation, from, about | message |
//!              of length and of all from byte 8 on
//! ```
//!
//! The head is read by every program, whatever the message is: byte 8 is its length from byte 9 on,
//! byte 9 the lowest feature level that reads the message. What a later program wrote is told from
//! what is damaged: who gets it, and cannot read it, drops it and says so to whoever waits for an
//! answer, since the head tells what it is about. Later levels may add to the head.

use bytes::{Buf, BytesMut};
use tyr_types::{Bytes, Error, Result, limits};

use super::encoded::Encoded;
use super::head::Head;
use super::input::{Input, Malformed};
use super::output::{Outgoing, Output, SHARED_LEN_MIN};
use crate::level::{LEVEL, LEVEL_FIRST, LEVEL_KNOWN};
use crate::message::{Envelope, Unread};

/// Bytes of a frame's length and checksum.
pub(super) const PREFIX_LEN: usize = 8;

/// Where the level is, and where what comes after it begins.
const LEVEL_AT: usize = PREFIX_LEN + 1;
const HEAD_AT: usize = LEVEL_AT + 1;

/// Room in the largest frame for what is around the payload.
const ROOM_LEN: usize = 1 << 20;

/// The most bytes that follow a frame's length and checksum: the largest answer to a read and what
/// is around it. A transaction with all the payload it may carry leaves room for 49 MiB of names,
/// reads and chain; one that is larger yet cannot be sent, and is refused where it is encoded.
pub const FRAME_LEN_MAX: usize = limits::READ_LEN_MAX as usize + ROOM_LEN;

const _: () = {
    assert!(limits::TRANSACTION_INLINE_MAX + ROOM_LEN <= FRAME_LEN_MAX);
    assert!(FRAME_LEN_MAX <= u32::MAX as usize, "a frame's length has 32 bits");
    assert!(HEAD_AT - LEVEL_AT + Head::LEN_MAX <= u8::MAX as usize, "a head's length has 8 bits");
    assert!(PREFIX_LEN < READ_BUFFER_LEN / 4, "a frame's length fits the room there always is");
};

/// Bytes of a connection's read buffer: what is read at once, unless a larger frame has begun.
pub const READ_BUFFER_LEN: usize = 64 << 10;

/// A frame that is whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// A message.
    Message(Envelope),
    /// A message that this program does not understand: one of a later release.
    Unread(Unread),
}

/// Puts `envelope` into `outgoing` as one frame. Its large payloads are shared, not copied.
///
/// # Errors
/// `InvalidArgument` when it takes more than [`FRAME_LEN_MAX`] bytes; `Unavailable` when it needs a
/// higher feature level than [its reader speaks](Outgoing::speaking). `outgoing` is as before.
pub fn encode(envelope: &Envelope, outgoing: &mut Outgoing) -> Result<()> {
    let (mark, before) = (outgoing.mark(), outgoing.remaining());
    outgoing.raw(&[0; HEAD_AT]);
    Output::put(&Head::new(envelope), outgoing);
    let head_len = outgoing.remaining() - before - LEVEL_AT;
    assert!(head_len <= u8::MAX as usize, "nobody would find the message after its head");
    let level = Output::put(&envelope.body, outgoing).max(LEVEL_FIRST);
    let len = outgoing.remaining() - before - PREFIX_LEN;
    if len > FRAME_LEN_MAX || level > outgoing.level() {
        let error = cannot_be_sent(len, level, outgoing.level());
        outgoing.rewind(mark);
        debug_assert_eq!(outgoing.remaining(), before, "what is refused leaves nothing behind");
        return Err(error);
    }
    outgoing.raw_since(mark)[PREFIX_LEN..HEAD_AT].copy_from_slice(&[head_len as u8, level]);
    let prefix = (len as u32).to_le_bytes();
    let pieces = outgoing.pieces_since(mark, PREFIX_LEN);
    let checksum = pieces.fold(crc32c::crc32c(&prefix), crc32c::crc32c_append);
    let place = outgoing.raw_since(mark);
    place[..4].copy_from_slice(&prefix);
    place[4..PREFIX_LEN].copy_from_slice(&checksum.to_le_bytes());
    debug_assert_eq!(place.first_chunk().map(prefix_parts), Some((len as u32, checksum)));
    debug_assert!((LEVEL_FIRST..=LEVEL_KNOWN).contains(&place[LEVEL_AT]), "{}", place[LEVEL_AT]);
    debug_assert_eq!(outgoing.remaining(), before + PREFIX_LEN + len, "one frame came to it");
    Ok(())
}

#[cold]
fn cannot_be_sent(len: usize, level: u8, spoken: u8) -> Error {
    match level > spoken {
        true => Error::unavailable(format!(
            "a message that needs feature level {level} is not sent to one that speaks {spoken}: \
             it is of an older release; upgrade it"
        )),
        false => Error::invalid(format!(
            "a message has at most {FRAME_LEN_MAX} bytes, this one would have {len}; split the \
             transaction or the read"
        )),
    }
}

/// The message in a whole frame. Its large payloads share the frame's memory.
///
/// # Errors
/// `Corrupt` when the bytes are no frame, with what is wrong and where. The stream that it came
/// from cannot be trusted any more: close the connection.
pub fn decode(frame: &Bytes) -> Result<Frame> {
    decode_from(frame, Some(frame), LEVEL)
}

/// As [`decode`], for a program that speaks feature levels up to this.
///
/// # Errors
/// As [`decode`].
pub fn decode_speaking(level: u8, frame: &Bytes) -> Result<Frame> {
    decode_from(frame, Some(frame), level)
}

/// Decodes `frame`, which is in `memory` if that may be shared.
fn decode_from(frame: &[u8], memory: Option<&Bytes>, spoken: u8) -> Result<Frame> {
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
    let decoded = decode_content(frame, memory, spoken);
    decoded.map_err(|malformed| malformed.error("a message", frame.len()))
}

fn decode_content(frame: &[u8], memory: Option<&Bytes>, spoken: u8) -> Result<Frame, Malformed> {
    let mut prefix = Input::new(frame, None, PREFIX_LEN, LEVEL_FIRST);
    let (head_len, level) = (usize::from(prefix.byte()?), prefix.byte()?);
    let message_at = LEVEL_AT + head_len;
    let whole_head =
        frame.get(..message_at).filter(|_| message_at >= HEAD_AT && level >= LEVEL_FIRST);
    let whole_head = whole_head.ok_or_else(|| prefix.malformed("no head fits these two bytes"))?;
    let mut input = Input::new(whole_head, None, HEAD_AT, LEVEL_FIRST);
    let head = Head::decode(&mut input)?;
    if level > spoken {
        return head.unread(frame, message_at, level, "a later feature level").map(Frame::Unread);
    }
    if !input.is_at_end() {
        return Err(input.malformed("more bytes after the head's end"));
    }
    match Input::new(frame, memory, message_at, level).all(LEVEL_FIRST) {
        Ok(body) if head.is_of(&body) => Ok(Frame::Message(head.envelope(body))),
        Ok(_) => Err(input.malformed("the head before is of another message")),
        Err(malformed) if malformed.is_unknown() => {
            head.unread(frame, message_at, level, malformed.what()).map(Frame::Unread)
        }
        Err(malformed) => Err(malformed),
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
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    /// The highest feature level that is understood.
    spoken: u8,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::speaking(LEVEL)
    }
}

impl Decoder {
    /// At the beginning of a stream, or just after its hello.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, of a program that speaks feature levels up to this.
    pub fn speaking(level: u8) -> Self {
        debug_assert!(level <= LEVEL_KNOWN, "this program cannot read what is of level {level}");
        Self { buffer: BytesMut::new(), spoken: level }
    }

    /// The same again, without its memory.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self::speaking(self.spoken)
    }

    /// Where the next bytes of the stream go: read into its spare room, of which there is some.
    /// Whole frames in it are taken out by [`Decoder::frame`] before more is read.
    pub fn buffer(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < READ_BUFFER_LEN / 4 {
            // At least as much again as there is: a long frame is moved a few times only.
            self.buffer.reserve(self.buffer.len().max(READ_BUFFER_LEN));
        }
        // A read into no room reads nothing, which looks like the stream's end.
        debug_assert!(self.buffer.capacity() > self.buffer.len(), "there is room to read into");
        &mut self.buffer
    }

    /// Takes the next bytes of the stream in, by copying.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame; `None` until more of the stream is in. A large payload shares the memory
    /// that it came in; a frame that can have none leaves the buffer to what comes after it.
    ///
    /// # Errors
    /// `Corrupt` as for [`decode`], and when more than [`FRAME_LEN_MAX`] bytes are announced:
    /// close the connection.
    pub fn frame(&mut self) -> Result<Option<Frame>> {
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
            return decode_speaking(self.spoken, &self.buffer.split_to(whole).freeze()).map(Some);
        }
        let frame = decode_from(&self.buffer[..whole], None, self.spoken)?;
        self.buffer.advance(whole);
        Ok(Some(frame))
    }

    /// Bytes that wait for the rest of their frame.
    pub fn pending(&self) -> usize {
        self.buffer.len()
    }
}
