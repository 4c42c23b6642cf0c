//! Pages of open files that the kernel keeps, and when they go.
//!
//! Before it reads from a page the kernel asks for the file's attributes, and drops its pages when
//! mtime or size are others than it was told last (`FUSE_AUTO_INVAL_DATA`). Where another program
//! has changed the file and put its mtime back, they are the same. So here is what the kernel was
//! told last: if that has other content by now, its version says so, and the pages are dropped
//! before the kernel gets the same mtime and size again.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};

use fuser::{INodeNo, Notifier};
use parking_lot::Mutex;
use tyr::Timestamp;

use crate::layout::record::Time;
use crate::plan::lookup::Attributes;

/// What the kernel was told of an open file.
#[derive(Clone, Copy)]
struct Told {
    version: Timestamp,
    mtime: Time,
    size: u64,
}

#[derive(Default)]
struct Open {
    /// How often it is open.
    handles: usize,
    told: Option<Told>,
    /// The version that the kernel cannot tell from the one whose pages it keeps.
    unnoticed: Option<Timestamp>,
}

/// Files that are open, and whose pages the kernel keeps.
#[derive(Default)]
pub struct Pages {
    files: Mutex<HashMap<u64, Open>>,
    notifier: OnceLock<Notifier>,
}

impl Pages {
    /// The kernel is reached by this from now on.
    pub fn mounted(&self, notifier: Notifier) {
        // It is mounted once.
        let _ = self.notifier.set(notifier);
    }

    /// A file is opened.
    pub fn opened(&self, file: u64) {
        self.files.lock().entry(file).or_default().handles += 1;
    }

    /// It is closed once.
    pub fn closed(&self, file: u64) {
        let mut files = self.files.lock();
        if let Some(open) = files.get_mut(&file) {
            open.handles -= 1;
            if open.handles == 0 {
                // Whoever opens it again has the kernel drop what it kept.
                files.remove(&file);
            }
        }
    }

    /// The kernel is about to be told of a file, as it is now; answers its version if it cannot be
    /// told from the one whose pages the kernel keeps.
    pub fn tell(&self, attributes: &Attributes) -> Option<Timestamp> {
        let mut files = self.files.lock();
        let (open, version) = (files.get_mut(&attributes.number)?, attributes.version?);
        let told = Told { version, mtime: attributes.times.mtime, size: attributes.size };
        if let Some(before) = open.told.replace(told)
            && before.version != version
        {
            let is_hidden = (before.mtime, before.size) == (told.mtime, told.size);
            open.unnoticed = is_hidden.then_some(version);
        }
        open.unnoticed
    }

    /// Has the kernel drop what it keeps of a file, and then answers it. On a thread of its own:
    /// the kernel waits for pages that are on their way, which others bring.
    ///
    /// # Errors
    /// That there can be no thread.
    pub fn drop_then(
        self: &Arc<Self>,
        file: u64,
        version: Timestamp,
        answer: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let pages = Arc::clone(self);
        std::thread::Builder::new().name("tyr-mount-drop".to_owned()).spawn(move || {
            if let Some(notifier) = pages.notifier.get() {
                // The kernel may have forgotten the file.
                let _ = notifier.inval_inode(INodeNo(file), 0, 0);
            }
            let mut files = pages.files.lock();
            if let Some(open) = files.get_mut(&file).filter(|it| it.unnoticed == Some(version)) {
                open.unnoticed = None;
            }
            drop(files);
            answer();
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::record::{Access, Kind, Record};

    fn attributes(version: u64, mtime: i64, size: u64) -> Attributes {
        let access = Access { mode: 0o644, owner: 0, group: 0 };
        let record = Record::new(Kind::Regular, 7, access, Time(mtime));
        let version = Some(Timestamp { clock: version, ..Timestamp::ZERO });
        Attributes { version, ..Attributes::of(&record, 1, size) }
    }

    #[test]
    fn a_change_that_mtime_and_size_do_not_show_is_told_by_the_version() {
        let pages = Pages::default();
        let tell = |version, mtime, size| pages.tell(&attributes(version, mtime, size));
        assert_eq!(tell(1, 1, 10), None, "it is not open");
        pages.opened(7);
        assert_eq!(tell(1, 1, 10), None);
        assert_eq!(tell(2, 2, 10), None, "the kernel sees another mtime");
        assert_eq!(tell(3, 2, 11), None, "and another size");
        let hidden = tell(4, 2, 11);
        assert!(hidden.is_some());
        assert_eq!(tell(4, 2, 11), hidden, "until its pages are dropped");
        assert_eq!(tell(5, 3, 11), None, "the kernel drops them");
        assert!(tell(6, 3, 11).is_some());
        pages.opened(7);
        pages.closed(7);
        assert!(tell(6, 3, 11).is_some(), "it is open still");
        pages.closed(7);
        assert_eq!(tell(6, 3, 11), None);
    }
}
