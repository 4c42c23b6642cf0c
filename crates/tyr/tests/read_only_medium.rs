//! A store on a medium that takes no writes, if the machine lets the test mount one.
//!
//! That takes the right to mount. Without it the test says so and ends.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::path::Path;
use std::process::Command;

use tyr::blocking::Tyr;
use tyr::{ErrorKind, KeyspaceConfig};

/// The same folder once more, at another place, read-only.
struct ReadOnly {
    place: tempfile::TempDir,
}

impl ReadOnly {
    fn mount(folder: &Path) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| {
            let mount = Command::new("mount").args(arguments).arg(place.path()).output();
            match mount {
                Ok(output) if output.status.success() => Ok(()),
                Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
                Err(error) => Err(error.to_string()),
            }
        };
        let folder = folder.to_str().unwrap();
        // Older programs take `ro` only the second time.
        match run(&["--bind", folder]).and_then(|()| run(&["-o", "remount,ro,bind"])) {
            Ok(()) => Some(Self { place }),
            Err(why) => {
                println!("skipped: this process may not mount a folder read-only: {why}");
                None
            }
        }
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.place.path()).output();
    }
}

fn content(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7 + number) as u8).collect()
}

/// A store as a process leaves it that is killed: some of it in the index, some in extents, some in
/// the log alone.
fn killed_store(at: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let tyr = Tyr::open(folder.path().join("store")).unwrap();
    let blobs = tyr.create_keyspace("blobs", KeyspaceConfig::default()).unwrap();
    for number in 0..200 {
        blobs.put(number.to_string(), content(number, 1000 + 300 * number)).unwrap();
    }
    assert!(tyr.check(&mut |_| {}).unwrap().is_sound(), "it folds");
    blobs.put("late", "in the log").unwrap();
    blobs.delete("7").unwrap();
    let copied = Command::new("cp").arg("-r").arg(folder.path().join("store")).arg(at).status();
    assert!(copied.unwrap().success());
    tyr.close().unwrap();
}

#[test]
fn a_store_on_a_medium_that_takes_no_writes_is_read_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    killed_store(&folder.path().join("store"));
    let listed = |path: &Path| {
        let list = Command::new("ls").args(["-lR", "--time-style=full-iso"]).arg(path).output();
        String::from_utf8(list.unwrap().stdout).unwrap()
    };
    let before = listed(folder.path());
    let Some(medium) = ReadOnly::mount(folder.path()) else { return };
    let store = medium.place.path().join("store");
    for _ in 0..2 {
        let tyr = Tyr::options().is_read_only(true).open_blocking(&store).unwrap();
        let blobs = tyr.keyspace("blobs").unwrap();
        assert_eq!(blobs.get("late").unwrap(), "in the log");
        assert_eq!(blobs.get("7").unwrap_err().kind(), ErrorKind::NotFound);
        for number in (0..200).filter(|number| *number != 7) {
            let expected = content(number, 1000 + 300 * number);
            assert!(blobs.get(number.to_string()).unwrap() == expected, "{number}");
        }
        assert_eq!(blobs.scan(b"", None, 1000).unwrap().len(), 200);
        assert_eq!(blobs.put("more", "x").unwrap_err().kind(), ErrorKind::PermissionDenied);
        let twice = Tyr::options().is_read_only(true).open_blocking(&store).unwrap_err();
        assert_eq!(twice.kind(), ErrorKind::Unavailable, "{twice}");
        tyr.close().unwrap();
    }
    let report = tyr::check(&store, &mut |_| {}).unwrap();
    assert!(report.is_sound() && report.blobs > 0, "{report:?}");
    let refused = Tyr::options().must_exist(true).open_blocking(&store).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "to write to it: {refused}");
    assert_eq!(listed(folder.path()), before);
}
