//! What goes out: bytes for a connection or a log, batched, with large payloads by reference.
//!
//! ```text
//!   bytes   | frame 1 …… | frame 2 ………│……… | frame 3 …… |
//!   shared                            └ a payload of 1 MiB, never copied
//! ```

use std::collections::{HashMap, VecDeque};
use std::io::IoSlice;

use bytes::Buf;
use foldhash::fast::FixedState;
use smallvec::SmallVec;
use tyr_types::{BlobName, Bytes};

use super::encoded::Encoded;
use crate::level::{BEFORE_LEVELS, LEVEL};

/// A payload of at least this many bytes is not copied, neither on its way out nor on its way in.
///
/// Below it a copy is cheaper than one more piece to write, and than holding on to all that came
/// with it, a frame or a read buffer of [`super::READ_BUFFER_LEN`], for as long as it lives.
pub const SHARED_LEN_MIN: usize = 16 << 10;

/// Memory kept for the next batch when one is written.
const KEPT_LEN_MAX: usize = 256 << 10;

const _: () = {
    assert!(SHARED_LEN_MIN > 0, "an empty piece would never be written, nor what is after it");
    assert!(SHARED_LEN_MIN < super::READ_BUFFER_LEN, "else each would hold on to more than itself");
    assert!(KEPT_LEN_MAX >= super::READ_BUFFER_LEN, "what is read at once is answered at once");
};

/// Encoded frames that wait to be written, in order.
///
/// A [`Buf`]: a connection writes from it, vectored where it can, and advances it. It is as large
/// as what was put in and not yet taken out; who fills it looks at [`Buf::remaining`] first.
#[derive(Debug)]
pub struct Outgoing {
    /// The highest level that whoever reads it speaks.
    level: u8,
    bytes: Vec<u8>,
    /// Where in `bytes` a payload belongs, in order. None is empty.
    shared: VecDeque<(usize, Bytes)>,
    /// Up to where `bytes` is written.
    written: usize,
    /// Up to where the first of `shared` is written.
    shared_written: usize,
    /// Bytes in `shared`.
    shared_len: usize,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self::speaking(LEVEL)
    }
}

impl Outgoing {
    /// With nothing to write, for a reader that speaks this program's [`LEVEL`].
    pub fn new() -> Self {
        Self::default()
    }

    /// With nothing to write, for a reader that speaks no higher feature level than this: no
    /// message is taken that it could not read.
    pub fn speaking(level: u8) -> Self {
        Self {
            level,
            bytes: Vec::new(),
            shared: VecDeque::new(),
            written: 0,
            shared_written: 0,
            shared_len: 0,
        }
    }

    /// The highest level that the reader speaks.
    pub(super) fn level(&self) -> u8 {
        self.level
    }

    /// All that is left to write as one piece, copied if it is several.
    pub fn take_bytes(&mut self) -> Bytes {
        let bytes = self.copy_to_bytes(self.remaining());
        debug_assert!(self.shared.is_empty() && self.bytes.is_empty(), "all of it was taken");
        bytes
    }

    /// A place to come back to: all that was put in so far.
    pub(super) fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), shared: self.shared.len() }
    }

    /// Takes back what was put in since `mark`; nothing of it may be written.
    pub(super) fn rewind(&mut self, mark: Mark) {
        assert!(self.written <= mark.bytes, "half a frame would be on the connection");
        self.bytes.truncate(mark.bytes);
        let dropped = self.shared.drain(mark.shared..);
        self.shared_len -= dropped.map(|(_, payload)| payload.len()).sum::<usize>();
        self.invariants();
    }

    /// Checks what must hold between steps, where debug assertions are on.
    fn invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        assert!(self.written <= self.bytes.len(), "only what is there was written");
        assert!(self.shared.iter().is_sorted_by_key(|(at, _)| *at), "payloads go out in order");
        assert!(
            self.shared.iter().all(|(_, it)| it.len() >= SHARED_LEN_MIN),
            "small ones are copied"
        );
        let len: usize = self.shared.iter().map(|(_, payload)| payload.len()).sum();
        assert_eq!(len, self.shared_len, "what is left is counted");
        match self.shared.front() {
            Some((at, payload)) => {
                assert!(*at >= self.written, "a payload is written before what comes after it");
                assert!(self.shared_written < payload.len(), "one that is written is gone");
                let is_begun = self.shared_written > 0;
                assert!(!is_begun || *at == self.written, "it begins where its bytes are written");
            }
            None => assert_eq!(self.shared_written, 0, "nothing of no payload is written"),
        }
        let last = self.shared.back().map_or(0, |(at, _)| *at);
        assert!(last <= self.bytes.len(), "a payload stands among the bytes or at their end");
    }

    /// Puts plain bytes in.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The plain bytes put in since `mark`, without the payloads between them.
    pub(super) fn raw_since(&mut self, mark: Mark) -> &mut [u8] {
        &mut self.bytes[mark.bytes..]
    }

    /// The pieces put in since `mark`, from plain byte `skip` of them on.
    pub(super) fn pieces_since(&self, mark: Mark, skip: usize) -> impl Iterator<Item = &[u8]> {
        let mut at = mark.bytes + skip;
        let mut shared = self.shared.range(mark.shared..);
        let mut payload = None;
        let mut is_over = false;
        std::iter::from_fn(move || {
            if let Some(payload) = payload.take() {
                return Some(payload);
            }
            if is_over {
                return None;
            }
            let until = match shared.next() {
                Some((until, bytes)) => {
                    payload = Some(&bytes[..]);
                    *until
                }
                None => {
                    is_over = true;
                    self.bytes.len()
                }
            };
            let piece = &self.bytes[at..until];
            at = until;
            Some(piece)
        })
    }

    fn payload(&mut self, payload: &Bytes) {
        if payload.len() < SHARED_LEN_MIN {
            self.raw(payload);
        } else {
            let at = self.bytes.len();
            debug_assert!(self.shared.back().is_none_or(|(last, _)| *last <= at), "in order");
            self.shared_len += payload.len();
            self.shared.push_back((at, payload.clone()));
        }
    }
}

/// A place in what goes out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    bytes: usize,
    shared: usize,
}

impl Buf for Outgoing {
    fn remaining(&self) -> usize {
        self.bytes.len() - self.written + self.shared_len - self.shared_written
    }

    fn chunk(&self) -> &[u8] {
        match self.shared.front() {
            Some((at, payload)) if *at == self.written => &payload[self.shared_written..],
            Some((at, _)) => &self.bytes[self.written..*at],
            None => &self.bytes[self.written..],
        }
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let (mut at, mut skipped, mut count) = (self.written, self.shared_written, 0);
        let mut shared = self.shared.iter();
        while count < slices.len() {
            let next = shared.next();
            let until = next.map_or(self.bytes.len(), |(until, _)| *until);
            let plain = &self.bytes[at..until];
            at = until;
            let payload = next.map(|(_, payload)| &payload[std::mem::take(&mut skipped)..]);
            for piece in [Some(plain), payload].into_iter().flatten() {
                if !piece.is_empty() && count < slices.len() {
                    slices[count] = IoSlice::new(piece);
                    count += 1;
                }
            }
            if next.is_none() {
                break;
            }
        }
        // A connection that is told of nothing takes itself for done.
        let is_stuck = count == 0 && !slices.is_empty() && self.has_remaining();
        debug_assert!(!is_stuck, "what is left to write is shown");
        count
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.remaining(), "only what is there was written");
        while count > 0 {
            let len = self.chunk().len().min(count);
            debug_assert!(len > 0, "what is left is in some chunk, or this would never end");
            count -= len;
            match self.shared.front() {
                Some((at, payload)) if *at == self.written => {
                    self.shared_written += len;
                    if self.shared_written == payload.len() {
                        self.shared_len -= payload.len();
                        self.shared_written = 0;
                        self.shared.pop_front();
                    }
                }
                Some(_) | None => self.written += len,
            }
        }
        if !self.has_remaining() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_LEN_MAX);
            self.written = 0;
        }
        self.invariants();
    }
}

/// One message on its way into an [`Outgoing`].
pub(crate) struct Output<'a> {
    to: &'a mut Outgoing,
    names: Names<'a>,
    /// The lowest level that reads what was put in so far.
    level: u8,
    /// Whether it stays, in a log or a map, rather than goes to somebody whose level is known.
    is_lasting: bool,
}

impl<'a> Output<'a> {
    /// Puts a whole message, or whatever else stands alone, into `to`; answers the lowest feature
    /// level that reads it.
    pub fn put<T: Encoded>(value: &'a T, to: &'a mut Outgoing) -> u8 {
        Self::put_all(value, to, false)
    }

    /// The same of what stays, and may be read by an older program: what [merely
    /// tells](Self::tells) is left out.
    pub fn put_lasting<T: Encoded>(value: &'a T, to: &'a mut Outgoing) -> u8 {
        Self::put_all(value, to, true)
    }

    fn put_all<T: Encoded>(value: &'a T, to: &'a mut Outgoing, is_lasting: bool) -> u8 {
        let mut output = Self { to, names: Names::default(), level: BEFORE_LEVELS, is_lasting };
        let before = output.len();
        value.encode(&mut output);
        debug_assert!(output.len() - before >= T::LEN_MIN, "no encoding is shorter than it says");
        output.level
    }

    /// Bytes that wait to be written, those of other messages among them.
    #[inline]
    pub fn len(&self) -> usize {
        self.to.remaining()
    }

    /// What is put in here is read by programs of this level and later ones only.
    #[inline]
    pub fn needs(&mut self, level: u8) {
        self.level = self.level.max(level);
    }

    /// Whether to put in what came with this level and is only told: whoever does not know it goes
    /// without, and what else is in the message reaches them all the same.
    #[inline]
    pub fn tells(&mut self, level: u8) -> bool {
        let tells = !self.is_lasting && level <= self.to.level;
        if tells {
            self.needs(level);
        }
        tells
    }

    /// Adds a byte.
    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.to.bytes.push(byte);
    }

    /// Adds bytes as they are.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.to.raw(bytes);
    }

    /// Adds a number: seven bits a byte, low bits first, the high bit set on all but the last.
    #[inline]
    pub fn varint(&mut self, mut value: u64) {
        if value < 0x80 {
            self.to.bytes.push(value as u8);
            return;
        }
        let mut bytes = [0; 10];
        let mut len = 0;
        while value >= 0x80 {
            bytes[len] = value as u8 | 0x80;
            value >>= 7;
            len += 1;
        }
        bytes[len] = value as u8;
        debug_assert_ne!(bytes[len], 0, "a number in more bytes than it takes is refused");
        self.to.raw(&bytes[..=len]);
    }

    /// Adds a payload, by reference when it is large.
    #[inline]
    pub fn payload(&mut self, payload: &Bytes) {
        self.to.payload(payload);
    }

    /// Adds a blob's name that was not named before, spelt out.
    pub fn new_name(&mut self, name: &'a BlobName) {
        self.varint(u64::from(name.keyspace.0));
        debug_assert!(!name.key.as_bytes().is_empty(), "a name without a key is refused");
        self.varint(name.key.as_bytes().len() as u64);
        self.raw(name.key.as_bytes());
        self.names.list.push(name);
    }

    /// Adds a blob's name: 0 and the name, or the place of one named before, from 1.
    pub fn name(&mut self, name: &'a BlobName) {
        match self.names.place(name) {
            Some(place) => self.varint(place as u64 + 1),
            None => {
                self.byte(0);
                self.new_name(name);
            }
        }
    }
}

/// The blobs that a message has named so far.
#[derive(Default)]
struct Names<'a> {
    list: SmallVec<[&'a BlobName; 8]>,
    /// After the one found last: names come in the same order again and again.
    next: usize,
    /// The places of the first so many, when there are too many to look through.
    index: HashMap<&'a BlobName, usize, FixedState>,
}

impl<'a> Names<'a> {
    /// Up to here looking through all is quicker than hashing.
    const FEW: usize = 16;

    fn place(&mut self, name: &'a BlobName) -> Option<usize> {
        let guesses = [self.next, self.next.wrapping_sub(1)].into_iter();
        let guess = guesses.into_iter().find(|place| self.list.get(*place) == Some(&name));
        let place = match guess {
            Some(place) => place,
            None if self.list.len() <= Self::FEW => {
                self.list.iter().position(|named| *named == name)?
            }
            None => {
                for place in self.index.len()..self.list.len() {
                    self.index.insert(self.list[place], place);
                }
                *self.index.get(name)?
            }
        };
        // Whoever reads it counts the names as they come, and would take another blob's.
        debug_assert_eq!(self.list[place], name, "a place leads to its name");
        debug_assert!(self.index.len() <= self.list.len(), "each name is indexed once");
        self.next = (place + 1) % self.list.len();
        Some(place)
    }
}
