//! A file system, for async code: the same calls as for threads, each on a thread meant for
//! waiting.

use std::sync::Arc;

use blocking::unblock;
use tyr::{Bytes, Tyr};

use crate::blocking::Page;
use crate::check::{Repairs, Report};
use crate::error::Result;
use crate::layout::name::Name;
use crate::layout::record::Access;
use crate::options::{NewFile, Options};
use crate::plan::allocate::Allocation;
use crate::plan::attributes::NewAttributes;
use crate::plan::lookup::{Attributes, Seen};
use crate::plan::node::Node;
use crate::plan::rename::RenameMode;
use crate::plan::rights::Credentials;
use crate::plan::xattrs::XattrChange;

/// A file system: see [`blocking::FileSystem`](crate::blocking::FileSystem), of which this is the
/// same for async code. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct FileSystem {
    inner: crate::blocking::FileSystem,
}

/// A call of the same name, with what it borrows first.
macro_rules! calls {
    ($($name:ident($($lent:ident: &$lent_type:ty),*; $($given:ident: $given_type:ty),*)
        -> $answer:ty;)*) => {
        $(
            #[doc = concat!("See [`blocking::FileSystem::", stringify!($name),
                "`](crate::blocking::FileSystem::", stringify!($name), ").")]
            ///
            /// # Errors
            /// As there.
            pub async fn $name(
                &self,
                $($lent: &$lent_type,)*
                $($given: $given_type,)*
            ) -> Result<$answer> {
                let inner = self.inner.clone();
                $(let $lent = $lent.to_owned();)*
                unblock(move || inner.$name($(&$lent,)* $($given,)*)).await
            }
        )*
    };
}

impl FileSystem {
    calls! {
        lookup(directory: &Node, name: &Name;) -> Seen;
        make_file(directory: &Node, name: &Name; new: NewFile) -> Seen;
        store_file(directory: &Node, name: &Name; new: NewFile, content: Vec<u8>) -> Seen;
        make_directory(directory: &Node, name: &Name; access: Access) -> Seen;
        make_symlink(directory: &Node, name: &Name, target: &[u8]; access: Access) -> Seen;
        remove_file(directory: &Node, name: &Name;) -> ();
        remove_directory(directory: &Node, name: &Name;) -> ();
        link(node: &Node, directory: &Node, name: &Name;) -> ();
        attributes(node: &Node;) -> Attributes;
        set_attributes(node: &Node; new: NewAttributes) -> ();
        set_times_now(node: &Node;) -> ();
        truncate(node: &Node; size: u64) -> ();
        allocate(node: &Node; allocation: Allocation, offset: u64, len: u64) -> ();
        next_data(node: &Node; offset: u64) -> u64;
        next_hole(node: &Node; offset: u64) -> u64;
        write(node: &Node; offset: u64, data: Bytes) -> ();
        append(node: &Node; data: Bytes) -> u64;
        read(node: &Node; offset: u64, len: u64) -> Bytes;
        read_link(node: &Node;) -> Bytes;
        xattr(node: &Node, name: &[u8];) -> Vec<u8>;
        xattr_names(node: &Node;) -> Vec<Vec<u8>>;
        set_xattr(node: &Node, name: &[u8]; change: XattrChange) -> ();
        parent(node: &Node;) -> Node;
        list_directory(directory: &Node; cookie: u64, limit: usize) -> Page;
        find(path: &[u8];) -> Seen;
        find_symlink(path: &[u8];) -> Seen;
        attributes_at(path: &[u8];) -> Attributes;
        make_directory_at(path: &[u8]; access: Access) -> Seen;
        make_symlink_at(path: &[u8], target: &[u8]; access: Access) -> Seen;
        make_file_at(path: &[u8]; access: Access) -> Seen;
        store_at(path: &[u8], data: &[u8]; access: Access) -> ();
        fetch_at(path: &[u8];) -> Bytes;
        remove_file_at(path: &[u8];) -> ();
        remove_directory_at(path: &[u8];) -> ();
        link_at(path: &[u8], new: &[u8];) -> ();
        rename_at(from: &[u8], to: &[u8];) -> ();
        rename_at_with(from: &[u8], to: &[u8]; mode: RenameMode) -> ();
        swap_at(one: &[u8], other: &[u8];) -> ();
        sync(;) -> ();
    }

    /// See [`blocking::FileSystem::transact`](crate::blocking::FileSystem::transact). `work` runs
    /// on a thread that may wait.
    ///
    /// # Errors
    /// As there.
    pub async fn transact<T: Send + 'static>(
        &self,
        work: impl FnMut(&crate::blocking::Transaction) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = self.inner.clone();
        unblock(move || inner.transact(work)).await
    }

    /// See [`blocking::FileSystem::create`](crate::blocking::FileSystem::create).
    ///
    /// # Errors
    /// As there.
    pub async fn create(store: &Tyr, name: &str, options: &Options) -> Result<Self> {
        let (store, name, options) = (store.blocking(), name.to_owned(), options.clone());
        let create = move || crate::blocking::FileSystem::create(&store, &name, &options);
        unblock(create).await.map(|inner| Self { inner })
    }

    /// See [`blocking::FileSystem::open`](crate::blocking::FileSystem::open).
    ///
    /// # Errors
    /// As there.
    pub async fn open(store: &Tyr, name: &str) -> Result<Self> {
        let (store, name) = (store.blocking(), name.to_owned());
        let open = move || crate::blocking::FileSystem::open(&store, &name);
        unblock(open).await.map(|inner| Self { inner })
    }

    /// See [`blocking::FileSystem::acting_as`](crate::blocking::FileSystem::acting_as).
    #[must_use]
    pub fn acting_as(&self, user: Credentials) -> Self {
        Self { inner: self.inner.acting_as(user) }
    }

    /// The same for threads.
    pub fn as_blocking(&self) -> &crate::blocking::FileSystem {
        &self.inner
    }

    /// See [`blocking::FileSystem::open_file`](crate::blocking::FileSystem::open_file).
    ///
    /// # Errors
    /// As there.
    pub async fn open_file(&self, node: &Node) -> Result<OpenFile> {
        let (inner, node) = (self.inner.clone(), node.clone());
        let file = unblock(move || inner.open_file(&node)).await?;
        Ok(OpenFile { file: Arc::new(file) })
    }

    /// See [`blocking::FileSystem::rename`](crate::blocking::FileSystem::rename).
    ///
    /// # Errors
    /// As there.
    pub async fn rename(
        &self,
        (from, name): (&Node, &Name),
        (to, new_name): (&Node, &Name),
        mode: RenameMode,
    ) -> Result<()> {
        let inner = self.inner.clone();
        let (from, name) = (from.clone(), name.clone());
        let (to, new_name) = (to.clone(), new_name.clone());
        unblock(move || inner.rename((&from, &name), (&to, &new_name), mode)).await
    }

    /// See [`blocking::FileSystem::check`](crate::blocking::FileSystem::check).
    ///
    /// # Errors
    /// As there.
    pub async fn check(
        &self,
        mut progress: impl FnMut(u64) -> bool + Send + 'static,
    ) -> Result<Report> {
        let inner = self.inner.clone();
        unblock(move || inner.check(&mut progress)).await
    }

    /// See [`blocking::FileSystem::repair`](crate::blocking::FileSystem::repair).
    ///
    /// # Errors
    /// As there.
    pub async fn repair(
        &self,
        mut progress: impl FnMut(u64) -> bool + Send + 'static,
    ) -> Result<Repairs> {
        let inner = self.inner.clone();
        unblock(move || inner.repair(&mut progress)).await
    }

    /// See [`blocking::FileSystem::moment`](crate::blocking::FileSystem::moment): its calls are for
    /// threads that may wait.
    ///
    /// # Errors
    /// As there.
    pub async fn moment(&self) -> Result<crate::blocking::Moment> {
        let inner = self.inner.clone();
        unblock(move || inner.moment()).await
    }

    /// See [`blocking::FileSystem::close`](crate::blocking::FileSystem::close).
    ///
    /// # Errors
    /// As there.
    pub async fn close(self) -> Result<()> {
        unblock(move || self.inner.close()).await
    }
}

/// An open file: see [`blocking::OpenFile`](crate::blocking::OpenFile). It stays usable when its
/// last name is taken, until it is closed or dropped.
#[derive(Debug)]
pub struct OpenFile {
    file: Arc<crate::blocking::OpenFile>,
}

impl OpenFile {
    /// See [`FileSystem::attributes`].
    ///
    /// # Errors
    /// As there.
    pub async fn attributes(&self) -> Result<Attributes> {
        let file = self.file.clone();
        unblock(move || file.attributes()).await
    }

    /// See [`FileSystem::read`].
    ///
    /// # Errors
    /// As there.
    pub async fn read(&self, offset: u64, len: u64) -> Result<Bytes> {
        let file = self.file.clone();
        unblock(move || file.read(offset, len)).await
    }

    /// See [`FileSystem::write`].
    ///
    /// # Errors
    /// As there.
    pub async fn write(&self, offset: u64, data: impl Into<Bytes>) -> Result<()> {
        let (file, data) = (self.file.clone(), data.into());
        unblock(move || file.write(offset, data)).await
    }

    /// See [`FileSystem::append`].
    ///
    /// # Errors
    /// As there.
    pub async fn append(&self, data: impl Into<Bytes>) -> Result<u64> {
        let (file, data) = (self.file.clone(), data.into());
        unblock(move || file.append(data)).await
    }

    /// See [`FileSystem::truncate`].
    ///
    /// # Errors
    /// As there.
    pub async fn truncate(&self, size: u64) -> Result<()> {
        let file = self.file.clone();
        unblock(move || file.truncate(size)).await
    }

    /// See [`blocking::OpenFile::close`](crate::blocking::OpenFile::close).
    ///
    /// # Errors
    /// As there.
    pub async fn close(self) -> Result<()> {
        match Arc::into_inner(self.file) {
            Some(file) => unblock(move || file.close()).await,
            // A call that was given up still uses it: it is closed behind that.
            None => Ok(()),
        }
    }
}
