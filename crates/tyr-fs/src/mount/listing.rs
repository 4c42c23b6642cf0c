//! Listings for the kernel: directories as they are or were, and those of the mount itself.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use fuser::{FileType, INodeNo, ReplyDirectory, ReplyDirectoryPlus};
use rustix::io::Errno;

use super::answers::file_type;
use super::place::{Own, Place};
use super::snapshots;
use super::state::Bridge;
use crate::error::Result;
use crate::fuse::GENERATION;
use crate::fuse::answers::bare_attr;
use crate::plan::lookup::{Attributes, Seen};
use crate::plan::node::Node;

/// Names that are read from a directory at a time.
const PAGE_LEN: usize = 256;

/// Places in a listing of what every directory has.
const COOKIE_SELF: u64 = 1;
const COOKIE_PARENT: u64 = 2;

/// What a listing shows.
enum Listed {
    /// The directory itself, or the one that it is in.
    Around(INodeNo),
    File {
        view: u16,
        node: Node,
        attributes: Option<Attributes>,
    },
}

impl Bridge {
    /// Fills a page of a listing: `add` takes a place in it, a name and what that stands for, and
    /// answers whether there was no more room.
    fn list(
        &self,
        number: INodeNo,
        offset: u64,
        mut add: impl FnMut(u64, &OsStr, Listed) -> Result<bool>,
    ) -> Result<()> {
        if let Some(own) = Own::of(number) {
            return self.list_own(own, offset, add);
        }
        let view = Place::of(number).view;
        let (files, directory) = self.look(number)?;
        if offset < COOKIE_SELF && add(COOKIE_SELF, OsStr::new("."), Listed::Around(number))? {
            return Ok(());
        }
        if offset < COOKIE_PARENT {
            let file = files.parent(&directory)?.number;
            let parent = Place { view, file }.number();
            if add(COOKIE_PARENT, OsStr::new(".."), Listed::Around(parent))? {
                return Ok(());
            }
        }
        let mut cookie = if offset <= COOKIE_PARENT { 0 } else { offset };
        loop {
            let page = files.list_directory(&directory, cookie, PAGE_LEN)?;
            for entry in page.entries {
                cookie = entry.cookie;
                let name = OsStr::from_bytes(entry.name.as_bytes());
                let (node, attributes) = (entry.node, entry.attributes);
                if add(cookie, name, Listed::File { view, node, attributes })? {
                    return Ok(());
                }
            }
            if page.is_end {
                return Ok(());
            }
        }
    }

    /// The same of a directory of the mount.
    fn list_own(
        &self,
        own: Own,
        offset: u64,
        mut add: impl FnMut(u64, &OsStr, Listed) -> Result<bool>,
    ) -> Result<()> {
        let around = [(".", own.number()), ("..", own.parent())];
        let mut listed: Vec<(OsString, Listed)> = around
            .into_iter()
            .map(|(name, number)| (name.into(), Listed::Around(number)))
            .collect();
        match own {
            Own::Snapshots => listed.extend(self.kept()?),
            Own::Control => {
                let number = Own::Moments.number();
                listed.push((Own::Moments.name().into(), Listed::Around(number)));
            }
            Own::Moments => listed.extend(self.moments.list().into_iter().map(|taken| {
                let (name, view, Seen { node, attributes }) = taken;
                (name, Listed::File { view, node, attributes: Some(attributes) })
            })),
        }
        let places = (1..).zip(listed).skip_while(|(place, _)| *place <= offset);
        for (place, (name, listed)) in places {
            if add(place, &name, listed)? {
                break;
            }
        }
        Ok(())
    }

    /// The kept snapshots that can be read.
    fn kept(&self) -> Result<Vec<(OsString, Listed)>> {
        let mut listed = Vec::new();
        for name in snapshots::names(&self.files)? {
            let Ok(view) = self.snapshots.find(&self.files, OsStr::new(&name)) else { continue };
            // The file system may have been made later.
            let Ok(attributes) = self.files_of(view)?.attributes(&Node::ROOT) else { continue };
            let attributes = Some(attributes);
            listed.push((name.into(), Listed::File { view, node: Node::ROOT, attributes }));
        }
        Ok(listed)
    }

    /// Names alone.
    pub(super) fn list_names(
        &self,
        number: INodeNo,
        offset: u64,
        reply: &mut ReplyDirectory,
    ) -> Result<()> {
        self.list(number, offset, |place, name, listed| {
            let (number, kind) = match listed {
                Listed::Around(number) => (number, FileType::Directory),
                Listed::File { view, node, .. } => {
                    (Place { view, file: node.number }.number(), file_type(node.kind))
                }
            };
            Ok(reply.add(number, place, kind, name))
        })
    }

    /// Names with what is known of the files, of which the kernel is told thereby.
    pub(super) fn list_files(
        &self,
        number: INodeNo,
        offset: u64,
        reply: &mut ReplyDirectoryPlus,
    ) -> Result<()> {
        let lifetime = self.lifetime_of(number);
        self.list(number, offset, |place, name, listed| match listed {
            Listed::Around(number) => {
                let attr = bare_attr(number, FileType::Directory);
                Ok(reply.add(number, place, name, &lifetime, &attr, GENERATION))
            }
            Listed::File { view, node, attributes } => {
                let attributes = match attributes {
                    Some(attributes) => attributes,
                    // It may go between the listing and this.
                    None => match self.files_of(view)?.attributes(&node) {
                        Err(error) if error.errno() == Errno::STALE => return Ok(false),
                        attributes => attributes?,
                    },
                };
                let attr = Place { view, file: node.number }.attr(&attributes);
                let is_full = reply.add(attr.ino, place, name, &lifetime, &attr, GENERATION);
                if !is_full {
                    self.tell(view, &Seen { node, attributes }, (number, name));
                }
                Ok(is_full)
            }
        })
    }
}
