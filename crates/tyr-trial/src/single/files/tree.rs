//! What the names of one program should be, and what it may do next.

use std::collections::BTreeMap;

use tyr_fs::SMALL_LEN_MAX;

use crate::puppet::{FileOrder, payload};
use crate::random::Random;

/// The last parts of names.
const LETTERS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Directories lie at most so deep when they are made.
const DEPTH_MAX: usize = 4;

/// Words of a long file: several segments of 64 KiB.
const LONG_WORDS: u64 = 30_000;

/// Words of all others, at most.
const WORDS: u64 = 400;

/// Names that there may be before no more are made.
const NAMES_MAX: usize = 24;

/// What a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Directory,
    /// A file, of which there may be several names.
    File(u64),
}

/// What is seen at a name: a directory, or the bytes of a file and how many names it has.
pub(super) type Found = Option<(Vec<u8>, u32)>;

/// Names of a program, in a directory of its own and among others in one that all share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    home: String,
    shared: String,
    names: BTreeMap<String, Entry>,
    contents: BTreeMap<u64, Vec<u8>>,
}

impl Tree {
    /// An empty one: below `home`, and with names that begin with `shared`.
    pub fn new(home: String, shared: String) -> Self {
        Self { home, shared, names: BTreeMap::new(), contents: BTreeMap::new() }
    }

    /// The directory that is its own.
    pub fn home(&self) -> &str {
        &self.home
    }

    /// Whether a name is one of those that it may have.
    pub fn has(&self, path: &str) -> bool {
        path.starts_with(&self.shared) || is_of(path, &self.home)
    }

    /// What is to be seen.
    pub fn found(&self) -> BTreeMap<String, Found> {
        let found = |entry: &Entry| match entry {
            Entry::Directory => None,
            Entry::File(number) => {
                let links = self.names.values().filter(|it| *it == entry).count();
                Some((self.contents[number].clone(), links as u32))
            }
        };
        self.names.iter().map(|(path, entry)| (path.clone(), found(entry))).collect()
    }

    /// Something that can be done: a change, or a file that is held open.
    pub fn draw(&self, random: &mut Random, value: u64) -> FileOrder {
        if !self.names.contains_key(&self.home) {
            return FileOrder::MakeDirectory { path: self.home.clone() };
        }
        if random.below(6) == 0 {
            let mut tree = self.clone();
            let mut orders = Vec::new();
            for number in 0..random.between(2, 5) {
                let order = tree.draw_change(random, value + number);
                tree.apply(&order);
                orders.push(order);
            }
            return FileOrder::Together { orders };
        }
        match random.below(12) {
            0 if !self.contents.is_empty() => FileOrder::Hold { path: self.file(random) },
            1 if !self.contents.is_empty() => {
                let (path, len) = (self.file(random), words(random));
                FileOrder::Append { path, value, len }
            }
            _ => self.draw_change(random, value),
        }
    }

    /// How many words of payload an order may be known by.
    pub const VALUES: u64 = 6;

    fn draw_change(&self, random: &mut Random, value: u64) -> FileOrder {
        loop {
            if let Some(order) = self.try_change(random, value) {
                return order;
            }
        }
    }

    /// A change, if there is one of the kind that was drawn.
    fn try_change(&self, random: &mut Random, value: u64) -> Option<FileOrder> {
        let (kind, path) = (random.below(10), self.path(random));
        let is_new = !self.names.contains_key(&path) && self.names.len() < NAMES_MAX;
        Some(match kind {
            0 if is_new && depth(&path) < DEPTH_MAX => FileOrder::MakeDirectory { path },
            1 | 2 if is_new => FileOrder::Make { path, value, len: words(random) },
            3 => FileOrder::RemoveDirectory { path: self.empty_directory(random)? },
            _ if self.contents.is_empty() => return None,
            4 => {
                let (at, len) = (random.below(2 * WORDS), words(random));
                FileOrder::Write { path: self.file(random), at, value, len }
            }
            5 => FileOrder::Truncate { path: self.file(random), len: words(random) },
            6 if is_new => FileOrder::Link { from: self.file(random), to: path },
            7 => FileOrder::Remove { path: self.file(random) },
            _ => self.renaming(random, path)?,
        })
    }

    fn renaming(&self, random: &mut Random, to: String) -> Option<FileOrder> {
        let from = self.any(random)?;
        if is_of(&to, &from) || is_of(&from, &to) {
            return None;
        }
        let is_exchange = match (self.names[&from], self.names.get(&to)) {
            (_, None) => false,
            // Nothing happens between two names of one file.
            (Entry::File(one), Some(Entry::File(other))) if one == *other => return None,
            (Entry::File(_), Some(Entry::File(_))) => random.below(2) == 0,
            (_, Some(_)) => true,
        };
        Some(FileOrder::Rename { from, to, is_exchange })
    }

    /// A name that may be there or not, in a directory that is.
    fn path(&self, random: &mut Random) -> String {
        let letter = random.pick(&LETTERS);
        if random.below(4) == 0 {
            return format!("{}{letter}", self.shared);
        }
        let is_directory = |(_, entry): &(&String, &Entry)| **entry == Entry::Directory;
        let directories: Vec<&String> =
            self.names.iter().filter(is_directory).map(|(path, _)| path).collect();
        format!("{}/{letter}", random.pick(&directories))
    }

    fn file(&self, random: &mut Random) -> String {
        let is_file = |(_, entry): &(&String, &Entry)| matches!(entry, Entry::File(_));
        let files: Vec<&String> = self.names.iter().filter(is_file).map(|(path, _)| path).collect();
        random.pick(&files).clone()
    }

    /// Anything but the directory that is its own.
    fn any(&self, random: &mut Random) -> Option<String> {
        let all: Vec<&String> = self.names.keys().filter(|path| **path != self.home).collect();
        (!all.is_empty()).then(|| random.pick(&all).clone())
    }

    fn empty_directory(&self, random: &mut Random) -> Option<String> {
        let path = self.any(random)?;
        let is_empty = !self.names.keys().any(|name| name.starts_with(&format!("{path}/")));
        (self.names[&path] == Entry::Directory && is_empty).then_some(path)
    }

    /// What there may be while something is done, and when it is: the last is that. Of a long file
    /// that is made the name is there first.
    pub fn states(&self, order: &FileOrder) -> Vec<Self> {
        let mut states = Vec::new();
        if let FileOrder::Make { path, value, len } = order
            && 8 * len > SMALL_LEN_MAX
        {
            let empty = FileOrder::Make { path: path.clone(), value: *value, len: 0 };
            states.extend(self.states(&empty));
        }
        let mut done = self.clone();
        done.apply(order);
        states.push(done);
        states
    }

    fn apply(&mut self, order: &FileOrder) {
        match order {
            // None is drawn that makes a crowd.
            FileOrder::Open { .. } | FileOrder::Hold { .. } | FileOrder::Crowd { .. } => {}
            FileOrder::Together { orders } => orders.iter().for_each(|it| self.apply(it)),
            FileOrder::MakeDirectory { path } => {
                self.names.insert(path.clone(), Entry::Directory);
            }
            FileOrder::Make { path, value, len } => {
                let number = self.contents.last_key_value().map_or(0, |(last, _)| last + 1);
                self.contents.insert(number, payload(*value, *len));
                self.names.insert(path.clone(), Entry::File(number));
            }
            FileOrder::Append { path, value, len } => {
                self.content(path).extend(payload(*value, *len));
            }
            FileOrder::Write { path, at, value, len } => {
                let (bytes, content) = (payload(*value, *len), self.content(path));
                let range = 8 * *at as usize..8 * *at as usize + bytes.len();
                if !bytes.is_empty() {
                    content.resize(content.len().max(range.end), 0);
                    content[range].copy_from_slice(&bytes);
                }
            }
            FileOrder::Truncate { path, len } => self.content(path).resize(8 * *len as usize, 0),
            FileOrder::Rename { from, to, is_exchange } => {
                let (moved, other) = (self.take(from), self.take(to));
                self.put(to, moved);
                if *is_exchange {
                    self.put(from, other);
                }
            }
            FileOrder::Link { from, to } => {
                let entry = self.names[from];
                self.names.insert(to.clone(), entry);
            }
            FileOrder::Remove { path } | FileOrder::RemoveDirectory { path } => {
                self.names.remove(path);
            }
        }
        // Of what has no name nothing is to be seen.
        let Self { names, contents, .. } = self;
        contents.retain(|number, _| names.values().any(|it| *it == Entry::File(*number)));
    }

    fn content(&mut self, path: &str) -> &mut Vec<u8> {
        match self.names[path] {
            Entry::File(number) => self.contents.get_mut(&number).expect("it has a name"),
            Entry::Directory => unreachable!("{path} is a directory"),
        }
    }

    /// Takes a name and all below it, by what comes behind the name.
    fn take(&mut self, path: &str) -> Vec<(String, Entry)> {
        let taken: Vec<String> =
            self.names.keys().filter(|name| is_of(name, path)).cloned().collect();
        let rest = |name: String| Some((name[path.len()..].to_owned(), self.names.remove(&name)?));
        taken.into_iter().filter_map(rest).collect()
    }

    fn put(&mut self, path: &str, taken: Vec<(String, Entry)>) {
        let of_it = |(rest, entry)| (format!("{path}{rest}"), entry);
        self.names.extend(taken.into_iter().map(of_it));
    }
}

/// Whether a name is this one or one below it.
fn is_of(name: &str, path: &str) -> bool {
    name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn depth(path: &str) -> usize {
    path.matches('/').count()
}

fn words(random: &mut Random) -> u64 {
    match random.below(10) {
        0 => random.below(LONG_WORDS),
        1 => 0,
        _ => random.below(WORDS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(orders: &[FileOrder]) -> Tree {
        let mut tree = Tree::new("/1/2".to_owned(), "/shared/1-2-".to_owned());
        orders.iter().for_each(|order| tree.apply(order));
        tree
    }

    fn make(path: &str, value: u64) -> FileOrder {
        FileOrder::Make { path: path.to_owned(), value, len: 1 }
    }

    #[test]
    fn directories_change_places_with_all_that_is_below() {
        let directory = |path: &str| FileOrder::MakeDirectory { path: path.to_owned() };
        let (from, to) = ("/1/2/a".to_owned(), "/1/2/b".to_owned());
        let exchange = FileOrder::Rename { from, to, is_exchange: true };
        let a = [directory("/1/2/a"), make("/1/2/a/f", 1), make("/1/2/ab", 2), make("/1/2/b", 3)];
        let tree = tree(&[&a[..], &[exchange]].concat());
        let file = |value| Some((payload(value, 1), 1));
        let expected =
            [("/1/2/a", file(3)), ("/1/2/ab", file(2)), ("/1/2/b", None), ("/1/2/b/f", file(1))];
        let expected = expected.map(|(path, found)| (path.to_owned(), found));
        assert_eq!(tree.found(), expected.into());
    }

    #[test]
    fn a_file_of_two_names_has_one_content_and_goes_with_the_last() {
        let (from, to) = ("/1/2/a".to_owned(), "/1/2/b".to_owned());
        let link = FileOrder::Link { from, to: to.clone() };
        let append = FileOrder::Append { path: to.clone(), value: 2, len: 1 };
        let mut tree = tree(&[make("/1/2/a", 1), link, append]);
        let both = [payload(1, 1), payload(2, 1)].concat();
        assert_eq!(tree.found()["/1/2/a"], Some((both, 2)));
        for path in ["/1/2/a", "/1/2/b"] {
            tree.apply(&FileOrder::Remove { path: path.to_owned() });
        }
        assert!(tree.contents.is_empty());
    }

    #[test]
    fn whatever_is_drawn_can_be_done() {
        for seed in 0..200 {
            let mut random = Random::of(seed, "tree", 0);
            let mut tree = tree(&[]);
            for value in 0..60 {
                let order = tree.draw(&mut random, value);
                tree = tree.states(&order).pop().unwrap();
                assert!(tree.names.len() <= NAMES_MAX + 1, "{order:?}");
            }
            assert_eq!(tree.found()["/1/2"], None);
        }
    }
}
