//! The files that the kernel knows, as they were seen when it looked them up.
//!
//! ```text
//!   lookup, create, listing ──tell──► known ◄──forget── kernel
//!                                       │ more than there is memory for
//!                                       └─trim─► the kernel drops the names it was told of first
//! ```
//!
//! The kernel forgets a file when it needs the memory itself, which may be long after this process
//! does: so it is asked to. It drops a name, and forgets the file once that is not open and has no
//! other name there; whoever looks again has it looked up again. Directories are not dropped: what
//! others have mounted in them would go with them.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use fuser::INodeNo;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::place::Place;
use crate::layout::record::Kind;
use crate::plan::node::Node;

/// Bytes that a file takes here, with a name of usual length.
const FILE_LEN: usize = 200;

/// Names are dropped down to this part of what there is room for, so that it is not done for one.
const LEFT_PARTS: (usize, usize) = (15, 16);

/// Who tells the kernel of more waits so long at most, once there is this part too many: the kernel
/// may wait for the answer to drop names in the same directory.
const WAIT: Duration = Duration::from_millis(20);
const EXCESS_PART: usize = 8;

/// A file that the kernel knows, and how often it was told of it.
struct Known {
    node: Node,
    count: u64,
    /// A hash of the name by which it was told last.
    name: u64,
}

impl Known {
    /// Whether this is another name than that of before, and not a directory's. It is the one of
    /// before then.
    fn is_new_name(&mut self, name: (INodeNo, &OsStr)) -> bool {
        if self.node.kind == Kind::Directory {
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
    file: Place,
    parent: INodeNo,
    name: OsString,
}

#[derive(Default)]
struct State {
    /// By view, and number in that.
    views: HashMap<u16, HashMap<u64, Known>>,
    /// The first ones first. Some may be forgotten by now.
    told: VecDeque<Told>,
    is_over: bool,
}

/// The files that the kernel knows.
pub struct KnownFiles {
    state: Mutex<State>,
    /// There are more than there is room for, or it is over.
    wanted: Condvar,
    /// There is room again.
    trimmed: Condvar,
    /// So many names are kept.
    max: usize,
}

impl KnownFiles {
    /// The root alone; all together may take so many bytes.
    pub fn new(bytes: usize) -> Self {
        let root = Known { node: Node::ROOT, count: 1, name: 0 };
        let views = HashMap::from([(0, HashMap::from([(Node::ROOT.number, root)]))]);
        Self {
            state: Mutex::new(State { views, ..State::default() }),
            wanted: Condvar::new(),
            trimmed: Condvar::new(),
            max: (bytes / FILE_LEN).max(1),
        }
    }

    /// A file, as it was seen when the kernel was last told of it.
    pub fn find(&self, place: Place) -> Option<Node> {
        let state = self.state.lock();
        Some(state.views.get(&place.view)?.get(&place.file)?.node.clone())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.state.lock().views.values().map(HashMap::len).sum()
    }

    /// Whether the kernel knows any file of this view.
    pub fn has_view(&self, view: u16) -> bool {
        self.state.lock().views.contains_key(&view)
    }

    /// The kernel is told of a file of this view, by a name in a directory.
    pub fn tell(&self, view: u16, node: &Node, name: (INodeNo, &OsStr)) {
        let mut state = self.state.lock();
        let of_view = state.views.entry(view).or_default();
        let known =
            of_view.entry(node.number).or_insert(Known { node: node.clone(), count: 0, name: 0 });
        known.node = node.clone();
        known.count += 1;
        if known.is_new_name(name) {
            self.note_name(state, Place { view, file: node.number }, name);
        }
    }

    /// Whether there is so much that names which files get otherwise have to be
    /// [noted](Self::name).
    pub fn is_filling(&self) -> bool {
        self.state.lock().told.len() > self.max / 2
    }

    /// A file as it is now has this name, too: the kernel gave it that, and asks nothing.
    pub fn name(&self, node: &Node, name: (INodeNo, &OsStr)) {
        let (mut state, file) = (self.state.lock(), Place { view: 0, file: node.number });
        let known = state.views.get_mut(&file.view).and_then(|files| files.get_mut(&file.file));
        if known.is_some_and(|known| known.is_new_name(name)) {
            self.note_name(state, file, name);
        }
    }

    /// Notes a name that is to be dropped some time.
    fn note_name(
        &self,
        mut state: MutexGuard<'_, State>,
        file: Place,
        (parent, name): (INodeNo, &OsStr),
    ) {
        state.told.push_back(Told { file, parent, name: name.to_owned() });
        if state.told.len() > self.max {
            self.wanted.notify_one();
        }
        if state.told.len() > self.max + self.max / EXCESS_PART + 1 && !state.is_over {
            self.trimmed.wait_for(&mut state, WAIT);
        }
    }

    /// The kernel forgets what it was told of a file so many times.
    pub fn forget(&self, place: Place, count: u64) {
        let mut state = self.state.lock();
        let Some(of_view) = state.views.get_mut(&place.view) else { return };
        let Some(file) = of_view.get_mut(&place.file) else { return };
        file.count = file.count.saturating_sub(count);
        if file.count == 0 && place != Place::ROOT {
            of_view.remove(&place.file);
            if of_view.is_empty() {
                state.views.remove(&place.view);
            }
        }
    }

    /// Has `drop_name` drop names, the first ones first, whenever there are too many; until it is
    /// over.
    pub fn trim(&self, mut drop_name: impl FnMut(INodeNo, &OsStr)) {
        let mut state = self.state.lock();
        while !state.is_over {
            if state.told.len() <= self.max {
                self.wanted.wait(&mut state);
                continue;
            }
            let left = self.max * LEFT_PARTS.0 / LEFT_PARTS.1;
            while state.told.len() > left && !state.is_over {
                let Some(Told { file, parent, name }) = state.told.pop_front() else { break };
                let views = &state.views;
                if views.get(&file.view).is_some_and(|files| files.contains_key(&file.file)) {
                    // The kernel may have to wait for what is told meanwhile.
                    MutexGuard::unlocked(&mut state, || drop_name(parent, &name));
                }
            }
            self.trimmed.notify_all();
        }
    }

    /// Nothing is dropped any more.
    pub fn end(&self) {
        self.state.lock().is_over = true;
        self.wanted.notify_all();
        self.trimmed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: u64) -> Node {
        Node::of_its_own(Kind::Regular, number)
    }

    /// Tells of files, with room for so many; answers the names that were dropped.
    fn dropped(room: usize, told: impl FnOnce(&KnownFiles)) -> Vec<OsString> {
        let known = KnownFiles::new(room * FILE_LEN);
        told(&known);
        let mut dropped = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| known.trim(|_, name| dropped.push(name.to_owned())));
            let left = room * LEFT_PARTS.0 / LEFT_PARTS.1;
            while known.state.lock().told.len() > left {
                std::thread::yield_now();
            }
            known.end();
        });
        dropped
    }

    fn tell(known: &KnownFiles, node: &Node, name: &str) {
        known.tell(0, node, (INodeNo(1), OsStr::new(name)));
    }

    #[test]
    fn above_the_bound_the_names_told_of_first_are_dropped() {
        let dropped = dropped(16, |known| {
            (2..19).for_each(|number| tell(known, &file(number), &format!("{number}")));
        });
        assert_eq!(dropped, ["2", "3"]);
    }

    #[test]
    fn what_is_forgotten_or_a_directory_is_not_dropped() {
        let dropped = dropped(16, |known| {
            tell(known, &Node::of_its_own(Kind::Directory, 100), "directory");
            (2..20).for_each(|number| tell(known, &file(number), &format!("{number}")));
            known.forget(Place { view: 0, file: 2 }, 1);
        });
        assert_eq!(dropped, ["3", "4"]);
    }

    #[test]
    fn a_file_is_known_until_it_was_forgotten_as_often_as_it_was_told_of() {
        let (known, place) = (KnownFiles::new(1 << 20), Place { view: 0, file: 2 });
        ["a", "a", "a"].iter().for_each(|name| tell(&known, &file(2), name));
        assert_eq!(known.state.lock().told.len(), 1);
        known.forget(place, 2);
        assert_eq!(known.find(place), Some(file(2)));
        known.forget(place, 1);
        assert_eq!(known.find(place), None);
        known.forget(Place::ROOT, 1);
        assert_eq!(known.find(Place::ROOT), Some(Node::ROOT));
    }

    #[test]
    fn each_name_of_a_file_is_dropped_and_one_that_it_got_by_a_rename() {
        let dropped = dropped(16, |known| {
            assert!(!known.is_filling());
            ["a", "b"].iter().for_each(|name| tell(known, &file(2), name));
            known.name(&file(2), (INodeNo(1), OsStr::new("c")));
            known.name(&file(99), (INodeNo(1), OsStr::new("nobody's")));
            (3..18).for_each(|number| tell(known, &file(number), &format!("{number}")));
            assert!(known.is_filling());
        });
        assert_eq!(dropped, ["a", "b", "c"]);
    }

    #[test]
    fn who_tells_of_more_than_there_is_room_for_waits_for_a_moment_only() {
        let known = KnownFiles::new(FILE_LEN);
        (2..10).for_each(|number| tell(&known, &file(number), "name"));
        assert_eq!(known.state.lock().told.len(), 8);
    }
}
