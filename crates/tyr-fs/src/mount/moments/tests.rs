//! Bounds of moments: how many, how long, and whose.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use tyr::blocking::Tyr;

use super::*;
use crate::options::Options;

struct Fixture {
    files: FileSystem,
    moments: Moments,
    _folder: tempfile::TempDir,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let store = Tyr::open(folder.path()).unwrap();
    let files = FileSystem::create(&store, "test", &Options::default()).unwrap();
    Fixture { files, moments: Moments::default(), _folder: folder }
}

impl Fixture {
    /// User 7 takes one so many seconds after the mount.
    fn take(&self, name: &str, second: u64) -> Result<u16> {
        let asked = Asked { user: 7, at: Duration::from_secs(second) };
        self.moments.take(&self.files, OsStr::new(name), asked, |_| true).map(|(view, _)| view)
    }

    fn is_read(&self, view: u16, second: u64) -> bool {
        match self.moments.files(view, Duration::from_secs(second)) {
            Ok(files) => files.attributes(&Node::ROOT).is_ok(),
            Err(error) => {
                assert_eq!(error.errno(), Errno::STALE);
                false
            }
        }
    }

    fn names(&self) -> Vec<OsString> {
        self.moments.list().into_iter().map(|(name, ..)| name).collect()
    }
}

#[test]
fn a_moment_is_over_after_its_time_and_keeps_its_name() {
    let fixture = fixture();
    let view = fixture.take("one", 10).unwrap();
    assert!(fixture.is_read(view, 10));
    assert!(fixture.is_read(view, 309));
    assert!(!fixture.is_read(view, 310));
    assert_eq!(fixture.moments.find(OsStr::new("one")).unwrap().0, view);
    assert_eq!(fixture.take("one", 320).unwrap_err().errno(), Errno::EXIST);
    fixture.moments.give_up(OsStr::new("one"), 7).unwrap();
    let other = fixture.take("one", 320).unwrap();
    assert_ne!(other, view);
    assert!(!fixture.is_read(view, 320));
    assert!(fixture.is_read(other, 320));
}

#[test]
fn there_are_so_many_and_those_that_are_over_make_room() {
    let fixture = fixture();
    for number in 0..MOMENTS_MAX as u64 {
        fixture.take(&format!("{number:02}"), number).unwrap();
    }
    assert_eq!(fixture.take("more", 299).unwrap_err().errno(), Errno::NOSPC);
    assert_eq!(fixture.names().len(), MOMENTS_MAX);
    // Two of them are over by then, and the older goes.
    fixture.take("more", 301).unwrap();
    assert!(fixture.moments.find(OsStr::new("00")).is_err());
    assert!(fixture.moments.find(OsStr::new("01")).is_ok());
    assert_eq!(fixture.names().len(), MOMENTS_MAX);
    fixture.moments.give_up(OsStr::new("40"), 7).unwrap();
    fixture.take("again", 301).unwrap();
}

#[test]
fn who_took_a_moment_gives_it_up_and_so_does_root() {
    let fixture = fixture();
    for user in [7, 0] {
        fixture.take("one", 0).unwrap();
        let refused = fixture.moments.give_up(OsStr::new("one"), 8).unwrap_err();
        assert_eq!(refused.errno(), Errno::PERM);
        fixture.moments.give_up(OsStr::new("one"), user).unwrap();
        assert_eq!(fixture.names(), [""; 0]);
    }
}

#[test]
fn a_number_is_used_again_when_the_kernel_knows_no_file_of_it() {
    let mut table = Table::default();
    let first = table.number(|_| true).unwrap();
    assert_eq!((first, table.number(|_| true).unwrap()), (*TAKEN.start(), first + 1));
    table.last = Some(*TAKEN.end());
    assert_eq!(table.number(|view| view != first).unwrap(), first + 1);
    assert_eq!(table.number(|view| view == first).unwrap(), first);
    assert_eq!(table.number(|_| false).unwrap_err().errno(), Errno::NFILE);
}
