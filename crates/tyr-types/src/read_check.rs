//! What a transaction has read or listed, as it is validated.

use crate::id::BlobName;
use crate::range::ByteRange;
use crate::scan::KeyRange;
use crate::timestamp::Timestamp;

/// A read that must still hold when the transaction commits (C1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadCheck {
    /// The blob that was read.
    pub blob: BlobName,
    /// The bytes that were read; empty when only size or existence was. With `is_attributes`,
    /// [`ByteRange::NOTHING`] is what [`Stat`](crate::Stat) shows: the version is part of it, so
    /// that whatever is written of the blob counts.
    pub range: ByteRange,
    /// Whether the answer depended on the blob's size or existence.
    pub is_attributes: bool,
    /// The version that was read: nothing newer may overlap.
    pub at: Timestamp,
    /// The keys that were listed, where it is of a listing (Q3). They are of one group, `blob` has
    /// its prefix as a key, whether there is such a blob or not, and the rest says nothing.
    pub listed: Option<Box<Listed>>,
}

/// What a listing covered that must still hold when its transaction commits (Q3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The keys: those that it showed, and those that it showed not to be there.
    pub keys: KeyRange,
    /// Whether nothing but keys was listed. Otherwise their sizes and versions were, so that
    /// whatever is written of such a blob counts.
    pub is_keys_only: bool,
}

impl ReadCheck {
    /// What the listing of a group showed of these keys at `at` (Q3); `prefix` is the group's.
    pub fn of_listing(prefix: BlobName, listed: Listed, at: Timestamp) -> Self {
        let (range, is_attributes) = (ByteRange::NOTHING, true);
        Self { blob: prefix, range, is_attributes, at, listed: Some(Box::new(listed)) }
    }
}
