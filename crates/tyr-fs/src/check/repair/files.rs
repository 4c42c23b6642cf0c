//! What is done about files, and about what belongs to none.

use super::Round;
use crate::check::survey::{Large, Small};
use crate::layout::forward::Place;
use crate::layout::key::{Blob, Space};
use crate::layout::orphan;
use crate::layout::record::{Access, BODY_AT, Kind, LAST_SEGMENT_AT, LINKS_AT, Record, Reference};
use crate::layout::xattrs::Xattrs;
use crate::plan::{Change, Condition, Draft};

/// The rights of a file whose record is made anew: nothing says them.
const RIGHTS: Access = Access { mode: 0o600, owner: 0, group: 0 };

impl Round<'_> {
    pub(super) fn small(&mut self) {
        let survey = self.survey;
        for (number, small) in &survey.small {
            let has_inode = survey.large.get(number).is_some_and(|it| it.record.is_some());
            if has_inode {
                self.renumbered.push(small.place.clone());
                continue;
            }
            self.forward(*number, small);
            let entry = Blob::entry(small.place.directory, &small.place.name);
            self.attributes_aside(&survey.path_of(&small.place), &entry, &small.record);
            if let Some(large) = survey.large.get(number) {
                let mut draft = self.draft(std::slice::from_ref(&entry));
                for segment in large.segments.keys() {
                    draft.delete(Blob::content(*number, *segment));
                }
                let text = "it lies in its entry, and the segments beside it are gone";
                self.add(survey.path_of(&small.place), text, draft);
            }
        }
        self.renumbered.extend(survey.twice.iter().cloned());
    }

    fn forward(&mut self, number: u64, small: &Small) {
        let (forward, place) = (self.survey.forwards.get(&number), &small.place);
        let entry = Blob::entry(place.directory, &place.name);
        let (blob, mut draft) = (Blob::forward(number), self.draft(&[entry]));
        let text = match (small.record.identity.flags.is_moved, forward) {
            (false, None) => return,
            (true, Some(forward)) if forward == place => return,
            (true, _) => {
                draft.put(&blob, place.encode());
                "its forward leads to it now"
            }
            (false, Some(_)) => {
                draft.delete(blob);
                "it was never moved, and its forward is gone"
            }
        };
        self.add(self.survey.path_of(place), text, draft);
    }

    pub(super) fn large(&mut self) {
        let survey = self.survey;
        for (number, large) in &survey.large {
            let names = survey.references.get(number).map(Vec::as_slice).unwrap_or_default();
            match &large.record {
                None if survey.small.contains_key(number) => {}
                None => self.make_inode(*number, large, names),
                Some(record) => {
                    self.inode(record, names);
                    self.ends(record, large);
                    self.kinds(record, names);
                }
            }
        }
        for (number, names) in &survey.references {
            if survey.large.contains_key(number) {
                continue;
            }
            for (place, _) in names {
                let mut draft = Draft::new();
                draft.require(Condition::Absent(Blob::inode(*number)));
                self.take_name(&mut draft, place, false);
                self.add(survey.path_of(place), "it led to nothing, and is gone", draft);
            }
        }
    }

    /// A file of which only segments are left.
    fn make_inode(&mut self, number: u64, large: &Large, names: &[(Place, Kind)]) {
        let blob = Blob::inode(number);
        let mut draft = match self.survey.unreadable.contains(&blob) {
            true => self.draft(std::slice::from_ref(&blob)),
            false => {
                let mut draft = Draft::new();
                draft.require(Condition::Absent(blob.clone()));
                draft
            }
        };
        let kind = names.first().map_or(Kind::Regular, |(_, kind)| *kind);
        let mut record = Record::new(kind, number, RIGHTS, self.means.now);
        record.last_segment = large.segments.last_key_value().map_or(0, |(last, _)| *last);
        record.segment_bits = self.means.superblock.segment_bits;
        record.links = u32::try_from(names.len()).unwrap_or(u32::MAX).max(1);
        record.identity.flags.has_xattrs = self.survey.xattrs.contains(&number);
        for (place, _) in names {
            let entry = Blob::entry(place.directory, &place.name);
            draft.require(Condition::Unchanged(entry, self.means.at));
        }
        let is_named =
            !names.is_empty() || self.find_lost(&mut draft, record.reference()).is_some();
        if is_named {
            if large.segments.is_empty() {
                draft.put(&Blob::content(number, 0), []);
            }
            draft.put(&blob, record.encode());
            let text = "its record was made anew, and belongs to user 0 alone";
            self.add(format!("file {number}"), text, draft);
        }
    }

    /// Names, and what an inode says of itself.
    fn inode(&mut self, record: &Record, names: &[(Place, Kind)]) {
        let number = record.identity.number;
        let (blob, listed) = (Blob::inode(number), Blob::orphan(number));
        let is_listed = self.survey.orphans.contains(&number);
        let mut flags = record.identity.flags;
        let mut draft = self.draft(std::slice::from_ref(&blob));
        let (mut links, mut orphan, mut texts) = (names.len(), None, Vec::new());
        if !names.is_empty() || !flags.is_orphan {
            if flags.is_orphan || is_listed {
                texts.push("it is no orphan".to_owned());
                draft.delete(listed);
            }
            flags.is_orphan = false;
            if names.is_empty() {
                if self.find_lost(&mut draft, record.reference()).is_none() {
                    return;
                }
                links = 1;
                texts.push("it had no name, and is in /lost+found now".to_owned());
            }
        } else if !is_listed {
            draft.put(&listed, orphan::encode(&[self.means.session]));
            orphan = Some(number);
            texts.push("it has no name, and is deleted".to_owned());
        }
        if record.links as usize != links {
            let links = u32::try_from(links).unwrap_or(u32::MAX);
            draft.write(&blob, LINKS_AT, links.to_le_bytes());
            texts.push(format!("it counts {links} names now"));
        }
        if flags.is_moved {
            flags.is_moved = false;
            texts.push("it does not say any more that it was moved".to_owned());
        }
        let identity = crate::layout::record::Identity { flags, ..record.identity };
        if identity != record.identity {
            draft.write(&blob, 0, identity.encode());
        }
        if !texts.is_empty() {
            self.add(format!("file {number}"), texts.join("; "), draft);
            self.repairs.last_mut().expect("it was just added").orphan = orphan;
            return;
        }
        self.attributes_aside(&format!("file {number}"), &blob, record);
    }

    /// Where a file ends.
    fn ends(&mut self, record: &Record, large: &Large) {
        let (number, last) = (record.identity.number, record.last_segment);
        let blob = Blob::inode(number);
        let mut draft = self.draft(std::slice::from_ref(&blob));
        let found = large.segments.last_key_value().map(|(found, _)| *found);
        let place = format!("file {number}");
        match found {
            Some(found) if found == last => {}
            _ if record.identity.flags.is_orphan => return,
            Some(found) => {
                draft.write(&blob, LAST_SEGMENT_AT, found.to_le_bytes());
                let text = format!("it ends in segment {found} now, the last that is there");
                return self.add(place, text, draft);
            }
            None => {
                draft.write(&blob, LAST_SEGMENT_AT, 0_u32.to_le_bytes());
                draft.put(&Blob::content(number, 0), []);
                return self.add(place, "it had no content, and is empty now", draft);
            }
        }
        let segment_len = 1_u64.checked_shl(u32::from(record.segment_bits)).unwrap_or(u64::MAX);
        for (segment, size) in large.segments.range(..last) {
            if *size > segment_len {
                let mut draft = self.draft(std::slice::from_ref(&blob));
                let content = Blob::content(number, *segment);
                draft.change(Change::Truncate(content, segment_len));
                let text = format!("segment {segment} was cut to {segment_len} bytes");
                self.add(&place, text, draft);
            }
        }
    }

    /// Names that say another kind.
    fn kinds(&mut self, record: &Record, names: &[(Place, Kind)]) {
        let Reference { kind, number, access } = record.reference();
        for (place, _) in names.iter().filter(|(_, its)| *its != kind) {
            let entry = Blob::entry(place.directory, &place.name);
            let mut draft = self.draft(&[entry.clone(), Blob::inode(number)]);
            draft.put(&entry, Reference { kind, number, access }.encode());
            let text = format!("it is a {} by this name, too", kind.name());
            self.add(self.survey.path_of(place), text, draft);
        }
    }

    /// Attributes that lie aside, and whether the record knows of them.
    pub(super) fn attributes_aside(&mut self, place: &str, home: &Blob, record: &Record) {
        let number = record.identity.number;
        let (is_there, is_known) =
            (self.survey.xattrs.contains(&number), record.identity.flags.has_xattrs);
        if is_there == is_known {
            return;
        }
        let (aside, mut draft) = (Blob::xattrs(number), self.draft(std::slice::from_ref(home)));
        let mut identity = record.identity;
        let is_free = record.identity.kind == Kind::Directory
            || Xattrs::decode(&record.body[..]).is_ok_and(|inline| inline.0.is_empty());
        let text = match (is_there, is_free) {
            (false, _) => {
                draft.require(Condition::Absent(aside));
                identity.flags.has_xattrs = false;
                if record.identity.kind != Kind::Directory {
                    draft.write(home, BODY_AT as u64, [0; 4]);
                }
                "its attributes are lost, and it does not say any more that it has some"
            }
            (true, true) => {
                identity.flags.has_xattrs = true;
                "it has the attributes now that lay aside"
            }
            (true, false) => {
                draft.delete(aside);
                "it has attributes, and those that lay aside are gone"
            }
        };
        if identity != record.identity {
            draft.write(home, 0, identity.encode());
        }
        self.add(place, text, draft);
    }

    /// What belongs to nothing.
    pub(super) fn rest(&mut self) {
        let survey = self.survey;
        let has_inode =
            |number: &u64| survey.large.get(number).is_some_and(|large| large.record.is_some());
        // What belongs to an entry that cannot be read is not known.
        let is_all_known = !survey.unreadable.iter().any(|blob| blob.space == Space::Meta);
        let lost_forwards = survey.forwards.keys().filter(|it| !survey.small.contains_key(it));
        for number in lost_forwards.filter(|_| is_all_known) {
            let mut draft = self.draft(&[Blob::forward(*number)]);
            draft.delete(Blob::forward(*number));
            self.add(format!("file {number}"), "its forward led nowhere, and is gone", draft);
        }
        let is_file = |number: &u64| {
            survey.small.contains_key(number)
                || survey.headers.contains_key(number)
                || survey.large.contains_key(number)
                || survey.directories.contains_key(number)
                || survey.counted.contains_key(number)
        };
        for number in survey.xattrs.iter().filter(|it| is_all_known && !is_file(it)) {
            let mut draft = self.draft(&[Blob::xattrs(*number)]);
            draft.delete(Blob::xattrs(*number));
            let text = "there were attributes, but no such file: they are gone";
            self.add(format!("file {number}"), text, draft);
        }
        for number in survey.orphans.iter().filter(|number| !has_inode(number)) {
            let mut draft = self.draft(&[Blob::orphan(*number)]);
            draft.require(Condition::Absent(Blob::inode(*number)));
            draft.delete(Blob::orphan(*number));
            let text = "it was an orphan, but no such file: it is one no more";
            self.add(format!("file {number}"), text, draft);
        }
    }
}
