//! Which blobs there are, and their keys.
//!
//! ```text
//! NAME.meta  [directory 8][interval 3][salt 1] 00                  header of a shard
//!            [directory 8][interval 3][salt 1] 01 [hash 8][name]   entry
//!            [0 8][0 3][0 1] 02 's' · 'n'                          superblock · next number
//!            [0 8][0 3][0 1] 02 'c'                                session changes
//!            [2 8][0 3][0 1] 01 [session 8]                        session, a lock
//!            [3 8][interval 3][0 1] 01 [number 8]                  orphan
//! NAME.data  [number 8][segment 4] 'd'                             content
//!            [number 8][0 4] 'i' · 'f' · 'x'                       inode · forward · xattrs
//! ```
//!
//! Numbers are big-endian, so that keys are in their order. Both keyspaces are placed by the first
//! twelve bytes: a shard of a directory, or a segment of a file, is a group. A directory has one
//! shard, of the whole interval and without salt.

use tyr::Key;

use super::name::Name;
use crate::error::{Error, Result};

/// Of how many first bytes of a key a group is.
pub const GROUP_LEN: u8 = 12;

/// The directory that everything is below; also its number in FUSE.
pub const ROOT: u64 = 1;

/// Numbers below this are of directories that nobody sees.
pub const NUMBER_MIN: u64 = 64;

const SUPERBLOCK: u64 = 0;
const SESSIONS: u64 = 2;
const ORPHANS: u64 = 3;

const HEADER: u8 = 0;
const ENTRY: u8 = 1;
const SINGLE: u8 = 2;

/// One of the two keyspaces of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Names, directories and small files.
    Meta,
    /// Inodes and content of the others.
    Data,
}

/// A blob of a file system.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blob {
    /// The keyspace.
    pub space: Space,
    /// The key there.
    pub key: Key,
}

impl Blob {
    fn new(space: Space, parts: &[&[u8]]) -> Self {
        let key = Key::new(parts.concat()).expect("13 to 276 bytes are a key");
        Self { space, key }
    }

    /// Format and name of the file system.
    pub fn superblock() -> Self {
        Self::new(Space::Meta, &[&shard(SUPERBLOCK), &[SINGLE, b's']])
    }

    /// The number that no file has had yet.
    pub fn next_number() -> Self {
        Self::new(Space::Meta, &[&shard(SUPERBLOCK), &[SINGLE, b'n']])
    }

    /// The header of a directory's shard: its record, counters and fence.
    pub fn header(directory: u64) -> Self {
        Self::new(Space::Meta, &[&shard(directory), &[HEADER]])
    }

    /// How often a session has begun or ended so far.
    pub fn session_changes() -> Self {
        Self::new(Space::Meta, &[&shard(SUPERBLOCK), &[SINGLE, b'c']])
    }

    /// What a name in a directory stands for.
    pub fn entry(directory: u64, name: &Name) -> Self {
        let hash = name.hash().to_be_bytes();
        Self::new(Space::Meta, &[&shard(directory), &[ENTRY], &hash, name.as_bytes()])
    }

    /// The lock that a program holds while it uses the file system.
    pub fn session(session: u64) -> Self {
        Self::new(Space::Meta, &[&shard(SESSIONS), &[ENTRY], &session.to_be_bytes()])
    }

    /// That a file without a name may still be in use, and by whom.
    pub fn orphan(number: u64) -> Self {
        let mut shard = shard(ORPHANS);
        shard[8] = number as u8;
        Self::new(Space::Meta, &[&shard, &[ENTRY], &number.to_be_bytes()])
    }

    /// The record of a file that is not in an entry.
    pub fn inode(number: u64) -> Self {
        Self::of_file(number, 0, b'i')
    }

    /// A segment of its content.
    pub fn content(number: u64, segment: u32) -> Self {
        Self::of_file(number, segment, b'd')
    }

    /// Where a file that lies in an entry has gone to.
    pub fn forward(number: u64) -> Self {
        Self::of_file(number, 0, b'f')
    }

    /// Extended attributes that do not fit the record.
    pub fn xattrs(number: u64) -> Self {
        Self::of_file(number, 0, b'x')
    }

    fn of_file(number: u64, segment: u32, what: u8) -> Self {
        Self::new(Space::Data, &[&number.to_be_bytes(), &segment.to_be_bytes(), &[what]])
    }

    /// The number that its key begins with: of the directory, or of the file, that it is of.
    pub fn number(&self) -> u64 {
        let number = self.key.as_bytes().first_chunk();
        number.map_or(0, |number| u64::from_be_bytes(*number))
    }

    /// What it is, from its key.
    ///
    /// # Errors
    /// `EIO` where no blob of a file system has such a key.
    pub fn parse(&self) -> Result<Role> {
        let bytes = self.key.as_bytes();
        let role = match self.space {
            Space::Meta => parse_meta(bytes),
            Space::Data => parse_data(bytes),
        };
        role.filter(|role| role.blob() == *self).ok_or_else(|| {
            Error::damaged(format!("{} is the key of nothing in a file system", self.key))
        })
    }
}

/// What a blob is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// [`Blob::superblock`].
    Superblock,
    /// [`Blob::next_number`].
    NextNumber,
    /// [`Blob::session_changes`].
    SessionChanges,
    /// [`Blob::header`] of this directory.
    Header(u64),
    /// [`Blob::entry`] of this directory and name.
    Entry(u64, Name),
    /// [`Blob::session`].
    Session(u64),
    /// [`Blob::orphan`].
    Orphan(u64),
    /// [`Blob::inode`].
    Inode(u64),
    /// [`Blob::content`]: number and segment.
    Content(u64, u32),
    /// [`Blob::forward`].
    Forward(u64),
    /// [`Blob::xattrs`].
    Xattrs(u64),
}

impl Role {
    /// The blob that is this.
    pub fn blob(&self) -> Blob {
        match self {
            Self::Superblock => Blob::superblock(),
            Self::NextNumber => Blob::next_number(),
            Self::SessionChanges => Blob::session_changes(),
            Self::Header(directory) => Blob::header(*directory),
            Self::Entry(directory, name) => Blob::entry(*directory, name),
            Self::Session(session) => Blob::session(*session),
            Self::Orphan(number) => Blob::orphan(*number),
            Self::Inode(number) => Blob::inode(*number),
            Self::Content(number, segment) => Blob::content(*number, *segment),
            Self::Forward(number) => Blob::forward(*number),
            Self::Xattrs(number) => Blob::xattrs(*number),
        }
    }
}

fn parse_meta(bytes: &[u8]) -> Option<Role> {
    let (directory, rest) = bytes.split_first_chunk()?;
    let (_, rest) = rest.split_first_chunk::<4>()?;
    let number = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
    match (u64::from_be_bytes(*directory), rest) {
        (SUPERBLOCK, [SINGLE, b's']) => Some(Role::Superblock),
        (SUPERBLOCK, [SINGLE, b'n']) => Some(Role::NextNumber),
        (SUPERBLOCK, [SINGLE, b'c']) => Some(Role::SessionChanges),
        (SESSIONS, [ENTRY, rest @ ..]) => Some(Role::Session(number(rest)?)),
        (ORPHANS, [ENTRY, rest @ ..]) => Some(Role::Orphan(number(rest)?)),
        (directory, [HEADER]) => Some(Role::Header(directory)),
        (directory, [ENTRY, rest @ ..]) => {
            Some(Role::Entry(directory, Name::new(rest.get(8..)?).ok()?))
        }
        _ => None,
    }
}

fn parse_data(bytes: &[u8]) -> Option<Role> {
    let (number, rest) = bytes.split_first_chunk()?;
    let (segment, rest) = rest.split_first_chunk()?;
    let (number, segment) = (u64::from_be_bytes(*number), u32::from_be_bytes(*segment));
    match rest {
        b"d" => Some(Role::Content(number, segment)),
        b"i" => Some(Role::Inode(number)),
        b"f" => Some(Role::Forward(number)),
        b"x" => Some(Role::Xattrs(number)),
        _ => None,
    }
}

/// The group of a directory's only shard.
fn shard(directory: u64) -> [u8; GROUP_LEN as usize] {
    let mut shard = [0; GROUP_LEN as usize];
    shard[..8].copy_from_slice(&directory.to_be_bytes());
    shard
}

/// What the keys of a directory's entries begin with.
pub fn entries(directory: u64) -> Vec<u8> {
    [&shard(directory)[..], &[ENTRY]].concat()
}

/// The first key of a directory's entries from this place on in its order.
pub fn entries_from(directory: u64, hash: u64) -> Vec<u8> {
    [&entries(directory)[..], &hash.to_be_bytes()].concat()
}

/// What the keys of a file's first group begin with: its inode, forward, xattrs, first segment.
pub fn file(number: u64) -> Vec<u8> {
    [&number.to_be_bytes()[..], &[0; 4]].concat()
}

/// The blobs of a file's first group but its xattrs.
pub fn first_group(number: u64) -> [Blob; 3] {
    [Blob::inode(number), Blob::forward(number), Blob::content(number, 0)]
}

/// The first key behind those of a directory's entries.
pub fn behind_entries(directory: u64) -> Vec<u8> {
    [&shard(directory)[..], &[ENTRY + 1]].concat()
}

/// What the keys of all orphans begin with.
pub fn orphans() -> Vec<u8> {
    ORPHANS.to_be_bytes().to_vec()
}

/// What the keys of all sessions begin with.
pub fn sessions() -> Vec<u8> {
    [&shard(SESSIONS)[..], &[ENTRY]].concat()
}
