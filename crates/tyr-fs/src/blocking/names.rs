//! Calls by directory and name, as a mount gets them from the kernel.

use rustix::io::Errno;

use super::store::FileSystem;
use crate::error::{Error, Result};
use crate::layout::forward::Place;
use crate::layout::name::Name;
use crate::layout::record::{Access, Kind};
use crate::options::NewFile;
use crate::plan::create::Create;
use crate::plan::link::Link;
use crate::plan::lookup::{Lookup, Resolve, Seen};
use crate::plan::node::Node;
use crate::plan::remove::{End, Remove, Removed};
use crate::plan::rename::{Rename, RenameMode};
use crate::plan::rights::Permission;

/// Bytes of a symlink's target.
const TARGET_LEN_MAX: usize = 4_095;

/// A name in a directory.
///
/// # Errors
/// `ENOTDIR` where that is none.
fn place(directory: &Node, name: &Name) -> Result<Place> {
    Ok(Place { directory: directory.require_directory()?, name: name.clone() })
}

impl FileSystem {
    /// What a name stands for.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`.
    pub fn lookup(&self, directory: &Node, name: &Name) -> Result<Seen> {
        let place = place(directory, name)?;
        self.may(directory, Permission::Execute)?;
        self.run(&Lookup { place })
    }

    /// Which file a name stands for: a lookup that reads nothing else.
    pub(super) fn resolve(&self, directory: &Node, name: &Name) -> Result<Node> {
        let place = place(directory, name)?;
        self.may(directory, Permission::Execute)?;
        self.run(&Resolve { place })
    }

    /// Makes a file of any kind but directory and symlink.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT` when the directory is gone, `ENOTDIR`; `EINVAL` for other kinds.
    pub fn make_file(&self, directory: &Node, name: &Name, new: NewFile) -> Result<Seen> {
        self.store_file(directory, name, new, Vec::new())
    }

    /// The same with content, in one transaction.
    ///
    /// # Errors
    /// The same; `EFBIG` for more than 64 KiB, which is written to an open file.
    pub fn store_file(
        &self,
        directory: &Node,
        name: &Name,
        new: NewFile,
        content: Vec<u8>,
    ) -> Result<Seen> {
        let NewFile { kind, access, device } = new;
        if matches!(kind, Kind::Directory | Kind::Symlink) {
            let text = format!("a {} has a call of its own", kind.name());
            return Err(Error::new(Errno::INVAL, text));
        }
        if content.len() as u64 > crate::SMALL_LEN_MAX {
            let text = format!("{} bytes are no small file: write them", content.len());
            return Err(Error::new(Errno::FBIG, text));
        }
        self.make(directory, name, (kind, access), self.new_number()?, (device, content))
    }

    /// Makes an empty directory.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT`, `ENOTDIR`.
    pub fn make_directory(&self, directory: &Node, name: &Name, access: Access) -> Result<Seen> {
        let number = self.new_number()?;
        self.make(directory, name, (Kind::Directory, access), number, (0, Vec::new()))
    }

    /// Makes a symlink to a path of 1 to 4,095 bytes.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT`, `ENOTDIR`; `ENAMETOOLONG` for the target.
    pub fn make_symlink(
        &self,
        directory: &Node,
        name: &Name,
        target: &[u8],
        access: Access,
    ) -> Result<Seen> {
        match target.len() {
            0 => return Err(Error::new(Errno::NOENT, "a symlink leads somewhere")),
            1..=TARGET_LEN_MAX => {}
            len => {
                let text = format!("a symlink has at most {TARGET_LEN_MAX} bytes, this has {len}");
                return Err(Error::new(Errno::NAMETOOLONG, text));
            }
        }
        let access = Access { mode: 0o777, ..access };
        let number = self.new_number()?;
        self.make(directory, name, (Kind::Symlink, access), number, (0, target.to_vec()))
    }

    pub(super) fn make(
        &self,
        directory: &Node,
        name: &Name,
        (kind, access): (Kind, Access),
        number: u64,
        (device, content): (u32, Vec<u8>),
    ) -> Result<Seen> {
        let place = place(directory, name)?;
        let access = self.may_make(directory, kind, access)?;
        let access = Access { mode: access.mode & crate::layout::record::MODE_MASK, ..access };
        self.charge_name(content.len() as u64)?;
        let now = self.now();
        self.run(&Create { place, kind, access, device, content, number, now })
    }

    /// Takes a name from a file that is no directory. With the last one the file goes, or stays
    /// until it is closed where this program has it open.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`; `EISDIR`.
    pub fn remove_file(&self, directory: &Node, name: &Name) -> Result<()> {
        self.remove(directory, name, false)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTEMPTY`; `ENOTDIR` for a file, too.
    pub fn remove_directory(&self, directory: &Node, name: &Name) -> Result<()> {
        self.remove(directory, name, true)
    }

    fn remove(&self, directory: &Node, name: &Name, is_directory: bool) -> Result<()> {
        let place = place(directory, name)?;
        self.may_take(directory, name)?;
        let End { session, segment_bits, now } = self.end();
        let removed = self.run(&Remove { place, is_directory, session, segment_bits, now })?;
        self.finish_removal(removed)
    }

    /// Gives a file another name.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT`, `ENOTDIR`; `EPERM` for a directory, `EMLINK` above 65,000 names.
    pub fn link(&self, node: &Node, directory: &Node, name: &Name) -> Result<()> {
        let End { segment_bits, now, .. } = self.end();
        let place = place(directory, name)?;
        self.may_enter(directory)?;
        self.charge_name(0)?;
        self.run(&Link { node: node.clone(), place, segment_bits, now })
    }

    /// Renames a file or a directory of any size, in one transaction.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `EISDIR`, `ENOTEMPTY`, as POSIX has it; `EINVAL` for a directory that
    /// would be in itself; `EEXIST` where the new name is not to be replaced.
    pub fn rename(
        &self,
        (from, name): (&Node, &Name),
        (to, new_name): (&Node, &Name),
        mode: RenameMode,
    ) -> Result<()> {
        let places = (place(from, name)?, place(to, new_name)?);
        self.may_rename((from, name), (to, new_name))?;
        let (from, to) = places;
        let removed = self.run(&Rename { from, to, mode, end: self.end() })?;
        self.finish_removal(removed)
    }

    fn end(&self) -> End {
        End {
            session: self.shared.session,
            segment_bits: self.shared.superblock.segment_bits,
            now: self.now(),
        }
    }

    fn finish_removal(&self, removed: Removed) -> Result<()> {
        match removed {
            Removed::Name | Removed::File => Ok(()),
            Removed::Orphan(number) => self.orphaned(number),
        }
    }
}
