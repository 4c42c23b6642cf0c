//! The files that the kernel knows, as they were seen when it looked them up.
//!
//! ```text
//!   lookup, create, listing ──tell──► known ◄──forget── kernel
//!                                       │ more than there is memory for
//!                                       └─trim─► the kernel drops the names it was told of first
//! ```
//!
//! The kernel forgets a file when it needs the memory itself, which may be long after this process
//! does: so it is asked to. Whoever looks again has it looked up again.
//!
//! Many files at a time that nobody uses, where the kernel takes that: to drop one by its name it
//! has to have the directory for itself, and waits for each lookup in it that is under way. One
//! that is still known the next time is in use: its name is dropped, and the kernel forgets it once
//! it is not open and has no other name there. Directories are not dropped: what others have
//! mounted in them would go with them.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::RangeInclusive;
use std::time::Duration;

use fuser::INodeNo;
use parking_lot::{Condvar, Mutex, MutexGuard};

/// Bytes that a file takes here, with a name of usual length.
const FILE_LEN: usize = 200;

/// Files that the kernel is asked to drop at a time.
const AT_ONCE: usize = 256;

/// Names are dropped down to this part of what there is room for, so that it is not done for one.
const LEFT_PARTS: (usize, usize) = (15, 16);

/// Who tells the kernel of more waits so long at most, once there is this part too many: the kernel
/// may wait for the answer to drop names in the same directory.
const WAIT: Duration = Duration::from_millis(20);
const EXCESS_PART: usize = 8;

/// What a mount notes of a file that the kernel knows.
pub trait Tracked: Clone + Send + 'static {
    /// Whether it is a directory, in which others may have mounted something.
    fn is_directory(&self) -> bool;
}

/// What the kernel keeps of files, as far as it can be told to drop it.
pub trait KernelCache {
    /// Drops those of these files that nobody uses; `false` when it cannot be asked that.
    fn drop_unused(&mut self, files: &[u64]) -> bool;

    /// Drops a name in a directory, and its file once nobody uses it.
    fn drop_name(&mut self, parent: INodeNo, name: &OsStr);
}

/// A file that the kernel knows, and how often it was told of it.
struct Known<T> {
    file: T,
    count: u64,
    /// A hash of the name by which it was told last.
    name: u64,
}

impl<T: Tracked> Known<T> {
    /// Whether this is another name than that of before, and not a directory's. It is the one of
    /// before then.
    fn is_new_name(&mut self, name: (INodeNo, &OsStr)) -> bool {
        if self.file.is_directory() {
            return false;
        }
        let mut hasher = DefaultHasher::new();
        (name.0.0, name.1).hash(&mut hasher);
        // None has 0, which says that there was no name yet.
        let hash = hasher.finish() | 1;
        std::mem::replace(&mut self.name, hash) != hash
    }
}

/// A name by which the kernel was told of a file, and not of the same file just before.
struct Told {
    number: INodeNo,
    parent: INodeNo,
    name: OsString,
}

struct State<T> {
    /// By number.
    files: BTreeMap<u64, Known<T>>,
    /// The first ones first. Some may be forgotten by now.
    told: VecDeque<Told>,
    is_over: bool,
}

/// The files that the kernel knows.
pub struct KnownFiles<T> {
    state: Mutex<State<T>>,
    /// There are more than there is room for, or it is over.
    wanted: Condvar,
    /// There is room again.
    trimmed: Condvar,
    /// So many names are kept.
    max: usize,
}

impl<T: Tracked> KnownFiles<T> {
    /// The root alone; all together may take so many bytes.
    pub fn new(bytes: usize, root: T) -> Self {
        let root = Known { file: root, count: 1, name: 0 };
        let files = BTreeMap::from([(INodeNo::ROOT.0, root)]);
        Self {
            state: Mutex::new(State { files, told: VecDeque::new(), is_over: false }),
            wanted: Condvar::new(),
            trimmed: Condvar::new(),
            max: (bytes / FILE_LEN).max(1),
        }
    }

    /// A file, as it was seen when the kernel was last told of it.
    pub fn find(&self, number: INodeNo) -> Option<T> {
        Some(self.state.lock().files.get(&number.0)?.file.clone())
    }

    /// Whether the kernel knows any file with one of these numbers.
    pub fn has_any(&self, numbers: RangeInclusive<u64>) -> bool {
        self.state.lock().files.range(numbers).next().is_some()
    }

    /// The kernel is told of a file, by a name in a directory; answers whether there are so many
    /// that who told it has to [wait](Self::wait_for_room).
    pub fn tell(&self, number: INodeNo, file: T, name: (INodeNo, &OsStr)) -> bool {
        let mut state = self.state.lock();
        let known = state.files.entry(number.0);
        let known = known.or_insert(Known { file: file.clone(), count: 0, name: 0 });
        known.file = file;
        known.count += 1;
        known.is_new_name(name) && self.note_name(&mut state, number, name)
    }

    /// Waits for a moment until the kernel has forgotten some.
    pub fn wait_for_room(&self) {
        let mut state = self.state.lock();
        if self.is_in_excess(&state) {
            self.trimmed.wait_for(&mut state, WAIT);
        }
    }

    fn is_in_excess(&self, state: &State<T>) -> bool {
        state.told.len() > self.max + self.max / EXCESS_PART + 1 && !state.is_over
    }

    /// What is known of a file is something else from now on; answers whether the kernel knows it.
    pub fn change(&self, number: INodeNo, file: T) -> bool {
        let mut state = self.state.lock();
        let known = state.files.get_mut(&number.0);
        known.map(|known| known.file = file).is_some()
    }

    /// Whether there is so much that names which files get otherwise have to be
    /// [noted](Self::name).
    pub fn is_filling(&self) -> bool {
        self.state.lock().told.len() > self.max / 2
    }

    /// A file has this name, too: the kernel gave it that, and asks nothing. Answers what
    /// [`Self::tell`] does.
    pub fn name(&self, number: INodeNo, name: (INodeNo, &OsStr)) -> bool {
        let mut state = self.state.lock();
        let known = state.files.get_mut(&number.0);
        known.is_some_and(|known| known.is_new_name(name))
            && self.note_name(&mut state, number, name)
    }

    /// Notes a name that is to be dropped some time; answers whether there are too many.
    fn note_name(&self, state: &mut State<T>, number: INodeNo, name: (INodeNo, &OsStr)) -> bool {
        let (parent, name) = (name.0, name.1.to_owned());
        state.told.push_back(Told { number, parent, name });
        if state.told.len() > self.max {
            self.wanted.notify_one();
        }
        self.is_in_excess(state)
    }

    /// The kernel forgets what it was told of a file so many times; answers the file if it does not
    /// know it any more.
    pub fn forget(&self, number: INodeNo, count: u64) -> Option<T> {
        let mut state = self.state.lock();
        let known = state.files.get_mut(&number.0)?;
        known.count = known.count.saturating_sub(count);
        if known.count > 0 || number == INodeNo::ROOT {
            return None;
        }
        state.files.remove(&number.0).map(|known| known.file)
    }

    /// Has the kernel drop files, those it was told of first, whenever there are too many; until it
    /// is over.
    pub fn trim(&self, mut kernel: impl KernelCache) {
        // Those that it was asked to drop the last time.
        let mut asked: Vec<Told> = Vec::new();
        let mut state = self.state.lock();
        while !state.is_over {
            if state.told.len() <= self.max {
                self.wanted.wait(&mut state);
                continue;
            }
            asked.retain(|told| state.files.contains_key(&told.number.0));
            let left = self.max * LEFT_PARTS.0 / LEFT_PARTS.1;
            // The kernel may have to wait for what is told meanwhile.
            MutexGuard::unlocked(&mut state, || {
                asked.drain(..).for_each(|told| kernel.drop_name(told.parent, &told.name));
            });
            while state.told.len() > left && !state.is_over {
                let first = Self::first_told(&mut state, left);
                MutexGuard::unlocked(&mut state, || {
                    let numbers: Vec<u64> = first.iter().map(|told| told.number.0).collect();
                    match numbers.is_empty() || kernel.drop_unused(&numbers) {
                        true => asked.extend(first),
                        false => first.iter().for_each(|it| kernel.drop_name(it.parent, &it.name)),
                    }
                });
            }
            self.trimmed.notify_all();
        }
    }

    /// Takes out the names that the kernel was told of first and of whose files it knows, as many
    /// as it is asked for at a time, while there are more than `left`.
    fn first_told(state: &mut State<T>, left: usize) -> Vec<Told> {
        let mut first = Vec::new();
        while state.told.len() > left && first.len() < AT_ONCE {
            let Some(told) = state.told.pop_front() else { break };
            if state.files.contains_key(&told.number.0) {
                first.push(told);
            }
        }
        first
    }
}

/// Files that the kernel knows, of whatever kind of mount.
pub trait Bounded: Send + Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Nothing is dropped any more.
    fn end(&self);
}

impl<T: Tracked> Bounded for KnownFiles<T> {
    fn len(&self) -> usize {
        self.state.lock().files.len()
    }

    fn end(&self) {
        self.state.lock().is_over = true;
        self.wanted.notify_all();
        self.trimmed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Kind {
        Directory,
        File,
    }

    impl Tracked for Kind {
        fn is_directory(&self) -> bool {
            *self == Self::Directory
        }
    }

    /// A kernel of before there was a way to ask for files, or of today; and what it was asked.
    #[derive(Default)]
    struct Kernel {
        takes_files: bool,
        files: Vec<u64>,
        names: Vec<OsString>,
    }

    impl KernelCache for &mut Kernel {
        fn drop_unused(&mut self, files: &[u64]) -> bool {
            self.files.extend(self.takes_files.then_some(files).into_iter().flatten());
            self.takes_files
        }

        fn drop_name(&mut self, _: INodeNo, name: &OsStr) {
            self.names.push(name.to_owned());
        }
    }

    /// Tells of files, with room for so many; answers the names that were dropped by a kernel that
    /// takes nothing else.
    fn dropped(room: usize, told: impl FnOnce(&KnownFiles<Kind>)) -> Vec<OsString> {
        let known = KnownFiles::new(room * FILE_LEN, Kind::Directory);
        told(&known);
        let mut kernel = Kernel::default();
        std::thread::scope(|scope| {
            scope.spawn(|| known.trim(&mut kernel));
            let left = room * LEFT_PARTS.0 / LEFT_PARTS.1;
            while known.state.lock().told.len() > left {
                std::thread::yield_now();
            }
            known.end();
        });
        kernel.names
    }

    fn tell(known: &KnownFiles<Kind>, number: u64, name: &str) {
        known.tell(INodeNo(number), Kind::File, (INodeNo::ROOT, OsStr::new(name)));
    }

    #[test]
    fn above_the_bound_the_names_told_of_first_are_dropped() {
        let dropped = dropped(16, |known| {
            (2..19).for_each(|number| tell(known, number, &format!("{number}")));
        });
        assert_eq!(dropped, ["2", "3"]);
    }

    #[test]
    fn what_is_forgotten_or_a_directory_is_not_dropped() {
        let dropped = dropped(16, |known| {
            let name = (INodeNo::ROOT, OsStr::new("directory"));
            known.tell(INodeNo(100), Kind::Directory, name);
            (2..20).for_each(|number| tell(known, number, &format!("{number}")));
            known.forget(INodeNo(2), 1);
        });
        assert_eq!(dropped, ["3", "4"]);
    }

    #[test]
    fn files_are_dropped_together_and_by_name_those_that_were_in_use() {
        let known = KnownFiles::new(16 * FILE_LEN, Kind::Directory);
        let mut kernel = Kernel { takes_files: true, ..Kernel::default() };
        // One name more than there is room for; waits until it was trimmed for that. What is told
        // while it is being trimmed would be dropped at the same time.
        let overfill = |number| {
            let mut state = known.state.lock();
            known.note_name(&mut state, INodeNo(number), (INodeNo::ROOT, OsStr::new("last")));
            known.trimmed.wait(&mut state);
        };
        (2..18).for_each(|number| tell(&known, number, &format!("{number}")));
        std::thread::scope(|scope| {
            scope.spawn(|| known.trim(&mut kernel));
            overfill(18);
            known.forget(INodeNo(2), 1);
            tell(&known, 19, "19");
            overfill(20);
            known.end();
        });
        assert_eq!((kernel.files, kernel.names), (vec![2, 3, 4, 5], vec![OsString::from("3")]));
    }

    #[test]
    fn a_file_is_known_until_it_was_forgotten_as_often_as_it_was_told_of() {
        let (known, file) = (KnownFiles::new(1 << 20, Kind::Directory), INodeNo(2));
        ["a", "a", "a"].iter().for_each(|name| tell(&known, 2, name));
        assert_eq!(known.state.lock().told.len(), 1);
        assert_eq!(known.forget(file, 2), None);
        assert_eq!(known.find(file), Some(Kind::File));
        assert!(known.has_any(2..=3) && !known.has_any(3..=9));
        assert_eq!(known.forget(file, 1), Some(Kind::File));
        assert_eq!(known.find(file), None);
        assert_eq!(known.forget(INodeNo::ROOT, 1), None);
        assert_eq!(known.find(INodeNo::ROOT), Some(Kind::Directory));
    }

    #[test]
    fn each_name_of_a_file_is_dropped_and_one_that_it_got_by_a_rename() {
        let dropped = dropped(16, |known| {
            assert!(!known.is_filling());
            ["a", "b"].iter().for_each(|name| tell(known, 2, name));
            known.name(INodeNo(2), (INodeNo::ROOT, OsStr::new("c")));
            known.name(INodeNo(99), (INodeNo::ROOT, OsStr::new("nobody's")));
            (3..18).for_each(|number| tell(known, number, &format!("{number}")));
            assert!(known.is_filling());
        });
        assert_eq!(dropped, ["a", "b", "c"]);
    }

    #[test]
    fn who_tells_of_more_than_there_is_room_for_waits_for_a_moment_only() {
        let known = KnownFiles::new(FILE_LEN, Kind::Directory);
        (2..10).for_each(|number| {
            let name = (INodeNo::ROOT, OsStr::new("name"));
            if known.tell(INodeNo(number), Kind::File, name) {
                known.wait_for_room();
            }
        });
        assert_eq!(known.state.lock().told.len(), 8);
    }
}
