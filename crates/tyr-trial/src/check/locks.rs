//! Whether locks kept out who did not hold them: tokens never fall in the order of commit, records
//! of two holders do not mix, and nobody writes after another got the lock.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Deed, Fate, Step};

/// All that was done with one lock.
#[derive(Default)]
struct Lock<'a> {
    /// Who got it, with the token; none where that is not known.
    taken: Vec<(&'a Deed, Option<u64>)>,
    /// Appended under which token, and where.
    fenced: Vec<(&'a Deed, u64, u64, Option<u64>)>,
    /// Given back under which token.
    unlocked: Vec<(&'a Deed, u64)>,
    /// Under which token a client took itself for its holder.
    held: Vec<(&'a Deed, u64)>,
    /// What it guarded, as it was read.
    seen: Vec<(&'a Deed, &'a [(u64, u64)])>,
}

/// Checks all locks; that what each guards was read in the end, too.
pub fn check(deeds: &[&Deed]) -> Vec<String> {
    let mut locks = BTreeMap::<&str, Lock<'_>>::new();
    for deed in deeds {
        for step in &deed.steps {
            note(&mut locks, deed, step);
        }
    }
    let told = |(key, lock): (&&str, &Lock<'_>)| {
        let found = lock.check();
        found.into_iter().map(|text| format!("{key}: {text}")).collect::<Vec<_>>()
    };
    locks.iter().flat_map(told).collect()
}

fn note<'a>(locks: &mut BTreeMap<&'a str, Lock<'a>>, deed: &'a Deed, step: &'a Step) {
    let is_done = deed.fate == Fate::Done;
    if let Step::Lock { key, token } = step
        && deed.fate != Fate::Failed
    {
        let token = token.filter(|_| is_done);
        locks.entry(key).or_default().taken.push((deed, token));
    } else if let Step::Fenced { key, token, value, at } = step {
        locks.entry(key).or_default().fenced.push((deed, *token, *value, *at));
    } else if let Step::Unlock { key, token } = step {
        locks.entry(key).or_default().unlocked.push((deed, *token));
    } else if let Step::Held { key, token, seen: Some(true) } = step {
        locks.entry(key).or_default().held.push((deed, *token));
    } else if let Step::Guarded { key, seen: Some(seen) } = step {
        locks.entry(key).or_default().seen.push((deed, seen));
    }
}

impl Lock<'_> {
    fn check(&self) -> Vec<String> {
        let is_last = |(deed, _): &&(&Deed, _)| deed.operation == "final";
        let Some((_, last)) = self.seen.iter().rfind(is_last) else {
            return vec!["what it guards was not read in the end".to_owned()];
        };
        let mut wrong = Vec::new();
        if !last.is_sorted_by_key(|(token, _)| token) {
            wrong.push(format!("a token fell in the order of commit: {last:?}"));
        }
        for (deed, seen) in &self.seen {
            if !last.starts_with(seen) {
                wrong.push(format!(
                    "what was read was not there in the end (line {})",
                    deed.invoked
                ));
            }
        }
        self.check_records(last, &mut wrong);
        self.check_tokens(&mut wrong);
        let fenced = self.fenced.iter().map(|(deed, token, ..)| (*deed, *token));
        for (deed, token) in fenced.chain(self.unlocked.iter().copied()) {
            self.check_fence(deed, token, &mut wrong);
        }
        for (deed, token) in &self.held {
            if let Some(other) = self.got_before(deed, *token) {
                let line = deed.invoked;
                wrong.push(format!("{token} was held when {other} had been got (line {line})"));
            }
        }
        wrong
    }

    /// Each record that was acknowledged is there, once, and none that was refused.
    fn check_records(&self, last: &[(u64, u64)], wrong: &mut Vec<String>) {
        let mut unknown: BTreeSet<(u64, u64)> = last.iter().copied().collect();
        if unknown.len() < last.len() {
            wrong.push("a record is there twice".to_owned());
        }
        for (deed, token, value, at) in &self.fenced {
            let is_there = unknown.remove(&(*token, *value));
            let line = deed.invoked;
            match deed.fate {
                Fate::Done => {
                    let place = at.and_then(|at| last.get(at as usize));
                    if place != Some(&(*token, *value)) {
                        wrong.push(format!("record {value} is not where it was put (line {line})"));
                    }
                }
                Fate::Failed if is_there => {
                    wrong.push(format!("record {value} was refused and is there (line {line})"));
                }
                Fate::Failed | Fate::Unknown => {}
            }
        }
        if !unknown.is_empty() {
            wrong.push(format!("records of nobody: {unknown:?}"));
        }
    }

    /// Each token is one holder's, and who came later has a higher one.
    fn check_tokens(&self, wrong: &mut Vec<String>) {
        let mut all: Vec<(u64, &Deed)> =
            self.taken.iter().filter_map(|(deed, token)| Some(((*token)?, *deed))).collect();
        all.sort_unstable_by_key(|(token, _)| *token);
        for pair in all.windows(2) {
            let [(token, one), (next, other)] = [pair[0], pair[1]];
            if token == next {
                wrong.push(format!("token {token} was given twice (line {})", other.invoked));
            }
            if other.returned < one.invoked {
                wrong.push(format!("token {token} came after {next} (line {})", one.invoked));
            }
        }
    }

    /// Whether a fence let pass whom it should, and refused whom it should.
    fn check_fence(&self, deed: &Deed, token: u64, wrong: &mut Vec<String>) {
        let (name, line) = (&deed.operation, deed.invoked);
        let is_conflict = deed.error.as_ref().is_some_and(|it| it.starts_with("Conflict"));
        match deed.fate {
            Fate::Done => {
                if let Some(other) = self.got_before(deed, token) {
                    wrong.push(format!("{name} by {token} after {other} was got (line {line})"));
                }
            }
            Fate::Failed if is_conflict => {
                let mut others = self.taken.iter();
                if !others.any(|(it, other)| {
                    it.invoked < deed.returned && other.is_none_or(|other| other > token)
                }) {
                    wrong.push(format!("{name} by {token} refused for nobody (line {line})"));
                }
            }
            Fate::Failed | Fate::Unknown => {}
        }
    }

    /// A higher token that somebody was told before `deed` began.
    fn got_before(&self, deed: &Deed, token: u64) -> Option<u64> {
        let before = self.taken.iter().filter(|(it, _)| it.returned < deed.invoked);
        before.filter_map(|(_, other)| *other).find(|other| *other > token)
    }
}
