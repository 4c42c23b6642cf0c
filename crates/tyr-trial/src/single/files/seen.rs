//! What a file system has in the end, beside what its programs know of it.

use std::collections::{BTreeMap, BTreeSet};

use tyr_fs::blocking::FileSystem;
use tyr_fs::{Kind, Node};

use super::tree::{Found, Tree};
use super::{Life, NOTED, Notes};

/// Names of a directory that are listed at a time.
const PAGE: usize = 1_000;

/// All names but those that the trial made itself, and the words of the file that all append to.
pub(super) struct Seen {
    names: BTreeMap<String, Found>,
    noted: Vec<u64>,
}

impl Seen {
    /// Looks at all there is.
    pub fn of(files: &FileSystem) -> tyr_fs::Result<Self> {
        let mut names = BTreeMap::new();
        walk(files, &Node::ROOT, "", &mut names)?;
        let (noted, _) = names.remove(NOTED).flatten().unwrap_or_default();
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes) >> 32;
        let noted = noted.as_chunks::<8>().0.iter().map(word).collect();
        Ok(Self { names, noted })
    }

    /// How many names there are.
    pub fn names(&self) -> usize {
        self.names.len()
    }

    /// How what there is of a life is other than what there may be.
    pub fn differs(&self, life: &Life) -> Option<String> {
        let tree = life.possible.first()?;
        let found: BTreeMap<String, Found> = self
            .names
            .iter()
            .filter(|(path, _)| tree.has(path))
            .map(|(path, found)| (path.clone(), found.clone()))
            .collect();
        let expected: Vec<_> = life.possible.iter().map(Tree::found).collect();
        if expected.contains(&found) {
            return None;
        }
        let told: Vec<String> = expected.iter().map(short).collect();
        let (home, told) = (tree.home(), told.join(", or of "));
        Some(format!("of {home} there is {}; it was told of {told}", short(&found)))
    }

    /// What is wrong with the file that all append to.
    pub fn notes_differ(&self, notes: &Notes) -> Vec<String> {
        let mut wrong = Vec::new();
        for (value, at) in &notes.told {
            if self.noted.get(*at as usize) != Some(value) {
                wrong.push(format!("{value} was appended at {at}, and is not there"));
            }
        }
        let known: BTreeSet<u64> = notes
            .told
            .iter()
            .map(|(value, _)| *value)
            .chain(notes.unknown.iter().copied())
            .collect();
        let mut before = BTreeSet::new();
        for value in &self.noted {
            if !before.insert(value) {
                wrong.push(format!("{value} was appended once, and is there twice"));
            }
            if !known.contains(value) {
                wrong.push(format!("nobody appended {value}"));
            }
        }
        wrong
    }
}

fn walk(
    files: &FileSystem,
    directory: &Node,
    path: &str,
    names: &mut BTreeMap<String, Found>,
) -> tyr_fs::Result<()> {
    let mut cookie = 0;
    loop {
        let page = files.list_directory(directory, cookie, PAGE)?;
        for entry in &page.entries {
            let path = format!("{path}/{}", String::from_utf8_lossy(entry.name.as_bytes()));
            if entry.node.kind == Kind::Directory {
                names.insert(path.clone(), None);
                walk(files, &entry.node, &path, names)?;
            } else {
                let links = files.attributes_at(&path)?.links;
                names.insert(path.clone(), Some((files.fetch_at(&path)?.to_vec(), links)));
            }
            cookie = entry.cookie;
        }
        if page.is_end {
            return Ok(());
        }
    }
}

/// Names with sizes and links.
fn short(names: &BTreeMap<String, Found>) -> String {
    let one = |(path, found): (&String, &Found)| match found {
        None => format!("{path}/"),
        Some((bytes, links)) => format!("{path} ({} bytes, {links} names)", bytes.len()),
    };
    let all: Vec<String> = names.iter().map(one).collect();
    format!("[{}]", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_name_that_is_not_there_has_other_bytes_or_was_never_made_is_noticed() {
        let mut random = Random::of(1, "seen", 0);
        let mut tree = Tree::new("/1/2".to_owned(), "/shared/1-2-".to_owned());
        for value in 0..20 {
            let order = tree.draw(&mut random, value);
            tree = tree.states(&order).pop().unwrap();
        }
        let names = tree.found();
        let life = Life { possible: vec![tree] };
        let differs = |names: BTreeMap<String, Found>| {
            Seen { names, noted: Vec::new() }.differs(&life).is_some()
        };
        assert!(!differs(names.clone()));
        for path in names.keys() {
            let mut without = names.clone();
            assert!(without.remove(path).is_some() && differs(without));
            let mut other = names.clone();
            assert!(other.insert(path.clone(), Some((vec![1], 3))).is_some() && differs(other));
        }
        let one_more = [("/shared/1-2-z".to_owned(), None)];
        assert!(differs(names.clone().into_iter().chain(one_more).collect()));
        let of_another = [("/shared/1-3-z".to_owned(), None)];
        assert!(!differs(names.into_iter().chain(of_another).collect()));
    }

    #[test]
    fn an_entry_that_is_elsewhere_lost_twice_or_of_nobody_is_noticed() {
        let notes = Notes { told: vec![(5, 0), (6, 2)], unknown: vec![7, 8] };
        let wrong = |noted: &[u64]| {
            let seen = Seen { names: BTreeMap::new(), noted: noted.to_vec() };
            seen.notes_differ(&notes).len()
        };
        assert_eq!(wrong(&[5, 7, 6]), 0);
        assert_eq!(wrong(&[5, 6, 7]), 1);
        assert_eq!(wrong(&[5, 7]), 1);
        assert_eq!(wrong(&[5, 7, 6, 7]), 1);
        assert_eq!(wrong(&[5, 9, 6]), 1);
    }
}
