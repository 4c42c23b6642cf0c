//! Whether what was read of regions and tables can be: each of one write, and of one that was not
//! replaced before the read began.
//!
//! ```text
//!   write 17  ├─────┤
//!   write 33           ├────┤
//!   reads        17 or 33 ─────┤├── 33 ──    17 and 33 together never
//! ```

use std::collections::{BTreeMap, HashMap};

use super::told::Told;

/// What is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Reads that saw parts of several writes.
    pub torn: Vec<String>,
    /// Reads that saw one write, and could not.
    pub wrong: Vec<String>,
}

/// A write, by its stamp.
#[derive(Clone, Copy, Debug)]
struct Write {
    begun: u64,
    end: End,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Done(u64),
    Refused,
    /// It was not said, or whoever wrote does not know.
    Open,
}

/// The writes of one region or table.
#[derive(Debug, Default)]
struct Writes {
    by_stamp: HashMap<u64, Write>,
    /// When those that took effect ended, in order, each with the latest beginning so far.
    done: Vec<(u64, u64)>,
}

/// Looks at what all programs told, in any order.
pub fn check<'a>(told: impl Iterator<Item = &'a Told> + Clone) -> Verdict {
    let written = writes(told.clone());
    let mut verdict = Verdict::default();
    for it in told {
        let Told::Read { of, stamps, sums, begun, at } = it else { continue };
        let when = format!("{of}, read in {} ms", (at - begun) / 1_000_000);
        if let Some((sum, expected)) = sums.iter().find(|(sum, expected)| sum != expected) {
            let of = stamps.first().copied().unwrap_or_default();
            let text = format!("{when}: it adds up to {sum} and not to {expected}, stamp {of}");
            verdict.torn.push(text);
        } else if let [stamp] = stamps[..] {
            let writes = &written[of];
            let wrong = writes.why_not(stamp, *begun, *at);
            verdict.wrong.extend(wrong.map(|text| format!("{when}: stamp {stamp} {text}")));
        } else {
            verdict.torn.push(format!("{when}: it has the stamps {stamps:?}"));
        }
    }
    verdict
}

fn writes<'a>(told: impl Iterator<Item = &'a Told> + Clone) -> BTreeMap<&'a String, Writes> {
    let mut written: BTreeMap<&String, Writes> = BTreeMap::new();
    for it in told.clone() {
        match it {
            Told::Begins { of, stamp, at } => {
                let write = Write { begun: *at, end: End::Open };
                written.entry(of).or_default().by_stamp.insert(*stamp, write);
            }
            Told::Read { of, .. } => drop(written.entry(of).or_default()),
            Told::Made
            | Told::Written { .. }
            | Told::Refused { .. }
            | Told::Unknown { .. }
            | Told::Unread { .. }
            | Told::Ended => {}
        }
    }
    for it in told {
        let (of, stamp, end) = match it {
            Told::Written { of, stamp, at } => (of, stamp, End::Done(*at)),
            Told::Refused { of, stamp, .. } => (of, stamp, End::Refused),
            Told::Made
            | Told::Begins { .. }
            | Told::Unknown { .. }
            | Told::Read { .. }
            | Told::Unread { .. }
            | Told::Ended => continue,
        };
        let write = written.get_mut(of).and_then(|writes| writes.by_stamp.get_mut(stamp));
        write.expect("a program says that it begins before it says how it ended").end = end;
    }
    for writes in written.values_mut() {
        let done = |write: &Write| match write.end {
            End::Done(at) => Some((at, write.begun)),
            End::Refused | End::Open => None,
        };
        writes.done = writes.by_stamp.values().filter_map(done).collect();
        writes.done.sort_unstable();
        let mut latest = 0;
        for (_, begun) in &mut writes.done {
            latest = latest.max(*begun);
            *begun = latest;
        }
    }
    written
}

impl Writes {
    /// Why a read from `begun` to `at` cannot have seen this stamp.
    fn why_not(&self, stamp: u64, begun: u64, at: u64) -> Option<String> {
        let made = Write { begun: 0, end: End::Done(0) };
        let write = match self.by_stamp.get(&stamp) {
            None if stamp == 0 => made,
            None => return Some("was written by nobody".to_owned()),
            Some(write) => *write,
        };
        if write.begun > at {
            return Some("was written later".to_owned());
        }
        let ended = match write.end {
            End::Refused => return Some("was refused".to_owned()),
            End::Open => return None,
            End::Done(ended) => ended,
        };
        let before = self.done.partition_point(|(done, _)| *done < begun);
        let replaced = before.checked_sub(1).map(|last| self.done[last].1);
        replaced.filter(|latest| ended < *latest).map(|_| "had been replaced".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of() -> String {
        "region-1".to_owned()
    }

    fn write(stamp: u64, begun: u64, end: Option<Told>) -> Vec<Told> {
        let mut told = vec![Told::Begins { of: of(), stamp, at: begun }];
        told.extend(end);
        told
    }

    fn written(stamp: u64, begun: u64, at: u64) -> Vec<Told> {
        write(stamp, begun, Some(Told::Written { of: of(), stamp, at }))
    }

    fn read(stamps: &[u64], sums: &[(i64, i64)], begun: u64) -> Told {
        let (stamps, sums) = (stamps.to_vec(), sums.to_vec());
        Told::Read { of: of(), stamps, sums, begun, at: begun + 10 }
    }

    fn found(writes: &[Vec<Told>], read: Told) -> Verdict {
        let mut told = writes.concat();
        told.push(read);
        check(told.iter())
    }

    #[test]
    fn a_region_of_two_stamps_and_a_table_that_does_not_add_up_are_torn() {
        let writes = [written(17, 10, 20), written(33, 30, 40)];
        let verdict = found(&writes, read(&[17, 33], &[], 35));
        assert_eq!(verdict.wrong, [""; 0]);
        assert!(verdict.torn[0].contains("region-1"), "{verdict:?}");
        assert!(verdict.torn[0].contains("[17, 33]"), "{verdict:?}");
        let verdict = found(&writes, read(&[33], &[(7, 7), (5, 6)], 50));
        assert!(verdict.torn[0].contains("5 and not to 6"), "{verdict:?}");
        assert_eq!(found(&writes, read(&[], &[], 50)).torn.len(), 1, "nothing is no stamp");
    }

    #[test]
    fn a_read_may_see_what_was_not_replaced_before_it_began() {
        let writes = [written(17, 10, 20), written(33, 30, 40)];
        for (stamp, begun) in [(0, 5), (0, 15), (17, 25), (17, 35), (33, 35), (33, 41)] {
            let verdict = found(&writes, read(&[stamp], &[], begun));
            assert_eq!(verdict, Verdict::default(), "stamp {stamp} at {begun}");
        }
        let both = [written(17, 10, 40), written(33, 20, 30)];
        for stamp in [17, 33] {
            assert_eq!(found(&both, read(&[stamp], &[], 50)), Verdict::default());
        }
    }

    #[test]
    fn what_was_replaced_refused_to_come_or_never_written_is_wrong() {
        let writes = [written(17, 10, 20), written(33, 30, 40), written(49, 100, 110)];
        let cases =
            [(0, 25, "replaced"), (17, 45, "replaced"), (49, 60, "later"), (5, 60, "nobody")];
        for (stamp, begun, text) in cases {
            let verdict = found(&writes, read(&[stamp], &[], begun));
            assert!(verdict.torn.is_empty(), "{verdict:?}");
            assert!(verdict.wrong[0].contains(text), "{verdict:?}");
        }
        let error = "Conflict".to_owned();
        let refused = write(17, 10, Some(Told::Refused { of: of(), stamp: 17, error }));
        let verdict = found(&[refused], read(&[17], &[], 45));
        assert!(verdict.wrong[0].contains("refused"), "{verdict:?}");
    }

    #[test]
    fn what_has_an_unknown_outcome_may_be_seen_at_any_time_or_never() {
        let error = "TimedOut".to_owned();
        let unknown = write(17, 10, Some(Told::Unknown { of: of(), stamp: 17, error }));
        let writes = [unknown, write(49, 20, None), written(33, 30, 40)];
        for stamp in [17, 33, 49] {
            assert_eq!(found(&writes, read(&[stamp], &[], 100)), Verdict::default());
        }
    }
}
