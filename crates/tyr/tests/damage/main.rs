//! A byte that is not what was written, anywhere in the folder: the right answer or a clear error,
//! never another answer and never a panic.
//!
//! A small store with everything in it is damaged at one place at a time: bytes flipped or zeroed,
//! a page zeroed, the file cut there or gone. Then it is opened, everything in it is read, and it
//! is checked. Small files are damaged at every byte, others at places from a seed.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod content;
mod folder;
mod harm;
mod torn;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tyr::blocking::Tyr;
use tyr::{CheckReport, Error, ErrorKind};
use tyr_chance::{Chance, usual_seed};

use content::{Answers, LATE};
use folder::Folder;
use harm::{Harm, Kind};

#[test]
fn a_closed_store_answers_right_or_says_what_is_damaged() {
    let folder = folder::temporary();
    content::fill(folder.path()).close().unwrap();
    let tally = damage_everything(&Folder::read(folder.path()), true);
    tally.check();
}

#[test]
fn a_killed_store_answers_right_or_says_what_is_damaged() {
    let folder = folder::temporary();
    let tyr = content::fill(folder.path());
    let killed = Folder::read(folder.path());
    drop(tyr);
    let tally = damage_everything(&killed, false);
    tally.check();
}

#[test]
fn a_log_damaged_in_the_middle_opens_read_only_as_it_was_before() {
    let folder = folder::temporary();
    let tyr = content::fill(folder.path());
    let killed = Folder::read(folder.path());
    drop(tyr);
    let (log, len) = killed.files().find(|(name, _)| name.ends_with(".log")).unwrap();
    let place = killed.find(log, b"late/3").unwrap();
    assert!(place < len);
    let damaged = folder::temporary();
    killed.write(damaged.path(), &Harm { file: log.to_owned(), at: place, kind: Kind::Flip(1) });

    let error = Tyr::open(damaged.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains(log), "{error}");

    let read_only = Tyr::options().is_read_only(true);
    let error = read_only.clone().open_blocking(damaged.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains(log) && error.message().contains("despite"), "{error}");

    let tyr = read_only.despite_damage(true).open_blocking(damaged.path()).unwrap();
    let damage = tyr.damage().unwrap();
    assert_eq!(damage.kind(), ErrorKind::Corrupt);
    assert!(damage.message().contains(log), "{damage}");
    let answers = Answers::of(&tyr);
    assert_eq!(answers.late, Some(2), "what came before the damage is there, nothing after");
    assert!(answers.wrong.is_empty() && answers.refused.is_empty(), "{answers:?}");
    tyr.close().unwrap();
}

/// What became of the cases.
#[derive(Debug, Default)]
struct Tally {
    cases: usize,
    opened: usize,
    /// Of these, cases of damaged extents.
    cases_in_extents: usize,
    opened_in_extents: usize,
    /// Blobs read as they were written, and blobs refused, in stores that opened.
    right: usize,
    refused: usize,
}

impl Tally {
    /// Damaged extents keep nothing else from being read; damage of what holds everything together
    /// may keep a store from opening.
    fn check(&self) {
        assert_eq!(self.opened_in_extents, self.cases_in_extents, "{self:?}");
        assert!(self.opened > self.opened_in_extents, "{self:?}");
        assert!(self.right * 100 > (self.right + self.refused) * 90, "{self:?}");
    }
}

fn damage_everything(folder: &Folder, is_closed: bool) -> Tally {
    let mut chance = Chance::new(usual_seed());
    let mut tally = Tally::default();
    let mut wrong = Vec::new();
    for harm in harm::everywhere(folder, &mut chance) {
        let place = folder::temporary();
        folder.write(place.path(), &harm);
        let outcome =
            catch_unwind(AssertUnwindSafe(|| suffer(place.path(), &harm, is_closed, &mut tally)));
        let fault = match outcome {
            Ok(fault) => fault,
            Err(_) => Some("it panics".to_owned()),
        };
        wrong.extend(fault.map(|fault| format!("{harm:?}: {fault}")));
        tally.cases += 1;
        tally.cases_in_extents += usize::from(harm.is_in_extents());
    }
    println!("{tally:?}");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), tally.cases, wrong.join("\n"));
    tally
}

/// Opens, reads and checks a damaged store; answers what is wrong with how it bears it.
fn suffer(path: &Path, harm: &Harm, is_closed: bool, tally: &mut Tally) -> Option<String> {
    let checked = tyr::check(path, &mut |_| {});
    if let Err(error) = &checked
        && let Some(fault) = bad_error(error, harm)
    {
        return Some(format!("check: {fault}"));
    }
    let is_noticed = checked.as_ref().map_or(true, |report| !report.findings.is_empty());
    let tyr = match Tyr::options().must_exist(true).open_blocking(path) {
        Ok(tyr) => tyr,
        Err(error) => {
            let fault = bad_error(&error, harm).map(|fault| format!("open: {fault}"));
            let unnoticed = || Some(format!("check is content, but: {error}"));
            return fault.or_else(|| if is_noticed { None } else { unnoticed() });
        }
    };
    tally.opened += 1;
    tally.opened_in_extents += usize::from(harm.is_in_extents());
    let answers = Answers::of(&tyr);
    tally.right += answers.right;
    tally.refused += answers.refused.len();
    if let Some(wrong) = answers.wrong.first() {
        return Some(wrong.clone());
    }
    let least = if is_closed { LATE } else { harm.least_after_kill() };
    if answers.late.is_some_and(|late| late < least) {
        return Some(format!("only {:?} of {LATE} transactions are there", answers.late));
    }
    if let Some(error) = answers.refused.iter().find_map(|error| bad_error(error, harm)) {
        return Some(format!("read: {error}"));
    }
    if !answers.refused.is_empty() && !is_noticed {
        return Some(format!("check is content, but: {}", answers.refused[0]));
    }
    let report: Result<CheckReport, Error> = tyr.check(&mut |_| {});
    if let Err(error) = &report
        && let Some(fault) = bad_error(error, harm)
    {
        return Some(format!("check of the open store: {fault}"));
    }
    // Closing folds, and may meet the damage.
    tyr.close().err().and_then(|error| bad_error(&error, harm))
}

/// What is wrong with an error, if anything: it has to name the damage and the place.
fn bad_error(error: &Error, harm: &Harm) -> Option<String> {
    let is_newer = error.kind() == ErrorKind::Unavailable && error.message().contains("later");
    let is_gone = error.kind() == ErrorKind::NotFound && matches!(harm.kind, Kind::Remove);
    if error.kind() != ErrorKind::Corrupt && !is_newer && !is_gone {
        return Some(format!("an error of kind {}: {error}", error.kind().name()));
    }
    let file = harm.file.rsplit('/').next().unwrap();
    let names_it = error.message().contains(file)
        || error.message().contains("index")
        || error.message().contains("log");
    (!names_it).then(|| format!("the error does not name the place: {error}"))
}
