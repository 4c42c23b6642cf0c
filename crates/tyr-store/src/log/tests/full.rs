//! A disk without room: what grows is refused, what makes room is not.

use super::*;

fn delete(log: &mut Log) -> Result<u64> {
    let sequence = log.next_sequence();
    let mut transaction = numbered(sequence);
    transaction.blobs[0].operations = vec![Operation::Delete];
    log.append(&encode(&transaction), stamp(sequence))
}

#[test]
fn a_full_disk_is_met_only_by_a_new_segment_and_changes_nothing() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    commit(&mut log, 1);
    disk.set_capacity(Some(disk.disk_bytes()));
    let mut sequences = vec![1];
    let error = loop {
        match append(&mut log) {
            Ok(sequence) => sequences.push(sequence),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("disk full"), "{error}");
    assert!(sequences.len() > 5, "{sequences:?}");
    commit(&mut log, 0);
    assert!(append(&mut log).is_err());
    disk.set_capacity(None);
    commit(&mut log, 10);
    let last = sequences.len() as u64 + 10;
    assert_eq!(reopen(&disk, 1).2, all(last));
}

#[test]
fn what_makes_room_is_taken_as_long_as_there_is_a_block_for_its_record() {
    let options = |is_direct| LogOptions { segment_len: 1 << 20, is_direct };
    for options in [options(false), options(true)] {
        let disk = SimulatedDisk::new();
        let mut log = reopen_as(options.clone(), &disk, 1).0;
        disk.set_capacity(Some(disk.disk_bytes() + 2 * 4096));
        assert!(append(&mut log).is_err(), "what grows leaves that alone");
        let mut last = 0;
        let error = loop {
            match delete(&mut log) {
                Ok(sequence) => last = sequence,
                Err(error) => break error,
            }
        };
        assert!(error.message().contains("disk full"), "{error}");
        assert!(last > 50, "only {last} records found room in two blocks");
        commit(&mut log, 0);
        assert_eq!(segments(&disk).len(), 2, "a block each");
        let start = Start { sequence: 1, is_used: true };
        let mut visit = |_, _, _| Ok(());
        let replayed = replay(&disk.crash(1), start, ReplayMode::ReadOnly, &mut visit).unwrap();
        assert_eq!(replayed.next_sequence, last + 1, "they are durable");
    }
}
