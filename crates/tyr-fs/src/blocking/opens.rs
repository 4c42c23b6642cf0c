//! Which files are open in this program, how often.
//!
//! A name is not taken from a file that is just being opened, and who opens a file whose last name
//! is being taken waits until it is clear whether it is still there.

use std::collections::{BTreeSet, HashMap, HashSet};

use parking_lot::{Condvar, Mutex};

/// Open files, by number.
#[derive(Debug, Default)]
pub struct Opens {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    counts: HashMap<u64, usize>,
    /// Files that nobody has open, whose last name may be being taken.
    ending: HashSet<u64>,
    /// Files without a name that wait until they are closed.
    orphans: HashSet<u64>,
}

/// Holds what was said of a file: it stays closed until this is dropped.
#[derive(Debug)]
pub struct Ending<'a> {
    opens: &'a Opens,
    number: u64,
}

impl Opens {
    /// A file is open once more.
    pub fn open(&self, number: u64) {
        let mut state = self.state.lock();
        while state.ending.contains(&number) {
            self.ended.wait(&mut state);
        }
        *state.counts.entry(number).or_default() += 1;
    }

    /// It is open once less; answers whether it is to be let go of.
    pub fn close(&self, number: u64) -> bool {
        let mut state = self.state.lock();
        let count = state.counts.get_mut(&number).expect("it was opened before");
        *count -= 1;
        if *count > 0 {
            return false;
        }
        state.counts.remove(&number);
        state.orphans.remove(&number)
    }

    /// Whether it is open. If not it stays so until the answer is dropped.
    pub fn hold_closed(&self, number: u64) -> Option<Ending<'_>> {
        let mut state = self.state.lock();
        while state.ending.contains(&number) {
            self.ended.wait(&mut state);
        }
        if state.counts.contains_key(&number) {
            return None;
        }
        state.ending.insert(number);
        Some(Ending { opens: self, number })
    }

    /// Whether it is open now.
    pub fn is_open(&self, number: u64) -> bool {
        self.state.lock().counts.contains_key(&number)
    }

    /// Files that stay closed until the answer is dropped; `None` when one of them is open.
    pub fn hold_all_closed(&self, numbers: &BTreeSet<u64>) -> Option<Vec<Ending<'_>>> {
        let mut state = self.state.lock();
        // Nothing is held while it waits.
        while numbers.iter().any(|number| state.ending.contains(number)) {
            self.ended.wait(&mut state);
        }
        if numbers.iter().any(|number| state.counts.contains_key(number)) {
            return None;
        }
        state.ending.extend(numbers);
        drop(state);
        Some(numbers.iter().map(|number| Ending { opens: self, number: *number }).collect())
    }

    /// A file has no name any more; answers whether it is to be let go of now.
    pub fn orphaned(&self, number: u64) -> bool {
        let mut state = self.state.lock();
        let is_open = state.counts.contains_key(&number);
        if is_open {
            state.orphans.insert(number);
        }
        !is_open
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.opens.state.lock().ending.remove(&self.number);
        self.opens.ended.notify_all();
    }
}
