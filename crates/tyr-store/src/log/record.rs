//! A record: a header that says where it stands and what follows, and a body.
//!
//! ```text
//! 0        3      4      8        12         20      28      32     34         38        42
//! | \xD7TR | kind | body | crc32c | sequence | clock | epoch | node | unsynced | crc32c  | body
//! |        |      | len  | of body|          |           timestamp  |          | of header
//! ```
//!
//! The header's checksum begins with the segment's first sequence and the record's offset in it,
//! so that bytes that look like a record but stand elsewhere (a copy of a log inside a payload, a
//! leftover) are none. *Unsynced* is how many records before this one were not known to be durable
//! when it was made: a later record is the witness that an earlier one was once whole.

use bytes::{Buf, BufMut};
use tyr_types::{Bytes, Epoch, Error, KeyspaceId, Result, Timestamp, Transaction, limits};

use super::body;

/// Bytes of a record's header.
pub const HEADER_LEN: usize = 42;
/// How every header begins.
pub const MAGIC: [u8; 3] = [0xD7, b'T', b'R'];
/// The kind of a record whose body is a transaction.
const KIND_TRANSACTION: u8 = 1;
/// The kind of a record whose body means something to a node of a cluster only.
const KIND_NODE: u8 = 2;

/// What a record says.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// Of an embedded store: a decided transaction.
    Transaction(Transaction),
    /// Of a node of a cluster: what it wrote.
    Node(Bytes),
}

/// Which form a record's body has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A transaction.
    #[default]
    Transaction,
    /// A node's.
    Node,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Self::Transaction => KIND_TRANSACTION,
            Self::Node => KIND_NODE,
        }
    }

    fn of(code: u8) -> Option<Self> {
        [Self::Transaction, Self::Node].into_iter().find(|kind| kind.code() == code)
    }

    /// The body as what it says.
    pub(super) fn decode(self, body: &[u8]) -> Result<Entry> {
        match self {
            Self::Transaction => body::decode(body).map(Entry::Transaction),
            Self::Node => Ok(Entry::Node(Bytes::copy_from_slice(body))),
        }
    }
}

/// Bytes of a body at most: the payload that a transaction may carry, and for each operation a key
/// of its own, five numbers and a code.
pub const BODY_LEN_MAX: usize = limits::TRANSACTION_INLINE_MAX
    + limits::TRANSACTION_OPERATIONS_MAX * (limits::KEY_LEN_MAX + 5 * 10 + 1)
    + 32;

const _: () = {
    assert!(BODY_LEN_MAX <= u32::MAX as usize, "a header has 32 bits for the body's length");
    let (lens_and_sums, sequence, timestamp) = (4 + 4 + 4 + 4, 8, 8 + 4 + 2);
    assert!(HEADER_LEN == MAGIC.len() + 1 + lens_and_sums + sequence + timestamp);
    // What was reserved and not written yet is zeros, and so is what was written ahead.
    assert!(MAGIC[0] != 0 && KIND_TRANSACTION != 0, "zeros are no record");
};

/// A transaction encoded for the log, outside any lock; the buffer is reused.
#[derive(Debug, Default)]
pub struct EncodedRecord {
    body: Vec<u8>,
    checksum: u32,
    kind: Kind,
    has_extents: bool,
    has_growth: bool,
}

impl EncodedRecord {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Encodes what the log keeps of `transaction`: the writes to keyspaces that `is_logged` names.
    ///
    /// # Errors
    /// `InvalidArgument` when it is larger than [`Transaction::validate`] allows; then the record
    /// is empty.
    pub fn encode(
        &mut self,
        transaction: &Transaction,
        is_logged: impl Fn(KeyspaceId) -> bool,
    ) -> Result<()> {
        self.body.clear();
        self.kind = Kind::Transaction;
        let seen = body::encode(transaction, is_logged, &mut self.body);
        self.has_extents = seen.has_extents;
        self.has_growth = seen.has_growth;
        debug_assert_eq!(self.body.is_empty(), seen.blobs == 0, "no blob, no record");
        debug_assert!(seen.operations >= seen.blobs, "a blob is logged for its operations");
        if seen.operations > limits::TRANSACTION_OPERATIONS_MAX || self.body.len() > BODY_LEN_MAX {
            self.body.clear();
            return Err(Error::invalid(format!(
                "a transaction has at most {} operations and {} bytes, this one is larger",
                limits::TRANSACTION_OPERATIONS_MAX,
                limits::TRANSACTION_INLINE_MAX
            )));
        }
        self.checksum = crc32c::crc32c(&self.body);
        Ok(())
    }

    /// Takes all of `content`, which a node of a cluster wants to keep.
    ///
    /// # Errors
    /// `InvalidArgument` when it is more than a record holds; then the record is empty.
    pub fn encode_node(&mut self, content: &mut impl Buf) -> Result<()> {
        self.body.clear();
        self.kind = Kind::Node;
        self.has_extents = false;
        // What a node logs was let in, or is about what was: a full disk is the gate's affair.
        self.has_growth = false;
        if content.remaining() > BODY_LEN_MAX {
            return Err(Error::invalid(format!(
                "a record of the log has at most {BODY_LEN_MAX} bytes, this one would have {}",
                content.remaining()
            )));
        }
        let len = content.remaining();
        self.body.put(content);
        assert_eq!(self.body.len(), len, "a node's record is logged whole");
        self.checksum = crc32c::crc32c(&self.body);
        Ok(())
    }

    /// Whether nothing of the transaction is kept: then there is nothing to append.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Whether it refers to extents, which must be durable before it is.
    pub fn has_extents(&self) -> bool {
        self.has_extents
    }

    /// Whether it is to find space in what is kept free of all else, since it makes more.
    pub fn makes_room(&self) -> bool {
        !self.has_growth
    }

    /// Bytes of the record in the log.
    pub fn stored_len(&self) -> usize {
        HEADER_LEN + self.body.len()
    }

    /// The body.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The header of this record.
    pub(super) fn header(&self, sequence: u64, at: Timestamp, synced_to: u64) -> Header {
        // A record that vouched for itself would make a torn tail look like damage.
        debug_assert!(synced_to < sequence, "{sequence} is durable before it is written");
        assert!(self.body.len() <= BODY_LEN_MAX, "record {sequence} would not be read back");
        let unsynced = sequence.saturating_sub(1).saturating_sub(synced_to);
        Header {
            kind: self.kind,
            body_len: self.body.len() as u32,
            body_checksum: self.checksum,
            sequence,
            at,
            unsynced: u32::try_from(unsynced).unwrap_or(u32::MAX),
        }
    }
}

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    /// The first sequence of its segment.
    pub segment: u64,
    /// Its offset in the segment.
    pub offset: u64,
}

/// What the header of a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What form the body has.
    pub kind: Kind,
    /// Bytes of body.
    pub body_len: u32,
    /// Checksum of the body.
    pub body_checksum: u32,
    /// Its number.
    pub sequence: u64,
    /// When the transaction took effect.
    pub at: Timestamp,
    /// Records before it that were not known to be durable; `u32::MAX` stands for more.
    pub unsynced: u32,
}

impl Header {
    /// Its bytes at `place`.
    pub fn encode(&self, place: RecordPlace) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..3].copy_from_slice(&MAGIC);
        bytes[3] = self.kind.code();
        bytes[4..8].copy_from_slice(&self.body_len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.body_checksum.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.at.clock.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.at.epoch.0.to_le_bytes());
        bytes[32..34].copy_from_slice(&self.at.node.to_le_bytes());
        bytes[34..38].copy_from_slice(&self.unsynced.to_le_bytes());
        let checksum = checksum(place, &bytes[..38]);
        bytes[38..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header in these bytes, if they are one that was written at `place`.
    pub fn decode(bytes: &[u8; HEADER_LEN], place: RecordPlace) -> Option<Self> {
        // A kind that a later release adds makes a header that this one does not know. The
        // segment's version tells that release apart; here it is a damaged byte.
        if bytes[..3] != MAGIC {
            return None;
        }
        let kind = Kind::of(bytes[3])?;
        if bytes[38..] != checksum(place, &bytes[..38]).to_le_bytes() {
            return None;
        }
        let body_len = u32_at(bytes, 4);
        (body_len as usize <= BODY_LEN_MAX).then(|| Self {
            kind,
            body_len,
            body_checksum: u32_at(bytes, 8),
            sequence: u64_at(bytes, 12),
            at: Timestamp {
                epoch: Epoch(u32_at(bytes, 28)),
                clock: u64_at(bytes, 20),
                node: u32_at(bytes, 32) as u16,
            },
            unsynced: u32_at(bytes, 34),
        })
    }

    /// The highest sequence that was known to be durable when the record was made.
    pub fn synced_to(&self) -> u64 {
        match self.unsynced {
            u32::MAX => 0,
            unsynced => self.sequence.saturating_sub(1).saturating_sub(u64::from(unsynced)),
        }
    }
}

fn checksum(place: RecordPlace, header: &[u8]) -> u32 {
    let mut at = [0; 16];
    at[..8].copy_from_slice(&place.segment.to_le_bytes());
    at[8..].copy_from_slice(&place.offset.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&at), header)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes are 4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes are 8 bytes"))
}
