//! When a table is written out for what is overwritten in memory.
//!
//! The library's memory keeps each value that a key had until the table is written out, which keeps
//! the last one only. A scan passes all of them: with a few hundred keys that change again and
//! again there are some hundred values of each before the memory is full, and listings take as many
//! times as long. So a table is written out before, if it has come to that with few keys. With many
//! keys the memory is full first.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

/// Changes at least between two times: each makes a small table, which is merged later.
const CHANGES_MIN: usize = 2048;

/// How many values a key has in memory, on average, before that is worth it.
const VALUES_MAX: usize = 4;

/// More keys than this are not counted: the memory is full before they have so many values each.
const KEYS_MAX: usize = 8192;

/// What the memory of a table has taken in.
#[derive(Debug, Default)]
pub struct Overwritten {
    /// Which of the library's memories it is: it begins another when one is full.
    memory: u64,
    changes: usize,
    /// Hashes of the keys, up to [`KEYS_MAX`].
    keys: HashSet<u64>,
}

impl Overwritten {
    /// This key was changed in the memory of this number.
    pub fn note(&mut self, memory: u64, key: &[u8]) {
        if memory != self.memory {
            self.clear();
            self.memory = memory;
        }
        self.changes += 1;
        if self.keys.len() < KEYS_MAX {
            self.keys.insert(xxh3_64(key));
        }
    }

    /// Whether the table is to be written out.
    pub fn is_due(&self) -> bool {
        let is_known = self.keys.len() < KEYS_MAX;
        is_known && self.changes >= CHANGES_MIN && self.changes >= VALUES_MAX * self.keys.len()
    }

    /// It was.
    pub fn clear(&mut self) {
        self.changes = 0;
        self.keys.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After so many changes of so many keys in turn.
    fn is_due_after(changes: usize, keys: usize) -> bool {
        let mut overwritten = Overwritten::default();
        (0..changes).for_each(|at| overwritten.note(1, &(at % keys).to_be_bytes()));
        overwritten.is_due()
    }

    #[test]
    fn few_keys_that_change_often_are_due_and_many_are_not() {
        assert!(is_due_after(CHANGES_MIN, 1));
        assert!(!is_due_after(CHANGES_MIN - 1, 1));
        assert!(is_due_after(VALUES_MAX * 1000, 1000));
        assert!(!is_due_after(VALUES_MAX * 1000 - 1, 1000));
        assert!(!is_due_after(100 * KEYS_MAX, KEYS_MAX));
    }

    #[test]
    fn another_memory_begins_with_nothing() {
        let mut overwritten = Overwritten::default();
        (0..CHANGES_MIN).for_each(|_| overwritten.note(1, b"key"));
        assert!(overwritten.is_due());
        overwritten.note(2, b"key");
        assert!(!overwritten.is_due());
    }
}
