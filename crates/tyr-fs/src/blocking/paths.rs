//! Calls by path, from the root. Symlinks on the way are followed.

use std::collections::VecDeque;

use rustix::io::Errno;
use tyr::Bytes;

use super::store::FileSystem;
use crate::error::{Error, Result};
use crate::layout::name::Name;
use crate::layout::record::{Access, Kind};
use crate::options::NewFile;
use crate::plan::lookup::{Attributes, Seen};
use crate::plan::node::Node;
use crate::plan::rename::RenameMode;
use crate::plan::rights::Permission;

/// Bytes of a path.
const PATH_LEN_MAX: usize = 4_096;

/// Symlinks on a path.
const SYMLINKS_MAX: u32 = 40;

/// What a path ends with.
enum Last {
    /// A name in a directory.
    Name(Node, Name),
    /// A directory that it names otherwise: `/`, `.`, `..`.
    Directory(Node),
}

/// The parts of a path, and whether it is meant to be of a directory.
fn parts(path: &[u8]) -> (VecDeque<Vec<u8>>, bool) {
    let parts = path.split(|byte| *byte == b'/');
    let parts = parts.filter(|part| !part.is_empty() && *part != b".").map(<[u8]>::to_vec);
    let is_directory = path.ends_with(b"/") || path.ends_with(b"/.") || path == b".";
    (parts.collect(), is_directory)
}

fn no_name(path: &[u8]) -> Error {
    let text = format!("{} has no name of its own", path.escape_ascii());
    Error::new(Errno::BUSY, text)
}

impl FileSystem {
    /// The directory and name that a path ends with; a symlink there is followed if so said.
    fn walk(&self, path: &[u8], is_followed: bool) -> Result<Last> {
        self.walk_inner(path, is_followed)
            .map_err(|error| error.context(format!("{}", path.escape_ascii())))
    }

    fn walk_inner(&self, path: &[u8], is_followed: bool) -> Result<Last> {
        if path.is_empty() {
            return Err(Error::new(Errno::NOENT, "the path is empty"));
        }
        if path.len() >= PATH_LEN_MAX {
            let text = format!("a path has less than {PATH_LEN_MAX} bytes");
            return Err(Error::new(Errno::NAMETOOLONG, text));
        }
        let (mut rest, mut is_directory) = parts(path);
        let (mut at, mut symlinks) = (Node::ROOT, 0);
        while let Some(part) = rest.pop_front() {
            if part == b".." {
                self.may(&at, Permission::Execute)?;
                at = self.parent(&at)?;
                continue;
            }
            let name = Name::new(&part)?;
            let is_last = rest.is_empty();
            if is_last && !is_followed && !is_directory {
                at.require_directory()?;
                return Ok(Last::Name(at, name));
            }
            let seen = match self.resolve(&at, &name) {
                Err(error) if is_last && error.errno() == Errno::NOENT => {
                    return Ok(Last::Name(at, name));
                }
                seen => seen?,
            };
            match seen.kind {
                Kind::Directory => at = seen,
                Kind::Symlink => {
                    symlinks += 1;
                    if symlinks > SYMLINKS_MAX {
                        let text = format!("more than {SYMLINKS_MAX} symlinks follow another");
                        return Err(Error::new(Errno::LOOP, text));
                    }
                    let target = self.read_link(&seen)?;
                    if target.starts_with(b"/") {
                        at = Node::ROOT;
                    }
                    let (target, leads_to_directory) = parts(&target);
                    is_directory |= is_last && leads_to_directory;
                    rest = target.into_iter().chain(rest).collect();
                }
                _ if is_last && !is_directory => return Ok(Last::Name(at, name)),
                _ => seen.require_directory().map(drop)?,
            }
        }
        Ok(Last::Directory(at))
    }

    fn parent_and_name(&self, path: &[u8]) -> Result<(Node, Name)> {
        match self.walk(without_slashes(path), false)? {
            Last::Name(directory, name) => Ok((directory, name)),
            Last::Directory(_) => Err(no_name(path)),
        }
    }

    /// What a path leads to, over symlinks.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `ENAMETOOLONG`, `ELOOP`; so for every call by path.
    pub fn find(&self, path: impl AsRef<[u8]>) -> Result<Seen> {
        self.see(path.as_ref(), true)
    }

    /// What a path leads to; a symlink at its end is what is found.
    ///
    /// # Errors
    /// As [`FileSystem::find`].
    pub fn find_symlink(&self, path: impl AsRef<[u8]>) -> Result<Seen> {
        self.see(path.as_ref(), false)
    }

    fn see(&self, path: &[u8], is_followed: bool) -> Result<Seen> {
        match self.walk(path, is_followed)? {
            Last::Name(directory, name) => {
                let seen = self.lookup(&directory, &name);
                seen.map_err(|error| error.context(path.escape_ascii()))
            }
            Last::Directory(node) => {
                let attributes = self.attributes(&node)?;
                Ok(Seen { node, attributes })
            }
        }
    }

    /// What is known of the file at a path.
    ///
    /// # Errors
    /// As [`FileSystem::find`].
    pub fn attributes_at(&self, path: impl AsRef<[u8]>) -> Result<Attributes> {
        self.find(path).map(|seen| seen.attributes)
    }

    /// Makes an empty directory.
    ///
    /// # Errors
    /// As [`FileSystem::make_directory`]; `EEXIST` for `/`, too.
    pub fn make_directory_at(&self, path: impl AsRef<[u8]>, access: Access) -> Result<Seen> {
        let path = path.as_ref();
        match self.walk(without_slashes(path), false)? {
            Last::Name(directory, name) => self.make_directory(&directory, &name, access),
            Last::Directory(_) => {
                let text = format!("{} is a directory already", path.escape_ascii());
                Err(Error::new(Errno::EXIST, text))
            }
        }
    }

    /// Makes a symlink.
    ///
    /// # Errors
    /// As [`FileSystem::make_symlink`].
    pub fn make_symlink_at(
        &self,
        path: impl AsRef<[u8]>,
        target: impl AsRef<[u8]>,
        access: Access,
    ) -> Result<Seen> {
        let (directory, name) = self.parent_and_name(path.as_ref())?;
        self.make_symlink(&directory, &name, target.as_ref(), access)
    }

    /// The file at a path; an empty one is made where there is none.
    ///
    /// # Errors
    /// As [`FileSystem::make_file`]; `EISDIR` for a directory.
    pub fn make_file_at(&self, path: impl AsRef<[u8]>, access: Access) -> Result<Seen> {
        let path = path.as_ref();
        let directory = || {
            let text = format!("{} is a directory", path.escape_ascii());
            Error::new(Errno::ISDIR, text)
        };
        let Last::Name(parent, name) = self.walk(path, true)? else { return Err(directory()) };
        loop {
            match self.lookup(&parent, &name) {
                Err(error) if error.errno() == Errno::NOENT => {}
                found => return found,
            }
            match self.make_file(&parent, &name, NewFile::regular(access)) {
                Err(error) if error.errno() == Errno::EXIST => {}
                made => return made,
            }
        }
    }

    /// Makes a file's content this, and the file where there is none. A small new one comes with
    /// its content; one that is there is emptied first.
    ///
    /// # Errors
    /// As [`FileSystem::make_file_at`] and [`FileSystem::write`].
    pub fn store_at(&self, path: impl AsRef<[u8]>, data: &[u8], access: Access) -> Result<()> {
        let path = path.as_ref();
        if data.len() as u64 <= crate::SMALL_LEN_MAX
            && let Last::Name(directory, name) = self.walk(path, true)?
        {
            let new = NewFile::regular(access);
            match self.store_file(&directory, &name, new, data.to_vec()) {
                Err(error) if error.errno() == Errno::EXIST => {}
                made => return made.map(drop),
            }
        }
        let node = self.make_file_at(path, access)?.node;
        self.truncate(&node, 0)?;
        self.write(&node, 0, Bytes::copy_from_slice(data))
    }

    /// All bytes of a file of up to 64 MiB.
    ///
    /// # Errors
    /// As [`FileSystem::read`]; `EFBIG` for a longer one.
    pub fn fetch_at(&self, path: impl AsRef<[u8]>) -> Result<Bytes> {
        let Seen { node, attributes } = self.find(path)?;
        if attributes.size > tyr::limits::READ_LEN_MAX && node.kind == Kind::Regular {
            let text = format!("the file has {} bytes: read it in parts", attributes.size);
            return Err(Error::new(Errno::FBIG, text));
        }
        self.read(&node, 0, tyr::limits::READ_LEN_MAX)
    }

    /// Takes a name from a file that is no directory.
    ///
    /// # Errors
    /// As [`FileSystem::remove_file`].
    pub fn remove_file_at(&self, path: impl AsRef<[u8]>) -> Result<()> {
        match self.walk(path.as_ref(), false)? {
            Last::Name(directory, name) => self.remove_file(&directory, &name),
            Last::Directory(_) => {
                let text = format!("{} is a directory", path.as_ref().escape_ascii());
                Err(Error::new(Errno::ISDIR, text))
            }
        }
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// As [`FileSystem::remove_directory`]; `EBUSY` for the root.
    pub fn remove_directory_at(&self, path: impl AsRef<[u8]>) -> Result<()> {
        let (directory, name) = self.parent_and_name(path.as_ref())?;
        self.remove_directory(&directory, &name)
    }

    /// Gives the file at a path another name; a symlink is not followed.
    ///
    /// # Errors
    /// As [`FileSystem::link`].
    pub fn link_at(&self, path: impl AsRef<[u8]>, new: impl AsRef<[u8]>) -> Result<()> {
        let node = self.find_symlink(path)?.node;
        let (directory, name) = self.parent_and_name(new.as_ref())?;
        self.link(&node, &directory, &name)
    }

    /// Renames, replacing what has the new name.
    ///
    /// # Errors
    /// As [`FileSystem::rename`]; `EBUSY` for the root.
    pub fn rename_at(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        self.rename_at_with(from, to, RenameMode::Replace)
    }

    /// Renames, with what happens to what has the new name.
    ///
    /// # Errors
    /// As [`FileSystem::rename`]; `EBUSY` for the root.
    pub fn rename_at_with(
        &self,
        from: impl AsRef<[u8]>,
        to: impl AsRef<[u8]>,
        mode: RenameMode,
    ) -> Result<()> {
        let (from, name) = self.parent_and_name(from.as_ref())?;
        let (to, new_name) = self.parent_and_name(to.as_ref())?;
        self.rename((&from, &name), (&to, &new_name), mode)
    }
}

impl FileSystem {
    /// Two files, or directories with all that is below them, change places, in one transaction.
    ///
    /// # Errors
    /// As [`FileSystem::rename`]; `ENOENT` where one of them is not there, `EINVAL` where one is in
    /// the other, `EBUSY` for the root.
    pub fn swap_at(&self, one: impl AsRef<[u8]>, other: impl AsRef<[u8]>) -> Result<()> {
        self.rename_at_with(one, other, RenameMode::Exchange)
    }
}

/// A path without the slashes at its end, which say that a directory is meant, as the calls do
/// that this is for.
fn without_slashes(path: &[u8]) -> &[u8] {
    let len = path.iter().rposition(|byte| *byte != b'/').map_or(1, |at| at + 1);
    &path[..len.min(path.len())]
}
