//! Making things fit together again: each repair is a transaction of its own, on condition that
//! what it is on has not changed since it was looked at.
//!
//! Nothing that can be read is thrown away: what has no name gets one in `/lost+found`, what is
//! there twice becomes two files. A counter is what is counted, and a record that is gone is made
//! anew from what refers to it. [`directories`] and [`files`] say what is done about what;
//! repairs that follow from others come in the next round.

mod directories;
mod files;

use tyr::{Bytes, Number, Timestamp, Transform};

use super::survey::Survey;
use super::{Finding, Report};
use crate::blocking::FileSystem;
use crate::error::Result;
use crate::layout::forward::Place;
use crate::layout::key::{Blob, ROOT};
use crate::layout::name::Name;
use crate::layout::record::{Access, Kind, RECORD_LEN, Record, Reference, Time};
use crate::layout::superblock::Superblock;
use crate::plan::{Change, Condition, Draft};

/// How often everything is looked at, each time after what was found was repaired.
const ROUNDS_MAX: u32 = 12;

/// How far the next number is set above the highest that a file has: programs may still give
/// numbers that they took before.
const NUMBERS_SKIPPED: u64 = 1 << 20;

/// The directory of what was found without a name.
const LOST: &str = "lost+found";

/// What was done, and what is left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// What was done, in this order.
    pub done: Vec<Finding>,
    /// What is so afterwards.
    pub report: Report,
}

/// Something that is to be done.
struct Repair {
    what: Finding,
    draft: Draft<()>,
    /// A file that is to be let go of then.
    orphan: Option<u64>,
}

/// What repairs need besides what was gathered.
struct Means {
    superblock: Superblock,
    /// The moment of what was gathered.
    at: Timestamp,
    now: Time,
    session: u64,
    /// The directory of what has no name, if there is one already.
    lost: Option<u64>,
}

/// All repairs of a round.
struct Round<'a> {
    survey: &'a Survey,
    means: &'a Means,
    repairs: Vec<Repair>,
    /// Whether some have to wait until there is a directory for what has no name.
    is_lost_wanted: bool,
    /// Files that get another number: where they are, with their records as stored.
    renumbered: Vec<Place>,
}

impl FileSystem {
    /// Checks all of the file system, and repairs what can be. `progress` is told how many blobs
    /// were looked at, from the beginning in each round, and may say that it is enough by answering
    /// `false`. Others may go on: what they change meanwhile is looked at again.
    ///
    /// # Errors
    /// As [`FileSystem::check`].
    pub fn repair(&self, progress: &mut dyn FnMut(u64) -> bool) -> Result<Repairs> {
        let mut done = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let survey = Survey::of(self, progress)?;
            let means = Means {
                superblock: self.superblock(),
                at: survey.at,
                now: self.clock_now(),
                session: self.session(),
                lost: survey.lost(),
            };
            let round = Round::of(&survey, &means);
            let (repairs, renumbered) = (round.repairs, round.renumbered);
            let is_lost_wanted = round.is_lost_wanted && survey.headers.contains_key(&ROOT);
            if repairs.is_empty() && renumbered.is_empty() && !is_lost_wanted {
                return Ok(Repairs { done, report: survey.verdict() });
            }
            for Repair { what, draft, orphan } in repairs {
                if self.commit_repair(draft)? {
                    done.push(what);
                    if let Some(number) = orphan {
                        self.orphaned(number)?;
                    }
                }
            }
            for place in renumbered {
                if let Some(number) = self.renumber(&place, &means)? {
                    let text = format!("it was there twice, and is file {number} of its own now");
                    done.push(Finding { place: survey.path_of(&place), text });
                }
            }
            if is_lost_wanted {
                let access = Access { mode: 0o700, owner: 0, group: 0 };
                match self.make_directory_at(format!("/{LOST}"), access) {
                    Err(error) if error.errno() == rustix::io::Errno::EXIST => {}
                    made => drop(made?),
                }
            }
        }
        Ok(Repairs { done, report: self.check(progress)? })
    }
}

impl Survey {
    /// The directory of what has no name.
    fn lost(&self) -> Option<u64> {
        let name = Name::new(LOST).expect("it is one");
        let is_it = |place: &Place| place.directory == ROOT && place.name == name;
        let mut all = self.directories.iter();
        let found = all.find(|(_, names)| names.iter().any(|(place, _)| is_it(place)));
        found.map(|(number, _)| *number).filter(|number| self.headers.contains_key(number))
    }
}

impl<'a> Round<'a> {
    fn of(survey: &'a Survey, means: &'a Means) -> Self {
        let (repairs, renumbered) = (Vec::new(), Vec::new());
        let mut round = Self { survey, means, repairs, is_lost_wanted: false, renumbered };
        round.numbers();
        round.directories();
        round.loops();
        round.small();
        round.large();
        round.rest();
        round
    }

    /// A repair more.
    fn add(&mut self, place: impl ToString, text: impl Into<String>, draft: Draft<()>) {
        let what = Finding { place: place.to_string(), text: text.into() };
        self.repairs.push(Repair { what, draft, orphan: None });
    }

    /// A draft of what was so when it was looked at.
    fn draft(&self, unchanged: &[Blob]) -> Draft<()> {
        let mut draft = Draft::new();
        for blob in unchanged {
            draft.require(Condition::Unchanged(blob.clone(), self.means.at));
        }
        draft
    }

    /// A name for what has none, in the directory for that; `None` while there is no such.
    fn find_lost(&mut self, draft: &mut Draft<()>, reference: Reference) -> Option<Place> {
        let Some(directory) = self.means.lost else {
            self.is_lost_wanted = true;
            return None;
        };
        let name = Name::new(format!("#{}", reference.number)).expect("digits are a name");
        let place = Place { directory, name };
        let entry = Blob::entry(directory, &place.name);
        draft.require(Condition::Absent(entry.clone()));
        draft.put(&entry, reference.encode());
        let is_directory = reference.kind == Kind::Directory;
        draft.enter(directory, 1, i64::from(is_directory), self.means.now);
        Some(place)
    }

    /// Takes a name away, if its directory is there.
    fn take_name(&self, draft: &mut Draft<()>, place: &Place, is_directory: bool) {
        let entry = Blob::entry(place.directory, &place.name);
        draft.require(Condition::Unchanged(entry.clone(), self.means.at));
        draft.delete(entry);
        if self.survey.headers.contains_key(&place.directory) {
            draft.enter(place.directory, -1, -i64::from(is_directory), self.means.now);
        }
    }

    fn numbers(&mut self) {
        if !self.survey.has_superblock {
            let mut draft = Draft::new();
            draft.put(&Blob::superblock(), self.means.superblock.encode());
            self.add("superblock", "it was written anew", draft);
        }
        let (next, highest) = (self.survey.next_number, self.survey.highest());
        if next.is_some_and(|next| next > highest) {
            return;
        }
        let (above, mut draft) = (highest + NUMBERS_SKIPPED, Draft::new());
        let blob = Blob::next_number();
        match next {
            // Others may take numbers meanwhile.
            Some(_) => {
                let transform = Transform::max(Number::U64(above));
                draft.change(Change::Apply(blob, 0, transform));
            }
            None => draft.put(&blob, above.to_le_bytes()),
        }
        self.add("next number", format!("it is {above} now, above all files"), draft);
    }
}

impl FileSystem {
    /// A file whose number another has too, or that lies twice, gets a number of its own; `None`
    /// when it has changed meanwhile. Attributes that lie aside stay with the other.
    fn renumber(&self, place: &Place, means: &Means) -> Result<Option<u64>> {
        let entry = Blob::entry(place.directory, &place.name);
        let Ok(bytes) = self.keyspace(entry.space).read(&entry.key, 0, RECORD_LEN as u64) else {
            return Ok(None);
        };
        let Ok(mut record) = Record::decode(&bytes) else { return Ok(None) };
        let number = self.new_number()?;
        record.identity.number = number;
        record.identity.flags.is_moved = false;
        record.identity.flags.has_xattrs = false;
        let mut draft = Draft::new();
        draft.require(Condition::Unchanged(entry.clone(), means.at));
        draft.change(Change::Write(entry, 0, Bytes::copy_from_slice(&record.identity.encode())));
        Ok(self.commit_repair(draft)?.then_some(number))
    }
}
