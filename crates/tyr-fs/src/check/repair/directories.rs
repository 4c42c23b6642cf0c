//! What is done about directories.

use std::collections::BTreeSet;

use super::Round;
use crate::check::survey::Counted;
use crate::layout::forward::Place;
use crate::layout::header::{DirectoryPlace, ENTRIES_AT, Header, PLACE_AT, SUBDIRECTORIES_AT};
use crate::layout::key::{Blob, ROOT};
use crate::layout::record::{Access, Kind, MODE_AT, Record, Reference};
use crate::plan::{Condition, Draft};

/// The rights of what is made anew, where nothing says them.
const RIGHTS: Access = Access { mode: 0o700, owner: 0, group: 0 };

/// The rights of a root that is made anew.
const ROOT_RIGHTS: Access = Access { mode: 0o755, owner: 0, group: 0 };

fn placed(place: &Place) -> DirectoryPlace {
    DirectoryPlace { parent: place.directory, name: Some(place.name.clone()) }
}

impl Round<'_> {
    pub(super) fn directories(&mut self) {
        let survey = self.survey;
        let mut numbers: BTreeSet<u64> = survey.headers.keys().copied().collect();
        numbers.extend(survey.directories.keys().chain(survey.counted.keys()));
        numbers.insert(ROOT);
        for number in numbers {
            let names = survey.directories.get(&number).map(Vec::as_slice).unwrap_or_default();
            match survey.headers.get(&number) {
                None => self.make_header(number, names),
                Some(header) => {
                    self.count(number, header);
                    self.directory_names(number, header, names);
                    let record = &header.record;
                    let place = survey.path(number);
                    self.attributes_aside(&place, &Blob::header(number), record);
                }
            }
        }
    }

    /// A directory of which only names are left: in it, or of it.
    fn make_header(&mut self, number: u64, names: &[(Place, Access)]) {
        let survey = self.survey;
        let blob = Blob::header(number);
        let mut draft = match survey.unreadable.contains(&blob) {
            true => self.draft(std::slice::from_ref(&blob)),
            false => {
                let mut draft = Draft::new();
                draft.require(Condition::Absent(blob.clone()));
                draft
            }
        };
        let (place, access) = match names.first() {
            _ if number == ROOT => (DirectoryPlace::ROOT, ROOT_RIGHTS),
            Some((place, access)) => {
                let entry = Blob::entry(place.directory, &place.name);
                draft.require(Condition::Unchanged(entry, self.means.at));
                (placed(place), *access)
            }
            None => {
                let reference = Reference { kind: Kind::Directory, number, access: RIGHTS };
                let Some(place) = self.find_lost(&mut draft, reference) else { return };
                (placed(&place), RIGHTS)
            }
        };
        let mut record = Record::new(Kind::Directory, number, access, self.means.now);
        record.identity.flags.has_xattrs = survey.xattrs.contains(&number);
        let mut header = Header::new(record, place);
        let counted = survey.counted.get(&number).copied().unwrap_or_default();
        (header.entries, header.subdirectories) = (counted.entries, counted.subdirectories);
        draft.put(&blob, header.encode());
        let text = format!("its record was made anew, for {} names in it", counted.entries);
        let path = match names.first() {
            Some((place, _)) => survey.path_of(place),
            None => survey.path(number),
        };
        self.add(path, text, draft);
    }

    fn count(&mut self, number: u64, header: &Header) {
        let counted = self.survey.counted.get(&number).copied().unwrap_or_default();
        let says = Counted { entries: header.entries, subdirectories: header.subdirectories };
        if counted == says {
            return;
        }
        let Counted { entries, subdirectories } = counted;
        let blob = Blob::header(number);
        let mut draft = self.draft(std::slice::from_ref(&blob));
        draft.write(&blob, ENTRIES_AT, entries.to_le_bytes());
        draft.write(&blob, SUBDIRECTORIES_AT, subdirectories.to_le_bytes());
        let text =
            format!("it counts {entries} names now, {subdirectories} directories among them");
        self.add(self.survey.path(number), text, draft);
    }

    fn directory_names(&mut self, number: u64, header: &Header, names: &[(Place, Access)]) {
        let (blob, access) = (Blob::header(number), header.record.access);
        let path = self.survey.path(number);
        match names {
            [] if number == ROOT => {}
            [] => {
                let mut draft = self.draft(std::slice::from_ref(&blob));
                let reference = header.record.reference();
                if let Some(place) = self.find_lost(&mut draft, reference) {
                    draft.write(&blob, PLACE_AT, placed(&place).encode());
                    self.add(path, "it had no name, and is in /lost+found now", draft);
                }
            }
            [(place, copy)] => {
                let entry = Blob::entry(place.directory, &place.name);
                let mut draft = self.draft(&[blob.clone(), entry.clone()]);
                if header.place != placed(place) {
                    draft.write(&blob, PLACE_AT, placed(place).encode());
                    let text = format!("it says now that it is {} there", place.name);
                    self.add(path, text, draft);
                } else if *copy != access {
                    draft.write(&entry, MODE_AT, access.encode());
                    self.add(path, "its entry has its rights now", draft);
                }
            }
            names => {
                let is_right = |place: &Place| header.place == placed(place);
                let kept = names.iter().position(|(place, _)| is_right(place)).unwrap_or(0);
                for (at, (place, _)) in names.iter().enumerate() {
                    if at != kept {
                        let mut draft = self.draft(std::slice::from_ref(&blob));
                        self.take_name(&mut draft, place, true);
                        let text =
                            format!("the name {} led to it as well, and is gone", place.name);
                        self.add(&path, text, draft);
                    }
                }
            }
        }
    }

    /// Directories that lie in each other: one of them goes where what has no name is.
    pub(super) fn loops(&mut self) {
        let survey = self.survey;
        let mut settled = BTreeSet::from([ROOT]);
        for number in survey.headers.keys() {
            let (mut at, mut way) = (*number, Vec::new());
            while !settled.contains(&at) && !way.contains(&at) {
                way.push(at);
                let Some(header) = survey.headers.get(&at) else { break };
                at = header.place.parent;
            }
            let first = way.iter().position(|on_it| *on_it == at);
            settled.extend(&way);
            let Some(lowest) = first.and_then(|first| way[first..].iter().min()) else { continue };
            self.break_loop(*lowest);
        }
    }

    fn break_loop(&mut self, number: u64) {
        let survey = self.survey;
        let (Some(header), Some(names)) =
            (survey.headers.get(&number), survey.directories.get(&number))
        else {
            return;
        };
        let [(place, _)] = &names[..] else { return };
        if header.place != placed(place) {
            // That is repaired first.
            return;
        }
        let blob = Blob::header(number);
        let mut draft = self.draft(std::slice::from_ref(&blob));
        self.take_name(&mut draft, place, true);
        if let Some(lost) = self.find_lost(&mut draft, header.record.reference()) {
            draft.write(&blob, PLACE_AT, placed(&lost).encode());
            let text = "it lay in a directory below itself, and is in /lost+found now";
            self.add(format!("directory {number}"), text, draft);
        }
    }
}
