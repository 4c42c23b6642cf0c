//! Holes, room, and what is noted of reads.

use tyr::blocking::Tyr;
use tyr_fs::blocking::FileSystem;
use tyr_fs::{AccessTimes, Allocation, Errno, Time};

use super::{Hand, MINE, fixture, options};

const MIB: u64 = 1 << 20;

#[test]
fn a_hole_takes_no_space_and_is_found() {
    let fixture = fixture();
    let files = &fixture.files;
    files.store_at("/file", &vec![7; MIB as usize], MINE).unwrap();
    let file = files.open_file(&files.find("/file").unwrap().node).unwrap();
    // Over segments of 64 KiB, beginning and ending within one.
    file.allocate(Allocation::Punch, 100_000, 600_000).unwrap();
    assert_eq!(file.attributes().unwrap().size, MIB);
    let all = file.read(0, MIB).unwrap();
    assert!(all[..100_000].iter().chain(&all[700_000..]).all(|byte| *byte == 7));
    assert!(all[100_000..700_000].iter().all(|byte| *byte == 0));
    let node = file.node();
    let hole = files.next_hole(node, 0).unwrap();
    assert!((100_000..=2 * 65_536).contains(&hole), "{hole}");
    let data = files.next_data(node, hole).unwrap();
    assert!((10 * 65_536..=700_000).contains(&data), "{data}");
    assert_eq!(files.next_data(node, 10).unwrap(), 10);
    assert_eq!(files.next_hole(node, data).unwrap(), MIB);
    assert_eq!(files.next_hole(node, MIB).unwrap_err().errno(), Errno::NXIO);
    file.truncate(3 * MIB).unwrap();
    assert_eq!(files.next_data(node, MIB).unwrap_err().errno(), Errno::NXIO);
    assert_eq!(files.next_hole(node, 2 * MIB).unwrap(), 2 * MIB);
    file.close().unwrap();
    fixture.verify();
}

#[test]
fn room_makes_a_file_longer_and_never_shorter() {
    let fixture = fixture();
    let files = &fixture.files;
    files.store_at("/file", b"text", MINE).unwrap();
    let node = files.find("/file").unwrap().node;
    let size = || files.attributes(&node).unwrap().size;
    files.allocate(&node, Allocation::Extend, 0, 2).unwrap();
    assert_eq!(size(), 4);
    files.allocate(&node, Allocation::Extend, 2, 8).unwrap();
    assert_eq!(files.read(&node, 0, 99).unwrap(), "text\0\0\0\0\0\0");
    files.allocate(&node, Allocation::Zero, 1, 200_000).unwrap();
    assert_eq!((size(), files.read(&node, 0, 3).unwrap()), (200_001, "t\0\0".into()));
    files.allocate(&node, Allocation::Punch, 0, u64::MAX >> 2).unwrap();
    assert_eq!((size(), files.read(&node, 0, 3).unwrap()), (200_001, "\0\0\0".into()));
    let none = files.allocate(&node, Allocation::Extend, 0, 0).unwrap_err();
    assert_eq!(none.errno(), Errno::INVAL);
    let much = files.allocate(&node, Allocation::Extend, 1 << 62, 1 << 63).unwrap_err();
    assert_eq!(much.errno(), Errno::FBIG);
    fixture.verify();
}

#[test]
fn a_read_is_noted_once_after_a_change_and_once_a_day() {
    let folder = tempfile::tempdir().unwrap();
    let store = Tyr::open(folder.path()).unwrap();
    drop(FileSystem::create(&store, "test", &options()).unwrap());
    let hand = Hand::default();
    hand.0.store(1_800_000_000_000_000_000, std::sync::atomic::Ordering::SeqCst);
    let files = FileSystem::open_with(&store, "test", hand.clock()).unwrap();
    files.store_at("/file", b"text", MINE).unwrap();
    let node = files.find("/file").unwrap().node;
    let atime = || files.attributes(&node).unwrap().times.atime;
    let read = || drop(files.open_file(&node).unwrap().read(0, 4).unwrap());
    hand.tick();
    let first = hand.now();
    read();
    assert_eq!(atime(), first);
    hand.tick();
    read();
    assert_eq!(atime(), first);
    hand.0.fetch_add(25 * 3_600 * 1_000_000_000, std::sync::atomic::Ordering::SeqCst);
    files.with_access_times(AccessTimes::Never).open_file(&node).unwrap().read(0, 4).unwrap();
    assert_eq!(atime(), first);
    read();
    let later = hand.now();
    assert_eq!(atime(), later);
    hand.tick();
    let open = files.open_file(&node).unwrap();
    open.append("more").unwrap();
    open.read(0, 8).unwrap();
    assert_eq!(atime(), hand.now());
    let times = files.attributes(&node).unwrap().times;
    assert_eq!([times.mtime, times.ctime], [hand.now(); 2]);
    assert!(times.mtime > later && later > Time(0));
}
