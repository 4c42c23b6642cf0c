//! What the kernel knows takes no more memory than it may, and works as ever.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use tyr::blocking::Tyr;
use tyr::{Durability, KeyspaceConfig};
use tyr_fs::blocking::FileSystem;
use tyr_fs::{MountOptions, Options, mount};

/// Room for some eighty files.
const CACHE_BYTES: usize = 16 << 10;

const FILES: usize = 1_000;

#[test]
fn the_kernel_forgets_files_that_there_is_no_room_for() {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: there is no /dev/fuse here, and nothing can be mounted");
        return;
    }
    let (folder, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Tyr::open(folder.path()).unwrap();
    let keyspace_config =
        KeyspaceConfig { durability: Durability::Buffered, ..KeyspaceConfig::default() };
    let options = Options { keyspace_config, ..Options::default() };
    let files = FileSystem::create(&store, "test", &options).unwrap();
    for is_alone in [false, true] {
        let mount_options =
            MountOptions { is_alone, cache_bytes: CACHE_BYTES, ..MountOptions::default() };
        let mounted = mount(&files, at.path(), &mount_options).unwrap();
        let made = |number: usize| at.path().join(format!("{is_alone}/{number}"));
        // Every other one gets another name.
        let path = |number: usize| match number % 2 {
            0 => made(number),
            _ => at.path().join(format!("{is_alone}/renamed-{number}")),
        };
        fs::create_dir(at.path().join(is_alone.to_string())).unwrap();
        // One stays open while all others come and go.
        let mut options = OpenOptions::new();
        let mut open = options.read(true).append(true).create_new(true).open(path(0)).unwrap();
        for number in 1..FILES {
            fs::write(made(number), number.to_string()).unwrap();
            fs::rename(made(number), path(number)).unwrap();
        }
        open.write_all(b"still").unwrap();
        let walk = || {
            let names = fs::read_dir(path(0).parent().unwrap()).unwrap();
            names.map(|entry| entry.unwrap().metadata().unwrap().len()).sum::<u64>()
        };
        let digits: usize = (1..FILES).map(|number| number.to_string().len()).sum();
        assert_eq!(walk(), digits as u64 + 5);
        for number in 1..FILES {
            assert_eq!(fs::read_to_string(path(number)).unwrap(), number.to_string());
        }
        let (begun, known_max) = (Instant::now(), FILES / 4);
        while mounted.known_files() > known_max {
            assert!(begun.elapsed() < Duration::from_secs(30), "{}", mounted.known_files());
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut text = String::new();
        open.rewind().unwrap();
        open.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), File::open(path(0)).is_ok()), ("still", true));
        drop(open);
        mounted.unmount().unwrap();
    }
    let report = files.check(&mut |_| true).unwrap();
    assert_eq!((report.findings, report.orphans), (vec![], 0));
}
