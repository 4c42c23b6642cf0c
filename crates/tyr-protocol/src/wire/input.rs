//! What comes in: bytes from anyone, read once from front to back.
//!
//! Total: every read answers a value or says what is wrong at which byte. Nothing is reserved on
//! the word of a count alone: it must fit into the bytes that are left.

use smallvec::SmallVec;
use tyr_types::{BlobName, Bytes, Error, Key, KeyspaceId};

use super::encoded::Encoded;
use super::output::SHARED_LEN_MIN;
use crate::level::BEFORE_LEVELS;

/// Why bytes are not what they should be: what, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    at: usize,
    what: &'static str,
    /// Whether it may well be something, of which this program knows nothing.
    is_unknown: bool,
}

impl Malformed {
    /// Whether a later program may have written it.
    pub fn is_unknown(self) -> bool {
        self.is_unknown
    }

    /// What is wrong.
    pub fn what(self) -> &'static str {
        self.what
    }

    /// The error for bytes that should have been `kind` and have `len` bytes.
    pub fn error(self, kind: &str, len: usize) -> Error {
        Error::corrupt(format!("not {kind}: byte {} of {len}: {}", self.at, self.what))
    }
}

/// Bytes that are being read.
pub(crate) struct Input<'a> {
    whole: &'a [u8],
    rest: &'a [u8],
    /// What they lie in, if payloads may hold on to it.
    memory: Option<&'a Bytes>,
    /// The blobs named so far: each is spelt out once, and referred to by its place.
    names: SmallVec<[BlobName; 8]>,
    /// The level that the bytes say they need, and the one that what was read so far needs.
    level: u8,
    needed: u8,
    /// Whether it comes from a log or a map, not from a connection.
    is_lasting: bool,
}

impl<'a> Input<'a> {
    /// Reads `whole`, which lies in `memory`, from byte `at` on; it is written in a level as low
    /// as `level`.
    pub fn new(whole: &'a [u8], memory: Option<&'a Bytes>, at: usize, level: u8) -> Self {
        let is_within = |memory: &Bytes| {
            let (outer, inner) = (memory.as_ptr_range(), whole.as_ptr_range());
            outer.start <= inner.start && inner.end <= outer.end
        };
        debug_assert!(memory.is_none_or(is_within), "a payload is a slice of the memory");
        let rest = &whole[at.min(whole.len())..];
        let names = SmallVec::new();
        Self { whole, rest, memory, names, level, needed: BEFORE_LEVELS, is_lasting: false }
    }

    /// Reads a record or a map, which `bytes` hold from byte `at` on.
    pub fn of_lasting(bytes: &'a Bytes, at: usize, level: u8) -> Self {
        Self { is_lasting: true, ..Self::new(bytes, Some(bytes), at, level) }
    }

    /// The value that is all of the bytes left. What holds nothing of its level, or of one between
    /// it and `level_min`, would have been written in a lower one.
    pub fn all<T: Encoded>(mut self, level_min: u8) -> Result<T, Malformed> {
        let before = self.rest.len();
        let value = T::decode(&mut self)?;
        // Counts are held against this: were it too high, what is whole would be refused.
        debug_assert!(before - self.rest.len() >= T::LEN_MIN, "no encoding is shorter");
        debug_assert!(self.needed <= self.level, "what needs more than is said was refused");
        match self.rest.is_empty() {
            true if self.needed.max(level_min) == self.level => Ok(value),
            true => Err(self.malformed("it is written in a higher level than it needs")),
            false => Err(self.malformed("more bytes after its end")),
        }
    }

    /// Whether nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Whether the bytes are written in this level or a later one: then what it brought is there.
    #[inline]
    pub fn has(&mut self, level: u8) -> bool {
        let has = self.level >= level;
        if has {
            self.needed = self.needed.max(level);
        }
        has
    }

    /// Whether here is what came with this level and is only told.
    #[inline]
    pub fn is_told(&mut self, level: u8) -> bool {
        !self.is_lasting && self.has(level)
    }

    /// What was just read is of this level.
    ///
    /// # Errors
    /// When the bytes say that they are of a lower one.
    pub fn needs(&mut self, level: u8) -> Result<(), Malformed> {
        match self.has(level) {
            true => Ok(()),
            false => Err(self.malformed_last("something of a higher level than is said")),
        }
    }

    /// That something is wrong with what comes next, or with what ended here.
    #[cold]
    pub fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { at: self.whole.len() - self.rest.len(), what, is_unknown: false }
    }

    /// That the last byte read is wrong.
    #[cold]
    pub fn malformed_last(&self, what: &'static str) -> Malformed {
        let at = (self.whole.len() - self.rest.len()).saturating_sub(1);
        Malformed { at, what, is_unknown: false }
    }

    /// That the last byte read stands for something that is not known here.
    #[cold]
    pub fn unknown_last(&self, what: &'static str) -> Malformed {
        Malformed { is_unknown: true, ..self.malformed_last(what) }
    }

    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.malformed("it ends too early")),
        }
    }

    /// The next bytes, as many as the array has.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        match self.rest.split_first_chunk() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(*taken)
            }
            None => Err(self.malformed("it ends too early")),
        }
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// The next number: seven bits a byte, low bits first, in as few bytes as it takes.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let first = self.byte()?;
        match first < 0x80 {
            true => Ok(u64::from(first)),
            false => self.longer_varint(first),
        }
    }

    fn longer_varint(&mut self, first: u8) -> Result<u64, Malformed> {
        let mut value = u64::from(first & 0x7F);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            // The tenth byte has room for one bit.
            if shift == 63 && byte > 1 {
                return Err(self.malformed_last("a number longer than 64 bits"));
            }
            value |= u64::from(byte & 0x7F) << shift;
            if byte == 0 {
                return Err(self.malformed_last("a number in more bytes than it takes"));
            }
            if byte < 0x80 {
                debug_assert!(value >> shift != 0, "one value has one encoding: {value}");
                return Ok(value);
            }
        }
        unreachable!("the tenth byte is above 1 or below 128")
    }

    /// How many of something follow, each of which takes at least `len_min` bytes.
    #[inline]
    pub fn count(&mut self, len_min: usize) -> Result<usize, Malformed> {
        debug_assert!(len_min > 0, "what takes nothing could be announced without bound");
        let count = self.varint()?;
        match count <= (self.rest.len() / len_min) as u64 {
            true => Ok(count as usize),
            false => Err(self.malformed("the count before announces more than follows")),
        }
    }

    /// The next `len` bytes to keep: large ones share the memory that they came in, small ones are
    /// copied, so that they do not hold on to it.
    pub fn payload(&mut self, len: usize) -> Result<Bytes, Malformed> {
        let taken = self.take(len)?;
        debug_assert_eq!(taken.len(), len, "it is as long as was announced, or refused");
        match self.memory {
            Some(memory) if len >= SHARED_LEN_MIN => Ok(memory.slice_ref(taken)),
            Some(_) | None => Ok(Bytes::copy_from_slice(taken)),
        }
    }

    /// The next blob's name, one that is spelt out here.
    pub fn new_name(&mut self) -> Result<BlobName, Malformed> {
        let keyspace = KeyspaceId(u32::decode(self)?);
        let len = self.count(1)?;
        let key = Key::new(self.take(len)?)
            .map_err(|_| self.malformed("the key before is empty or too long"))?;
        let name = BlobName { keyspace, key };
        self.names.push(name.clone());
        debug_assert!(self.names.len() <= self.whole.len(), "names are bounded by what came");
        Ok(name)
    }

    /// The next blob's name: 0 and the name, or the place of one named before, from 1.
    pub fn name(&mut self) -> Result<BlobName, Malformed> {
        match self.varint()? {
            0 => self.new_name(),
            place => match self.names.get((place - 1) as usize) {
                Some(name) => Ok(name.clone()),
                None => Err(self.malformed("the blob before was not named yet")),
            },
        }
    }
}
