//! Transactions over files: any calls on any files that take effect together or not at all.

use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;
use tyr::Bytes;

use super::attempts::back_off;
use super::bundle::{Bundle, Bundled};
use super::listing::Page;
use super::store::FileSystem;
use crate::error::{Error, Result};
use crate::layout::name::Name;
use crate::layout::record::Access;
use crate::options::NewFile;
use crate::plan::attributes::NewAttributes;
use crate::plan::lookup::{Attributes, Seen};
use crate::plan::node::Node;
use crate::plan::rename::RenameMode;
use crate::plan::xattrs::XattrChange;

/// How often a transaction is run that others get in the way of.
const ATTEMPTS_MAX: u32 = 100;

/// Conditions and changes of a transaction.
const OPERATIONS_MAX: usize = tyr::limits::TRANSACTION_OPERATIONS_MAX;

/// Calls that take effect together or not at all: see [`FileSystem::transact`].
///
/// They are those of the file system, by name and by path, and see what those before them did. What
/// they answer is of one moment.
#[derive(Debug)]
pub struct Transaction {
    files: FileSystem,
}

/// A call of the file system that may be part of a transaction.
macro_rules! calls {
    ($($name:ident($($given:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl Transaction {
            $(
                #[doc = concat!("See [`FileSystem::", stringify!($name), "`].")]
                ///
                /// # Errors
                /// As there, and as [`FileSystem::transact`] has it.
                pub fn $name(&self, $($given: $type),*) -> Result<$answer> {
                    self.files.$name($($given),*)
                }
            )*
        }
    };
}

calls! {
    lookup(directory: &Node, name: &Name) -> Seen;
    make_file(directory: &Node, name: &Name, new: NewFile) -> Seen;
    store_file(directory: &Node, name: &Name, new: NewFile, content: Vec<u8>) -> Seen;
    make_directory(directory: &Node, name: &Name, access: Access) -> Seen;
    make_symlink(directory: &Node, name: &Name, target: &[u8], access: Access) -> Seen;
    remove_file(directory: &Node, name: &Name) -> ();
    remove_directory(directory: &Node, name: &Name) -> ();
    link(node: &Node, directory: &Node, name: &Name) -> ();
    rename(from: (&Node, &Name), to: (&Node, &Name), mode: RenameMode) -> ();
    attributes(node: &Node) -> Attributes;
    set_attributes(node: &Node, new: NewAttributes) -> ();
    set_times_now(node: &Node) -> ();
    truncate(node: &Node, size: u64) -> ();
    write(node: &Node, offset: u64, data: impl Into<Bytes>) -> ();
    read(node: &Node, offset: u64, len: u64) -> Bytes;
    read_link(node: &Node) -> Bytes;
    xattr(node: &Node, name: &[u8]) -> Vec<u8>;
    xattr_names(node: &Node) -> Vec<Vec<u8>>;
    set_xattr(node: &Node, name: &[u8], change: XattrChange) -> ();
    parent(node: &Node) -> Node;
    list_directory(directory: &Node, cookie: u64, limit: usize) -> Page;
    find(path: impl AsRef<[u8]>) -> Seen;
    find_symlink(path: impl AsRef<[u8]>) -> Seen;
    attributes_at(path: impl AsRef<[u8]>) -> Attributes;
    make_directory_at(path: impl AsRef<[u8]>, access: Access) -> Seen;
    make_symlink_at(path: impl AsRef<[u8]>, target: impl AsRef<[u8]>, access: Access) -> Seen;
    make_file_at(path: impl AsRef<[u8]>, access: Access) -> Seen;
    store_at(path: impl AsRef<[u8]>, data: &[u8], access: Access) -> ();
    fetch_at(path: impl AsRef<[u8]>) -> Bytes;
    remove_file_at(path: impl AsRef<[u8]>) -> ();
    remove_directory_at(path: impl AsRef<[u8]>) -> ();
    link_at(path: impl AsRef<[u8]>, new: impl AsRef<[u8]>) -> ();
    rename_at(from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> ();
    rename_at_with(from: impl AsRef<[u8]>, to: impl AsRef<[u8]>, mode: RenameMode) -> ();
    swap_at(one: impl AsRef<[u8]>, other: impl AsRef<[u8]>) -> ();
}

impl Transaction {
    /// Appends bytes. Where they are put is not known before the commit, so that others may append
    /// at the same time.
    ///
    /// # Errors
    /// As [`FileSystem::append`], and as [`FileSystem::transact`] has it.
    pub fn append(&self, node: &Node, data: impl Into<Bytes>) -> Result<()> {
        self.files.append_bundled(node, data.into())
    }

    /// Blobs of other keyspaces of the store, changed and read in the same transaction. A condition
    /// there that does not hold makes all of it run again. What is read there is of a moment of its
    /// own, and compared at the commit.
    ///
    /// # Errors
    /// What the closure answers, and as [`FileSystem::transact`] has it.
    pub fn with_store<T>(
        &self,
        work: impl FnOnce(&mut tyr::blocking::Transaction) -> tyr::Result<T>,
    ) -> Result<T> {
        let mut bundle = self.files.bundle()?;
        Ok(work(bundle.store())?)
    }
}

impl FileSystem {
    /// Runs `work` as one transaction: what it does with the [`Transaction`] that it is given, on
    /// any files, takes effect at one moment, entirely or not at all, and only when it answers
    /// `Ok`. What it reads is of one moment, and still so when it takes effect. Where others have
    /// changed that meanwhile it is run again, so it should do nothing else that cannot be done
    /// twice.
    ///
    /// One transaction has at most 65,536 conditions and changes, which is 10,000 renames or 30,000
    /// new files, and in a cluster 16 MiB of small files; within 5 minutes. Open files have no part
    /// in it, but those that it unlinks stay usable.
    ///
    /// # Errors
    /// What `work` answers, and nothing has changed then; `EAGAIN` when others were in the way 100
    /// times in a row; `E2BIG` beyond the bounds.
    pub fn transact<T>(&self, mut work: impl FnMut(&Transaction) -> Result<T>) -> Result<T> {
        for attempt in 0..ATTEMPTS_MAX {
            let bundle = Bundle::new(&self.shared, attempt > 0)?;
            let bundle = Arc::new(Mutex::new(bundle));
            let files = Self { bundle: Some(bundle.clone()), ..self.clone() };
            let done = work(&Transaction { files });
            let bundle = Arc::into_inner(bundle).expect("the transaction is over");
            let bundle = bundle.into_inner();
            // Data may have moved since the moment at which it read.
            let is_too_old = done.as_ref().is_err_and(Error::is_too_old);
            if !bundle.is_conflict() && !is_too_old {
                let answer = done?;
                if self.commit(bundle.into_bundled())? {
                    return Ok(answer);
                }
            }
            back_off(attempt);
        }
        let text = format!(
            "others changed what the transaction read, {ATTEMPTS_MAX} times in a row; nothing of \
             it was done"
        );
        Err(Error::new(Errno::AGAIN, text))
    }

    fn commit(&self, bundled: Bundled) -> Result<bool> {
        let count = bundled.conditions.len() + bundled.changes.len();
        if count > OPERATIONS_MAX {
            let text = format!(
                "a transaction over files has at most {OPERATIONS_MAX} conditions and changes, \
                 this one has {count}: do it in several"
            );
            return Err(Error::new(Errno::TOOBIG, text));
        }
        let orphans = bundled.orphans.clone();
        let is_done = self.shared.commit_bundled(bundled).map_err(too_large)?;
        if is_done {
            for number in orphans {
                self.orphaned(number)?;
            }
        }
        Ok(is_done)
    }
}

/// What a store refuses of a transaction is that it is too large.
fn too_large(error: Error) -> Error {
    match error.errno() {
        Errno::INVAL => Error::new(Errno::TOOBIG, error.text()),
        _ => error,
    }
}
