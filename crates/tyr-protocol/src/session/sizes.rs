//! What a client remembers of the sizes of blobs.
//!
//! Only ever a guess: it saves a question where it is right, and is corrected where it is wrong.
//! So it may be forgotten at any time, and is, in two generations: what was not looked at while
//! the younger one filled goes with the older one.

use std::collections::BTreeMap;

use tyr_types::{BlobName, BlobOperations, Existence, Operation, Outcome};

use crate::commit::Answered;

/// Blobs of one generation: with keys of a hundred bytes, both take less than a megabyte.
const GENERATION_MAX: usize = 2048;

/// The sizes last heard of. Bounded by two generations.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    young: BTreeMap<BlobName, u64>,
    old: BTreeMap<BlobName, u64>,
}

impl Sizes {
    /// The size of `blob`, as far as it is remembered.
    pub fn guess(&mut self, blob: &BlobName) -> Option<u64> {
        if let Some(size) = self.young.get(blob) {
            return Some(*size);
        }
        let size = self.old.remove(blob)?;
        self.note(blob, size);
        Some(size)
    }

    /// The blob was seen to have this size; 0 when it was absent.
    pub fn note(&mut self, blob: &BlobName, size: u64) {
        if let Some(known) = self.young.get_mut(blob) {
            *known = size;
            return;
        }
        if self.young.len() >= GENERATION_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(blob);
        self.young.insert(blob.clone(), size);
        debug_assert!(self.young.len() <= GENERATION_MAX, "remembered sizes are bounded");
    }

    /// A transaction did this to a blob, and `answered` is what its operations answered there.
    pub fn committed<'a>(
        &mut self,
        entry: &BlobOperations,
        answered: impl Iterator<Item = &'a Answered> + Clone,
    ) {
        let mut size = self.guess(&entry.blob);
        for (index, operation) in entry.operations.iter().enumerate() {
            let reach = |end: u64| size.map(|size| size.max(end));
            size = match operation {
                Operation::Create
                | Operation::Delete
                | Operation::Expect { existence: Existence::Absent } => Some(0),
                Operation::Truncate { len } => Some(*len),
                Operation::Replace { payload } => Some(payload.len()),
                Operation::Write { offset, payload } => reach(offset + payload.len()),
                Operation::Apply { offset, transform } => reach(offset + transform.width() as u64),
                Operation::Clear { .. }
                | Operation::Compare { .. }
                | Operation::Expect { existence: Existence::Present } => size,
                Operation::Append { payload, .. } => {
                    let own = answered.clone().find(|answer| answer.operation as usize == index);
                    match own.map(|answer| answer.outcome) {
                        Some(Outcome::Offset(offset)) => offset.checked_add(payload.len()),
                        Some(Outcome::Done | Outcome::Value(_) | Outcome::Existed(_)) | None => {
                            size
                        }
                    }
                }
            };
        }
        if let Some(size) = size {
            self.note(&entry.blob, size);
        }
    }

    pub fn invariants(&self) {
        assert!(self.young.len() <= GENERATION_MAX, "remembered sizes are bounded");
        assert!(self.old.len() <= GENERATION_MAX, "remembered sizes are bounded");
        assert!(self.old.keys().all(|blob| !self.young.contains_key(blob)), "each blob once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tyr_types::{Bytes, Key, KeyspaceId, Payload};

    fn blob(number: u64) -> BlobName {
        BlobName { keyspace: KeyspaceId(1), key: Key::new(number.to_be_bytes()).unwrap() }
    }

    #[test]
    fn what_is_looked_at_outlives_what_is_not() {
        let mut sizes = Sizes::default();
        for number in 0..3 * GENERATION_MAX as u64 {
            sizes.note(&blob(number), number);
            assert_eq!(sizes.guess(&blob(0)), Some(0));
            sizes.invariants();
        }
        assert_eq!(sizes.guess(&blob(1)), None);
    }

    #[test]
    fn an_append_that_was_answered_says_where_the_blob_ends() {
        let mut sizes = Sizes::default();
        let payload = Payload::Inline(Bytes::from_static(b"abc"));
        let operations = vec![Operation::Append { payload, expected: None }];
        let entry = BlobOperations { blob: blob(7), operations };
        sizes.committed(&entry, [].iter());
        assert_eq!(sizes.guess(&blob(7)), None);
        let outcome = Outcome::Offset(40);
        sizes.committed(&entry, [Answered { blob: 0, operation: 0, outcome }].iter());
        assert_eq!(sizes.guess(&blob(7)), Some(43));
    }
}
