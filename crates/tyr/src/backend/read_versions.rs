//! The versions that a transaction reads, and what has to be validated for it.
//!
//! Embedded, all reads of a transaction are of one snapshot. In a cluster each blob has its own S,
//! from its first read on (R3, R4): which of several blobs' versions belong together is found out
//! by validation (C1), and no node's clock has to wait for another's.
//!
//! A transaction that only reads and met a conflict reads at one [`Moment`] instead (R8).

use std::collections::BTreeSet;
use std::sync::Arc;

use tyr_runtime::waiting::block_on;
use tyr_types::{BlobName, ByteRange, Bytes, ReadCheck, Result, Scan, ScanPage, Stat, Timestamp};

use super::embedded::SnapshotGuard;
use super::remote::{Lease, RemoteVersions, RemoteView};
use super::{Answer, Backend, Found, Space, View};

/// The versions that a transaction reads.
#[derive(Debug)]
pub(crate) enum ReadVersions {
    /// One snapshot, from the first read on.
    Embedded(Option<View>),
    /// An S for each blob, from its first read on.
    Remote(RemoteVersions),
}

/// One moment of all blobs or of some, which everything acknowledged before precedes (R6, R8).
#[derive(Clone, Debug)]
pub(crate) enum Moment {
    /// Of an embedded store: the snapshot that the first read begins, whatever is read.
    Embedded,
    /// Of a cluster: S is the highest clock of the authorities of these.
    Remote {
        /// S.
        at: Timestamp,
        /// Whose clocks it is of.
        blobs: BTreeSet<BlobName>,
    },
}

impl Moment {
    /// Whether what is read of a blob then needs no validation.
    pub fn settles(&self, blob: &BlobName) -> bool {
        match self {
            Self::Embedded => true,
            Self::Remote { blobs, .. } => blobs.contains(blob),
        }
    }

    fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Embedded => None,
            Self::Remote { at, .. } => Some(*at),
        }
    }
}

/// What a read of a transaction found, and what it is validated by.
#[derive(Debug)]
pub(crate) struct VersionedRead {
    pub answer: Answer,
    pub check: ReadCheck,
}

impl ReadVersions {
    /// Those of a transaction that has read nothing, and is to read at a moment if one is given.
    pub fn new(backend: &Backend, moment: Option<&Moment>) -> Self {
        let moment = moment.and_then(Moment::at);
        match backend {
            Backend::Embedded(_) => Self::Embedded(None),
            Backend::Remote(_) => Self::Remote(RemoteVersions::new(moment)),
        }
    }

    /// Reads a range, at the transaction's version; with the size if it is wanted.
    pub fn read(
        &mut self,
        space: &Space,
        name: &BlobName,
        range: ByteRange,
        is_attributes: bool,
    ) -> Result<VersionedRead> {
        let read = match (self, space) {
            (Self::Embedded(view), Space::Embedded(_)) => {
                let view = begun(view, space)?;
                let answer = match range.is_empty() {
                    true => stated(view.stat(space, name)?),
                    false => view.read(space, name, range)?,
                };
                Ok(versioned(answer, name, range, is_attributes, view.at()))
            }
            (Self::Remote(versions), Space::Remote(space)) => {
                block_on(versions.read(space.client(), name, range, is_attributes))
            }
            (Self::Embedded(_), Space::Remote(_)) | (Self::Remote(_), Space::Embedded(_)) => {
                Err(super::strange(space))
            }
        };
        read.map_err(|error| space.named(error))
    }

    pub async fn fetch(
        &mut self,
        space: &Space,
        name: &BlobName,
        range: ByteRange,
        is_attributes: bool,
    ) -> Result<VersionedRead> {
        let read = match (self, space) {
            (Self::Embedded(view), Space::Embedded(_)) => {
                let view = begun(view, space)?;
                let answer = view.fetch(space, name, range).await?;
                Ok(versioned(answer, name, range, is_attributes, view.at()))
            }
            (Self::Remote(versions), Space::Remote(space)) => {
                versions.read(space.client(), name, range, is_attributes).await
            }
            (Self::Embedded(_), Space::Remote(_)) | (Self::Remote(_), Space::Embedded(_)) => {
                Err(super::strange(space))
            }
        };
        read.map_err(|error| space.named(error))
    }

    /// The view of a blob in which the transaction reads it, with its size; `None`: no such blob.
    /// What is read there is to be noted by who reads it, and so is that there is no blob.
    pub async fn take_view_of(
        &mut self,
        space: &Space,
        name: &BlobName,
    ) -> Result<(View, Option<u64>)> {
        let found = match (self, space) {
            (Self::Embedded(view), Space::Embedded(_)) => {
                let view = begun(view, space)?.clone();
                let stat = view.fetch_stat(space, name).await?;
                return Ok((view, stat.map(|stat| stat.size)));
            }
            (Self::Remote(versions), Space::Remote(space)) => {
                let read = versions.read(space.client(), name, ByteRange::NOTHING, true).await;
                read.map(|VersionedRead { answer, check }| {
                    let view = View::Remote(RemoteView::kept_at(space.client(), check.at));
                    (view, answer.and_then(|found| found.size))
                })
            }
            (Self::Embedded(_), Space::Remote(_)) | (Self::Remote(_), Space::Embedded(_)) => {
                Err(super::strange(space))
            }
        };
        found.map_err(|error| space.named(error))
    }

    /// A page of a group, whose prefix is `group` (Q3), and the version at which it was listed.
    pub fn scan(
        &mut self,
        space: &Space,
        group: &BlobName,
        scan: &Scan,
    ) -> Result<(ScanPage, Timestamp)> {
        match (self, space) {
            (Self::Embedded(view), Space::Embedded(_)) => {
                let view = begun(view, space)?;
                Ok((view.scan(space, scan)?, view.at()))
            }
            (Self::Remote(versions), Space::Remote(of)) => {
                block_on(versions.scan(of, group, scan)).map_err(|error| space.named(error))
            }
            (Self::Embedded(_), Space::Remote(_)) | (Self::Remote(_), Space::Embedded(_)) => {
                Err(super::strange(space))
            }
        }
    }

    /// The same, for async code.
    pub async fn fetch_page(
        &mut self,
        space: &Space,
        group: &BlobName,
        scan: &Scan,
    ) -> Result<(ScanPage, Timestamp)> {
        match (self, space) {
            (Self::Embedded(view), Space::Embedded(_)) => {
                let view = begun(view, space)?;
                Ok((view.fetch_page(space, scan).await?, view.at()))
            }
            (Self::Remote(versions), Space::Remote(of)) => {
                versions.scan(of, group, scan).await.map_err(|error| space.named(error))
            }
            (Self::Embedded(_), Space::Remote(_)) | (Self::Remote(_), Space::Embedded(_)) => {
                Err(super::strange(space))
            }
        }
    }

    /// What keeps the versions of an embedded store.
    pub fn into_guard(self) -> Option<Arc<SnapshotGuard>> {
        match self {
            Self::Embedded(view) => view.and_then(View::into_guard),
            Self::Remote(_) => None,
        }
    }

    /// What keeps the versions in a cluster.
    pub fn into_leases(self) -> Vec<Lease> {
        match self {
            Self::Embedded(_) => Vec::new(),
            Self::Remote(versions) => versions.into_leases(),
        }
    }
}

/// The snapshot of a transaction, begun by its first read.
fn begun<'a>(view: &'a mut Option<View>, space: &Space) -> Result<&'a View> {
    match view {
        Some(view) => Ok(view),
        None => Ok(view.insert(space.backend().view()?)),
    }
}

pub(super) fn stated(stat: Option<Stat>) -> Answer {
    let bytes = Bytes::new();
    stat.map(|Stat { size, version }| Found { size: Some(size), version, bytes })
}

/// What an embedded store answered: all of the range counts as read, and where the blob ends, if
/// that was met.
fn versioned(
    answer: Answer,
    name: &BlobName,
    range: ByteRange,
    is_attributes: bool,
    at: Timestamp,
) -> VersionedRead {
    let size = answer.as_ref().and_then(|found| found.size);
    let is_attributes = is_attributes || size.is_none_or(|size| size < range.end);
    VersionedRead {
        answer,
        check: ReadCheck { blob: name.clone(), range, is_attributes, at, listed: None },
    }
}
