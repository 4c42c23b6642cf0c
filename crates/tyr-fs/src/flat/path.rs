//! Keys as paths, and paths as keys: no blob, no kernel.
//!
//! ```text
//!   key of a blob       run/7/out.h5        the path below the place of the mount, as bytes
//!   directories         run/  run/7/        what keys begin with, up to and with a slash
//! ```
//!
//! A key is a path if each of its parts between slashes is a name: 1 to 255 bytes, not `.` nor
//! `..`, without NUL. What is none has no path, and is not shown.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use rustix::io::Errno;
use tyr::{Key, limits};

use crate::error::{Error, Result};
use crate::layout::name::Name;

/// What parts the names in a path, and in a key.
pub const SEPARATOR: u8 = b'/';

/// A directory: what the keys of all blobs in it and below begin with. That is empty for the root,
/// and ends with a slash otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Directory(Arc<[u8]>);

impl Directory {
    /// The place of the mount.
    pub fn root() -> Self {
        Self(Arc::default())
    }

    /// The one that a common prefix of keys, which ends with a slash, stands for.
    pub fn of_group(group: &[u8]) -> Self {
        debug_assert_eq!(group.last(), Some(&SEPARATOR));
        Self(group.into())
    }

    /// The path up to its last slash.
    fn up_to(path: &[u8]) -> Self {
        let len = path.iter().rposition(|byte| *byte == SEPARATOR).map_or(0, |at| at + 1);
        Self(path[..len].into())
    }

    /// What the keys in it begin with.
    pub fn prefix(&self) -> &[u8] {
        &self.0
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The one that it is in; the root is in itself.
    pub fn parent(&self) -> Self {
        Self::up_to(self.0.strip_suffix(&[SEPARATOR]).unwrap_or_default())
    }

    /// The key of a blob of this name in it.
    ///
    /// # Errors
    /// `ENAMETOOLONG` for a name of more than 255 bytes, and for a key of more than 1,024.
    pub fn blob(&self, name: &OsStr) -> Result<Key> {
        let (name, max) = (name.as_bytes(), limits::KEY_LEN_MAX);
        Name::check(name)?;
        let key = [self.prefix(), name].concat();
        match key.len() > max {
            true => {
                let text = format!("a key has at most {max} bytes, and this path {}", key.len());
                Err(Error::new(Errno::NAMETOOLONG, text))
            }
            false => Ok(Key::new(key)?),
        }
    }

    /// The directory whose path is a key; `None` where that is too long for anything to be in it.
    pub fn at(key: &Key) -> Option<Self> {
        let key = key.as_bytes();
        let prefix = || [key, &[SEPARATOR]].concat().into();
        (key.len() + 1 < limits::KEY_LEN_MAX).then(|| Self(prefix()))
    }

    /// The name by which a key that begins as this directory says is shown in it: of a blob, or
    /// with a slash at the end of a directory. `None` where it has none.
    pub fn name_of<'a>(&self, key: &'a [u8]) -> Option<&'a OsStr> {
        let rest = key.strip_prefix(self.prefix())?;
        let name = rest.strip_suffix(&[SEPARATOR]).unwrap_or(rest);
        Name::check(name).is_ok().then(|| OsStr::from_bytes(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(prefix: &str) -> Directory {
        Directory(prefix.as_bytes().into())
    }

    fn named<'a>(prefix: &str, key: &'a str) -> Option<&'a str> {
        directory(prefix).name_of(key.as_bytes()).and_then(OsStr::to_str)
    }

    #[test]
    fn a_path_is_the_key_and_back() {
        let key = directory("run/7/").blob(OsStr::new("out.h5")).unwrap();
        assert_eq!(key.as_bytes(), b"run/7/out.h5");
        assert_eq!(directory("run/7/").parent(), directory("run/"));
        assert_eq!(directory("run/").parent(), Directory::root());
        assert_eq!(Directory::root().parent(), Directory::root());
        assert_eq!(Directory::at(&Key::new("run/7").unwrap()), Some(directory("run/7/")));
        assert_eq!(named("run/7/", "run/7/out.h5"), Some("out.h5"));
        assert_eq!(named("run/", "run/7/"), Some("7"));
        assert_eq!(Directory::root().blob(OsStr::from_bytes(b"\xFF")).unwrap().as_bytes(), b"\xFF");
    }

    #[test]
    fn what_is_no_name_is_not_shown() {
        for key in ["run/", "run//", "run/.", "run/..", "run/./", "run/../", "run/a\0b", "other"] {
            assert_eq!(named("run/", key), None, "{key:?}");
        }
        assert_eq!(named("", "/"), None);
        assert_eq!(named("", &"n".repeat(255)).map(str::len), Some(255));
        assert_eq!(named("", &"n".repeat(256)), None);
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let long = directory(&format!("{}/", "d".repeat(1_000)));
        let errno =
            |it: &Directory, len| it.blob(OsStr::new(&"n".repeat(len))).map_err(|e| e.errno());
        assert!(errno(&Directory::root(), 255).is_ok());
        assert_eq!(errno(&Directory::root(), 256), Err(Errno::NAMETOOLONG));
        assert_eq!(errno(&long, 23).unwrap().as_bytes().len(), 1_024);
        assert_eq!(errno(&long, 24), Err(Errno::NAMETOOLONG));
        assert_eq!(Directory::at(&errno(&long, 22).unwrap()), None);
        assert!(Directory::at(&errno(&long, 21).unwrap()).is_some());
    }
}
