//! Numbers that the kernel knows blobs and directories by.
//!
//! A number is the XXH3-64 of the key, or of what the keys in a directory begin with: the same in
//! each mount, and after a restart. Two of the same hash are told apart: while the kernel knows the
//! one, the other has the next number that is free. What a mount has renamed keeps its number until
//! the kernel forgets it, so that a program that has it open goes on with it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::Arc;

use fuser::INodeNo;
use parking_lot::Mutex;
use tyr::Key;
use xxhash_rust::xxh3::xxh3_64;

use super::path::Directory;
use crate::fuse::known::{KnownFiles, Tracked};

/// What a number stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum File {
    Directory(Directory),
    Blob(Key),
    /// A blob that was deleted or replaced here, and that the kernel has not forgotten.
    Gone,
}

impl Tracked for File {
    fn is_directory(&self) -> bool {
        match self {
            Self::Directory(_) => true,
            Self::Blob(_) | Self::Gone => false,
        }
    }
}

/// The number that a file has unless another has it.
fn hash_of(file: &File) -> u64 {
    let hash = match file {
        File::Directory(directory) if directory.is_root() => return INodeNo::ROOT.0,
        File::Directory(directory) => xxh3_64(directory.prefix()),
        File::Blob(key) => xxh3_64(key.as_bytes()),
        File::Gone => unreachable!("what is gone is looked for by no name"),
    };
    hash.max(INodeNo::ROOT.0 + 1)
}

/// Those that have another number than their hash.
type Displaced = HashMap<File, u64>;

/// The numbers of what the kernel knows.
pub struct Numbers {
    known: Arc<KnownFiles<File>>,
    /// Held while a number is given or taken.
    displaced: Mutex<Displaced>,
}

impl Numbers {
    pub fn new(known: Arc<KnownFiles<File>>) -> Self {
        Self { known, displaced: Mutex::default() }
    }

    /// What the kernel was told that this number is.
    pub fn find(&self, number: INodeNo) -> Option<File> {
        self.known.find(number)
    }

    /// The number that a file has, or would get now.
    pub fn number_of(&self, file: &File) -> INodeNo {
        INodeNo(self.place(&self.displaced.lock(), file))
    }

    fn place(&self, displaced: &Displaced, file: &File) -> u64 {
        if let Some(number) = displaced.get(file) {
            return *number;
        }
        let mut number = hash_of(file);
        // There are fewer files than numbers.
        while self.known.find(INodeNo(number)).is_some_and(|other| other != *file) {
            number = number.wrapping_add(1).max(INodeNo::ROOT.0 + 1);
        }
        number
    }

    /// The kernel is told of a file, by a name in a directory; answers its number.
    pub fn tell(&self, file: &File, name: (INodeNo, &OsStr)) -> INodeNo {
        let mut displaced = self.displaced.lock();
        let number = self.place(&displaced, file);
        let is_full = self.known.tell(INodeNo(number), file.clone(), name);
        if number != hash_of(file) {
            displaced.insert(file.clone(), number);
        }
        drop(displaced);
        if is_full {
            self.known.wait_for_room();
        }
        INodeNo(number)
    }

    /// The kernel forgets what it was told of a file so many times.
    pub fn forget(&self, number: INodeNo, count: u64) {
        let mut displaced = self.displaced.lock();
        if let Some(file) = self.known.forget(number, count)
            && displaced.get(&file) == Some(&number.0)
        {
            displaced.remove(&file);
        }
    }

    /// A file was deleted here: its number stands for nothing else while the kernel knows it.
    pub fn remove(&self, file: &File) {
        self.give_up(&mut self.displaced.lock(), file);
    }

    fn give_up(&self, displaced: &mut Displaced, file: &File) {
        let number = INodeNo(self.place(displaced, file));
        if self.known.find(number).as_ref() == Some(file) {
            self.known.change(number, File::Gone);
        }
        displaced.remove(file);
    }

    /// A file was renamed here, in place of what had the new name, by that name in a directory. It
    /// keeps its number.
    pub fn rename(&self, from: &File, to: &File, name: (INodeNo, &OsStr)) {
        let mut displaced = self.displaced.lock();
        self.give_up(&mut displaced, to);
        let number = self.place(&displaced, from);
        displaced.remove(from);
        if self.known.find(INodeNo(number)).as_ref() != Some(from) {
            return;
        }
        self.known.change(INodeNo(number), to.clone());
        if number != hash_of(to) {
            displaced.insert(to.clone(), number);
        }
        let is_full = self.known.name(INodeNo(number), name);
        drop(displaced);
        if is_full {
            self.known.wait_for_room();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> Numbers {
        Numbers::new(Arc::new(KnownFiles::new(1 << 20, File::Directory(Directory::root()))))
    }

    fn blob(key: &str) -> File {
        File::Blob(Key::new(key).unwrap())
    }

    fn tell(numbers: &Numbers, file: &File) -> INodeNo {
        numbers.tell(file, (INodeNo::ROOT, OsStr::new("name")))
    }

    #[test]
    fn a_number_is_the_hash_of_the_key_also_of_a_directory() {
        let (numbers, file) = (numbers(), blob("run/7/out"));
        assert_eq!(tell(&numbers, &file).0, xxh3_64(b"run/7/out"));
        let directory = File::Directory(Directory::of_group(b"run/7/"));
        assert_eq!(tell(&numbers, &directory).0, xxh3_64(b"run/7/"));
        assert_eq!(numbers.number_of(&File::Directory(Directory::root())), INodeNo::ROOT);
        assert_eq!(numbers.find(INodeNo(xxh3_64(b"run/7/out"))), Some(file));
    }

    #[test]
    fn two_of_the_same_hash_are_told_apart_until_the_kernel_forgets() {
        let (numbers, [one, other]) = (numbers(), [blob("one"), blob("other")]);
        // As if the other had the hash of the one.
        let taken = INodeNo(hash_of(&one));
        numbers.known.tell(taken, other.clone(), (INodeNo::ROOT, OsStr::new("other")));
        let next = tell(&numbers, &one);
        assert_eq!(next.0, taken.0.wrapping_add(1));
        // It keeps that also when the hash is free again.
        numbers.forget(taken, 1);
        assert_eq!(tell(&numbers, &one), next);
        numbers.forget(next, 2);
        assert_eq!(tell(&numbers, &one), taken);
        assert!(numbers.displaced.lock().is_empty());
    }

    #[test]
    fn what_was_deleted_is_never_taken_for_what_has_its_name_next() {
        let (numbers, file) = (numbers(), blob("file"));
        let before = tell(&numbers, &file);
        numbers.remove(&file);
        assert_eq!(numbers.find(before), Some(File::Gone));
        let after = tell(&numbers, &file);
        assert_ne!(after, before);
        assert_eq!(numbers.find(after), Some(file.clone()));
        numbers.forget(before, 1);
        numbers.forget(after, 1);
        assert_eq!(tell(&numbers, &file), before);
    }

    #[test]
    fn what_was_renamed_keeps_its_number_and_what_it_replaced_is_gone() {
        let (numbers, [from, to]) = (numbers(), [blob("from"), blob("to")]);
        let [moved, replaced] = [&from, &to].map(|file| tell(&numbers, file));
        numbers.rename(&from, &to, (INodeNo::ROOT, OsStr::new("to")));
        assert_eq!(numbers.find(moved), Some(to.clone()));
        assert_eq!(numbers.find(replaced), Some(File::Gone));
        assert_eq!(tell(&numbers, &to), moved);
        // A new one of the old name is another file.
        assert_ne!(tell(&numbers, &from), moved);
        numbers.rename(&to, &from, (INodeNo::ROOT, OsStr::new("from")));
        assert_eq!(numbers.number_of(&from), moved);
        assert!(numbers.displaced.lock().is_empty());
    }
}
