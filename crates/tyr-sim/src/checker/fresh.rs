//! Freshness of `read_many` (R6): it contains everything acknowledged before it began.

use super::history::{Deed, Seen};
use super::place::overlap;
use super::replay::{Replayed, depends_on};

/// Checks every `read_many`.
///
/// # Errors
/// One that misses something, and what.
pub fn read_many_is_fresh(replayed: &Replayed) -> Result<(), String> {
    for entry in &replayed.timeline.history.entries {
        if let Deed::ReadMany(seen) = &entry.deed {
            for seen in seen {
                is_fresh(replayed, seen)
                    .map_err(|missed| format!("{} misses {missed}", entry.name()))?;
            }
        }
    }
    Ok(())
}

fn is_fresh(replayed: &Replayed, seen: &Seen) -> Result<(), String> {
    let is_answered = seen.is_answered();
    let Some(at) = seen.at.filter(|_| is_answered) else { return Ok(()) };
    let blob = replayed.timeline.number(&seen.want.blob).expect("what was read is numbered");
    let ranges = depends_on(seen);
    let above = replayed.versions[blob].iter().rev().take_while(|version| version.at > at);
    for version in above {
        let writer = &replayed.timeline.committed[version.writer];
        if writer.end_us < seen.start_us && overlap(&version.changed, &ranges) {
            let key = &seen.want.blob.key;
            let name = replayed.timeline.name(version.writer);
            return Err(format!("of \"{key}\", read at {at}, {name}"));
        }
    }
    Ok(())
}
