//! How often a process did what, and how long it did not.

use std::collections::BTreeMap;
use std::fmt;

use super::told::Told;

/// What a process came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    written: Series,
    read: Series,
    /// By what became of it and the kind of error.
    errors: BTreeMap<(&'static str, String), u64>,
}

/// Times at which something was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Series {
    count: u64,
    last: Option<u64>,
    longest: u64,
}

impl Series {
    fn add(&mut self, at: u64) {
        // What one read saw of several regions is one read.
        if self.last != Some(at) {
            self.count += 1;
            self.longest = self.longest.max(self.last.map_or(0, |last| at.saturating_sub(last)));
            self.last = Some(at);
        }
    }
}

impl Tally {
    /// Of what a process told, in order.
    pub fn of<'a>(told: impl Iterator<Item = &'a Told>) -> Self {
        let mut tally = Self::default();
        for it in told {
            match it {
                Told::Written { at, .. } => tally.written.add(*at),
                Told::Read { at, .. } => tally.read.add(*at),
                Told::Refused { error, .. } => tally.add_error("refused", error),
                Told::Unknown { error, .. } => tally.add_error("unknown", error),
                Told::Unread { error } => tally.add_error("unread", error),
                Told::Made | Told::Begins { .. } | Told::Ended => {}
            }
        }
        tally
    }

    fn add_error(&mut self, what: &'static str, error: &str) {
        *self.errors.entry((what, error.to_owned())).or_default() += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts = Vec::new();
        for (name, series) in [("writes", &self.written), ("reads", &self.read)] {
            if series.count > 0 {
                let longest = series.longest as f64 / 1e9;
                texts.push(format!("{} {name} (longest without {longest:.1} s)", series.count));
            }
        }
        let errors = self.errors.iter();
        texts.extend(errors.map(|((what, error), count)| format!("{count} {what} ({error})")));
        f.write_str(&texts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_and_what_failed_is_told_by_kind() {
        let of = || "region-1".to_owned();
        let read = |at| Told::Read { of: of(), stamps: vec![1], sums: Vec::new(), begun: 0, at };
        let unread = || Told::Unread { error: "TimedOut".to_owned() };
        let refused = Told::Refused { of: of(), stamp: 2, error: "Unavailable".to_owned() };
        let second = 1_000_000_000;
        let told = [
            Told::Written { of: of(), stamp: 1, at: 5 },
            read(second),
            read(second),
            unread(),
            read(3 * second),
            unread(),
            refused,
        ];
        let words = "1 writes (longest without 0.0 s), 2 reads (longest without 2.0 s), \
            1 refused (Unavailable), 2 unread (TimedOut)";
        assert_eq!(Tally::of(told.iter()).to_string(), words);
    }
}
