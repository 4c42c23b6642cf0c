//! Whether what was read of long payloads is whole and of one moment: at every place the payload
//! that is seen there may be the newest one, and of two payloads the same one is above the other
//! everywhere.
//!
//! A blob is looked at where payloads begin and end; between two such places nothing changes. What
//! was put covers all that is behind it, too: there is the end of the blob.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Deed, Fate, How, Run, Step};

/// A payload, and where it lies.
struct Write<'a> {
    deed: &'a Deed,
    value: u64,
    /// Its first word's place; none where it was appended and that is not known.
    at: Option<u64>,
    len: u64,
    is_whole: bool,
}

impl Write<'_> {
    fn covers(&self, place: u64, at: u64) -> bool {
        self.is_whole || (at..at + self.len).contains(&place)
    }
}

/// What is seen at a place: a word of the payload of this value, zeros, or that the blob has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    Word(u64),
    Zeros,
    End,
}

/// Checks the readings of blobs; that there is a last one, too.
pub fn check(deeds: &[&Deed]) -> Vec<String> {
    let mut writes = BTreeMap::<&str, Vec<Write<'_>>>::new();
    for deed in deeds.iter().filter(|deed| deed.fate != Fate::Failed) {
        for step in &deed.steps {
            let Step::Upload { key, value, len, how, at } = step else { continue };
            let is_whole = *how == How::Whole;
            let at = if is_whole { Some(0) } else { *at };
            let write = Write { deed, value: *value, at, len: *len, is_whole };
            writes.entry(key).or_default().push(write);
        }
    }
    let (mut wrong, mut is_read_last) = (Vec::new(), false);
    for deed in deeds.iter().filter(|deed| deed.fate == Fate::Done) {
        for step in &deed.steps {
            let Step::Runs { key, seen: Some(seen) } = step else { continue };
            is_read_last |= deed.operation == "final";
            let writes = writes.get(key.as_str()).map_or(&[][..], Vec::as_slice);
            if let Err(text) = check_reading(writes, deed, seen) {
                let line = deed.invoked;
                wrong.push(format!("{key}: {text}: {} of {seen:?} (line {line})", deed.operation));
            }
        }
    }
    if !is_read_last {
        wrong.push("no blob was read in the end".to_owned());
    }
    wrong
}

fn check_reading(writes: &[Write<'_>], deed: &Deed, seen: &[Run]) -> Result<(), String> {
    // Where each payload lies: as it was told, or else as it is seen.
    let mut lying: Vec<(&Write<'_>, Option<u64>)> =
        writes.iter().map(|write| (write, write.at)).collect();
    let mut start = 0_u64;
    for (value, from, count) in seen {
        let own = lying.iter_mut().find(|(write, _)| write.value == *value);
        match own {
            None if *value == 0 => {}
            None => return Err(format!("{value} was not written, or failed")),
            Some((write, at)) => {
                if write.deed.invoked > deed.returned {
                    return Err(format!("{value} was read before it was written"));
                }
                let begin = start.checked_sub(*from);
                if begin.is_none() || *at.get_or_insert(begin.unwrap_or(0)) != begin.unwrap_or(0) {
                    return Err(format!("{value} is not where it was written"));
                }
                if from + count > write.len {
                    return Err(format!("{value} has more words than were written"));
                }
            }
        }
        start += count;
    }
    let end = start;
    let places = lying.iter().filter_map(|(write, at)| Some([(*at)?, (*at)? + write.len]));
    let mut places: BTreeSet<u64> = places.flatten().chain([0, end]).collect();
    let mut begin = 0;
    for (_, _, count) in seen {
        places.insert(begin);
        begin += count;
    }
    if seen.last().is_some_and(|(value, ..)| *value == 0) {
        return Err("it ends with zeros that nobody wrote".to_owned());
    }
    let is_in_it = |it: &Write<'_>| {
        it.deed.returned < deed.invoked || seen.iter().any(|(value, ..)| *value == it.value)
    };
    let mut above = BTreeSet::new();
    for place in places {
        let covering = |(write, at): &&(&Write<'_>, Option<u64>)| {
            at.is_some_and(|at| write.covers(place, at)) && write.deed.invoked < deed.returned
        };
        let all: Vec<&Write<'_>> = lying.iter().filter(covering).map(|(write, _)| *write).collect();
        let sight = sight(seen, place);
        let top = tops(&all, sight, place);
        if top.is_empty() && sight != Sight::Zeros && sight != Sight::End {
            return Err(format!("what is at word {place} was not written there"));
        }
        for write in all.iter().filter(|it| is_in_it(it)) {
            if top.iter().any(|it| it.value == write.value) {
                continue;
            }
            // It is below what is seen here; so it did not begin after that was over.
            if top.iter().all(|it| it.deed.returned < write.deed.invoked) {
                let value = write.value;
                return Err(format!("{value} is missing at word {place} of {end}: {sight:?}"));
            }
            if let [top] = top.as_slice() {
                above.insert((top.value, write.value));
            }
        }
    }
    match above.iter().find(|(upper, lower)| above.contains(&(*lower, *upper))) {
        Some((one, other)) => Err(format!("a mix: {one} is above {other} and below it")),
        None => Ok(()),
    }
}

fn sight(seen: &[Run], place: u64) -> Sight {
    let mut begin = 0;
    for (value, _, count) in seen {
        begin += count;
        if place < begin {
            return if *value == 0 { Sight::Zeros } else { Sight::Word(*value) };
        }
    }
    Sight::End
}

/// Of all that cover a place, what may be the newest there when this is seen. Nothing where nothing
/// was ever there.
fn tops<'a>(all: &[&'a Write<'a>], sight: Sight, place: u64) -> Vec<&'a Write<'a>> {
    let is_top = |it: &&&Write<'_>| match sight {
        Sight::Word(value) => it.value == value,
        // Something was put that ends before.
        Sight::Zeros | Sight::End => it.is_whole && it.len <= place,
    };
    all.iter().filter(is_top).copied().collect()
}
