//! The files of a monitor: Raft's own suite, loss of power at every point, and damage.

use std::sync::Arc;

use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::testing::{StoreBuilder, Suite, blank_ent, log_id};
use openraft::{EntryPayload, RaftLogReader, RaftSnapshotBuilder, Vote};
use tyr_store::disk::simulated::{Fault, FaultyOperation};
use tyr_store::disk::{Disk, RealDisk, SimulatedDisk};
use tyr_types::ErrorKind;

use super::journal::{Journal, SEGMENT_LEN};
use super::log::LogStore;
use super::machine::Machine;
use super::types::{Command, Entry, LogId, StorageError, TypeConfig};
use tyr_metadata::{Actor, Path, Transaction};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn journal(disk: &SimulatedDisk) -> tyr_types::Result<(Journal, Vec<Vec<u8>>)> {
    let (journal, records) = Journal::open(Arc::new(disk.clone()), 0)?;
    Ok((journal, records.into_iter().map(|it| it.payload).collect()))
}

fn payload(number: u64) -> Vec<u8> {
    (0..number % 50).map(|at| (number + at) as u8).collect()
}

struct OnDisk;

impl StoreBuilder<TypeConfig, LogStore, Machine, tempfile::TempDir> for OnDisk {
    async fn build(&self) -> Result<(tempfile::TempDir, LogStore, Machine), StorageError> {
        let folder = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(folder.path()).unwrap());
        let log = LogStore::open(Arc::clone(&disk)).unwrap();
        Ok((folder, log, Machine::open(disk).unwrap()))
    }
}

#[test]
fn raft_finds_its_storage_as_it_must_be() {
    Suite::test_all(OnDisk).unwrap();
}

#[test]
fn what_was_appended_is_there_again() {
    let disk = SimulatedDisk::new();
    let (mut open, found) = journal(&disk).unwrap();
    assert!(found.is_empty());
    open.append(&[payload(1), payload(2)]).unwrap();
    drop(open);
    let (mut open, found) = journal(&disk).unwrap();
    assert_eq!(found, [payload(1), payload(2)]);
    open.append(&[payload(3)]).unwrap();
    assert_eq!(journal(&disk).unwrap().1, [payload(1), payload(2), payload(3)]);
}

#[test]
fn a_loss_of_power_at_any_point_takes_no_acknowledged_record() {
    for seed in 0..8 {
        let disk = SimulatedDisk::recorded();
        let mut acknowledged = vec![(disk.operations(), 0)];
        let (mut open, _) = journal(&disk).unwrap();
        for step in 0..12_u64 {
            let records: Vec<_> = (step * 3..step * 3 + 3).map(payload).collect();
            open.append(&records).unwrap();
            acknowledged.push((disk.operations(), step * 3 + 3));
        }
        for count in 0..=disk.operations() {
            let left = disk.crash_after(count, seed);
            let (mut open, found) = journal(&left).unwrap();
            let kept = acknowledged.iter().filter(|it| it.0 <= count).map(|it| it.1).max();
            assert!(found.len() as u64 >= kept.unwrap(), "seed {seed}, after {count}");
            let expected: Vec<_> = (0..found.len() as u64).map(payload).collect();
            assert_eq!(found, expected, "seed {seed}, after {count}");
            // And it goes on from there.
            open.append(&[payload(found.len() as u64)]).unwrap();
            assert_eq!(journal(&left.crash(seed)).unwrap().1.len(), found.len() + 1);
        }
    }
}

#[test]
fn any_flipped_byte_of_a_record_that_a_later_one_knew_durable_is_reported() {
    let disk = SimulatedDisk::new();
    let (mut open, _) = journal(&disk).unwrap();
    for number in 10..14 {
        open.append(&[payload(number)]).unwrap();
    }
    let name = "raft/00000001.journal";
    let len = disk.content(name).len();
    let last = 24 + payload(13).len();
    for at in 0..len - last {
        let other = disk.copy();
        other.damage(name, |bytes| bytes[at] ^= 0x40);
        let error = journal(&other).err().unwrap_or_else(|| panic!("byte {at} is not noticed"));
        assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}: {error}");
    }
    // The last one might have been torn; that it was durable stands elsewhere.
    disk.damage(name, |bytes| bytes[len - 1] ^= 0x40);
    assert_eq!(journal(&disk).unwrap().1.len(), 3);
    let known = Journal::open(Arc::new(disk.clone()), 4).err().unwrap();
    assert_eq!(known.kind(), ErrorKind::Corrupt);
}

#[test]
fn a_missing_segment_is_damage_and_old_ones_may_go() {
    let disk = SimulatedDisk::new();
    let (mut open, _) = journal(&disk).unwrap();
    for _ in 0..8 {
        open.append(&[vec![7; SEGMENT_LEN as usize / 3]]).unwrap();
    }
    assert_eq!(open.segment(), 3);
    let other = disk.copy();
    other.remove("raft/00000002.journal").unwrap();
    assert_eq!(journal(&other).err().unwrap().kind(), ErrorKind::Corrupt);
    open.remove_before(9).unwrap();
    assert_eq!(disk.list("raft").unwrap(), ["00000003.journal"]);
    assert_eq!(journal(&disk).unwrap().1.len(), 2);
}

#[test]
fn after_a_failed_sync_nothing_is_written_until_it_is_opened_again() {
    let disk = SimulatedDisk::new();
    let (mut open, _) = journal(&disk).unwrap();
    open.append(&[payload(1)]).unwrap();
    disk.fail(FaultyOperation::Sync, 0, Fault::Broken);
    assert!(open.append(&[payload(2)]).is_err());
    let error = open.append(&[payload(3)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let found = journal(&disk.crash(1)).unwrap().1;
    assert!(found == [payload(1)] || found == [payload(1), payload(2)], "{found:?}");
}

fn entry(index: u64) -> Entry {
    let transaction = Transaction::new().put(Path::new("k").unwrap(), payload(index));
    let payload = EntryPayload::Normal(Command { actor: Actor::System, transaction });
    Entry { log_id: log_id(1, 1, index), payload }
}

async fn indices(log: &mut LogStore) -> Vec<u64> {
    let entries = log.try_get_log_entries(..).await.unwrap();
    entries.into_iter().map(|it| it.log_id.index).collect()
}

#[test]
fn votes_entries_truncations_and_purges_survive_every_loss_of_power() {
    runtime().block_on(async {
        let disk = SimulatedDisk::recorded();
        let mut log = LogStore::open(Arc::new(disk.clone())).unwrap();
        // What must be there once so many operations were done: the vote, the entries.
        let mut steps: Vec<(u64, Option<Vote<u64>>, Vec<u64>)> = vec![(0, None, vec![])];
        let mut vote = None;
        for step in 0..6_u64 {
            match step {
                0 | 3 => {
                    vote = Some(Vote::new(step + 1, 2));
                    log.save_vote(vote.as_ref().unwrap()).await.unwrap();
                }
                1 => log.blocking_append((0..9).map(entry)).await.unwrap(),
                2 => log.truncate(log_id(1, 1, 6)).await.unwrap(),
                4 => log.blocking_append((6..12).map(entry)).await.unwrap(),
                _ => log.purge(log_id(1, 1, 7)).await.unwrap(),
            }
            steps.push((disk.operations(), vote, indices(&mut log).await));
        }
        for count in 0..=disk.operations() {
            let mut left = LogStore::open(Arc::new(disk.crash_after(count, count))).unwrap();
            let at = steps.iter().rposition(|step| step.0 <= count).unwrap();
            let vote = left.read_vote().await.unwrap();
            let found = indices(&mut left).await;
            let next = (at + 1).min(steps.len() - 1);
            assert!(vote == steps[at].1 || vote == steps[next].1, "after {count}: {vote:?}");
            let is_between = found.starts_with(&steps[at].2) && steps[next].2.starts_with(&found);
            let is_one = found == steps[at].2 || found == steps[next].2;
            assert!(is_one || is_between, "after {count}: {found:?}, {:?}", steps[at].2);
        }
    });
}

#[test]
fn a_journal_without_its_vote_and_one_cut_below_what_was_noted_are_damage() {
    runtime().block_on(async {
        let disk = SimulatedDisk::new();
        let mut log = LogStore::open(Arc::new(disk.clone())).unwrap();
        log.blocking_append((0..3).map(entry)).await.unwrap();
        log.save_vote(&Vote::new(1, 1)).await.unwrap();
        let cut = disk.copy();
        cut.damage("raft/00000001.journal", |bytes| bytes.truncate(bytes.len() - 9));
        let error = LogStore::open(Arc::new(cut)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        disk.remove("raft/BALLOT").unwrap();
        let error = LogStore::open(Arc::new(disk)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    });
}

#[test]
fn a_snapshot_is_whole_or_the_former_one_is_after_every_loss_of_power() {
    runtime().block_on(async {
        let disk = SimulatedDisk::recorded();
        let mut machine = Machine::open(Arc::new(disk.clone())).unwrap();
        let mut taken = vec![(0, 0)];
        for round in 0..3_u64 {
            machine.apply((round * 4..round * 4 + 4).map(entry)).await.unwrap();
            machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
            taken.push((disk.operations(), round * 4 + 4));
        }
        for count in 0..=disk.operations() {
            let mut left = Machine::open(Arc::new(disk.crash_after(count, count))).unwrap();
            let (last, _) = left.applied_state().await.unwrap();
            let entries = last.map_or(0, |it: LogId| it.index + 1);
            let at = taken.iter().rposition(|it| it.0 <= count).unwrap();
            let next = taken[(at + 1).min(3)].1;
            assert!(entries == taken[at].1 || entries == next, "after {count}: {entries}");
            assert_eq!(left.committed().read().revision(), entries);
        }
        let name = disk.list("raft").unwrap().into_iter().find(|it| it.ends_with("snapshot"));
        disk.damage(&format!("raft/{}", name.unwrap()), |bytes| bytes[40] ^= 1);
        let error = Machine::open(Arc::new(disk)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    });
}

#[test]
fn a_batch_for_another_monitor_is_bounded_by_bytes_and_never_empty() {
    runtime().block_on(async {
        let mut log = LogStore::open(Arc::new(SimulatedDisk::new())).unwrap();
        let large = |index| {
            let value = vec![1; 3 << 20];
            let transaction = Transaction::new().put(Path::new("k").unwrap(), value);
            let payload = EntryPayload::Normal(Command { actor: Actor::System, transaction });
            Entry { log_id: log_id(1, 1, index), payload }
        };
        let entries = std::iter::once(blank_ent(1, 1, 0)).chain((1..4).map(large));
        log.blocking_append(entries).await.unwrap();
        assert_eq!(log.limited_get_log_entries(0, 4).await.unwrap().len(), 2);
        assert_eq!(log.limited_get_log_entries(2, 4).await.unwrap().len(), 1);
        assert!(log.bytes() > 9 << 20);
    });
}
