//! What is known of a file: 512 bytes in which every field has its place, so that conditions and
//! arithmetic hit bytes.
//!
//! ```text
//!   0  "Ty" · kind u8 · flags u8 · format u32 · number u64     the identity
//!  16  mode u32 · owner u32 · group u32                        of a reference: a directory's
//!  28  links u32
//!  32  mtime i64 · ctime i64 · atime i64 · btime i64           nanoseconds since 1970
//!  64  device u32 · project u32 · last segment u32 · segment bits u8 · 19 bytes of zeros
//!  96  state of the file's type, 32 bytes
//! 128  xattrs, 384 bytes; of a directory its parent, name, counters and fence
//! 512  content, of a file that lies in its entry
//! ```
//!
//! Little-endian. There is no size: it is the blob's, less 512. The first 32 bytes are a
//! *reference*: what an entry has of a file whose record is elsewhere.

use crate::error::{Error, Result};

/// Bytes of a record; where content begins behind one.
pub const RECORD_LEN: usize = 512;

/// Bytes of a reference.
pub const REFERENCE_LEN: usize = 32;

/// Bytes of an identity: every transaction on a file compares it.
pub const IDENTITY_LEN: usize = 16;

/// Where mode, owner and group are, twelve bytes together.
pub const MODE_AT: u64 = 16;
/// Where the owner is.
pub const OWNER_AT: u64 = 20;
/// Where the group is.
pub const GROUP_AT: u64 = 24;
/// Where the number of names is, `u32`.
pub const LINKS_AT: u64 = 28;
/// Where the time of the last change of content is, `i64`.
pub const MTIME_AT: u64 = 32;
/// Where the time of the last change of anything is, `i64`.
pub const CTIME_AT: u64 = 40;
/// Where the time of the last read is, `i64`.
pub const ATIME_AT: u64 = 48;
/// Where the number of the last segment is, `u32`.
pub const LAST_SEGMENT_AT: u64 = 72;
/// Where extended attributes are, and the rest of a directory's header.
pub const BODY_AT: usize = 128;

const MAGIC: [u8; 2] = *b"Ty";
const FORMAT: u32 = 1;

/// The bits of `mode` that a file keeps: rights, and set-user, set-group and sticky.
pub const MODE_MASK: u32 = 0o7777;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Bytes.
    Regular,
    /// Names.
    Directory,
    /// A path to another.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A socket.
    Socket,
}

impl Kind {
    /// All kinds, in the order of their codes, which begin with 1.
    pub const ALL: [Self; 7] = [
        Self::Regular,
        Self::Directory,
        Self::Symlink,
        Self::Fifo,
        Self::CharDevice,
        Self::BlockDevice,
        Self::Socket,
    ];

    fn code(self) -> u8 {
        self as u8 + 1
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// What it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Regular => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Fifo => "fifo",
            Self::CharDevice => "character device",
            Self::BlockDevice => "block device",
            Self::Socket => "socket",
        }
    }
}

/// What an identity says besides kind and number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// An entry's: the record is elsewhere.
    pub is_reference: bool,
    /// There is a forward, which says where the file lies now.
    pub is_moved: bool,
    /// There is a blob of extended attributes.
    pub has_xattrs: bool,
    /// It has no name any more, and an orphan's record.
    pub is_orphan: bool,
}

impl Flags {
    fn to_byte(self) -> u8 {
        let bits = [self.is_reference, self.is_moved, self.has_xattrs, self.is_orphan];
        bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit))
    }

    fn from_byte(byte: u8) -> Option<Self> {
        let bit = |at: u8| byte >> at & 1 == 1;
        let flags =
            Self { is_reference: bit(0), is_moved: bit(1), has_xattrs: bit(2), is_orphan: bit(3) };
        (byte < 16).then_some(flags)
    }
}

/// What a file is: the first 16 bytes of its record, and of references to it but for the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Its kind.
    pub kind: Kind,
    /// What else there is of it.
    pub flags: Flags,
    /// Its number: no other file has it, ever.
    pub number: u64,
}

impl Identity {
    /// Its bytes.
    pub fn encode(self) -> [u8; IDENTITY_LEN] {
        let mut bytes = [0; IDENTITY_LEN];
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2] = self.kind.code();
        bytes[3] = self.flags.to_byte();
        bytes[4..8].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[8..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    /// Decodes the first bytes of `from`.
    ///
    /// # Errors
    /// `EIO` for what is none.
    pub fn decode(from: &[u8]) -> Result<Self> {
        let bytes = from.first_chunk::<IDENTITY_LEN>();
        let bytes = bytes.ok_or_else(|| Error::damaged("it ends within its identity"))?;
        let format = u32_at(bytes, 4);
        let fields = Kind::from_code(bytes[2]).zip(Flags::from_byte(bytes[3]));
        match fields {
            Some((kind, flags)) if bytes[..2] == MAGIC && format == FORMAT => {
                Ok(Self { kind, flags, number: u64_at(bytes, 8) })
            }
            _ => Err(Error::damaged(format!(
                "it does not begin as a record: {}",
                bytes.escape_ascii()
            ))),
        }
    }
}

/// Who may do what with a file: twelve bytes of its record, and of a reference to a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// Rights, set-user, set-group, sticky.
    pub mode: u32,
    /// Its owner's number.
    pub owner: u32,
    /// Its group's number.
    pub group: u32,
}

impl Access {
    /// Bytes of it.
    pub const LEN: usize = 12;

    /// Its bytes.
    pub fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&self.mode.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.owner.to_le_bytes());
        bytes[8..].copy_from_slice(&self.group.to_le_bytes());
        bytes
    }

    /// Of its bytes.
    ///
    /// # Errors
    /// `EIO` for what they cannot be.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        if bytes.len() != Self::LEN {
            let len = bytes.len();
            return Err(Error::damaged(format!("its rights have {len} bytes, not {}", Self::LEN)));
        }
        let [mode, owner, group] = [0, 4, 8].map(|at| u32_at(bytes, at));
        let access = Self { mode, owner, group };
        match access.mode & !MODE_MASK {
            0 => Ok(access),
            _ => Err(Error::damaged(format!("its mode is {:#o}", access.mode))),
        }
    }
}

/// A moment: nanoseconds since 1970, from 1677 to 2262.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Time {
    /// Of seconds and nanoseconds since 1970; the nearest there is.
    pub fn new(seconds: i64, nanoseconds: u32) -> Self {
        let whole = seconds.saturating_mul(1_000_000_000);
        Self(whole.saturating_add(i64::from(nanoseconds)))
    }

    /// Seconds and nanoseconds since 1970.
    pub fn parts(self) -> (i64, u32) {
        let (seconds, rest) = (self.0.div_euclid(1_000_000_000), self.0.rem_euclid(1_000_000_000));
        (seconds, u32::try_from(rest).expect("less than 10^9"))
    }
}

/// The four times of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Times {
    /// Content was changed.
    pub mtime: Time,
    /// Anything was changed.
    pub ctime: Time,
    /// Content was read.
    pub atime: Time,
    /// It was made.
    pub btime: Time,
}

impl Times {
    /// Those of a file that is made now.
    pub fn all(now: Time) -> Self {
        Self { mtime: now, ctime: now, atime: now, btime: now }
    }
}

/// What is known of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it is.
    pub identity: Identity,
    /// Who may do what.
    pub access: Access,
    /// Names that it has; of a directory 1.
    pub links: u32,
    /// Its times.
    pub times: Times,
    /// Of a device: which.
    pub device: u32,
    /// Of an inode: the segment that the file ends in.
    pub last_segment: u32,
    /// Of an inode: how long segments are, as a power of two.
    pub segment_bits: u8,
    /// Extended attributes; of a directory the rest of its header.
    pub body: Box<[u8; RECORD_LEN - BODY_AT]>,
}

impl Record {
    /// A new file.
    pub fn new(kind: Kind, number: u64, access: Access, now: Time) -> Self {
        Self {
            identity: Identity { kind, flags: Flags::default(), number },
            access,
            links: 1,
            times: Times::all(now),
            device: 0,
            last_segment: 0,
            segment_bits: 0,
            body: Box::new([0; RECORD_LEN - BODY_AT]),
        }
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; RECORD_LEN] {
        let mut bytes = [0; RECORD_LEN];
        bytes[..IDENTITY_LEN].copy_from_slice(&self.identity.encode());
        let access = self.access.encode();
        bytes[MODE_AT as usize..][..access.len()].copy_from_slice(&access);
        bytes[LINKS_AT as usize..][..4].copy_from_slice(&self.links.to_le_bytes());
        let Times { mtime, ctime, atime, btime } = self.times;
        for (at, time) in (MTIME_AT as usize..).step_by(8).zip([mtime, ctime, atime, btime]) {
            bytes[at..at + 8].copy_from_slice(&time.0.to_le_bytes());
        }
        bytes[64..68].copy_from_slice(&self.device.to_le_bytes());
        bytes[LAST_SEGMENT_AT as usize..][..4].copy_from_slice(&self.last_segment.to_le_bytes());
        bytes[76] = self.segment_bits;
        bytes[BODY_AT..].copy_from_slice(&*self.body);
        bytes
    }

    /// Decodes the first 512 bytes of `from`.
    ///
    /// # Errors
    /// `EIO` for what is no record; the text says what is wrong, but not where.
    pub fn decode(from: &[u8]) -> Result<Self> {
        let identity = Identity::decode(from)?;
        if identity.flags.is_reference {
            return Err(Error::damaged("a reference stands where a record should"));
        }
        let Some(bytes) = from.first_chunk::<RECORD_LEN>() else {
            let text = format!("a record has {RECORD_LEN} bytes, this has {}", from.len());
            return Err(Error::damaged(text));
        };
        let time = |at| Time(u64_at(bytes, at).cast_signed());
        let body = bytes[BODY_AT..].try_into().expect("384 bytes are left");
        Ok(Self {
            identity,
            access: Access::decode(&bytes[MODE_AT as usize..][..Access::LEN])?,
            links: u32_at(bytes, LINKS_AT as usize),
            times: Times { mtime: time(32), ctime: time(40), atime: time(48), btime: time(56) },
            device: u32_at(bytes, 64),
            last_segment: u32_at(bytes, LAST_SEGMENT_AT as usize),
            segment_bits: bytes[76],
            body: Box::new(body),
        })
    }

    /// What an entry has that refers to it.
    pub fn reference(&self) -> Reference {
        let (kind, number) = (self.identity.kind, self.identity.number);
        let access = match kind {
            Kind::Directory => self.access,
            _ => Access::default(),
        };
        Reference { kind, number, access }
    }
}

/// What an entry has of a file whose record is elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The file's kind.
    pub kind: Kind,
    /// The file's number.
    pub number: u64,
    /// Of a directory: the same as in its header. Else zeros.
    pub access: Access,
}

impl Reference {
    /// Its bytes.
    pub fn encode(self) -> [u8; REFERENCE_LEN] {
        let flags = Flags { is_reference: true, ..Flags::default() };
        let identity = Identity { kind: self.kind, flags, number: self.number };
        let mut bytes = [0; REFERENCE_LEN];
        bytes[..IDENTITY_LEN].copy_from_slice(&identity.encode());
        bytes[MODE_AT as usize..][..Access::LEN].copy_from_slice(&self.access.encode());
        bytes
    }
}

/// What an entry has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The file itself: its record, with content behind it.
    File(Record),
    /// That it is elsewhere.
    Reference(Reference),
}

impl Entry {
    /// Decodes an entry from its first 512 bytes, or all of them.
    ///
    /// # Errors
    /// `EIO` for what is none; the text says what is wrong, but not where.
    pub fn decode(from: &[u8]) -> Result<Self> {
        let identity = Identity::decode(from)?;
        let Identity { kind, number, flags } = identity;
        if !flags.is_reference {
            let record = Record::decode(from)?;
            return match (kind, flags.is_orphan, record.links) {
                (Kind::Directory, ..) => Err(Error::damaged("a directory lies in an entry")),
                (_, true, _) => Err(Error::damaged("an orphan has a name")),
                (_, _, 1) => Ok(Self::File(record)),
                (.., links) => Err(Error::damaged(format!("one name, but {links} links"))),
            };
        }
        if from.len() != REFERENCE_LEN {
            let text = format!("a reference has {REFERENCE_LEN} bytes, this has {}", from.len());
            return Err(Error::damaged(text));
        }
        let access = Access::decode(&from[MODE_AT as usize..][..Access::LEN])?;
        Ok(Self::Reference(Reference { kind, number, access }))
    }

    /// The file's kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::File(record) => record.identity.kind,
            Self::Reference(reference) => reference.kind,
        }
    }

    /// The file's number.
    pub fn number(&self) -> u64 {
        match self {
            Self::File(record) => record.identity.number,
            Self::Reference(reference) => reference.number,
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
