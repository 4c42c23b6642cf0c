//! Files of many segments, which are 64 KiB here.

use tyr_fs::{Errno, SMALL_LEN_MAX};

use super::{MINE, fixture};

#[test]
fn a_write_over_many_segments_is_read_back_and_cut() {
    let fixture = fixture();
    let files = &fixture.files;
    let node = files.make_file_at("/large", MINE).unwrap().node;
    let data: Vec<u8> = (0..500_000_u32).map(|at| (at / 3) as u8).collect();
    files.write(&node, 100_000, data.clone()).unwrap();
    assert_eq!(files.attributes(&node).unwrap().size, 600_000);
    let read = files.read(&node, 0, 1 << 20).unwrap();
    assert!(read[..100_000].iter().all(|byte| *byte == 0));
    assert!(read[100_000..] == data);
    files.truncate(&node, 150_000).unwrap();
    files.truncate(&node, 300_000).unwrap();
    let read = files.read(&node, 100_000, 1 << 20).unwrap();
    assert!(read[..50_000] == data[..50_000] && read[50_000..].iter().all(|byte| *byte == 0));
    assert_eq!(read.len(), 200_000);
    fixture.verify();
}

#[test]
fn a_file_of_hundreds_of_segments_is_cut_in_steps_and_deleted() {
    let fixture = fixture();
    let files = &fixture.files;
    let node = files.make_file_at("/large", MINE).unwrap().node;
    for segment in 0..200 {
        files.write(&node, segment * 65_536, "x").unwrap();
    }
    files.link_at("/large", "/other").unwrap();
    files.truncate(&node, 10 * 65_536 + 5).unwrap();
    assert_eq!(files.attributes(&node).unwrap().size, 10 * 65_536 + 5);
    fixture.verify();
    for segment in 0..200 {
        files.write(&node, segment * 65_536, "x").unwrap();
    }
    files.remove_file_at("/large").unwrap();
    files.remove_file_at("/other").unwrap();
    fixture.verify();
    let report = files.check(&mut |_| true).unwrap();
    assert_eq!((report.large_files, report.bytes), (0, 0));
}

#[test]
fn a_sparse_file_is_as_long_as_segments_go_and_no_longer() {
    let fixture = fixture();
    let files = &fixture.files;
    let node = files.make_file_at("/sparse", MINE).unwrap().node;
    let longest = 65_536 << 32;
    files.truncate(&node, longest).unwrap();
    assert_eq!(files.attributes(&node).unwrap().size, longest);
    assert_eq!(files.read(&node, longest - 3, 10).unwrap(), [0; 3][..]);
    for refused in [
        files.truncate(&node, longest + 1),
        files.write(&node, longest, "x"),
        files.write(&node, u64::MAX - 2, "x"),
        files.append(&node, "x").map(drop),
    ] {
        assert_eq!(refused.unwrap_err().errno(), Errno::FBIG);
    }
    files.truncate(&node, 0).unwrap();
    assert_eq!(files.append(&node, "begin").unwrap(), 0);
    fixture.verify();
}

#[test]
fn appends_go_on_over_the_border_of_small_files_and_of_segments() {
    let fixture = fixture();
    let files = &fixture.files;
    let node = files.make_file_at("/log", MINE).unwrap().node;
    let mut all = Vec::new();
    while all.len() as u64 <= 4 * SMALL_LEN_MAX {
        let piece = vec![all.len() as u8; 1 + all.len() % 7_001];
        assert_eq!(files.append(&node, piece.clone()).unwrap(), all.len() as u64);
        all.extend(piece);
    }
    assert!(files.read(&node, 0, 1 << 30).unwrap() == all);
    fixture.verify();
}
