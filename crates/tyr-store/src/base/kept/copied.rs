//! What another node knew of a blob at kept moments, taken in with the blob.
//!
//! A fold holds what it replaces; here a blob comes as it is now, and what it was at kept moments
//! comes beside it, whole: nothing was replaced. Where it is not known what it was, that is written
//! down, for else it would count as not there. Like everything that is held, each is held for the
//! newest moment that it was current at.

use std::collections::BTreeMap;

use bytes::Bytes;
use tyr_types::{BlobName, ByteRange, Error, ErrorKind, Result, Timestamp};

use super::row::HeldPiece;
use crate::base::Base;
use crate::base::fold::{BATCH_LEN, CONTENT_LEN_MAX, Fold};
use crate::base::record::BlobEntry;
use crate::base::segments::BLOCK_SIZE;
use crate::base::types::{BlobBase, PieceData};

/// A blob as it was at a kept moment, and at no younger one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedVersion {
    /// The moment.
    pub at: Timestamp,
    /// The blob's size then.
    pub size: u64,
    /// The last transaction that had written it.
    pub version: Timestamp,
    /// Its bytes by where they lie; between them, and behind, are holes.
    pub pieces: BTreeMap<u64, Bytes>,
}

/// The entry of a blob of which it is not known what it was.
fn unknown(at: Timestamp) -> BlobEntry {
    let (exists, size, content) = (true, 0, None);
    let (version, ahead) = (Timestamp::MAX, None);
    let blob = BlobBase { exists, size, version, folded_at: at, content, ahead };
    BlobEntry { blob, stored: 0 }
}

/// Whether this says that it is not known what the blob was.
pub(super) fn is_unknown(blob: &BlobBase) -> bool {
    blob.version == Timestamp::MAX
}

/// Why a blob is not read.
pub(super) fn not_known(blob: &BlobName) -> Error {
    let text = format!(
        "{blob}: what it was at this kept snapshot was not known any more where it came from"
    );
    Error::new(ErrorKind::SnapshotTooOld, text).naming(blob.clone())
}

impl Base {
    /// Holds what a blob was at kept moments, and that it is not known what it was at `unknown_to`
    /// and before. What was held of it goes. It is durable with the next sync.
    ///
    /// # Errors
    /// `Corrupt` when the index is damaged there; `Unavailable` when the disk refuses.
    pub fn hold_copied(
        &self,
        blob: &BlobName,
        versions: &[CopiedVersion],
        unknown_to: Option<Timestamp>,
    ) -> Result<()> {
        let _alone = self.changing.lock();
        let mut fold = Fold::new(self);
        self.release_all(&mut fold, blob)?;
        self.hold_lacking(fold, blob, versions, unknown_to)
    }

    /// The same beside what is held of it already: that stays, and nothing more is held for those
    /// moments.
    ///
    /// # Errors
    /// As [`Base::hold_copied`].
    pub fn hold_beside(
        &self,
        blob: &BlobName,
        versions: &[CopiedVersion],
        unknown_to: Option<Timestamp>,
    ) -> Result<()> {
        let _alone = self.changing.lock();
        self.hold_lacking(Fold::new(self), blob, versions, unknown_to)
    }

    fn hold_lacking(
        &self,
        mut fold: Fold<'_>,
        blob: &BlobName,
        versions: &[CopiedVersion],
        unknown_to: Option<Timestamp>,
    ) -> Result<()> {
        for version in versions {
            if self.held_entry(version.at, blob)?.is_none() {
                fold.hold_whole(blob, version)?;
            }
        }
        if let Some(at) = unknown_to
            && self.held_entry(at, blob)?.is_none()
        {
            fold.hold_entry(at, blob, &unknown(at));
        }
        fold.commit()
    }

    /// Nothing is held of a blob any more. The caller holds the lock of who changes the base.
    pub(in crate::base) fn release_all(&self, fold: &mut Fold<'_>, blob: &BlobName) -> Result<()> {
        for at in self.held_from(Timestamp::ZERO) {
            if self.held_entry(at, blob)?.is_some() {
                let _moving = self.moving.write();
                fold.release_to(at, blob, None)?;
                fold.commit()?;
            }
        }
        Ok(())
    }
}

impl Fold<'_> {
    fn hold_whole(&mut self, blob: &BlobName, then: &CopiedVersion) -> Result<()> {
        let CopiedVersion { at, size, version, pieces } = then;
        let is_small = *size <= CONTENT_LEN_MAX;
        let content = is_small.then(|| joined(*size, pieces));
        let (exists, size) = (true, *size);
        let (version, folded_at, ahead) = (*version, *at, None);
        let entry = BlobBase { exists, size, version, folded_at, content, ahead };
        self.hold_entry(*at, blob, &BlobEntry { blob: entry, stored: 0 });
        if is_small {
            return Ok(());
        }
        let mut next = 0;
        for (start, bytes) in pieces {
            let whole = ByteRange { start: *start, end: start + bytes.len() as u64 };
            let whole = whole.intersection(ByteRange { start: next, end: size });
            if whole.is_empty() {
                continue;
            }
            if next < whole.start {
                self.hold_piece(*at, blob, next, &HeldPiece::Hole(whole.start - next));
            }
            next = whole.start;
            while next < whole.end {
                let end = whole.end.min((next / BLOCK_SIZE + 1) * BLOCK_SIZE);
                // Each by itself: none of them keeps all of the copy in memory.
                let part =
                    Bytes::copy_from_slice(&bytes[(next - start) as usize..(end - start) as usize]);
                let piece = HeldPiece::Written(PieceData::Bytes(part));
                self.hold_piece(*at, blob, next, &piece);
                next = end;
            }
            if self.batch().bytes() >= BATCH_LEN {
                self.commit()?;
            }
        }
        if next < size {
            self.hold_piece(*at, blob, next, &HeldPiece::Hole(size - next));
        }
        Ok(())
    }
}

/// All bytes of something small.
fn joined(size: u64, pieces: &BTreeMap<u64, Bytes>) -> Bytes {
    let mut all = vec![0; size as usize];
    for (start, bytes) in pieces {
        let start = (*start).min(size) as usize;
        let len = bytes.len().min(all.len() - start);
        all[start..start + len].copy_from_slice(&bytes[..len]);
    }
    all.into()
}
