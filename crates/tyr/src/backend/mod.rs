//! What the public API stands on: a store in this process, or a cluster.
//!
//! ```text
//!   async API ──► blocking API ──┬──► embedded: EmbeddedStore   blocks; memory answers at once
//!                                └──► remote: Client            waits for nodes
//! ```
//!
//! Everything that the two do differently is here, behind enums; above it there is one API. The
//! embedded half blocks, so async callers take it to a pool of threads unless memory can answer;
//! the remote half is futures, so that threads wait for them. The parts: [`Backend`] is a store,
//! [`Space`] a keyspace of one, [`View`] a moment of one, [`ReadVersions`] what a transaction
//! reads, [`Commit`] one under way, [`KeyLease`] a lease of a key, [`KeyWatch`] a watch,
//! [`metadata`] what services agree on. What fails gets users' names ([`Backend::named`]).
//!
//! A build without one of the two has, in its place, types of the same names that have no value:
//! what is above is the same in all builds, and what cannot be there costs nothing.
//!
//! It must not know what operations do.

mod commit;
#[cfg(feature = "embedded")]
mod embedded;
#[cfg(not(feature = "embedded"))]
#[path = "without_embedded.rs"]
mod embedded;
mod kept;
mod key_lease;
mod key_watch;
mod metadata;
mod method;
mod read_versions;
#[cfg(feature = "cluster")]
mod remote;
#[cfg(not(feature = "cluster"))]
#[path = "without_cluster.rs"]
mod remote;
#[cfg(feature = "cluster")]
mod remote_upload;
mod stated;
mod usage;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

#[cfg(feature = "embedded")]
use tyr_embedded::{CheckReport, TornTail};
use tyr_runtime::statistics::Statistics;
use tyr_runtime::waiting::block_on;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, ChunkLocation, Error, ExtentRef, KeyspaceConfig,
    KeyspaceInfo, KeyspaceName, ReadCheck, Result, Stat, Timestamp,
};

pub(crate) use self::commit::{Asked, Commit};
pub(crate) use self::embedded::{EmbeddedStore, ExtentLease};
pub(crate) use self::key_lease::KeyLease;
pub(crate) use self::key_watch::KeyWatch;
pub(crate) use self::metadata::{MetadataWatch, Presence};
pub(crate) use self::read_versions::{Moment, ReadVersions, VersionedRead};
pub(crate) use self::view::View;

use self::embedded::{EmbeddedSpace, EmbeddedView};
pub(crate) use self::remote::RemoteUpload;
use self::remote::{Client, RemoteSpace, RemoteView, Unresolved};
use crate::offload::offload;

/// What a read found; `None`: no such blob.
pub(crate) type Answer = Option<Found>;

/// What a read found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The blob's size. A cluster may leave it out when all bytes that were wanted are there, and
    /// nothing else was.
    pub size: Option<u64>,
    /// The newest version among what was read; of an embedded store, of the blob.
    pub version: Timestamp,
    /// The bytes; fewer than wanted where the blob ends.
    pub bytes: Bytes,
}

impl Found {
    /// What is known without the bytes, where the size was asked for.
    pub fn stat(&self) -> Option<Stat> {
        self.size.map(|size| Stat { size, version: self.version })
    }
}

/// A store.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    /// In this process.
    Embedded(Arc<EmbeddedStore>),
    /// A cluster.
    Remote(Arc<Client>),
}

/// A keyspace of a store.
#[derive(Clone, Debug)]
pub(crate) enum Space {
    Embedded(EmbeddedSpace),
    Remote(RemoteSpace),
}

/// Part of a blob, as one of many that are read at one moment.
#[derive(Clone, Debug)]
pub(crate) struct BlobPart {
    /// The blob's keyspace.
    pub space: Space,
    /// Which blob.
    pub name: BlobName,
    /// The bytes; cut to the blob's size.
    pub range: ByteRange,
}

/// A range of one blob, and where it goes in another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedCopy {
    /// The bytes.
    pub range: ByteRange,
    /// Where the first of them goes.
    pub offset: u64,
}

impl Backend {
    pub fn create_keyspace(&self, name: &KeyspaceName, config: &KeyspaceConfig) -> Result<Space> {
        match self {
            Self::Embedded(store) => {
                let entry = store.create_keyspace(name, config)?;
                Ok(Space::Embedded(EmbeddedSpace::new(store, entry)))
            }
            Self::Remote(client) => {
                let info = block_on(client.create_keyspace(name, config))?;
                Ok(Space::Remote(RemoteSpace::new(client, info)))
            }
        }
    }

    pub fn keyspace(&self, name: &KeyspaceName) -> Result<Space> {
        match self {
            Self::Embedded(store) => {
                let entry = store.keyspace(name)?;
                Ok(Space::Embedded(EmbeddedSpace::new(store, entry)))
            }
            Self::Remote(client) => {
                let info = block_on(client.keyspace(name))?;
                Ok(Space::Remote(RemoteSpace::new(client, info)))
            }
        }
    }

    pub async fn find_keyspace(&self, name: &KeyspaceName) -> Result<Space> {
        match self {
            Self::Embedded(_) => self.keyspace(name),
            Self::Remote(client) => {
                let info = client.keyspace(name).await?;
                Ok(Space::Remote(RemoteSpace::new(client, info)))
            }
        }
    }

    pub fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        match self {
            Self::Embedded(store) => Ok(store.keyspaces()),
            Self::Remote(client) => block_on(client.keyspaces()),
        }
    }

    pub async fn list_keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        match self {
            Self::Embedded(store) => Ok(store.keyspaces()),
            Self::Remote(client) => client.keyspaces().await,
        }
    }

    pub fn drop_keyspace(&self, name: &KeyspaceName) -> Result<()> {
        match self {
            Self::Embedded(store) => store.drop_keyspace(name),
            Self::Remote(client) => block_on(client.drop_keyspace(name)),
        }
    }

    /// The store as it is now, for as long as the view is held.
    pub fn view(&self) -> Result<View> {
        match self {
            Self::Embedded(store) => Ok(View::Embedded(EmbeddedView::new(store)?)),
            Self::Remote(client) => Ok(View::Remote(block_on(RemoteView::new(client))?)),
        }
    }

    pub async fn take_view(&self) -> Result<View> {
        match self {
            Self::Embedded(_) => self.view(),
            Self::Remote(client) => Ok(View::Remote(RemoteView::new(client).await?)),
        }
    }

    /// Parts of many blobs at one moment, which everything acknowledged before precedes.
    pub fn read_many(&self, wanted: &[BlobPart]) -> Result<Vec<Option<Bytes>>> {
        match self {
            Self::Embedded(_) => {
                let view = self.view()?;
                let read = |part: &BlobPart| view.read(&part.space, &part.name, part.range);
                let bytes = |answer: Answer| answer.map(|found| found.bytes);
                wanted.iter().map(|part| read(part).map(bytes)).collect()
            }
            Self::Remote(client) => {
                let read = block_on(remote::read_many(client, wanted));
                read.map_err(|error| self.named(error))
            }
        }
    }

    pub async fn fetch_many(&self, wanted: Vec<BlobPart>) -> Result<Vec<Option<Bytes>>> {
        match self {
            Self::Embedded(_) => {
                let backend = self.clone();
                offload(move || backend.read_many(&wanted)).await
            }
            Self::Remote(client) => {
                let read = remote::read_many(client, &wanted).await;
                read.map_err(|error| self.named(error))
            }
        }
    }

    /// One moment of these blobs, which everything acknowledged before precedes; `None` when they
    /// are none, are too many for one, or their nodes do not tell.
    pub fn moment(&self, blobs: &BTreeSet<BlobName>) -> Option<Moment> {
        if blobs.is_empty() { None } else { block_on(self.take_moment(blobs)) }
    }

    pub async fn take_moment(&self, blobs: &BTreeSet<BlobName>) -> Option<Moment> {
        match self {
            _ if blobs.is_empty() => None,
            Self::Embedded(_) => Some(Moment::Embedded),
            Self::Remote(client) => remote::moment(client, blobs).await,
        }
    }

    /// Commits a transaction. What it looked at stays until it is decided, as do the extents.
    pub fn commit(
        &self,
        blobs: Vec<BlobOperations>,
        reads: Vec<ReadCheck>,
        versions: ReadVersions,
        leases: Vec<Arc<ExtentLease>>,
        uploads: Vec<RemoteUpload>,
    ) -> Commit {
        let ticket = match self {
            Self::Embedded(store) => embedded::commit(store, blobs, reads, versions, leases),
            Self::Remote(client) => remote::commit(client, blobs, reads, versions.into_leases()),
        };
        Commit::new(self, ticket, uploads)
    }

    /// Whether it is the same store, as its keyspaces have it.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Embedded(one), Self::Embedded(other)) => Arc::ptr_eq(one, other),
            (Self::Remote(one), Self::Remote(other)) => Arc::ptr_eq(one, other),
            (Self::Embedded(_), Self::Remote(_)) | (Self::Remote(_), Self::Embedded(_)) => false,
        }
    }

    /// The error as its user reads it: of a blob, with the name of its keyspace.
    pub fn named(&self, error: Error) -> Error {
        let Some(keyspace) = error.blob().map(|blob| blob.keyspace) else { return error };
        let name = match self {
            Self::Embedded(node) => {
                let known = node.keyspaces().into_iter().find(|info| info.id == keyspace);
                known.map(|info| info.name)
            }
            Self::Remote(client) => remote::name_of(client, keyspace),
        };
        match name {
            Some(name) => error.in_keyspace(name),
            None => error,
        }
    }

    /// Asks what became of a transaction that an error leaves open.
    pub fn ask(&self, error: &Error) -> Result<Asked> {
        match (self, Unresolved::of(error)) {
            (Self::Remote(client), Some(transaction)) => {
                let shape = transaction.blobs.iter().map(|it| it.operations.len() as u32).collect();
                let commit = Commit::new(self, client.ask(transaction), Vec::new());
                Ok(Asked::new(commit, shape))
            }
            (Self::Embedded(_) | Self::Remote(_), _) => Err(Error::invalid(
                "this error leaves nothing open: ask with the `TimedOut` error of a commit to a \
                 cluster",
            )),
        }
    }

    /// Reads part of a payload back that was written ahead of its transaction.
    pub fn read_extent(&self, extent: &ExtentRef, skip: u32, out: &mut [u8]) -> Result<()> {
        match self {
            Self::Embedded(store) => store.read_extent(extent, skip, out),
            Self::Remote(_) => Err(Error::invalid(
                "this payload was written to the disk of an embedded store; give its bytes to \
                 the cluster",
            )),
        }
    }

    #[cfg(feature = "embedded")]
    pub fn damage(&self) -> Option<&Error> {
        match self {
            Self::Embedded(store) => store.damage(),
            Self::Remote(_) => None,
        }
    }

    #[cfg(feature = "embedded")]
    pub fn torn_tail(&self) -> Option<&TornTail> {
        match self {
            Self::Embedded(store) => store.torn_tail(),
            Self::Remote(_) => None,
        }
    }

    /// Everything acknowledged before is on disk.
    pub async fn sync(&self) -> Result<()> {
        match self {
            Self::Embedded(store) => {
                let store = Arc::clone(store);
                offload(move || store.sync()).await
            }
            // Nodes have synced what they acknowledge, whatever the keyspace.
            Self::Remote(_) => Ok(()),
        }
    }

    pub fn statistics(&self) -> Statistics {
        match self {
            Self::Embedded(store) => store.statistics(),
            Self::Remote(client) => client.statistics(),
        }
    }

    #[cfg(feature = "embedded")]
    pub fn check(&self, progress: &mut dyn FnMut(f64)) -> Result<CheckReport> {
        match self {
            Self::Embedded(store) => store.check(progress),
            Self::Remote(_) => Err(Error::invalid(
                "a check is of the files of one store; run `tyr check` on the folders of the \
                 cluster's nodes, one at a time",
            )),
        }
    }

    pub fn close(&self) -> Result<()> {
        match self {
            Self::Embedded(store) => store.close(),
            Self::Remote(client) => {
                client.close();
                Ok(())
            }
        }
    }
}

impl Space {
    pub fn info(&self) -> &KeyspaceInfo {
        match self {
            Self::Embedded(space) => space.info(),
            Self::Remote(space) => space.info(),
        }
    }

    /// The store that it is of.
    pub fn backend(&self) -> Backend {
        match self {
            Self::Embedded(space) => Backend::Embedded(Arc::clone(space.store())),
            Self::Remote(space) => Backend::Remote(Arc::clone(space.client())),
        }
    }

    /// The error as its user reads it.
    fn named(&self, error: Error) -> Error {
        self.backend().named(error)
    }

    /// The newest bytes of a range.
    pub fn read(&self, name: &BlobName, range: ByteRange) -> Result<Answer> {
        let answer = match self {
            Self::Embedded(space) => space.read(name, range),
            Self::Remote(space) => block_on(space.read(name, range, false)),
        };
        answer.map_err(|error| self.named(error))
    }

    pub async fn fetch(&self, name: &BlobName, range: ByteRange) -> Result<Answer> {
        let answer = match self {
            Self::Embedded(space) => space.fetch(name, range).await,
            Self::Remote(space) => space.read(name, range, false).await,
        };
        answer.map_err(|error| self.named(error))
    }

    /// The newest of a whole blob, with its size. The bytes are left out when they are too many
    /// for one read.
    pub fn read_whole(&self, name: &BlobName) -> Result<Answer> {
        let answer = match self {
            Self::Embedded(space) => space.read_whole(name),
            Self::Remote(space) => block_on(space.read_whole(name)),
        };
        answer.map_err(|error| self.named(error))
    }

    pub async fn fetch_whole(&self, name: &BlobName) -> Result<Answer> {
        let answer = match self {
            Self::Embedded(space) => space.fetch_whole(name).await,
            Self::Remote(space) => space.read_whole(name).await,
        };
        answer.map_err(|error| self.named(error))
    }

    /// Where the chunks of a range of a blob lie.
    pub async fn locations(&self, name: &BlobName, range: ByteRange) -> Result<Vec<ChunkLocation>> {
        let located = match self {
            Self::Embedded(_) if range.is_empty() => Ok(Vec::new()),
            Self::Embedded(_) => Ok(vec![ChunkLocation { range, replicas: Vec::new() }]),
            Self::Remote(space) => space.client().locations(name, range).await,
        };
        located.map_err(|error| self.named(error))
    }

    /// Size and version; `None`: no such blob.
    pub fn stat(&self, name: &BlobName) -> Result<Option<Stat>> {
        let stat = match self {
            Self::Embedded(space) => space.stat(name),
            Self::Remote(space) => block_on(space.stat(name)),
        };
        stat.map_err(|error| self.named(error))
    }

    pub async fn fetch_stat(&self, name: &BlobName) -> Result<Option<Stat>> {
        let stat = match self {
            Self::Embedded(space) => space.fetch_stat(name).await,
            Self::Remote(space) => space.stat(name).await,
        };
        stat.map_err(|error| self.named(error))
    }

    /// A view of one blob, with its size: what a stream of it reads. `None`: no such blob.
    pub fn view_of(&self, name: &BlobName) -> Result<Option<(View, u64)>> {
        match self {
            Self::Embedded(space) => {
                let view = View::Embedded(EmbeddedView::new(space.store())?);
                let stat = view.stat(self, name)?;
                Ok(stat.map(|stat| (view, stat.size)))
            }
            Self::Remote(space) => block_on(self.take_view_of_remote(space, name)),
        }
    }

    pub async fn take_view_of(&self, name: &BlobName) -> Result<Option<(View, u64)>> {
        match self {
            Self::Embedded(_) => {
                let (space, name) = (self.clone(), name.clone());
                offload(move || space.view_of(&name)).await
            }
            Self::Remote(space) => self.take_view_of_remote(space, name).await,
        }
    }

    async fn take_view_of_remote(
        &self,
        space: &RemoteSpace,
        name: &BlobName,
    ) -> Result<Option<(View, u64)>> {
        let found = RemoteView::of_blob(space.client(), name).await;
        let found = found.map_err(|error| self.named(error))?;
        Ok(found.map(|(view, size)| (View::Remote(view), size)))
    }
}

fn strange(space: &Space) -> Error {
    let name = &space.info().name;
    Error::invalid(format!(
        "keyspace {name} is of another store than the snapshot or transaction; find it in the \
         same one"
    ))
}
