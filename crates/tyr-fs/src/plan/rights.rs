//! Who may do what, as POSIX has it: pure functions of who asks, and of what is known of a file.

use rustix::io::Errno;

use super::attributes::NewAttributes;
use super::lookup::Attributes;
use crate::error::{Error, Result};
use crate::layout::record::{Access, Kind};

const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;
const STICKY: u32 = 0o1000;
const GROUP_EXECUTES: u32 = 0o0010;

/// Who asks. User 0 may do everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// The user's number.
    pub user: u32,
    /// The group that new files get.
    pub group: u32,
    /// Other groups that the user is in.
    pub groups: Vec<u32>,
}

/// A thing that one may be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Reading bytes, or the names of a directory.
    Read,
    /// Changing bytes, or the names of a directory.
    Write,
    /// Using names of a directory; running a program.
    Execute,
}

impl Permission {
    fn bit(self) -> u32 {
        match self {
            Self::Read => 4,
            Self::Write => 2,
            Self::Execute => 1,
        }
    }

    fn word(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Self::Read, _) => "read",
            (Self::Write, _) => "change",
            (Self::Execute, Kind::Directory) => "search",
            (Self::Execute, _) => "run",
        }
    }
}

impl Credentials {
    /// A user with one group.
    pub fn new(user: u32, group: u32) -> Self {
        Self { user, group, groups: Vec::new() }
    }

    /// Whether everything is allowed.
    pub fn is_privileged(&self) -> bool {
        self.user == 0
    }

    /// Whether the user is in a group.
    pub fn is_in(&self, group: u32) -> bool {
        self.group == group || self.groups.contains(&group)
    }

    /// Refuses what the bits of its mode do not allow.
    ///
    /// # Errors
    /// `EACCES`.
    pub fn check(&self, file: &Attributes, permission: Permission) -> Result<()> {
        let shift = match () {
            () if self.user == file.owner => 6,
            () if self.is_in(file.group) => 3,
            () => 0,
        };
        let is_allowed = match (self.is_privileged(), permission, file.kind) {
            // A program that nobody can run is none.
            (true, Permission::Execute, Kind::Regular) => file.mode & 0o111 != 0,
            (true, ..) => true,
            (false, ..) => file.mode >> shift & permission.bit() != 0,
        };
        match is_allowed {
            true => Ok(()),
            false => {
                let what = permission.word(file.kind);
                let text = format!(
                    "user {} may not {what} the {} (number {}), which has mode {:04o} and belongs \
                     to {}, group {}",
                    self.user,
                    file.kind.name(),
                    file.number,
                    file.mode,
                    file.owner,
                    file.group
                );
                Err(Error::new(Errno::ACCESS, text))
            }
        }
    }

    /// Refuses who may not take a name from a sticky directory.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn check_sticky(&self, directory: &Attributes, file: &Attributes) -> Result<()> {
        let is_theirs = self.user == directory.owner || self.user == file.owner;
        match directory.mode & STICKY == 0 || is_theirs || self.is_privileged() {
            true => Ok(()),
            false => Err(self.no_owner(file, "take a name from a sticky directory: it is of")),
        }
    }

    /// What they may change of a file, and what changes with it; `clock` is whether times are only
    /// set to now.
    ///
    /// # Errors
    /// `EPERM`; `EACCES` for times of another's file.
    pub fn check_change(
        &self,
        file: &Attributes,
        mut new: NewAttributes,
        is_now: bool,
    ) -> Result<NewAttributes> {
        if new.owner.is_some() || new.group.is_some() {
            self.check_owner_change(file, &new)?;
            // What was trusted of its owner is not of another.
            let mode = new.mode.unwrap_or(file.mode);
            if file.kind != Kind::Directory && without_privileges(mode) != mode {
                new.mode = Some(without_privileges(mode));
            }
        } else if let Some(mode) = new.mode {
            if !self.is_privileged() && self.user != file.owner {
                return Err(self.no_owner(file, "change the mode of a file of"));
            }
            if !self.is_privileged() && file.kind != Kind::Directory && !self.is_in(file.group) {
                new.mode = Some(mode & !SET_GROUP);
            }
        }
        let is_timed = new.atime.is_some() || new.mtime.is_some();
        if is_timed && !self.is_privileged() && self.user != file.owner {
            match is_now {
                true => self.check(file, Permission::Write)?,
                false => return Err(self.no_owner(file, "set the times of a file of")),
            }
        }
        Ok(new)
    }

    fn check_owner_change(&self, file: &Attributes, new: &NewAttributes) -> Result<()> {
        let is_given = new.owner.is_some_and(|owner| owner != file.owner);
        let is_regrouped = new.group.is_some_and(|group| group != file.group && !self.is_in(group));
        let is_theirs = self.user == file.owner;
        match self.is_privileged() || (is_theirs && !is_given && !is_regrouped) {
            true => Ok(()),
            false => Err(self.no_owner(file, "change who a file belongs to: it is of")),
        }
    }

    fn no_owner(&self, file: &Attributes, what: &str) -> Error {
        let text = format!("user {} may not {what} user {}", self.user, file.owner);
        Error::new(Errno::PERM, text)
    }

    /// What a file that they make in this directory has: it is theirs.
    pub fn owning(&self, access: Access, kind: Kind, directory: &Attributes) -> Access {
        if self.is_privileged() {
            return access;
        }
        let mut mode = access.mode;
        let is_inherited = directory.mode & SET_GROUP != 0;
        let group = if is_inherited { directory.group } else { self.group };
        let is_program = mode & GROUP_EXECUTES != 0 && kind != Kind::Directory;
        if is_inherited && is_program && !self.is_in(group) {
            mode &= !SET_GROUP;
        }
        Access { mode, owner: self.user, group: self.group }
    }
}

/// A mode without set-user, and without set-group where that is meant for a program.
pub fn without_privileges(mode: u32) -> u32 {
    let is_program = mode & GROUP_EXECUTES != 0;
    mode & !SET_USER & !if is_program { SET_GROUP } else { 0 }
}
