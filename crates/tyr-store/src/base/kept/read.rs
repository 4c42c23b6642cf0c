//! Reading what was there at a kept moment.
//!
//! What is held for the moment comes first, then what is held for each later one, then the base.
//! A fold may take something from the base meanwhile and hold it: so the blob's entry is looked
//! at before and after, as by every reader of the base. Moments that are dropped hand down what is
//! held for them while nobody reads.

use std::collections::BTreeSet;

use bytes::Bytes;
use tyr_types::{BlobName, ByteRange, Error, Key, KeyRange, KeyspaceId, Result, Timestamp};

use super::copied::{is_unknown, not_known};
use super::row::{self, HeldPiece};
use crate::base::record::BlobEntry;
use crate::base::types::{BlobBase, PieceData};
use crate::base::{Base, READ_ATTEMPTS_MAX, copy_content, key};
use crate::index::Table;

/// Pieces of one moment that a page of stretches looks at.
const PIECES_MAX: usize = 65_536;

/// Blobs of which something is held, in a range of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptKeys {
    /// Their keys.
    pub keys: BTreeSet<Key>,
    /// There may be more behind this one.
    pub known_to: Option<Key>,
}

/// Where bytes are that the base does not have any more.
enum Source {
    /// Nowhere: they are zeros.
    Hole,
    /// In a piece, behind so many bytes of it. Where only is asked what is written, without.
    Written(Option<(PieceData, u64)>),
}

/// What is known of a blob at a moment.
struct Layers {
    then: BlobBase,
    /// What is held, in no order.
    found: Vec<(ByteRange, Source)>,
    /// What the base has to be asked for, in order.
    in_base: Vec<ByteRange>,
    /// Up to where that is so.
    end: u64,
}

/// What was written of a blob at a kept moment.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptStretches {
    /// The blob as it was then.
    pub blob: BlobBase,
    /// The first stretches, in order.
    pub written: Vec<ByteRange>,
    /// From where on more may follow.
    pub resume: Option<u64>,
}

impl Base {
    /// A blob as it was at a kept moment that was folded, and `range` of it, cut to its size;
    /// `None` when there was none.
    ///
    /// # Errors
    /// `NotFound` when the snapshot was dropped; else as [`Base::read`].
    pub fn read_kept(
        &self,
        blob: &BlobName,
        range: ByteRange,
        at: Timestamp,
    ) -> Result<Option<(BlobBase, Vec<u8>)>> {
        self.look_kept(blob, at, |now| {
            let Some(layers) = self.layers(blob, range, at, now, false)? else { return Ok(None) };
            let Layers { then, found, in_base, .. } = layers;
            let whole = range.intersection(ByteRange { start: 0, end: then.size });
            let mut out = vec![0; whole.len() as usize];
            let place = |part: ByteRange| {
                (part.start - whole.start) as usize..(part.end - whole.start) as usize
            };
            for (part, source) in found {
                if let Source::Written(Some((piece, skip))) = source {
                    let copied = self.copy_segment(&piece, skip, &mut out[place(part)]);
                    copied.map_err(|error| error.at(blob.clone()))?;
                }
            }
            for part in in_base {
                let out = &mut out[place(part)];
                match now.and_then(|now| now.blob.content.as_ref()) {
                    Some(content) => copy_content(content, part, out),
                    None => self.read_segments(blob, part, out)?,
                }
            }
            Ok(Some((then, out)))
        })
    }

    /// What was written of `range` of a blob at a kept moment that was folded, in order: at most
    /// `limit` stretches, the first ones, and from where on more may follow.
    ///
    /// # Errors
    /// As [`Base::read_kept`].
    pub fn stretches_kept(
        &self,
        blob: &BlobName,
        range: ByteRange,
        at: Timestamp,
        limit: usize,
    ) -> Result<Option<KeptStretches>> {
        self.look_kept(blob, at, |now| {
            let Some(layers) = self.layers(blob, range, at, now, true)? else { return Ok(None) };
            let Layers { then, found, in_base, mut end } = layers;
            let is_written = |source: &Source| matches!(source, Source::Written(_));
            let found = found.into_iter().filter(|(_, source)| is_written(source));
            let mut written: Vec<ByteRange> = found.map(|(part, _)| part).collect();
            let mut left = limit;
            for part in in_base {
                let stored = match now.and_then(|now| now.blob.content.as_ref()) {
                    Some(content) => {
                        let whole = ByteRange { start: 0, end: content.len() as u64 };
                        vec![part.intersection(whole)]
                    }
                    None => self.stretches_of_segments(blob, part, left)?,
                };
                left = left.saturating_sub(stored.len());
                let last = stored.last().map_or(part.start, |range| range.end);
                written.extend(stored);
                if left == 0 {
                    end = end.min(last);
                    break;
                }
            }
            let known = ByteRange { start: range.start, end };
            let mut written: Vec<ByteRange> =
                written.into_iter().map(|part| part.intersection(known)).collect();
            written.retain(|part| !part.is_empty());
            written.sort_unstable_by_key(|part| part.start);
            let whole = range.intersection(ByteRange { start: 0, end: then.size });
            let resume = (end < whole.end).then_some(end);
            Ok(Some(KeptStretches { blob: then, written, resume }))
        })
    }

    /// Keys in this range of blobs of which something is held for a moment at or above `at`, the
    /// first ones: at least `limit` of those, or all.
    ///
    /// # Errors
    /// `Corrupt` when the index is damaged there.
    pub fn kept_keys(
        &self,
        keyspace: KeyspaceId,
        keys: &KeyRange,
        at: Timestamp,
        limit: usize,
    ) -> Result<KeptKeys> {
        let _reading = self.moving.read();
        let mut all = KeptKeys::default();
        for at in self.held_from(at) {
            let from = row::entries(at, keyspace, &keys.start);
            let end = match &keys.end {
                Some(end) => Some(row::entries(at, keyspace, end)),
                None => key::behind(&row::entries(at, keyspace, b"")),
            };
            let (mut count, mut last) = (0, None);
            let mut visit = |key: &[u8], _: &Bytes| {
                let (_, blob) = Self::decode_held_key(key)?;
                count += 1;
                if count == limit {
                    last = Some(blob.key.clone());
                }
                all.keys.insert(blob.key);
                Ok(count < limit)
            };
            self.index.scan(Table::Meta, &from, end.as_deref(), &mut visit)?;
            all.known_to = match (all.known_to, last) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        Ok(all)
    }

    /// The moment and the blob of the key of an entry that is held.
    pub(super) fn decode_held_key(key: &[u8]) -> Result<(Timestamp, BlobName)> {
        row::entry_parts(key).ok_or_else(|| {
            let key = key.escape_ascii();
            Error::corrupt(format!("index table meta, key \"{key}\": no blob's that is held"))
        })
    }

    /// Looks at a blob while nothing moves, with its entry as it is now.
    fn look_kept<T>(
        &self,
        blob: &BlobName,
        at: Timestamp,
        look: impl Fn(Option<&BlobEntry>) -> Result<T>,
    ) -> Result<T> {
        let _reading = self.moving.read();
        let key = key::blob(blob);
        for _ in 0..READ_ATTEMPTS_MAX {
            self.check_kept(at)?;
            let before = self.entry(&key, blob)?;
            let found = look(before.as_ref().map(|(_, entry)| entry));
            let after = self.index.get(Table::Blobs, &key)?;
            if after.as_ref() == before.as_ref().map(|(value, _)| value) {
                return found;
            }
        }
        let text = format!("{blob} is written faster than it can be read; try again");
        Err(Error::unavailable(text).naming(blob.clone()))
    }

    /// What is held of `range` of a blob for `at` and all later moments; `None` when there was no
    /// such blob.
    fn layers(
        &self,
        blob: &BlobName,
        range: ByteRange,
        at: Timestamp,
        now: Option<&BlobEntry>,
        is_layout: bool,
    ) -> Result<Option<Layers>> {
        let mut entries = Vec::new();
        for moment in self.held_from(at) {
            entries.extend(self.held_entry(moment, blob)?.map(|entry| (moment, entry)));
        }
        let then = entries.first().map(|(_, entry)| entry).or(now).map(|entry| &entry.blob);
        if then.is_some_and(is_unknown) {
            return Err(not_known(blob));
        }
        // What was not there then is held for no moment, or for later ones.
        let Some(then) = then.filter(|then| then.exists && then.version <= at) else {
            return Ok(None);
        };
        let whole = range.intersection(ByteRange { start: 0, end: then.size });
        let in_base = if whole.is_empty() { Vec::new() } else { vec![whole] };
        let (then, end) = (then.clone(), whole.end);
        let mut layers = Layers { then, found: Vec::new(), in_base, end };
        for (moment, entry) in &entries {
            if !layers.in_base.is_empty() {
                self.look_at(blob, *moment, entry, is_layout, &mut layers)?;
            }
        }
        Ok(Some(layers))
    }

    /// Takes what is held for one moment.
    fn look_at(
        &self,
        blob: &BlobName,
        moment: Timestamp,
        entry: &BlobEntry,
        is_layout: bool,
        layers: &mut Layers,
    ) -> Result<()> {
        let Layers { found, in_base, end, .. } = layers;
        if let Some(content) = &entry.blob.content {
            let whole = ByteRange { start: 0, end: content.len() as u64 };
            for range in std::mem::take(in_base) {
                let part = range.intersection(whole);
                if !part.is_empty() {
                    let bytes = || (PieceData::Bytes(content.clone()), part.start);
                    found.push((part, Source::Written((!is_layout).then(bytes))));
                }
            }
            return Ok(());
        }
        let (mut missing, mut count) = (Vec::new(), 0);
        for range in std::mem::take(in_base) {
            let mut next = range.start;
            let mut meet = |offset: u64, piece: HeldPiece| {
                let part = piece.covered(offset).intersection(range);
                if next < part.start {
                    missing.push(ByteRange { start: next, end: part.start });
                }
                next = part.end;
                let skip = part.start - offset;
                let source = match piece {
                    HeldPiece::Hole(_) => Source::Hole,
                    HeldPiece::Written(piece) => {
                        Source::Written((!is_layout).then_some((piece, skip)))
                    }
                };
                found.push((part, source));
                count += 1;
                if is_layout && count >= PIECES_MAX {
                    *end = (*end).min(next);
                }
                Ok(next < *end)
            };
            self.each_held(moment, blob, range, &mut meet)?;
            if next < range.end.min(*end) {
                missing.push(ByteRange { start: next, end: range.end.min(*end) });
            }
        }
        *in_base = missing;
        Ok(())
    }
}
