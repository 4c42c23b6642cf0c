//! A log comes back whole, or says what is wrong with it.

mod damage;
mod next;

use proptest::prelude::*;
use tyr_types::{
    BlobName, BlobOperations, Bytes, ErrorKind, Key, KeyspaceId, Operation, Payload, Transaction,
    TransactionId,
};

use super::*;
use crate::disk::simulated::{Fault, FaultyOperation};
use crate::disk::{OpenMode, SimulatedDisk};

const OPTIONS: LogOptions = LogOptions { segment_len: 1024, is_direct: false };
const DIRECT: LogOptions = LogOptions { segment_len: 4096, is_direct: true };

/// The transaction with this sequence: about 70 bytes of body, different for every sequence.
fn numbered(sequence: u64) -> Transaction {
    sized(sequence, 20)
}

fn sized(sequence: u64, len: usize) -> Transaction {
    let bytes: Vec<u8> = sequence.to_le_bytes().into_iter().cycle().take(len).collect();
    let key = Key::new(format!("blob/{sequence}")).unwrap();
    let payload = Payload::Inline(Bytes::from(bytes));
    let operations = vec![Operation::Write { offset: sequence * 3, payload }, Operation::Create];
    Transaction {
        id: TransactionId::new(1, sequence),
        blobs: vec![BlobOperations { blob: BlobName { keyspace: KeyspaceId(1), key }, operations }],
        reads: Vec::new(),
    }
}

fn stamp(sequence: u64) -> Timestamp {
    Timestamp { clock: 1_000 + sequence, ..Timestamp::ZERO }
}

fn encode(transaction: &Transaction) -> EncodedRecord {
    let mut record = EncodedRecord::new();
    record.encode(transaction, |_| true).unwrap();
    record
}

fn append(log: &mut Log) -> Result<u64> {
    let sequence = log.next_sequence();
    log.append(&encode(&numbered(sequence)), stamp(sequence))
}

fn append_some(log: &mut Log, count: u64) {
    for _ in 0..count {
        append(log).unwrap();
    }
}

/// Appends that many, writes and syncs them.
fn commit(log: &mut Log, count: u64) {
    append_some(log, count);
    let pending = log.take_pending();
    pending.write().unwrap();
    pending.sync().unwrap();
    log.give_back(pending);
}

/// Makes the next segment ahead, if it is time to.
fn prepare(log: &mut Log) {
    if let Some(mut preparation) = log.prepare() {
        while preparation.step() {}
    }
}

/// Replays; checks that what comes is what was appended, in order; answers the sequences too.
fn read(disk: &SimulatedDisk, from: u64, mode: ReplayMode) -> Result<(Replayed, Vec<u64>)> {
    let start = Start { sequence: from, is_used: from > 1 };
    let mut sequences = Vec::new();
    let replayed = replay(disk, start, mode, &mut |sequence, at, entry| {
        let Entry::Transaction(transaction) = entry else { panic!("no node wrote here") };
        assert_eq!(at, stamp(sequence));
        let len = transaction.blobs[0].operations[0].payload().unwrap().len();
        assert_eq!(transaction, sized(sequence, len as usize));
        sequences.push(sequence);
        Ok(())
    })?;
    assert!(sequences.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{sequences:?}");
    Ok((replayed, sequences))
}

fn reopen(disk: &SimulatedDisk, from: u64) -> (Log, Replayed, Vec<u64>) {
    reopen_as(OPTIONS, disk, from)
}

fn reopen_as(options: LogOptions, disk: &SimulatedDisk, from: u64) -> (Log, Replayed, Vec<u64>) {
    let (replayed, sequences) = read(disk, from, ReplayMode::Cut).unwrap();
    let log = Log::open(Arc::new(disk.clone()), options, &replayed).unwrap();
    (log, replayed, sequences)
}

fn open(disk: &SimulatedDisk) -> Log {
    reopen(disk, 1).0
}

fn segments(disk: &SimulatedDisk) -> Vec<String> {
    disk.names().into_iter().filter(|name| name.ends_with(".log")).collect()
}

fn all(last: u64) -> Vec<u64> {
    (1..=last).collect()
}

fn corrupt(disk: &SimulatedDisk, from: u64) -> String {
    let error = read(disk, from, ReplayMode::ReadOnly).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    error.message().to_owned()
}

/// A change of these sums is a change of the format: a new version, and its page.
#[test]
fn the_bytes_are_those_of_format_1() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    commit(&mut log, 3);
    log.seal().unwrap();
    let sums = ["log/0000000000000001.log", "log/SYNCED"].map(|name| {
        let content = disk.content(name);
        (content.len(), crc32c::crc32c(&content))
    });
    assert_eq!(sums, [(300, 577_023_247), (1024, 3_446_763_919)]);
}

#[test]
fn records_come_back_in_order_over_many_segments_and_openings() {
    let disk = SimulatedDisk::new();
    let mut last = 0;
    for _ in 0..3 {
        let (mut log, replayed, sequences) = reopen(&disk, 1);
        assert_eq!(sequences, all(last));
        assert!(replayed.is_clean && replayed.torn.is_none());
        commit(&mut log, 25);
        last += 25;
        assert_eq!(log.synced_to(), last);
        log.seal().unwrap();
    }
    assert!(segments(&disk).len() >= 6);
    assert_eq!(reopen(&disk, 1).1.next_sequence, 76);
    assert_eq!(reopen(&disk, 40).2, (40..=75).collect::<Vec<_>>());
}

#[test]
fn what_was_written_survives_the_death_of_the_process_and_is_synced_by_the_next() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    append_some(&mut log, 10);
    log.take_pending().write().unwrap();
    append(&mut log).unwrap();
    let killed = disk.copy();
    let (_log, replayed, sequences) = reopen(&killed, 1);
    assert_eq!(sequences, all(10));
    assert!(!replayed.is_clean && replayed.torn.is_none());
    for seed in 0..20 {
        assert_eq!(read(&killed.crash(seed), 1, ReplayMode::ReadOnly).unwrap().1, all(10));
    }
}

#[test]
fn a_record_larger_than_a_segment_gets_one_of_its_own() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    commit(&mut log, 1);
    log.append(&encode(&sized(2, 5_000)), stamp(2)).unwrap();
    commit(&mut log, 1);
    drop(log);
    assert_eq!(segments(&disk).len(), 3);
    assert_eq!(reopen(&disk, 1).2, all(3));
}

#[test]
fn a_transaction_beyond_the_limits_is_refused() {
    let mut record = EncodedRecord::new();
    let mut large = numbered(1);
    large.blobs[0].operations = vec![Operation::Create; 65_537];
    let error = record.encode(&large, |_| true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(record.is_empty());
}

/// The removal of its name is not durable yet when the power goes, but the records that follow are.
#[test]
fn what_a_crash_leaves_of_a_segment_that_was_refused_says_nothing() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    commit(&mut log, 3);
    disk.fail(FaultyOperation::Allocate, 0, Fault::NoSpace);
    let large = encode(&sized(4, 5_000));
    let error = log.append(&large, stamp(4)).unwrap_err();
    assert!(error.message().contains("disk full"), "{error}");
    commit(&mut log, 4);
    let left = segment::name(4);
    let crashes: Vec<SimulatedDisk> = (0..40).map(|seed| disk.crash(seed)).collect();
    assert!(crashes.iter().any(|disk| disk.names().contains(&left)), "the name came back");
    for crashed in crashes {
        // From a record before the name, and from one behind it.
        assert_eq!(read(&crashed, 6, ReplayMode::ReadOnly).unwrap().1, [6, 7]);
        let (mut log, replayed, sequences) = reopen(&crashed, 1);
        assert_eq!((sequences, replayed.torn), (all(7), None));
        assert!(!crashed.names().contains(&left));
        commit(&mut log, 30);
        assert_eq!(reopen(&crashed, 1).2, all(37));
    }
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
fn a_sync_vouches_only_for_what_its_caller_had_made_ready() {
    let disk = SimulatedDisk::new();
    let (mut log, _, _) = reopen(&disk, 1);
    append_some(&mut log, 2);
    let ready = log.take_pending();
    ready.write().unwrap();
    append_some(&mut log, 1);
    let behind = log.take_pending();
    behind.write().unwrap();
    ready.sync().unwrap();
    assert_eq!(log.synced_to(), 2, "the extents of record 3 may not be durable");
    behind.sync().unwrap();
    assert_eq!(log.synced_to(), 3);
}

#[test]
fn after_a_failed_write_or_sync_nothing_is_taken_until_reopened() {
    for operation in [FaultyOperation::Write, FaultyOperation::Sync, FaultyOperation::SyncFolder] {
        let disk = SimulatedDisk::new();
        let mut log = open(&disk);
        append(&mut log).unwrap();
        disk.fail(operation, 0, Fault::Broken);
        let pending = log.take_pending();
        let error = pending.write().and_then(|()| pending.sync()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{operation:?}");
        for error in [append(&mut log).map(drop), pending.write(), pending.sync(), log.seal()] {
            assert!(error.unwrap_err().message().contains("open the store again"));
        }
        let (mut log, _, sequences) = reopen(&disk.crash(1), 1);
        assert!(sequences.is_empty() || sequences == [1], "{operation:?} {sequences:?}");
        commit(&mut log, 1);
    }
}

#[test]
fn whole_segments_below_a_sequence_are_removed_but_never_the_current_one() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    commit(&mut log, 60);
    let (before, bytes) = (segments(&disk).len(), log.bytes());
    log.truncate_before(30).run().unwrap();
    let after = segments(&disk).len();
    assert!(after < before && log.bytes() < bytes);
    assert_eq!(read(&disk, 30, ReplayMode::ReadOnly).unwrap().1, (30..=60).collect::<Vec<_>>());
    assert!(corrupt(&disk, 1).contains("sequence 1 "));
    log.truncate_before(1_000).run().unwrap();
    assert_eq!(segments(&disk).len(), 1);
    assert!(log.truncate_before(1_000).is_empty());
    log.seal().unwrap();
    // After an opening there is no current segment yet.
    let mut log = reopen(&disk, 61).0;
    log.truncate_before(61).run().unwrap();
    assert_eq!(segments(&disk), [""; 0]);
    log.seal().unwrap();
    let (mut log, _, sequences) = reopen(&disk, 61);
    assert_eq!((sequences.len(), append(&mut log).unwrap()), (0, 61));
}

#[test]
fn a_read_only_replay_changes_nothing() {
    let disk = SimulatedDisk::new();
    commit(&mut open(&disk), 20);
    disk.damage("log/0000000000000001.log", |bytes| bytes.truncate(900));
    let operations = disk.operations();
    let _ = read(&disk, 1, ReplayMode::ReadOnly);
    assert_eq!(disk.operations(), operations);
}

#[test]
fn the_next_owner_of_an_unsynced_torn_tail_goes_on_in_a_new_segment() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    commit(&mut log, 2);
    append_some(&mut log, 3);
    log.take_pending().write().unwrap();
    let record = encode(&numbered(3)).stored_len();
    let third = 24 + 2 * record;
    // The third is lost, the fourth and fifth arrived: nobody was told that they are there.
    disk.damage("log/0000000000000001.log", |bytes| bytes[third..third + record].fill(0));
    let (mut log, replayed, sequences) = reopen(&disk, 1);
    assert_eq!(sequences, all(2));
    let torn = replayed.torn.unwrap();
    assert_eq!((torn.offset, torn.sequence, torn.records_lost), (third as u64, 3, 2));
    // But for the zeros that a record may end with.
    assert!((2 * record + 1..=3 * record).contains(&(torn.bytes as usize)), "{torn:?}");
    commit(&mut log, 4);
    drop(log);
    let (_, replayed, sequences) = reopen(&disk, 1);
    assert_eq!((sequences, replayed.torn), (all(6), None));
    assert_eq!(disk.content("log/0000000000000001.log").len(), third);
}

/// A base may be ahead of a log whose end was not synced: what it asks for comes later.
#[test]
fn a_log_that_ends_before_what_is_asked_for_goes_on_from_there() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk);
    commit(&mut log, 3);
    append_some(&mut log, 4);
    log.take_pending().write().unwrap();
    let lost = 24 + 4 * encode(&numbered(1)).stored_len();
    disk.damage("log/0000000000000001.log", |bytes| bytes[lost..].fill(0));
    for _ in 0..2 {
        let (log, replayed, sequences) = reopen(&disk, 8);
        assert_eq!((replayed.next_sequence, sequences.len()), (8, 0));
        log.seal().unwrap();
    }
    let mut log = reopen(&disk, 8).0;
    commit(&mut log, 2);
    assert_eq!(reopen(&disk, 8).2, [8, 9]);
}

#[test]
fn segments_of_a_later_format_are_refused_by_name() {
    let disk = SimulatedDisk::new();
    commit(&mut open(&disk), 1);
    disk.damage("log/0000000000000001.log", |bytes| {
        bytes[8] = 2;
        let checksum = crc32c::crc32c(&bytes[..20]);
        bytes[20..24].copy_from_slice(&checksum.to_le_bytes());
    });
    let error = read(&disk, 1, ReplayMode::Cut).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("later release"), "{error}");
}

#[test]
fn synced_records_survive_a_loss_of_power_after_any_operation_twice() {
    for options in [OPTIONS, DIRECT] {
        survives_a_loss_of_power_after_any_operation_twice(&options);
    }
}

fn survives_a_loss_of_power_after_any_operation_twice(options: &LogOptions) {
    let disk = SimulatedDisk::recorded();
    let mut log = reopen_as(options.clone(), &disk, 1).0;
    let mut synced = vec![(disk.operations(), 0)];
    for round in 0..8 {
        append_some(&mut log, 4);
        let pending = log.take_pending();
        if round < 5 {
            prepare(&mut log);
        }
        pending.write().unwrap();
        if round % 3 != 0 {
            pending.sync().unwrap();
            synced.push((disk.operations(), log.synced_to()));
        }
        if round == 4 {
            log.marker().mark().unwrap();
        }
    }
    log.seal().unwrap();
    synced.push((disk.operations(), 32));
    for count in 0..=disk.operations() {
        let lowest = synced.iter().filter(|(at, _)| *at <= count).map(|(_, last)| *last).max();
        for seed in 0..12 {
            let what = format!("crash after {count}, seed {seed}");
            let left = disk.crash_after(count, seed);
            let (mut log, _, sequences) = reopen_as(options.clone(), &left, 1);
            let last = sequences.len() as u64;
            assert_eq!(sequences, all(last), "{what}");
            assert!(last >= lowest.unwrap_or(0), "{what}: {last} of {lowest:?}");
            // Again, while it goes on.
            commit(&mut log, 3);
            append_some(&mut log, 5);
            log.take_pending().write().unwrap();
            let again = reopen(&left.crash(seed + 1), 1).2;
            assert!(again.len() as u64 >= last + 3 && again == all(again.len() as u64), "{what}");
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Append,
    AppendLarge,
    Prepare,
    Write,
    Sync,
    Mark,
    Truncate,
    Seal,
    Kill,
    LosePower(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Append),
        1 => Just(Step::AppendLarge),
        2 => Just(Step::Prepare),
        4 => Just(Step::Write),
        3 => Just(Step::Sync),
        1 => Just(Step::Mark),
        1 => Just(Step::Truncate),
        1 => Just(Step::Seal),
        1 => Just(Step::Kill),
        1 => any::<u64>().prop_map(Step::LosePower),
    ]
}

/// What a log must give back.
#[derive(Default)]
struct Model {
    /// Where replays begin.
    from: u64,
    appended: u64,
    written: u64,
    synced: u64,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tyr_chance::part(200)))]

    #[test]
    fn any_life_of_a_log_keeps_what_was_synced(
        is_direct: bool,
        steps in prop::collection::vec(any_step(), 1..120),
    ) {
        let options = if is_direct { DIRECT } else { OPTIONS };
        let mut disk = SimulatedDisk::new();
        let mut log = reopen_as(options.clone(), &disk, 1).0;
        let mut model = Model { from: 1, ..Model::default() };
        for step in steps {
            let (left, lowest) = match step {
                Step::Append | Step::AppendLarge => {
                    let sequence = log.next_sequence();
                    let len = if matches!(step, Step::Append) { 20 } else { 1_500 };
                    log.append(&encode(&sized(sequence, len)), stamp(sequence)).unwrap();
                    model.appended = sequence;
                    continue;
                }
                Step::Prepare => {
                    prepare(&mut log);
                    continue;
                }
                Step::Write | Step::Sync => {
                    let pending = log.take_pending();
                    pending.write().unwrap();
                    model.written = model.appended;
                    if matches!(step, Step::Sync) {
                        pending.sync().unwrap();
                        model.synced = model.written;
                    }
                    log.give_back(pending);
                    continue;
                }
                Step::Mark => {
                    let pending = log.take_pending();
                    pending.write().unwrap();
                    model.written = model.appended;
                    log.marker().mark().unwrap();
                    continue;
                }
                Step::Truncate => {
                    model.from = model.synced.max(1);
                    log.truncate_before(model.from).run().unwrap();
                    continue;
                }
                Step::Seal => {
                    log.seal().unwrap();
                    (disk.copy(), model.appended)
                }
                Step::Kill => (disk.copy(), model.written),
                Step::LosePower(seed) => (disk.crash(seed), model.synced),
            };
            let (next, _, sequences) = reopen_as(options.clone(), &left, model.from);
            let last = sequences.last().copied().unwrap_or(model.from - 1);
            prop_assert!(lowest <= last && last <= model.appended, "{} {}", lowest, last);
            prop_assert_eq!(next.next_sequence(), last + 1);
            (disk, log) = (left, next);
            model = Model { appended: last, written: last, synced: last, ..model };
        }
    }
}
