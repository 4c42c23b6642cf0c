//! Dropping a kept moment: what was held for it goes to the next older one that lacks it, or is
//! given back.
//!
//! It takes long where much is held, so it is done in steps; until the last one the moment is
//! there, without a name. Moments end oldest first, so that below one that ends there are only
//! moments with names. Before a fold changes a blob, what is held of it for such moments goes down:
//! otherwise the moment below could not tell that a byte has changed already.

use bytes::Bytes;
use tyr_types::{BlobName, ByteRange, KeyspaceId, Result, Timestamp};

use super::copied::is_unknown;
use super::row::{self, Held, HeldPiece, PieceKeys};
use crate::base::dead::Elsewhere;
use crate::base::draft::Draft;
use crate::base::fold::Fold;
use crate::base::record::BlobEntry;
use crate::base::types::PieceData;
use crate::base::{Base, key};
use crate::index::{IndexBatch, Table};

impl Base {
    /// Gives back, or hands down, what is held of up to `limit` blobs for dropped snapshots;
    /// answers whether there is more to do.
    ///
    /// # Errors
    /// `Corrupt` when the index is damaged there; `Unavailable` when the disk refuses.
    pub fn release_some(&self, limit: usize) -> Result<bool> {
        if !self.is_releasing() {
            return Ok(false);
        }
        let _alone = self.changing.lock();
        let _moving = self.moving.write();
        let Some(at) = self.kept.read().ending().first().copied() else { return Ok(false) };
        let from = row::all_entries(at);
        let end = key::behind(&from);
        let blobs = self.held_blobs(&from, end.as_deref(), limit)?;
        let mut fold = Fold::new(self);
        for blob in &blobs {
            fold.release(at, blob)?;
        }
        fold.commit()?;
        if blobs.len() == limit {
            return Ok(true);
        }
        let mut batch = IndexBatch::new();
        batch.remove(Table::Meta, row::held(at));
        self.index.commit(batch)?;
        let mut kept = self.kept.write();
        kept.held.remove(&at);
        Ok(!kept.ending().is_empty())
    }

    /// Whether something is held for dropped snapshots.
    pub fn is_releasing(&self) -> bool {
        !self.kept.read().ending().is_empty()
    }

    /// Gives back what is held of up to `limit` blobs of a keyspace that is gone; answers whether
    /// there may be more. The caller holds the lock of who changes the base.
    pub(in crate::base) fn release_keyspace(&self, id: KeyspaceId, limit: usize) -> Result<bool> {
        let _moving = self.moving.write();
        for at in self.held_from(Timestamp::ZERO) {
            let from = row::entries(at, id, b"");
            let end = key::behind(&from);
            let blobs = self.held_blobs(&from, end.as_deref(), limit)?;
            let mut fold = Fold::new(self);
            for blob in &blobs {
                fold.release_to(at, blob, None)?;
            }
            fold.commit()?;
            if !blobs.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The first blobs of which entries are held in this range of keys.
    fn held_blobs(&self, from: &[u8], to: Option<&[u8]>, limit: usize) -> Result<Vec<BlobName>> {
        let mut found = Vec::new();
        let mut visit = |key: &[u8], _: &Bytes| {
            found.push(Self::decode_held_key(key)?.1);
            Ok(found.len() < limit)
        };
        self.index.scan(Table::Meta, from, to, &mut visit)?;
        Ok(found)
    }
}

impl Fold<'_> {
    /// Hands down what is held of a blob for moments that end, durably with the next sync.
    pub fn settle_held(&mut self, blob: &BlobName) -> Result<()> {
        let base = self.base();
        let ending = base.kept.read().ending();
        for at in ending {
            if base.held_entry(at, blob)?.is_some() {
                let _moving = base.moving.write();
                self.commit()?;
                self.release(at, blob)?;
                self.commit()?;
            }
        }
        Ok(())
    }

    fn release(&mut self, at: Timestamp, blob: &BlobName) -> Result<()> {
        let below = self.base().kept.read().newest_below(at);
        self.release_to(at, blob, below)
    }

    /// Nothing is held of a blob for `at` any more; what `below` lacks is held for that.
    pub(super) fn release_to(
        &mut self,
        at: Timestamp,
        blob: &BlobName,
        below: Option<Timestamp>,
    ) -> Result<()> {
        let base = self.base();
        let Some(entry) = base.held_entry(at, blob)? else { return Ok(()) };
        let below = match below {
            Some(below) => self.hand_down(below, blob, &entry)?,
            None => None,
        };
        let mut draft = Draft::new(base, blob, 0, false);
        let mut pieces = Vec::new();
        let mut all = |offset: u64, piece: HeldPiece| {
            pieces.push((offset, piece));
            Ok(true)
        };
        base.each_held(at, blob, ByteRange { start: 0, end: u64::MAX }, &mut all)?;
        let keys = PieceKeys::new(at, blob);
        for (offset, piece) in &pieces {
            let key = keys.at(*offset);
            self.held(at).bytes -= piece.cost(key.len());
            self.batch().remove(Table::Meta, key);
            if let Some(place) = Elsewhere::of_held(piece) {
                draft.release(place);
            }
        }
        if let Some((below, size)) = below {
            pieces.extend(whole_content(&entry));
            for (offset, piece) in &pieces {
                let whole = piece.covered(*offset);
                let wanted = whole.intersection(ByteRange { start: 0, end: size });
                if wanted.is_empty() {
                    continue;
                }
                for part in base.not_held(below, blob, &[wanted])? {
                    let mut parts = Vec::new();
                    match piece.clone() {
                        HeldPiece::Written(piece) => {
                            base.hold_part(*offset, piece, part, &mut parts)?;
                        }
                        HeldPiece::Hole(_) => parts.push((part.start, HeldPiece::Hole(part.len()))),
                    }
                    for (start, piece) in parts {
                        draft.show(Elsewhere::of_held(&piece));
                        self.hold_piece(below, blob, start, &piece);
                    }
                }
            }
        }
        let key = row::entry(at, blob);
        let held = self.held(at);
        held.bytes -= (key.len() + entry.encode().len()) as u64;
        held.blobs -= 1;
        self.batch().remove(Table::Meta, key);
        draft.finish(self.changes())?;
        Ok(())
    }

    /// Makes the moment below hold a blob's entry, if it was the same then; answers the moment
    /// and the size then, if bytes of it may be needed for it.
    fn hand_down(
        &mut self,
        below: Timestamp,
        blob: &BlobName,
        entry: &BlobEntry,
    ) -> Result<Option<(Timestamp, u64)>> {
        Ok(match self.base().held_entry(below, blob)? {
            Some(then) => then.blob.content.is_none().then_some((below, then.blob.size)),
            None if entry.blob.version <= below => {
                self.hold_entry(below, blob, entry);
                entry.blob.content.is_none().then_some((below, entry.blob.size))
            }
            // Of before nothing is known either.
            None if is_unknown(&entry.blob) => {
                self.hold_entry(below, blob, entry);
                None
            }
            // It was not there then.
            None => None,
        })
    }
}

/// The content that an entry has, as pieces.
fn whole_content(entry: &BlobEntry) -> Vec<(u64, HeldPiece)> {
    let Some(content) = &entry.blob.content else { return Vec::new() };
    let len = content.len() as u64;
    let bytes = HeldPiece::Written(PieceData::Bytes(content.clone()));
    let all = [(0, bytes), (len, HeldPiece::Hole(entry.blob.size - len))];
    all.into_iter().filter(|(_, piece)| piece.len() > 0).collect()
}

/// How much is held, as changes of the index: nothing leaves no key.
pub(in crate::base) fn put_held(batch: &mut IndexBatch, at: Timestamp, held: Held) {
    match held == Held::default() {
        true => batch.remove(Table::Meta, row::held(at)),
        false => batch.put(Table::Meta, row::held(at), held.encode()),
    }
}
