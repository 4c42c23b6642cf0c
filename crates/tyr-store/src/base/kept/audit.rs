//! Checks what is held for kept snapshots, for `tyr check`.

use std::collections::BTreeMap;

use bytes::Bytes;
use tyr_types::{BlobName, Timestamp};

use super::copied::is_unknown;
use super::row::{self, Held, HeldPiece};
use crate::base::key;
use crate::base::record::BlobEntry;

/// What is held, while a walk over table `meta` meets it: in the order of keys, entries first.
#[derive(Default)]
pub(in crate::base) struct HeldRows {
    held: BTreeMap<Timestamp, Held>,
    noted: BTreeMap<Timestamp, Held>,
    /// The blob whose pieces are met, with its entry and where the last piece ended.
    last: Option<(Timestamp, BlobName, Option<BlobEntry>, u64)>,
}

/// What a row is found to be.
pub(in crate::base) enum Met {
    /// None of a kept snapshot's, or whole.
    Fine,
    /// Damaged.
    Wrong(String),
    /// A piece of this blob's, which may be wrong, too.
    Piece(BlobName, u64, HeldPiece, Option<String>),
}

impl HeldRows {
    /// Whether a key of table `meta` is one of these.
    pub fn is_one(key: &[u8]) -> bool {
        let kinds = [key::KEPT, key::HELD, key::HELD_ENTRY, key::HELD_PIECE];
        kinds.iter().any(|kind| key.starts_with(kind))
    }

    /// Meets a row; `entry` looks up what is held of a blob for a moment.
    pub fn meet(
        &mut self,
        key: &[u8],
        value: &Bytes,
        entry: impl Fn(Timestamp, &BlobName) -> Option<BlobEntry>,
    ) -> Met {
        match key.first().map(std::slice::from_ref) {
            Some(key::KEPT) => {
                let (name, at) = (row::name_of(key), row::decode_moment(value));
                if name.is_some() && at.is_some() { Met::Fine } else { wrong("a kept snapshot") }
            }
            Some(key::HELD) => match (row::held_moment(key), Held::decode(value)) {
                (Some(at), Some(held)) => {
                    self.noted.insert(at, held);
                    Met::Fine
                }
                (_, _) => wrong("how much is held"),
            },
            Some(key::HELD_ENTRY) => match (row::entry_parts(key), BlobEntry::decode(value)) {
                (Some((at, _)), Some(entry)) => {
                    let held = self.held.entry(at).or_default();
                    held.blobs += 1;
                    held.bytes += (key.len() + value.len()) as u64;
                    let is_told = entry.blob.version <= at || is_unknown(&entry.blob);
                    match entry.blob.exists && is_told {
                        true => Met::Fine,
                        false => Met::Wrong("was not there at the kept moment".to_owned()),
                    }
                }
                (_, _) => wrong("an entry that is held"),
            },
            Some(key::HELD_PIECE) => self.meet_piece(key, value, entry),
            Some(_) | None => Met::Fine,
        }
    }

    fn meet_piece(
        &mut self,
        key: &[u8],
        value: &Bytes,
        entry: impl Fn(Timestamp, &BlobName) -> Option<BlobEntry>,
    ) -> Met {
        let Some((at, blob, offset)) = row::piece_parts(key) else {
            return wrong("a piece that is held");
        };
        let Some(piece) = HeldPiece::decode(offset, value) else {
            return wrong("a piece that is held");
        };
        self.held.entry(at).or_default().bytes += piece.cost(key.len());
        let is_same =
            self.last.as_ref().is_some_and(|(moment, name, ..)| (moment, name) == (&at, &blob));
        if !is_same {
            self.last = Some((at, blob.clone(), entry(at, &blob), 0));
        }
        let covered = piece.covered(offset);
        let what = match &mut self.last {
            Some((_, _, Some(entry), end)) => {
                let is_inside = entry.blob.content.is_none() && covered.end <= entry.blob.size;
                let is_behind = *end <= offset;
                *end = covered.end;
                match (is_inside, is_behind) {
                    (true, true) => None,
                    (true, false) => Some("overlaps the one before"),
                    (false, _) => Some("lies outside the blob as it was then"),
                }
            }
            Some((_, _, None, _)) | None => Some("is of a blob of which no entry is held"),
        };
        let what = what.map(|what| format!("what is held of it at {offset} for {at} {what}"));
        Met::Piece(blob, offset, piece, what)
    }

    /// The moments for which something else is held than is noted, with both.
    pub fn differing(&self) -> Vec<(Timestamp, Held, Held)> {
        let moments = self.held.keys().chain(self.noted.keys());
        let of = |all: &BTreeMap<Timestamp, Held>, at| all.get(at).copied().unwrap_or_default();
        let both = moments.map(|at| (*at, of(&self.held, at), of(&self.noted, at)));
        let mut differing: Vec<_> = both.filter(|(_, held, noted)| held != noted).collect();
        differing.dedup();
        differing
    }
}

fn wrong(what: &str) -> Met {
    Met::Wrong(format!("is not {what}"))
}
