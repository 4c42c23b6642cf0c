//! What the simulated disk promises to the tests that rely on it.

use super::*;

fn written(disk: &SimulatedDisk, name: &str) -> Arc<dyn DiskFile> {
    let file = disk.open(name, OpenMode::CreateOrOpen).unwrap();
    file.write_at(&[7; 2048], 0).unwrap();
    file
}

#[test]
fn synced_bytes_under_synced_names_survive_every_crash() {
    let disk = SimulatedDisk::new();
    written(&disk, "a").sync().unwrap();
    disk.sync_folder("").unwrap();
    for seed in 0..200 {
        assert_eq!(disk.crash(seed).content("a"), [7; 2048], "seed {seed}");
    }
}

#[test]
fn unsynced_bytes_survive_sometimes_whole_sometimes_torn_sometimes_not() {
    let disk = SimulatedDisk::new();
    let file = disk.open("a", OpenMode::CreateNew).unwrap();
    file.set_len(2048).unwrap();
    file.sync().unwrap();
    disk.sync_folder("").unwrap();
    written(&disk, "a");
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let left = disk.crash(seed).content("a");
        for sector in left.chunks(512) {
            assert!(sector == [0; 512] || sector == [7; 512], "seed {seed}");
        }
        seen.insert(left.iter().filter(|byte| **byte == 7).count());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 512, 1024, 1536, 2048]);
}

#[test]
fn an_unsynced_name_may_be_lost_with_synced_bytes() {
    let disk = SimulatedDisk::new();
    written(&disk, "a").sync().unwrap();
    let lost = (0..100).filter(|seed| disk.crash(*seed).names().is_empty()).count();
    assert!((1..100).contains(&lost), "lost {lost} of 100 times");
}

#[test]
fn a_removed_name_may_come_back_until_its_folder_is_synced() {
    let disk = SimulatedDisk::new();
    disk.create_folder("f").unwrap();
    disk.sync_folder("").unwrap();
    written(&disk, "f/a").sync().unwrap();
    disk.sync_folder("f").unwrap();
    disk.remove("f/a").unwrap();
    let back = (0..100).filter(|seed| disk.crash(*seed).names() == ["f/a"]).count();
    assert!((1..100).contains(&back), "back {back} of 100 times");
    disk.sync_folder("f").unwrap();
    assert!((0..100).all(|seed| disk.crash(seed).names().is_empty()));
}

#[test]
fn a_recorded_run_can_be_cut_after_any_operation() {
    let disk = SimulatedDisk::recorded();
    written(&disk, "a").sync().unwrap();
    disk.sync_folder("").unwrap();
    assert_eq!(disk.operations(), 4);
    assert_eq!(disk.crash_after(0, 1).names(), [""; 0]);
    assert_eq!(disk.crash_after(4, 1).content("a"), [7; 2048]);
}

#[test]
fn a_failed_sync_loses_what_still_reads_back() {
    let disk = SimulatedDisk::new();
    let file = written(&disk, "a");
    disk.sync_folder("").unwrap();
    disk.fail(FaultyOperation::Sync, 0, Fault::Broken);
    assert!(file.sync().is_err());
    file.sync().unwrap();
    assert_eq!(disk.content("a"), [7; 2048]);
    assert!((0..50).all(|seed| disk.crash(seed).content("a").is_empty()));
}

#[test]
fn a_full_disk_refuses_new_space_and_takes_what_was_reserved() {
    let disk = SimulatedDisk::new();
    let reserved = disk.open("reserved", OpenMode::CreateNew).unwrap();
    reserved.allocate(0, 8192).unwrap();
    disk.set_capacity(Some(8192));
    let other = disk.open("other", OpenMode::CreateNew).unwrap();
    let error = other.write_at(&[1], 0).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    reserved.write_at(&[1; 8192], 0).unwrap();
    reserved.punch(0, 4096).unwrap();
    other.write_at(&[1], 0).unwrap();
    assert_eq!(disk.disk_bytes(), 8192);
}

#[test]
fn the_nth_operation_of_a_kind_fails() {
    let disk = SimulatedDisk::new();
    let file = disk.open("a", OpenMode::CreateNew).unwrap();
    disk.fail(FaultyOperation::Write, 1, Fault::NoSpace);
    let results = [1, 2, 3].map(|byte| file.write_at(&[byte], u64::from(byte)).is_ok());
    assert_eq!(results, [true, false, true]);
}
