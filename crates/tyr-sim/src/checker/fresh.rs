//! Freshness of `read_many` and of moments of everything (R6): they contain everything acknowledged
//! before they began.

use super::history::{Deed, Seen};
use super::place::overlap;
use super::replay::{Replayed, depends_on};

/// Checks every `read_many`, and every moment of everything.
///
/// # Errors
/// One that misses something, and what.
pub fn moments_are_fresh(replayed: &Replayed) -> Result<(), String> {
    for entry in &replayed.timeline.history.entries {
        if let Deed::ReadMany(seen) | Deed::Moment(seen) = &entry.deed {
            for seen in seen {
                is_fresh(replayed, seen, entry.start_us)
                    .map_err(|missed| format!("{} misses {missed}", entry.name()))?;
            }
        }
    }
    Ok(())
}

fn is_fresh(replayed: &Replayed, seen: &Seen, start_us: u64) -> Result<(), String> {
    let is_answered = seen.is_answered();
    let Some(at) = seen.at.filter(|_| is_answered) else { return Ok(()) };
    let blob = replayed.timeline.number(&seen.want.blob).expect("what was read is numbered");
    let ranges = depends_on(seen);
    let above = replayed.versions[blob].iter().rev().take_while(|version| version.at > at);
    for version in above {
        let writer = &replayed.timeline.committed[version.writer];
        if writer.end_us < start_us && overlap(&version.changed, &ranges) {
            let key = &seen.want.blob.key;
            let name = replayed.timeline.name(version.writer);
            return Err(format!("of \"{key}\", read at {at}, {name}"));
        }
    }
    Ok(())
}
