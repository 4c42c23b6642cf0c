//! Whether what was gathered fits together.

use std::collections::{BTreeMap, BTreeSet};

use super::Report;
use super::survey::{Counted, Large, Survey};
use crate::layout::forward::Place;
use crate::layout::header::DirectoryPlace;
use crate::layout::key::ROOT;
use crate::layout::record::{Access, Record};

impl Survey {
    /// The report of it.
    pub fn verdict(mut self) -> Report {
        self.check_numbers();
        self.check_directories();
        self.check_reachable();
        self.check_small();
        self.check_large();
        self.check_rest();
        let content = self.large.values().flat_map(|large| large.segments.values());
        let bytes = self.small_bytes + content.sum::<u64>();
        let mut findings = self.findings;
        findings.sort();
        Report {
            directories: self.headers.len() as u64,
            names: self.names,
            small_files: self.small.len() as u64,
            large_files: (self.large.len() - self.orphans.len().min(self.large.len())) as u64,
            orphans: self.orphans.len() as u64,
            bytes,
            findings,
        }
    }

    fn check_numbers(&mut self) {
        if !self.has_superblock {
            self.find("superblock", "is missing");
        }
        let Some(next) = self.next_number else {
            self.find("next number", "is missing: numbers would be given again");
            return;
        };
        let highest = self.highest();
        if highest >= next {
            let text = format!("is {next}, but there is a file {highest}");
            self.find("next number", text);
        }
    }

    fn check_directories(&mut self) {
        let mut found = Vec::new();
        if !self.headers.contains_key(&ROOT) {
            found.push((ROOT, "the root is missing".to_owned()));
        }
        for (number, header) in &self.headers {
            let counted = self.counted.get(number).copied().unwrap_or_default();
            let says = Counted { entries: header.entries, subdirectories: header.subdirectories };
            if counted != says {
                found.push((
                    *number,
                    format!(
                        "it counts {} names, {} directories among them, but has {} and {}",
                        says.entries, says.subdirectories, counted.entries, counted.subdirectories
                    ),
                ));
            }
            if header.record.identity.flags.has_xattrs != self.xattrs.contains(number) {
                found.push((*number, xattrs_text(header.record.identity.flags.has_xattrs)));
            }
            let names = self.directories.get(number).map(Vec::as_slice).unwrap_or_default();
            found.extend(directory_texts(*number, &header.place, header.record.access, names));
        }
        for (number, names) in &self.directories {
            if !self.headers.contains_key(number) {
                found.push((*number, format!("{} leads to nothing", texts(names))));
            }
        }
        for number in self.counted.keys().filter(|number| !self.headers.contains_key(number)) {
            found.push((*number, "there are names in it, but no such directory".to_owned()));
        }
        for (number, text) in found {
            let place = self.path(number);
            self.find(place, text);
        }
    }

    /// Every directory is below the root.
    fn check_reachable(&mut self) {
        let mut reached = BTreeSet::from([ROOT]);
        let mut found = Vec::new();
        for number in self.headers.keys() {
            let (mut at, mut way) = (*number, BTreeSet::new());
            while !reached.contains(&at) {
                let above = self.headers.get(&at).map(|header| header.place.parent);
                match above {
                    Some(above) if way.insert(at) => at = above,
                    _ => {
                        found.push(*number);
                        break;
                    }
                }
            }
            // Those on a way that ends nowhere are told once.
            reached.extend(way);
        }
        for number in found {
            self.find(format!("directory {number}"), "is not below the root");
        }
    }

    fn check_small(&mut self) {
        let mut found = Vec::new();
        for (number, small) in &self.small {
            if small.record.identity.flags.has_xattrs != self.xattrs.contains(number) {
                found.push((
                    small.place.clone(),
                    xattrs_text(small.record.identity.flags.has_xattrs),
                ));
            }
            match (small.record.identity.flags.is_moved, self.forwards.get(number)) {
                (false, None) => {}
                (true, Some(forward)) if *forward == small.place => {}
                (true, Some(other)) => found.push((
                    small.place.clone(),
                    format!("its forward leads to {} in directory {}", other.name, other.directory),
                )),
                (true, None) => {
                    found.push((small.place.clone(), "its forward is missing".to_owned()));
                }
                (false, Some(_)) => {
                    let text = "there is a forward, and it was never moved";
                    found.push((small.place.clone(), text.to_owned()));
                }
            }
            if self.large.contains_key(number) {
                let text = "it lies here, and has an inode or segments too";
                found.push((small.place.clone(), text.to_owned()));
            }
        }
        for (place, text) in found {
            let place = self.path_of(&place);
            self.find(place, text);
        }
    }

    fn check_large(&mut self) {
        let mut found = Vec::new();
        for (number, large) in &self.large {
            let names = self.references.get(number).map(Vec::as_slice).unwrap_or_default();
            let is_orphan = self.orphans.contains(number);
            let Some(record) = &large.record else {
                if !self.small.contains_key(number) {
                    found.push((*number, "it has segments, but no inode".to_owned()));
                }
                continue;
            };
            found.extend(
                inode_texts(record, large, names.len(), is_orphan)
                    .into_iter()
                    .map(|text| (*number, text)),
            );
            let kind = record.identity.kind;
            for (place, _) in names.iter().filter(|(_, its)| *its != kind) {
                let text = format!("it is a {}, but not to {}", kind.name(), place.name);
                found.push((*number, text));
            }
            let has_xattrs = record.identity.flags.has_xattrs;
            if has_xattrs != self.xattrs.contains(number) {
                found.push((*number, xattrs_text(has_xattrs)));
            }
        }
        for (number, names) in &self.references {
            if self.large.get(number).is_none_or(|large| large.record.is_none()) {
                found.push((*number, format!("{} leads to nothing", texts(names))));
            }
        }
        for (number, text) in found {
            self.find(format!("file {number}"), text);
        }
    }

    /// What belongs to nothing.
    fn check_rest(&mut self) {
        let forwards = self.forwards.keys().filter(|number| !self.small.contains_key(number));
        let mut found: Vec<_> =
            forwards.map(|number| (*number, "there is a forward, but no such file")).collect();
        let is_file = |number: &u64| {
            self.small.contains_key(number)
                || self.headers.contains_key(number)
                || self.large.get(number).is_some_and(|large| large.record.is_some())
        };
        let xattrs = self.xattrs.iter().filter(|number| !is_file(number));
        found.extend(xattrs.map(|number| (*number, "there are attributes, but no such file")));
        let orphans = self
            .orphans
            .iter()
            .filter(|number| self.large.get(number).is_none_or(|large| large.record.is_none()));
        found.extend(orphans.map(|number| (*number, "is an orphan, but there is no such file")));
        for (number, text) in found {
            self.find(format!("file {number}"), text);
        }
    }

    /// The path of a name.
    pub(super) fn path_of(&self, place: &Place) -> String {
        let above = self.path(place.directory);
        format!("{}/{}", above.trim_end_matches('/'), place.name)
    }

    /// The path of a directory, or its number where it has none.
    pub(super) fn path(&self, number: u64) -> String {
        let (mut at, mut parts) = (number, Vec::new());
        while at != ROOT {
            let header = self.headers.get(&at).filter(|_| parts.len() < 4_096);
            let Some((DirectoryPlace { parent, name: Some(name) }, _)) =
                header.map(|header| (&header.place, ()))
            else {
                return format!("directory {number}");
            };
            parts.push(name.to_string());
            at = *parent;
        }
        parts.reverse();
        format!("/{}", parts.join("/"))
    }
}

fn texts<T>(names: &[(Place, T)]) -> String {
    let texts: Vec<_> = names
        .iter()
        .map(|(place, _)| format!("{} in directory {}", place.name, place.directory))
        .collect();
    texts.join(", ")
}

fn xattrs_text(has_xattrs: bool) -> String {
    let text = match has_xattrs {
        true => "it has attributes aside, but they are missing",
        false => "there are attributes aside that it does not know of",
    };
    text.to_owned()
}

/// What is wrong with the names of a directory.
fn directory_texts(
    number: u64,
    place: &DirectoryPlace,
    access: Access,
    names: &[(Place, Access)],
) -> Vec<(u64, String)> {
    let texts = match (names, &place.name) {
        ([], None) if number == ROOT => Vec::new(),
        ([], _) => vec!["no name leads to it".to_owned()],
        ([(at, copy)], Some(name)) => {
            let mut texts = Vec::new();
            if (at.directory, &at.name) != (place.parent, name) {
                texts.push(format!(
                    "it says that it is {name} in directory {}, but is {} in directory {}",
                    place.parent, at.name, at.directory
                ));
            }
            if *copy != access {
                texts.push(format!("its rights are {access:?}, but {copy:?} in its entry"));
            }
            texts
        }
        (names, _) => vec![format!("{} names lead to it", names.len())],
    };
    texts.into_iter().map(|text| (number, text)).collect()
}

/// What is wrong with an inode that has so many names.
fn inode_texts(record: &Record, large: &Large, names: usize, is_orphan: bool) -> Vec<String> {
    let mut texts = Vec::new();
    if record.links as usize != names {
        texts.push(format!("it counts {} names, but has {names}", record.links));
    }
    let flags = record.identity.flags;
    if flags.is_orphan != is_orphan || (is_orphan && names > 0) || (!is_orphan && names == 0) {
        texts.push(format!(
            "it has {names} names, says that it is {}, and is {}",
            if flags.is_orphan { "an orphan" } else { "none" },
            if is_orphan { "listed as one" } else { "not listed as one" },
        ));
    }
    if flags.is_moved {
        texts.push("it has an inode, and says that it was moved".to_owned());
    }
    let last = record.last_segment;
    let beyond: BTreeMap<_, _> = large.segments.range(last.saturating_add(1)..).collect();
    if !beyond.is_empty() {
        texts.push(format!("it ends in segment {last}, but has {:?}", beyond.keys()));
    }
    if !large.segments.contains_key(&last) && !is_orphan {
        texts.push(format!("it ends in segment {last}, which is missing"));
    }
    let segment_len = 1_u64.checked_shl(u32::from(record.segment_bits)).unwrap_or(u64::MAX);
    let too_long = large.segments.range(..last).find(|(_, size)| **size > segment_len);
    if let Some((segment, size)) = too_long {
        texts.push(format!("segment {segment} has {size} bytes, and others come behind it"));
    }
    texts
}
