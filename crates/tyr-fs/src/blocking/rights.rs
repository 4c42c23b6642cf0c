//! What a user may do. Without one everything is allowed: nothing is read for that.
//!
//! What is refused was so at a moment of the call; rights that change while it runs may count or
//! not, as on any file system.

use std::sync::Arc;

use rustix::io::Errno;

use super::store::FileSystem;
use crate::error::{Error, Result};
use crate::layout::forward::Place;
use crate::layout::name::Name;
use crate::layout::record::{Access, Kind};
use crate::plan::attributes::NewAttributes;
use crate::plan::lookup::{Attributes, Glance, Inspect, Lookup, Seen};
use crate::plan::node::Node;
use crate::plan::rights::{Credentials, Permission};
use crate::plan::xattrs::no_attribute;

impl FileSystem {
    /// The same file system for a user: what mode bits, owner and group do not allow is refused,
    /// and what is made belongs to the user. Access control lists are not gone by.
    #[must_use]
    pub fn acting_as(&self, user: Credentials) -> Self {
        Self { user: Some(Arc::new(user)), ..self.clone() }
    }

    /// What is known of a file, as of some moment of the call.
    fn glance(&self, node: &Node) -> Result<Attributes> {
        self.run(&Glance(Inspect { node: node.clone() }))
    }

    /// Whether nothing is refused.
    pub(super) fn is_privileged(&self) -> bool {
        self.user.as_ref().is_none_or(|user| user.is_privileged())
    }

    /// Refuses what the user may not do with a file.
    pub(super) fn may(&self, node: &Node, permission: Permission) -> Result<()> {
        match &self.user {
            Some(user) => user.check(&self.glance(node)?, permission),
            None => Ok(()),
        }
    }

    /// Refuses who may not change the names of a directory.
    pub(super) fn may_enter(&self, directory: &Node) -> Result<()> {
        self.user.as_ref().map_or(Ok(()), |user| self.entered(user, directory).map(drop))
    }

    /// The attributes of a directory whose names this user may change.
    fn entered(&self, user: &Credentials, directory: &Node) -> Result<Attributes> {
        let attributes = self.glance(directory)?;
        user.check(&attributes, Permission::Execute)?;
        user.check(&attributes, Permission::Write)?;
        Ok(attributes)
    }

    /// The same, for what is made there; answers what it has.
    pub(super) fn may_make(&self, directory: &Node, kind: Kind, access: Access) -> Result<Access> {
        let Some(user) = &self.user else { return Ok(access) };
        Ok(user.owning(access, kind, &self.entered(user, directory)?))
    }

    /// Refuses who may not take a name from a directory.
    pub(super) fn may_take(&self, directory: &Node, name: &Name) -> Result<()> {
        self.user.as_ref().map_or(Ok(()), |user| self.taken(user, directory, name).map(drop))
    }

    /// What has a name in a directory, which this user may take from it.
    fn taken(&self, user: &Credentials, directory: &Node, name: &Name) -> Result<Seen> {
        let entered = self.entered(user, directory)?;
        let place = Place { directory: directory.require_directory()?, name: name.clone() };
        let seen = self.run(&Glance(Lookup { place }))?;
        user.check_sticky(&entered, &seen.attributes)?;
        Ok(seen)
    }

    /// Refuses who may not rename this.
    pub(super) fn may_rename(
        &self,
        (from, name): (&Node, &Name),
        (to, new_name): (&Node, &Name),
    ) -> Result<()> {
        let Some(user) = &self.user else { return Ok(()) };
        let moved = self.taken(user, from, name)?.node;
        match self.taken(user, to, new_name) {
            Err(error) if error.errno() == Errno::NOENT => {}
            taken => drop(taken?),
        }
        match moved.kind == Kind::Directory && from.number != to.number {
            // It gets another `..`.
            true => self.may(&moved, Permission::Write),
            false => Ok(()),
        }
    }

    /// Refuses who may not change these attributes; answers what is changed.
    pub(super) fn may_set(
        &self,
        node: &Node,
        new: NewAttributes,
        is_now: bool,
    ) -> Result<NewAttributes> {
        match &self.user {
            Some(user) => user.check_change(&self.glance(node)?, new, is_now),
            None => Ok(new),
        }
    }

    /// Refuses who may not see an extended attribute.
    pub(super) fn may_read_xattr(&self, node: &Node, name: &[u8]) -> Result<()> {
        match name.split(|byte| *byte == b'.').next() {
            Some(b"user") => self.may(node, Permission::Read),
            Some(b"trusted") if !self.is_privileged() => Err(no_attribute(name)),
            _ => Ok(()),
        }
    }

    /// Refuses who may not change an extended attribute.
    pub(super) fn may_set_xattr(&self, node: &Node, name: &[u8]) -> Result<()> {
        let Some(user) = &self.user else { return Ok(()) };
        let is_allowed = match name.split(|byte| *byte == b'.').next() {
            Some(b"user") => return self.may(node, Permission::Write),
            Some(b"system") => user.user == self.glance(node)?.owner,
            _ => false,
        };
        match is_allowed || user.is_privileged() {
            true => Ok(()),
            false => {
                let name = name.escape_ascii();
                let text = format!("user {} may not change the attribute {name}", user.user);
                Err(Error::new(Errno::PERM, text))
            }
        }
    }
}
