//! Segments that are made ahead, and written directly.

use super::*;

fn is_one_made_ahead(disk: &SimulatedDisk) -> bool {
    disk.names().iter().any(|name| name == segment::NEXT)
}

#[test]
fn a_segment_made_ahead_meets_no_full_disk_and_is_the_next() {
    let disk = SimulatedDisk::new();
    let (mut log, _, _) = reopen_as(DIRECT, &disk, 1);
    assert!(log.prepare().is_none(), "there is no segment yet");
    commit(&mut log, 12);
    let mut preparation = log.prepare().expect("a good part of the segment is used");
    assert!(log.prepare().is_none(), "one at a time");
    while preparation.step() {}
    assert!(log.prepare().is_none(), "one is there");
    disk.set_capacity(Some(disk.disk_bytes()));
    let mut last = 12;
    while segments(&disk).len() < 2 {
        last = append(&mut log).unwrap();
    }
    assert!(!is_one_made_ahead(&disk), "it has its name");
    disk.set_capacity(None);
    commit(&mut log, 5);
    drop(log);
    assert_eq!(reopen(&disk, 1).2, all(last + 5));
}

#[test]
fn a_segment_that_cannot_be_made_ahead_is_made_in_its_turn() {
    let disk = SimulatedDisk::new();
    let (mut log, _, _) = reopen_as(DIRECT, &disk, 1);
    commit(&mut log, 12);
    disk.set_capacity(Some(disk.disk_bytes()));
    prepare(&mut log);
    assert!(!is_one_made_ahead(&disk), "nothing is left of it");
    disk.set_capacity(None);
    assert!(log.prepare().is_none(), "it is not tried for the same segment again");
    commit(&mut log, 50);
    assert_eq!(segments(&disk).len(), 2);
    assert!(log.prepare().is_some(), "but for the one after");
    assert_eq!(reopen(&disk, 1).2, all(62));
}

#[test]
fn a_log_leaves_nothing_made_ahead_and_removes_what_a_crash_left() {
    let disk = SimulatedDisk::new();
    let (mut log, _, _) = reopen_as(DIRECT, &disk, 1);
    commit(&mut log, 12);
    prepare(&mut log);
    let crashed = disk.copy();
    assert!(is_one_made_ahead(&crashed));
    drop(log);
    assert!(!is_one_made_ahead(&disk));
    let (mut log, _, sequences) = reopen_as(DIRECT, &crashed, 1);
    assert_eq!(sequences, all(12));
    assert!(!is_one_made_ahead(&crashed));
    commit(&mut log, 12);
    let mut preparation = log.prepare().unwrap();
    assert!(preparation.step(), "it has begun");
    assert!(is_one_made_ahead(&crashed));
    drop(log);
    assert!(!preparation.step(), "nobody would take it");
    assert!(!is_one_made_ahead(&crashed));
}

/// Blocks are rewritten while they fill; what is larger than the memory for them goes in pieces.
#[test]
fn a_log_written_directly_is_read_back_whatever_the_lengths() {
    let disk = SimulatedDisk::new();
    let (mut log, _, _) = reopen_as(DIRECT, &disk, 1);
    for (sequence, len) in (1..).zip([1, 3_000, 4_000, 5_000, 1, 1 << 20, 3 << 20, 7, 4_096, 90]) {
        log.append(&encode(&sized(sequence, len)), stamp(sequence)).unwrap();
        let pending = log.take_pending();
        pending.write().unwrap();
        pending.sync().unwrap();
        log.give_back(pending);
    }
    assert_eq!(reopen(&disk.crash(1), 1).2, all(10));
}
