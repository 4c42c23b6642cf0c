//! Whether the headers of groups are right: how many entries there are, and the sum of their
//! numbers, in every reading of both; and in the end it is what changes came to.

use std::collections::BTreeMap;

use crate::history::{Deed, Fate, Step};

/// What changes of a group came to: entries made less entries removed, of those that are known to
/// have been done, and how many more there may be or be less.
#[derive(Default)]
struct Sum {
    known: i64,
    more: i64,
    less: i64,
}

/// Checks all groups; that each was read in the end, too.
pub fn check(deeds: &[&Deed]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut sums = BTreeMap::<&str, Sum>::new();
    let mut last = BTreeMap::<&str, u64>::new();
    for deed in deeds.iter().filter(|deed| deed.fate != Fate::Failed) {
        for step in &deed.steps {
            if let Step::Enter { key, .. } = step {
                let sum = sums.entry(key).or_default();
                *(if deed.fate == Fate::Done { &mut sum.known } else { &mut sum.more }) += 1;
            } else if let Step::Leave { key, .. } = step {
                let sum = sums.entry(key).or_default();
                match deed.fate {
                    Fate::Done => sum.known -= 1,
                    Fate::Failed | Fate::Unknown => sum.less += 1,
                }
            } else if let Step::Members { key, count: Some(count), sum: Some(sum), seen } = step {
                if deed.operation == "final" {
                    last.insert(key, *count);
                }
                let Some(entries) = seen else { continue };
                if (entries.len() as u64, entries.iter().sum()) != (*count, *sum) {
                    let (name, line) = (&deed.operation, deed.invoked);
                    wrong.push(format!(
                        "{key} has {entries:?}, its header says {count} with the sum {sum}: \
                         {name} (line {line})"
                    ));
                }
            }
        }
    }
    for (key, Sum { known, more, less }) in sums {
        let possible = known - less..=known + more;
        match last.get(key).map(|count| count.cast_signed()) {
            Some(count) if possible.contains(&count) => {}
            Some(count) => wrong.push(format!("{key} has {count} in the end, not {possible:?}")),
            None => wrong.push(format!("{key} was not read in the end")),
        }
    }
    wrong
}
