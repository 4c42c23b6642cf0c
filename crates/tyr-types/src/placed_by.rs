//! Where a blob lies, as far as its key says: which keys are a group.

use std::fmt;

use crate::error::{Error, Result};
use crate::limits;
use crate::scan::KeyRange;

/// Which part of a key says where the blob lies. Blobs whose keys share it are a *group*: the first
/// chunks of all of them lie on the same nodes and have one authority, so that a transaction over
/// them passes few nodes in a cluster of any size (rule H).
///
/// A group is as large as its nodes' disks and as busy as they are: design keys so that groups are
/// many. Chunks after the first spread as ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlacedBy {
    /// The whole key: each blob lies for itself.
    #[default]
    Key,
    /// The first so many bytes of the key, 1 to 64; all of a shorter one.
    First(u8),
    /// What comes before the first such byte in the key; all of a key without it.
    UpTo(u8),
}

impl PlacedBy {
    /// The part of `key` by which it is placed; empty when the key begins with the byte of `UpTo`.
    pub fn part<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Key => key,
            Self::First(count) => &key[..key.len().min(usize::from(*count))],
            Self::UpTo(byte) => key.split(|it| it == byte).next().unwrap_or(key),
        }
    }

    /// The part by which every key with this prefix is placed; `None` where those may be in
    /// several groups.
    pub fn part_of_all<'a>(&self, prefix: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Self::Key => None,
            Self::First(count) => prefix.get(..usize::from(*count)),
            Self::UpTo(byte) => prefix.contains(byte).then(|| self.part(prefix)),
        }
    }

    /// What all keys of the one group begin with that these keys are of; `None` where they may be
    /// of several. It ends with the byte of `UpTo`, so that it is a key of the group itself.
    pub fn group_of<'a>(&self, keys: &'a KeyRange) -> Option<&'a [u8]> {
        let prefix = self.prefix_of(&keys.start)?;
        KeyRange::of(prefix, None).covers(keys).then_some(prefix)
    }

    /// What all keys begin with that are of this key's group, and no others do; `None` where the
    /// key has no such part, and is by itself.
    pub fn prefix_of<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let len = match self {
            Self::Key => return None,
            Self::First(count) => usize::from(*count),
            Self::UpTo(byte) => key.iter().position(|it| it == byte)? + 1,
        };
        key.get(..len)
    }

    /// Whether this is what the keys of one group begin with.
    ///
    /// # Errors
    /// `InvalidArgument` that says how groups are named, if there are any.
    pub fn check_group(&self, prefix: &[u8]) -> Result<()> {
        if self.prefix_of(prefix) == Some(prefix) {
            return Ok(());
        }
        let prefix = prefix.escape_ascii();
        Err(Error::invalid(match self {
            Self::Key => format!(
                "\"{prefix}\" names no group: every blob of the keyspace is placed by itself; \
                 create one that is placed by a part of the key (placed-by), or take single keys"
            ),
            Self::First(count) => format!(
                "\"{prefix}\" names no group: the keyspace is placed by {self}, so a group is \
                 named by the first {count} bytes of its keys"
            ),
            Self::UpTo(_) => format!(
                "\"{prefix}\" names no group: the keyspace is placed by {self}, so a group is \
                 named by what comes before that byte in its keys, and the byte"
            ),
        }))
    }

    /// How it is written: `key`, `first:8`, `up-to:/`. A byte that is not printed is escaped, as
    /// `\\x00`.
    ///
    /// # Errors
    /// `InvalidArgument` with the three forms.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(format!(
                "keys are placed by key, first:N (N from 1 to {}) or up-to:BYTE (a character, or \
                 \\xNN), not \"{}\"",
                limits::PLACED_BY_LEN_MAX,
                text.escape_debug()
            ))
        };
        let placed_by = match text.split_once(':') {
            None if text == "key" => Self::Key,
            Some(("first", count)) => Self::First(count.parse().map_err(|_| wrong())?),
            Some(("up-to", byte)) => Self::UpTo(match byte.as_bytes() {
                [byte] => *byte,
                [b'\\', b'x', hex @ ..]
                    if hex.len() == 2 && hex.iter().all(u8::is_ascii_hexdigit) =>
                {
                    u8::from_str_radix(&byte[2..], 16).map_err(|_| wrong())?
                }
                _ => return Err(wrong()),
            }),
            Some(_) | None => return Err(wrong()),
        };
        if placed_by.is_valid() { Ok(placed_by) } else { Err(wrong()) }
    }

    /// The two bytes for it on disk and on the wire; `None` for the whole key, which needs none.
    pub fn to_bytes(self) -> Option<[u8; 2]> {
        match self {
            Self::Key => None,
            Self::First(count) => Some([0, count]),
            Self::UpTo(byte) => Some([1, byte]),
        }
    }

    /// What these bytes are for; `None` where they are for nothing.
    pub fn from_bytes(bytes: [u8; 2]) -> Option<Self> {
        match bytes {
            [0, count] => Some(Self::First(count)),
            [1, byte] => Some(Self::UpTo(byte)),
            [_, _] => None,
        }
    }

    /// Whether it keeps its range.
    pub(crate) fn is_valid(self) -> bool {
        match self {
            Self::Key | Self::UpTo(_) => true,
            Self::First(count) => (1..=limits::PLACED_BY_LEN_MAX).contains(&count),
        }
    }
}

impl fmt::Display for PlacedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key => f.write_str("key"),
            Self::First(count) => write!(f, "first:{count}"),
            Self::UpTo(byte) if byte.is_ascii_graphic() => write!(f, "up-to:{}", char::from(*byte)),
            Self::UpTo(byte) => write!(f, "up-to:\\x{byte:02x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_the_part_of_the_key_that_places_it() {
        type Case = (PlacedBy, &'static [u8], &'static [u8], Option<&'static [u8]>);
        let cases: [Case; 10] = [
            (PlacedBy::Key, b"a/b", b"a/b", None),
            (PlacedBy::First(2), b"a/b", b"a/", Some(b"a/")),
            (PlacedBy::First(3), b"a/b", b"a/b", Some(b"a/b")),
            (PlacedBy::First(4), b"a/b", b"a/b", None),
            (PlacedBy::UpTo(b'/'), b"a/b/c", b"a", Some(b"a")),
            (PlacedBy::UpTo(b'/'), b"a/", b"a", Some(b"a")),
            (PlacedBy::UpTo(b'/'), b"ab", b"ab", None),
            (PlacedBy::UpTo(b'/'), b"/ab", b"", Some(b"")),
            (PlacedBy::UpTo(0), b"x\0y", b"x", Some(b"x")),
            (PlacedBy::UpTo(0), b"", b"", None),
        ];
        for (placed_by, key, part, of_all) in cases {
            assert_eq!(placed_by.part(key), part, "{placed_by} of {}", key.escape_ascii());
            assert_eq!(placed_by.part_of_all(key), of_all, "{placed_by} {}", key.escape_ascii());
            assert_eq!(PlacedBy::parse(&placed_by.to_string()).unwrap(), placed_by);
        }
        for wrong in
            ["", "keys", "first:0", "first:65", "first:", "up-to:", "up-to:ab", "up-to:\\xg0"]
        {
            let error = PlacedBy::parse(wrong).unwrap_err();
            assert!(error.message().contains("first:N"), "{wrong}: {error}");
        }
    }

    /// H, K7.
    #[test]
    fn a_group_is_named_by_what_its_keys_begin_with() {
        type Case = (PlacedBy, &'static [u8], Option<&'static [u8]>);
        let cases: [Case; 7] = [
            (PlacedBy::UpTo(b'/'), b"a/b/c", Some(b"a/")),
            (PlacedBy::UpTo(b'/'), b"/b", Some(b"/")),
            (PlacedBy::UpTo(b'/'), b"a", None),
            (PlacedBy::First(2), b"abc", Some(b"ab")),
            (PlacedBy::First(2), b"ab", Some(b"ab")),
            (PlacedBy::First(2), b"a", None),
            (PlacedBy::Key, b"a/b", None),
        ];
        for (placed_by, key, prefix) in cases {
            assert_eq!(placed_by.prefix_of(key), prefix, "{placed_by} {}", key.escape_ascii());
            assert_eq!(placed_by.check_group(key).is_ok(), prefix == Some(key), "{placed_by}");
            let is_there = |prefix: &[u8]| placed_by.part(prefix) == placed_by.part(key);
            assert!(prefix.is_none_or(is_there), "{placed_by}: it lies where its keys do");
        }
        let told = [
            (PlacedBy::Key, "placed-by"),
            (PlacedBy::First(4), "first 4 bytes"),
            (PlacedBy::UpTo(b'/'), "and the byte"),
        ];
        for (placed_by, what) in told {
            let error = placed_by.check_group(b"abc").unwrap_err();
            assert!(error.message().contains(what), "{error}");
        }
    }

    /// H, Q3.
    #[test]
    fn keys_are_of_one_group_if_all_between_their_bounds_are() {
        let range = |start: &'static str, end: Option<&'static str>| KeyRange {
            start: start.into(),
            end: end.map(Into::into),
        };
        let cases = [
            (PlacedBy::UpTo(b'/'), range("a/", Some("a0")), Some("a/")),
            (PlacedBy::UpTo(b'/'), range("a/k", Some("a/x")), Some("a/")),
            (PlacedBy::UpTo(b'/'), range("a/k\0", Some("a0")), Some("a/")),
            (PlacedBy::UpTo(b'/'), range("a/", Some("b/")), None),
            (PlacedBy::UpTo(b'/'), range("a/", None), None),
            (PlacedBy::UpTo(b'/'), range("a", Some("a/")), None),
            (PlacedBy::UpTo(b'/'), range("/x", Some("/y")), Some("/")),
            (PlacedBy::First(2), range("ab", Some("ac")), Some("ab")),
            (PlacedBy::First(2), range("abc", Some("abd")), Some("ab")),
            (PlacedBy::First(2), range("a", Some("ab")), None),
            (PlacedBy::Key, range("a/", Some("a0")), None),
        ];
        for (placed_by, keys, group) in cases {
            let found = placed_by.group_of(&keys);
            assert_eq!(found, group.map(str::as_bytes), "{placed_by} {keys:?}");
            let is_of = |prefix: &[u8]| placed_by.part(prefix) == placed_by.part(&keys.start);
            assert!(found.is_none_or(is_of), "{placed_by} {keys:?}: it lies where they do");
        }
        let last = KeyRange { start: vec![0xFF, 0xFF, 1].into(), end: None };
        assert_eq!(PlacedBy::First(2).group_of(&last), Some(&[0xFF, 0xFF][..]));
    }
}
