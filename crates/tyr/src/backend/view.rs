//! A moment of a store: reads there, whichever kind of store it is.

use std::sync::Arc;

use tyr_runtime::waiting::block_on;
use tyr_types::{
    BlobName, ByteRange, Error, Result, Scan, ScanPage, Stat, Stretches, Timestamp, limits,
};

use super::embedded::{EmbeddedView, SnapshotGuard};
use super::remote::RemoteView;
use super::{Answer, Space, strange};
use crate::offload::offload;

/// A store at one moment.
#[derive(Clone, Debug)]
pub(crate) enum View {
    Embedded(EmbeddedView),
    Remote(RemoteView),
}

impl View {
    /// Its moment.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Embedded(view) => view.at(),
            Self::Remote(view) => view.at(),
        }
    }

    /// What keeps its versions, in an embedded store.
    pub(super) fn into_guard(self) -> Option<Arc<SnapshotGuard>> {
        match self {
            Self::Embedded(view) => view.into_guard(),
            Self::Remote(_) => None,
        }
    }

    pub fn read(&self, space: &Space, name: &BlobName, range: ByteRange) -> Result<Answer> {
        let answer = match (self, space) {
            (Self::Embedded(view), Space::Embedded(space)) => view.read(space, name, range),
            (Self::Remote(view), Space::Remote(_)) => block_on(view.read(name, range, false)),
            (Self::Embedded(_), Space::Remote(_)) | (Self::Remote(_), Space::Embedded(_)) => {
                Err(strange(space))
            }
        };
        answer.map_err(|error| space.named(error))
    }

    pub async fn fetch(&self, space: &Space, name: &BlobName, range: ByteRange) -> Result<Answer> {
        let answer = match (self, space) {
            (Self::Embedded(view), Space::Embedded(space)) => {
                match view.read_resident(space, name, range) {
                    Some(answer) => answer,
                    None => {
                        let (view, space, name) = (view.clone(), space.clone(), name.clone());
                        offload(move || view.read(&space, &name, range)).await
                    }
                }
            }
            (Self::Remote(view), Space::Remote(_)) => view.read(name, range, false).await,
            (Self::Embedded(_), Space::Remote(_)) | (Self::Remote(_), Space::Embedded(_)) => {
                Err(strange(space))
            }
        };
        answer.map_err(|error| space.named(error))
    }

    /// Size and version then; `None`: no such blob.
    pub fn stat(&self, space: &Space, name: &BlobName) -> Result<Option<Stat>> {
        let answer = match (self, space) {
            (Self::Embedded(view), Space::Embedded(space)) => view.stat(space, name),
            (Self::Remote(view), Space::Remote(_)) => block_on(view.stat(name)),
            (Self::Embedded(_), Space::Remote(_)) | (Self::Remote(_), Space::Embedded(_)) => {
                Err(strange(space))
            }
        };
        answer.map_err(|error| space.named(error))
    }

    pub async fn fetch_stat(&self, space: &Space, name: &BlobName) -> Result<Option<Stat>> {
        let answer = match (self, space) {
            (Self::Embedded(view), Space::Embedded(space)) => {
                match view.stat_resident(space, name) {
                    Some(answer) => answer,
                    None => {
                        let (view, space, name) = (view.clone(), space.clone(), name.clone());
                        offload(move || view.stat(&space, &name)).await
                    }
                }
            }
            (Self::Remote(view), Space::Remote(_)) => view.stat(name).await,
            (Self::Embedded(_), Space::Remote(_)) | (Self::Remote(_), Space::Embedded(_)) => {
                Err(strange(space))
            }
        };
        answer.map_err(|error| space.named(error))
    }

    /// What is written of a range then; `None`: no such blob.
    pub async fn stretches(
        &self,
        space: &Space,
        name: &BlobName,
        range: ByteRange,
    ) -> Result<Option<Stretches>> {
        let answer = match (self, space) {
            (Self::Embedded(view), Space::Embedded(space)) => {
                let (view, space, name) = (view.clone(), space.clone(), name.clone());
                offload(move || view.stretches(&space, &name, range)).await
            }
            (Self::Remote(view), Space::Remote(of)) => view.stretches(of.info(), name, range).await,
            (Self::Embedded(_), Space::Remote(_)) | (Self::Remote(_), Space::Embedded(_)) => {
                Err(strange(space))
            }
        };
        answer.map_err(|error| space.named(error))
    }

    /// How many bytes are written then; `None`: no such blob.
    pub async fn allocated(&self, space: &Space, name: &BlobName) -> Result<Option<u64>> {
        if let Self::Remote(_) = self {
            let Some(stat) = self.fetch_stat(space, name).await? else { return Ok(None) };
            let chunks = stat.size.div_ceil(space.info().config.chunk_size);
            if chunks > limits::LOCATIONS_MAX {
                return Err(Error::invalid(format!(
                    "the blob has {chunks} chunks, and so many nodes would be asked; ask for the \
                     stretches of parts of it"
                )));
            }
        }
        let (mut sum, mut next) = (0, Some(0));
        while let Some(start) = next {
            let page = self.stretches(space, name, ByteRange::from(start)).await?;
            let Some(page) = page else { return Ok(None) };
            (sum, next) = (sum + page.len(), page.resume);
        }
        Ok(Some(sum))
    }

    /// Fills `out` with the bytes from `offset` on, which must be within the blob; `false`: no
    /// such blob.
    pub fn read_into(
        &self,
        space: &Space,
        name: &BlobName,
        offset: u64,
        out: &mut [u8],
    ) -> Result<bool> {
        let answer = match (self, space) {
            (Self::Embedded(view), Space::Embedded(space)) => {
                view.read_into(space, name, offset, out)
            }
            (Self::Remote(view), Space::Remote(_)) => block_on(view.read_into(name, offset, out)),
            (Self::Embedded(_), Space::Remote(_)) | (Self::Remote(_), Space::Embedded(_)) => {
                Err(strange(space))
            }
        };
        answer.map_err(|error| space.named(error))
    }

    /// A page of the keyspace then (Q2).
    pub fn scan(&self, space: &Space, scan: &Scan) -> Result<ScanPage> {
        let answer = match (self, space) {
            (Self::Embedded(view), Space::Embedded(of)) => {
                scan.validate_in(space.info().config.chunk_size)?;
                view.scan(of, scan)
            }
            (Self::Remote(view), Space::Remote(of)) => block_on(view.scan(of.info(), scan)),
            (Self::Embedded(_), Space::Remote(_)) | (Self::Remote(_), Space::Embedded(_)) => {
                Err(strange(space))
            }
        };
        answer.map_err(|error| space.named(error))
    }

    /// The same, without a thread that waits for nodes.
    pub async fn fetch_page(&self, space: &Space, scan: &Scan) -> Result<ScanPage> {
        match (self, space) {
            (Self::Remote(view), Space::Remote(of)) => {
                view.scan(of.info(), scan).await.map_err(|error| space.named(error))
            }
            (Self::Embedded(_) | Self::Remote(_), _) => {
                let (view, space, scan) = (self.clone(), space.clone(), scan.clone());
                offload(move || view.scan(&space, &scan)).await
            }
        }
    }
}
