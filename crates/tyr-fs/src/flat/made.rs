//! Directories that this mount knows although no key begins with them.
//!
//! Directories follow from keys, so one without a blob in it or below is nowhere in the store.
//! Programs make one before they put files into it, and take the files out before they remove it:
//! so `mkdir` notes it here, and so does whatever takes a blob or a directory out of it. It is
//! dropped by `rmdir`, or when a key is seen that begins with it.

use std::collections::BTreeMap;
use std::ops::Bound;

use parking_lot::Mutex;
use rustix::io::Errno;

use super::path::{Directory, SEPARATOR};
use crate::error::{Error, Result};

/// How many there may be.
const MADE_MAX: usize = 65_536;

/// A moment, by how much was noted before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

#[derive(Default)]
struct Noted {
    /// What keys in them would begin with, and when they were noted.
    directories: BTreeMap<Vec<u8>, Moment>,
    count: u64,
}

impl Noted {
    fn has(&self, prefix: &[u8]) -> bool {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let next = self.directories.range::<[u8], _>(from).next();
        next.is_some_and(|(found, _)| found.starts_with(prefix))
    }

    fn note(&mut self, directory: &Directory) -> bool {
        let prefix = directory.prefix();
        if self.directories.len() >= MADE_MAX && !self.directories.contains_key(prefix) {
            return false;
        }
        self.count += 1;
        self.directories.insert(prefix.to_vec(), Moment(self.count));
        true
    }
}

/// The directories that are known here.
#[derive(Default)]
pub struct Made(Mutex<Noted>);

impl Made {
    /// Makes one.
    ///
    /// # Errors
    /// `ENOSPC` when there are 65,536 of them.
    pub fn make(&self, directory: &Directory) -> Result<()> {
        match self.0.lock().note(directory) {
            true => Ok(()),
            false => {
                let text = format!("{MADE_MAX} directories are empty here: remove some");
                Err(Error::new(Errno::NOSPC, text))
            }
        }
    }

    /// Something was taken out of a directory: it stays, if there is room for it.
    pub fn keep(&self, directory: &Directory) {
        if !directory.is_root() {
            self.0.lock().note(directory);
        }
    }

    /// Whether it is one of them, or one of them is below it.
    pub fn has(&self, directory: &Directory) -> bool {
        self.0.lock().has(directory.prefix())
    }

    /// Takes one away in which none is; answers whether there was one.
    ///
    /// # Errors
    /// `ENOTEMPTY`.
    pub fn remove(&self, directory: &Directory) -> Result<bool> {
        let mut noted = self.0.lock();
        let moment = noted.directories.remove(directory.prefix());
        if noted.has(directory.prefix()) {
            let prefix = directory.prefix().to_vec();
            noted.directories.extend(moment.map(|moment| (prefix, moment)));
            return Err(Error::new(Errno::NOTEMPTY, "there are directories in it"));
        }
        Ok(moment.is_some())
    }

    /// Now, before it is looked whether there are keys.
    pub fn now(&self) -> Moment {
        Moment(self.0.lock().count)
    }

    /// There were keys that begin with this directory at a moment: it needs no note of before.
    pub fn drop_filled(&self, directory: &Directory, at: Moment) {
        let mut noted = self.0.lock();
        if noted.directories.get(directory.prefix()).is_some_and(|noted| *noted <= at) {
            noted.directories.remove(directory.prefix());
        }
    }

    /// What is next below a directory and on the way to one of these, in order, from one place
    /// among the keys to another.
    pub fn children(
        &self,
        directory: &Directory,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Vec<Directory> {
        let (noted, prefix) = (self.0.lock(), directory.prefix());
        let (mut children, mut next) = (Vec::new(), from.max(prefix).to_vec());
        loop {
            let range = (Bound::Included(next.as_slice()), Bound::Unbounded);
            let Some((found, _)) = noted.directories.range::<[u8], _>(range).next() else { break };
            let Some(rest) = found.strip_prefix(prefix) else { break };
            let Some(end) = rest.iter().position(|byte| *byte == SEPARATOR) else {
                // The directory itself.
                next = [found, &[0][..]].concat();
                continue;
            };
            let child = &found[..=prefix.len() + end];
            if to.is_some_and(|to| child >= to) {
                break;
            }
            if child >= from {
                children.push(Directory::of_group(child));
            }
            // Behind everything that is below it.
            next = child.to_vec();
            *next.last_mut().expect("it ends with a slash") = SEPARATOR + 1;
        }
        children
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(prefix: &str) -> Directory {
        match prefix {
            "" => Directory::root(),
            prefix => Directory::of_group(prefix.as_bytes()),
        }
    }

    fn made(prefixes: &[&str]) -> Made {
        let made = Made::default();
        prefixes.iter().for_each(|prefix| made.make(&directory(prefix)).unwrap());
        made
    }

    #[test]
    fn one_is_there_until_it_is_removed_and_nothing_is_below_it() {
        let made = made(&["a/", "a/b/c/"]);
        assert!(made.has(&directory("a/b/")) && !made.has(&directory("b/")));
        assert_eq!(made.remove(&directory("a/")).unwrap_err().errno(), Errno::NOTEMPTY);
        assert!(!made.remove(&directory("a/x/")).unwrap());
        assert!(made.remove(&directory("a/b/c/")).unwrap());
        assert!(!made.has(&directory("a/b/")) && made.has(&directory("a/")));
        assert!(made.remove(&directory("a/")).unwrap());
        assert!(!made.has(&Directory::root()));
    }

    #[test]
    fn one_in_which_keys_were_seen_is_dropped_unless_it_was_noted_since() {
        let made = made(&["a/", "b/"]);
        let at = made.now();
        made.keep(&directory("b/"));
        made.keep(&Directory::root());
        made.drop_filled(&directory("a/"), at);
        made.drop_filled(&directory("b/"), at);
        assert!(!made.has(&directory("a/")) && made.has(&directory("b/")));
        assert_eq!(made.0.lock().directories.len(), 1);
    }

    #[test]
    fn children_are_each_listed_once_between_two_places() {
        let made = made(&["a/", "a/b/", "a/b/c/", "a/b0/", "a/d/e/f/", "z/"]);
        let names = |prefix: &str, from: &str, to: Option<&str>| {
            let children =
                made.children(&directory(prefix), from.as_bytes(), to.map(str::as_bytes));
            let names = children.iter().map(|it| String::from_utf8(it.prefix().to_vec()).unwrap());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names("", "", None), ["a/", "z/"]);
        assert_eq!(names("a/", "", None), ["a/b/", "a/b0/", "a/d/"]);
        assert_eq!(names("a/", "a/b/", Some("a/d/")), ["a/b/", "a/b0/"]);
        assert_eq!(names("a/", "a/b1", None), ["a/d/"]);
        assert!(names("a/d/e/f/", "", None).is_empty());
    }

    #[test]
    fn there_is_room_for_so_many() {
        let made = Made::default();
        for number in 0..MADE_MAX {
            made.make(&directory(&format!("{number}/"))).unwrap();
        }
        assert_eq!(made.make(&directory("one more/")).unwrap_err().errno(), Errno::NOSPC);
        made.make(&directory("7/")).unwrap();
        made.keep(&directory("one more/"));
        assert!(!made.has(&directory("one more/")));
    }
}
