//! What an operation touches of its blob (C4).
//!
//! Overlap is of byte ranges. Size and existence count as one more range, of the version managers:
//! the *attributes*. Whether a write extends a blob is known only when it is applied, below
//! whatever was decided in between; so in flight every write touches the attributes. What a write
//! changed in fact is the applied state's to say ([`crate::View::newest_overlapping`]).

use tyr_types::{ByteRange, Operation};

use crate::chain::Piece;

/// Bytes of a blob, and whether size and existence are touched too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The bytes.
    pub range: ByteRange,
    /// Whether size and existence are touched.
    pub is_attributes: bool,
}

impl Footprint {
    /// Size and existence alone.
    pub const ATTRIBUTES: Self = Self { range: ByteRange::NOTHING, is_attributes: true };
    /// The whole blob.
    pub const BLOB: Self = Self { range: ByteRange::ALL, is_attributes: true };

    /// Bytes alone.
    pub fn bytes(range: ByteRange) -> Self {
        Self { range, is_attributes: false }
    }

    /// What `operation` writes on a blob of `size` bytes; `None` when it only looks.
    ///
    /// An append's place is not known before it is applied: everything from the end on.
    pub fn written(operation: &Operation, size: u64) -> Option<Self> {
        let range = match operation {
            Operation::Create => ByteRange::NOTHING,
            Operation::Write { offset, payload } if payload.is_empty() => last_before(*offset),
            Operation::Write { offset, payload } => span(*offset, payload.len()),
            Operation::Append { expected, .. } => ByteRange::from(expected.unwrap_or(size)),
            Operation::Truncate { len } => ByteRange::from(*len),
            Operation::Clear { range } => *range,
            Operation::Delete | Operation::Replace { .. } => ByteRange::ALL,
            Operation::Apply { offset, transform } => span(*offset, transform.width() as u64),
            Operation::Compare { .. } | Operation::Expect { .. } => return None,
        };
        Some(Self { range, is_attributes: true })
    }

    /// What `operation` must find as it is to take effect; `None` when it is no condition.
    pub fn required(operation: &Operation) -> Option<Self> {
        match operation {
            Operation::Create
            | Operation::Append { expected: Some(_), .. }
            | Operation::Expect { .. } => Some(Self::ATTRIBUTES),
            Operation::Compare { offset, expected } => {
                let range = span(*offset, expected.len());
                Some(Self { range, is_attributes: range.is_empty() })
            }
            Operation::Write { .. }
            | Operation::Append { expected: None, .. }
            | Operation::Truncate { .. }
            | Operation::Clear { .. }
            | Operation::Delete
            | Operation::Apply { .. }
            | Operation::Replace { .. } => None,
        }
    }

    /// Whether the two share a byte or both touch the attributes.
    pub fn overlaps(self, other: Self) -> bool {
        self.is_attributes && other.is_attributes || self.range.overlaps(other.range)
    }

    /// Whether it touches nothing.
    pub fn is_empty(self) -> bool {
        !self.is_attributes && self.range.is_empty()
    }

    /// The share of it that lies in `piece`.
    pub fn within(self, piece: &Piece) -> Option<Self> {
        let share = Self {
            range: self.range.intersection(piece.range),
            is_attributes: self.is_attributes && piece.is_attributes,
        };
        debug_assert!(share.is_empty() || share.overlaps(self), "a share is a part of it");
        (!share.is_empty()).then_some(share)
    }

    /// Whether the two together are no less than their [`Footprint::hull`].
    pub fn adjoins(self, other: Self) -> bool {
        let (left, right) = (self.range, other.range);
        let is_whole = left.start <= right.end && right.start <= left.end;
        is_whole || left.is_empty() || right.is_empty()
    }

    /// The smallest footprint that covers both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        let range = match (self.range.is_empty(), other.range.is_empty()) {
            (true, _) => other.range,
            (_, true) => self.range,
            (false, false) => ByteRange {
                start: self.range.start.min(other.range.start),
                end: self.range.end.max(other.range.end),
            },
        };
        let hull = Self { range, is_attributes: self.is_attributes || other.is_attributes };
        // Claims are merged by it: what overlapped one of them must not pass by both.
        debug_assert!(self.is_empty() || hull.overlaps(self), "{hull:?} covers {self:?}");
        debug_assert!(other.is_empty() || hull.overlaps(other), "{hull:?} covers {other:?}");
        hull
    }
}

/// What a write of nothing at `offset` changes where the blob ends before that: the last byte that
/// it has from then on. The chunk of that byte has to know, and what appends there comes after it.
fn last_before(offset: u64) -> ByteRange {
    ByteRange { start: offset.saturating_sub(1), end: offset }
}

/// `len` bytes from `offset` on; past the largest blob it ends there, for operations that nobody
/// checked.
fn span(offset: u64, len: u64) -> ByteRange {
    let range = ByteRange::at(offset, len).unwrap_or(ByteRange::from(offset));
    debug_assert!(range.start <= range.end, "a range ends at or after its start: {range:?}");
    range
}

#[cfg(test)]
mod tests {
    use super::*;
    use tyr_types::{
        BlobName, Bytes, Existence, Key, KeyspaceId, NodeId, Number, Payload, Transform,
    };

    fn payload(len: usize) -> Payload {
        Payload::Inline(Bytes::from(vec![1; len]))
    }

    fn range(start: u64, end: u64) -> ByteRange {
        ByteRange { start, end }
    }

    /// C4.
    #[test]
    fn every_write_touches_its_bytes_and_the_attributes() {
        let add = Transform::add(Number::U64(1));
        let cases = [
            (Operation::Write { offset: 5, payload: payload(3) }, range(5, 8)),
            (Operation::Write { offset: 5, payload: payload(0) }, range(4, 5)),
            (Operation::Write { offset: 0, payload: payload(0) }, range(0, 0)),
            (Operation::Append { payload: payload(3), expected: None }, ByteRange::from(100)),
            (Operation::Append { payload: payload(3), expected: Some(7) }, ByteRange::from(7)),
            (Operation::Truncate { len: 9 }, ByteRange::from(9)),
            (Operation::Delete, ByteRange::ALL),
            (Operation::Replace { payload: payload(1) }, ByteRange::ALL),
            (Operation::Apply { offset: 16, transform: add }, range(16, 24)),
            (Operation::Create, range(0, 0)),
        ];
        for (operation, range) in cases {
            let written = Footprint::written(&operation, 100);
            assert_eq!(written, Some(Footprint { range, is_attributes: true }), "{operation:?}");
        }
    }

    /// C1, C4.
    #[test]
    fn a_compare_reads_its_bytes_and_writes_nothing() {
        let compare = Operation::Compare { offset: 4, expected: Bytes::from_static(b"abc").into() };
        assert_eq!(Footprint::written(&compare, 100), None);
        assert_eq!(Footprint::required(&compare), Some(Footprint::bytes(range(4, 7))));
        let of_nothing = Operation::Compare { offset: 4, expected: Bytes::new().into() };
        assert!(Footprint::required(&of_nothing).is_some_and(|read| read.is_attributes));
    }

    /// C1, C4.
    #[test]
    fn an_expectation_reads_the_attributes_and_writes_nothing() {
        for existence in [Existence::Absent, Existence::Present] {
            let expect = Operation::Expect { existence };
            assert_eq!(Footprint::written(&expect, 100), None);
            assert_eq!(Footprint::required(&expect), Some(Footprint::ATTRIBUTES));
        }
    }

    /// C4.
    #[test]
    fn bytes_beside_each_other_do_not_overlap_but_attributes_always_do() {
        let [left, right] = [range(0, 8), range(8, 16)].map(Footprint::bytes);
        assert!(!left.overlaps(right));
        assert!(!left.overlaps(Footprint::ATTRIBUTES));
        let [left, right] = [left, right].map(|bytes| Footprint { is_attributes: true, ..bytes });
        assert!(left.overlaps(right));
    }

    #[test]
    fn ranges_adjoin_when_there_is_no_gap_between_them() {
        let [first, next, far] = [range(0, 8), range(8, 16), range(17, 20)].map(Footprint::bytes);
        assert!(first.adjoins(next) && next.adjoins(first) && first.adjoins(Footprint::ATTRIBUTES));
        assert!(!next.adjoins(far) && !far.adjoins(next));
        assert_eq!(first.hull(next), Footprint::bytes(range(0, 16)));
    }

    #[test]
    fn the_share_in_a_piece_has_attributes_only_at_a_version_manager() {
        let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("k").unwrap() };
        let authority = NodeId(0);
        let first =
            Piece { blob, range: range(0, 64), is_attributes: true, is_written: true, authority };
        let second = Piece { range: range(64, 128), is_attributes: false, ..first.clone() };
        let write = Footprint { range: range(60, 70), is_attributes: true };
        let share = Footprint { range: range(60, 64), is_attributes: true };
        assert_eq!(write.within(&first), Some(share));
        assert_eq!(write.within(&second), Some(Footprint::bytes(range(64, 70))));
        let beyond = Footprint { range: range(200, 201), is_attributes: true };
        assert_eq!(beyond.within(&second), None);
        assert!(beyond.within(&first).is_some(), "version managers hear of every write");
    }
}
