//! Damage is found, or harmless.

use super::*;

#[test]
fn a_damaged_record_before_one_that_knew_it_durable_is_damage() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    commit(&mut log, 3);
    commit(&mut log, 1);
    let record = encode(&numbered(1)).stored_len();
    let second = 24 + record;
    disk.damage("log/0000000000000001.log", |bytes| bytes[second + 50] ^= 1);
    let text = corrupt(&disk, 1);
    for part in ["log/0000000000000001.log", "sequence 2 ", &format!("byte {second} ")] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn the_last_records_are_protected_by_the_mark() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    commit(&mut log, 3);
    let name = "log/0000000000000001.log";
    let unmarked = disk.copy();
    unmarked.damage(name, |bytes| bytes[24 + 2 * encode(&numbered(1)).stored_len() + 45] ^= 1);
    assert_eq!(read(&unmarked, 1, ReplayMode::ReadOnly).unwrap().1, all(2));
    log.marker().mark().unwrap();
    disk.damage(name, |bytes| bytes[24 + 2 * encode(&numbered(1)).stored_len() + 45] ^= 1);
    assert!(corrupt(&disk, 1).contains("sequence 3 "));
}

#[test]
fn a_missing_segment_is_damage_wherever_it_was() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    commit(&mut log, 40);
    log.seal().unwrap();
    let names = segments(&disk);
    assert!(names.len() > 3);
    for name in &names {
        let disk = disk.copy();
        disk.remove(name).unwrap();
        corrupt(&disk, 1);
    }
    for name in &names {
        disk.remove(name).unwrap();
    }
    assert!(corrupt(&disk, 1).contains("durable up to sequence 40"));
}

#[test]
fn a_log_that_is_gone_is_damage_when_the_base_holds_something() {
    let disk = SimulatedDisk::new();
    let lookup = |is_used| {
        let start = Start { sequence: 0, is_used };
        replay(&disk, start, ReplayMode::ReadOnly, &mut |_, _, _| panic!("nothing is there"))
    };
    assert!(lookup(false).unwrap().torn.is_none());
    let error = lookup(true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("log/SYNCED"), "{error}");
}

#[test]
fn a_missing_mark_is_damage_unless_there_is_no_log() {
    let disk = SimulatedDisk::new();
    commit(&mut open(&disk), 1);
    disk.remove("log/SYNCED").unwrap();
    assert!(corrupt(&disk, 1).contains("log/SYNCED"));
    let fresh = SimulatedDisk::new();
    fresh.create_folder("log").unwrap();
    fresh.open("log/SYNCED", OpenMode::CreateNew).unwrap();
    assert!(reopen(&fresh, 1).1.is_clean);
}

/// A log whose third record, the last, is not whole, and carries in its payload the header of a
/// tenth that knows all before it durable, made for `place(the place where it stands)`.
fn log_with_a_header_in_a_payload(place: impl Fn(RecordPlace) -> RecordPlace) -> SimulatedDisk {
    let stray = |place| {
        let header = encode(&numbered(10)).header(10, stamp(10), 9).encode(place);
        let payload = Payload::Inline(Bytes::from([vec![1; 9], header.to_vec()].concat()));
        let mut carrier = numbered(3);
        carrier.blobs[0].operations = vec![Operation::Write { offset: 0, payload }];
        encode(&carrier)
    };
    let third = 24 + 2 * encode(&numbered(1)).stored_len();
    let here = RecordPlace { segment: 1, offset: 0 };
    let in_body = stray(here).body().windows(3).position(|bytes| bytes == record::MAGIC).unwrap();
    let offset = (third + record::HEADER_LEN + in_body) as u64;
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    commit(&mut log, 2);
    log.append(&stray(place(RecordPlace { offset, ..here })), stamp(3)).unwrap();
    log.take_pending().write().unwrap();
    disk.damage("log/0000000000000001.log", |bytes| bytes[third] ^= 1);
    disk
}

#[test]
fn what_looks_like_a_record_but_was_made_for_another_place_is_no_witness() {
    let moved = log_with_a_header_in_a_payload(|place| RecordPlace { offset: 24, ..place });
    let foreign = log_with_a_header_in_a_payload(|place| RecordPlace { segment: 2, ..place });
    for disk in [moved, foreign] {
        let (replayed, sequences) = read(&disk, 1, ReplayMode::ReadOnly).unwrap();
        assert_eq!((sequences, replayed.torn.unwrap().records_lost), (all(2), 0));
    }
    // Made for its place it would be one.
    assert!(corrupt(&log_with_a_header_in_a_payload(|place| place), 1).contains("sequence 3 "));
}

#[test]
fn one_damaged_copy_of_the_mark_leaves_the_other() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    commit(&mut log, 3);
    log.seal().unwrap();
    for slot in [0, 512] {
        let disk = disk.copy();
        disk.damage("log/SYNCED", |bytes| bytes[slot + 15] ^= 1);
        let (mut log, _, sequences) = reopen(&disk, 1);
        assert_eq!(sequences, all(3));
        commit(&mut log, 1);
        log.seal().unwrap();
        let (replayed, _) = read(&disk, 1, ReplayMode::ReadOnly).unwrap();
        assert!(replayed.is_clean && replayed.synced_to == 4, "{replayed:?}");
    }
}

/// Every byte of every file of a log, flipped, zeroed, and the file cut there.
fn each_damage(disk: &SimulatedDisk, step: usize, check: impl Fn(&SimulatedDisk, &str)) {
    for name in disk.names() {
        let len = disk.content(&name).len();
        for at in (0..len).step_by(step) {
            let hurt = |what: &str, how: &dyn Fn(&mut Vec<u8>)| {
                let disk = disk.copy();
                disk.damage(&name, how);
                check(&disk, &format!("{name}: byte {at} {what}"));
            };
            hurt("flipped", &|bytes| bytes[at] ^= 0x40);
            hurt("zeroed", &|bytes| bytes[at] = 0);
            hurt("and all after it zeroed", &|bytes| bytes[at..].fill(0));
            hurt("and a sector zeroed", &|bytes| bytes[at..len.min(at + 512)].fill(0));
            hurt("cut off", &|bytes| bytes.truncate(at));
        }
    }
}

#[test]
fn a_closed_log_with_any_byte_damaged_gives_all_or_an_error() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    commit(&mut log, 7);
    commit(&mut log, 8);
    log.seal().unwrap();
    assert!(segments(&disk).len() > 1);
    each_damage(&disk, 1, |disk, what| match read(disk, 1, ReplayMode::Cut) {
        Ok((_, sequences)) => assert_eq!(sequences, all(15), "{what}"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
            assert!(error.message().contains("simulated/log/"), "{what}: {error}");
        }
    });
}

#[test]
fn a_log_in_use_with_any_byte_damaged_gives_an_error_or_a_prefix_and_goes_on() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    commit(&mut log, 6);
    commit(&mut log, 6);
    each_damage(&disk, 3, |disk, what| {
        let Ok((replayed, sequences)) = read(disk, 1, ReplayMode::Cut) else { return };
        let last = sequences.len() as u64;
        // The last sync has no witness yet.
        assert!(last >= 6 && sequences == all(last), "{what}: {sequences:?}");
        let mut log = Log::open(Arc::new(disk.clone()), OPTIONS, &replayed).unwrap();
        commit(&mut log, 2);
        assert_eq!(read(disk, 1, ReplayMode::ReadOnly).unwrap().1, all(last + 2), "{what}");
    });
}
