//! Extents come back as they were written, or not at all.

use tyr_types::ErrorKind;

use super::*;
use crate::disk::SimulatedDisk;
use crate::disk::simulated::chance::Chance;
use crate::disk::simulated::{Fault, FaultyOperation};

const SMALL: ExtentOptions = ExtentOptions { file_len_max: 64 << 10 };

fn open(disk: &SimulatedDisk) -> Extents {
    Extents::open(Arc::new(disk.clone()), SMALL).unwrap()
}

/// Bytes that lz4 makes smaller, different for every seed.
fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut chance = Chance::new(seed);
    let mut bytes = Vec::new();
    while bytes.len() < len {
        let run = 1 + chance.below(40) as usize;
        bytes.resize((bytes.len() + run).min(len), chance.any() as u8);
    }
    bytes
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut chance = Chance::new(seed);
    (0..len).map(|_| chance.any() as u8).collect()
}

fn read(extents: &Extents, extent: &ExtentRef, skip: usize, len: usize) -> Result<Vec<u8>> {
    let mut out = vec![0xAA; len];
    extents.read(extent, skip as u32, &mut out).map(|()| out)
}

fn name(number: u32) -> String {
    format!("extents/{number:08x}.ext")
}

/// A change of this sum is a change of the format: a new version, and its page.
#[test]
fn the_bytes_are_those_of_format_1() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    extents.write(&noise(1, 5_000), false).unwrap();
    let content = disk.content(&name(1));
    assert_eq!((content.len() / 4096, crc32c::crc32c(&content)), (3, 1_685_369_217));
}

#[test]
fn payloads_of_any_length_come_back() {
    let extents = open(&SimulatedDisk::new());
    for len in [1, 4091, 4092, 4093, 8184, 65_535, 65_536, 65_537, 131_072, 150_000, 4 << 20] {
        for is_compressed in [false, true] {
            for data in [text(len as u64, len), noise(len as u64, len)] {
                let extent = extents.write(&data, is_compressed).unwrap();
                assert_eq!(extent.len as usize, len);
                assert_eq!(read(&extents, &extent, 0, len).unwrap(), data, "{extent:?}");
                extents.verify(&extent).unwrap();
            }
        }
    }
}

#[test]
fn any_part_of_a_payload_reads_alone() {
    let extents = open(&SimulatedDisk::new());
    for (data, is_compressed) in [(noise(1, 300_000), false), (text(2, 300_000), true)] {
        let extent = extents.write(&data, is_compressed).unwrap();
        assert_eq!(extent.compressed_len > 0, is_compressed);
        let mut chance = Chance::new(3);
        for _ in 0..300 {
            let skip = chance.below(300_000) as usize;
            let len_max = if chance.one_in(2) { 300_000 - skip } else { 800.min(300_000 - skip) };
            let len = chance.below(len_max as u64 + 1) as usize;
            let part = read(&extents, &extent, skip, len).unwrap();
            assert_eq!(part, &data[skip..skip + len], "skip {skip} len {len}");
        }
    }
}

#[test]
fn what_compresses_takes_less_space_and_noise_is_stored_as_it_is() {
    let extents = open(&SimulatedDisk::new());
    let small = extents.write(&text(1, 1 << 20), true).unwrap();
    assert!(Extents::stored_len(&small) < 1 << 19, "{small:?}");
    let large = extents.write(&noise(1, 1 << 20), true).unwrap();
    assert_eq!(large.compressed_len, 0);
    assert_eq!(Extents::stored_len(&large), 257 * 4096);
}

#[test]
fn empty_and_oversize_payloads_are_refused_with_the_range() {
    let extents = open(&SimulatedDisk::new());
    for data in [vec![], vec![0; (4 << 20) + 1]] {
        let error = extents.write(&data, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("1 to 4194304"), "{error}");
    }
}

#[test]
fn impossible_references_are_errors() {
    let extents = open(&SimulatedDisk::new());
    let good = extents.write(&noise(1, 10_000), false).unwrap();
    let bad = [
        ExtentRef { position: 0, ..good },
        ExtentRef { position: 4097, ..good },
        ExtentRef { position: u64::MAX - 4095, ..good },
        ExtentRef { position: 1 << 40, ..good },
        ExtentRef { position: good.position + 4096, ..good },
        ExtentRef { file: 77, ..good },
        ExtentRef { len: 0, ..good },
        ExtentRef { len: u32::MAX, ..good },
        ExtentRef { len: 20_000, ..good },
        ExtentRef { compressed_len: 1, ..good },
        ExtentRef { compressed_len: 9_000, ..good },
        ExtentRef { compressed_len: u32::MAX, ..good },
    ];
    for extent in bad {
        let error = extents.verify(&extent).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{extent:?}");
    }
    assert_eq!(read(&extents, &good, 9_999, 2).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn every_flipped_or_zeroed_byte_is_noticed_and_named() {
    for (data, is_compressed) in [(noise(1, 9_000), false), (text(2, 90_000), true)] {
        let disk = SimulatedDisk::new();
        let extents = open(&disk);
        let extent = extents.write(&data, is_compressed).unwrap();
        let after = extents.write(&noise(9, 100), false).unwrap();
        let end = extent.position + Extents::stored_len(&extent);
        for at in (extent.position..end).step_by(7) {
            let before = disk.content(&name(1))[at as usize];
            for byte in [before ^ 1, before ^ 0x80, 0] {
                disk.damage(&name(1), |bytes| bytes[at as usize] = byte);
                match extents.verify(&extent) {
                    Ok(()) => assert_eq!(byte, before, "byte {at}"),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corrupt);
                        assert!(error.message().contains("extents/00000001.ext"), "{error}");
                        assert!(error.message().contains(&extent.position.to_string()), "{error}");
                    }
                }
                extents.verify(&after).unwrap();
            }
            disk.damage(&name(1), |bytes| bytes[at as usize] = before);
        }
        extents.verify(&extent).unwrap();
    }
}

#[test]
fn only_the_damaged_part_is_unreadable() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    let data = noise(1, 40_920);
    let extent = extents.write(&data, false).unwrap();
    disk.damage(&name(1), |bytes| bytes[4096 * 4 + 100] ^= 4);
    assert_eq!(read(&extents, &extent, 0, 3 * 4092).unwrap(), data[..3 * 4092]);
    assert!(read(&extents, &extent, 3 * 4092, 1).is_err());
    assert_eq!(read(&extents, &extent, 4 * 4092, 6 * 4092).unwrap(), data[4 * 4092..]);
}

#[test]
fn frames_at_the_wrong_place_or_in_the_wrong_file_are_noticed() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    let one = extents.write(&noise(1, 4092), false).unwrap();
    let two = extents.write(&noise(2, 4092), false).unwrap();
    let content = disk.content(&name(1));
    disk.damage(&name(1), |bytes| bytes.copy_within(8192..12_288, 4096));
    assert!(extents.verify(&one).is_err());
    extents.verify(&two).unwrap();
    let extents = open(&disk);
    let other = extents.write(&noise(3, 8184), false).unwrap();
    assert_eq!(other.file, 2);
    disk.damage(&name(2), |bytes| bytes.copy_from_slice(&content));
    assert!(extents.verify(&other).is_err());
}

#[test]
fn a_cut_file_is_an_error_and_what_lies_before_the_cut_stays_readable() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    let one = extents.write(&noise(1, 5_000), false).unwrap();
    let two = extents.write(&noise(2, 5_000), false).unwrap();
    let end = two.position + Extents::stored_len(&two);
    for len in (two.position..end).rev().step_by(511) {
        disk.damage(&name(1), |bytes| bytes.truncate(len as usize));
        let error = extents.verify(&two).unwrap_err();
        assert!(error.message().contains("the file ends at"), "{error}");
        extents.verify(&one).unwrap();
    }
}

#[test]
fn a_damaged_header_is_reported_and_extents_stay_readable() {
    let disk = SimulatedDisk::new();
    let extent = open(&disk).write(&noise(1, 100), false).unwrap();
    open(&disk).verify_header(1).unwrap();
    disk.damage(&name(1), |bytes| bytes[10] ^= 1);
    let extents = open(&disk);
    let error = extents.verify_header(1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    extents.verify(&extent).unwrap();
}

#[test]
fn a_file_of_a_later_format_is_refused_by_name() {
    let disk = SimulatedDisk::new();
    let extent = open(&disk).write(&noise(1, 100), false).unwrap();
    disk.damage(&name(1), |bytes| {
        let mut payload = bytes[4..17].to_vec();
        payload[8] = 2;
        frame::seal(&mut bytes[..4096], FramePlace { file: 1, frame: 0 }, &payload);
    });
    let error = open(&disk).verify(&extent).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("later release"), "{error}");
}

#[test]
fn a_freed_extent_takes_no_space_and_reads_as_a_hole() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    let one = extents.write(&noise(1, 20_000), false).unwrap();
    let two = extents.write(&noise(2, 20_000), false).unwrap();
    let before = disk.disk_bytes();
    extents.free(&[one]).unwrap();
    assert_eq!(before - disk.disk_bytes(), Extents::stored_len(&one));
    let error = extents.verify(&one).unwrap_err();
    assert!(error.message().contains("there is a hole"), "{error}");
    extents.verify(&two).unwrap();
}

#[test]
fn a_full_file_is_left_for_a_new_one_and_so_is_every_file_of_an_earlier_opening() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    let file = |extents: &Extents| extents.write(&noise(1, 30_000), false).unwrap().file;
    assert_eq!([file(&extents), file(&extents), file(&extents)], [1, 2, 3]);
    assert_eq!(file(&open(&disk)), 4);
    // Larger than a whole file: it gets one of its own.
    let extents = open(&disk);
    let big = extents.write(&noise(1, 1 << 20), false).unwrap();
    assert_eq!((big.file, file(&extents)), (5, 6));
    extents.verify(&big).unwrap();
}

#[test]
fn a_full_disk_refuses_a_write_and_takes_the_next_when_there_is_space() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    let one = extents.write(&noise(1, 20_000), false).unwrap();
    disk.set_capacity(Some(disk.disk_bytes() + 8192));
    let error = extents.write(&noise(2, 20_000), false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("disk full"), "{error}");
    extents.sync().unwrap();
    disk.set_capacity(None);
    let two = extents.write(&noise(2, 20_000), false).unwrap();
    for extent in [one, two] {
        extents.verify(&extent).unwrap();
    }
}

#[test]
fn what_a_failed_write_left_is_given_back() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    extents.write(&noise(1, 100), false).unwrap();
    let before = disk.disk_bytes();
    disk.fail(FaultyOperation::Write, 0, Fault::NoSpace);
    assert!(extents.write(&noise(2, 20_000), false).is_err());
    assert_eq!(disk.disk_bytes(), before);
}

#[test]
fn a_full_disk_refuses_also_a_new_file_and_takes_it_later() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    disk.set_capacity(Some(0));
    assert!(extents.write(&noise(1, 100), false).is_err());
    disk.set_capacity(None);
    let extent = extents.write(&noise(1, 100), false).unwrap();
    extents.verify(&extent).unwrap();
}

#[test]
fn after_a_failed_sync_nothing_is_written_until_reopened() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    let extent = extents.write(&noise(1, 100), false).unwrap();
    disk.fail(FaultyOperation::Sync, 0, Fault::Broken);
    for error in [extents.sync(), extents.sync(), extents.write(&[1], false).map(drop)] {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("open the store again"), "{error}");
    }
    extents.verify(&extent).unwrap();
    open(&disk).write(&[1], false).unwrap();
}

#[test]
fn synced_extents_survive_a_loss_of_power_after_any_operation() {
    let disk = SimulatedDisk::recorded();
    let extents = open(&disk);
    let mut synced = Vec::new();
    for round in 0..6 {
        let written = [1, 2].map(|part| {
            let data = text(round * 2 + part, 20_000);
            let extent = match round % 2 {
                0 => extents.write(&data, part == 1).unwrap(),
                _ => later(&extents, &data),
            };
            (extent, data)
        });
        extents.sync().unwrap();
        synced.push((disk.operations(), written));
    }
    for count in 0..=disk.operations() {
        for seed in 0..5 {
            let left = open(&disk.crash_after(count, seed));
            let survivors = synced.iter().filter(|(at, _)| *at <= count);
            for (extent, data) in survivors.flat_map(|(_, written)| written) {
                let back = read(&left, extent, 0, data.len());
                assert_eq!(back.unwrap(), *data, "crash after {count}, seed {seed}");
            }
            // And it goes on, in a file of its own.
            let after = left.write(&noise(1, 100), false).unwrap();
            left.verify(&after).unwrap();
        }
    }
}

fn later(extents: &Extents, data: &[u8]) -> ExtentRef {
    extents.write_later(data.to_vec().into()).unwrap()
}

#[test]
fn what_is_written_later_reads_back_before_and_after_in_one_write_for_neighbours() {
    let disk = SimulatedDisk::recorded();
    let extents = Extents::open(Arc::new(disk.clone()), ExtentOptions::default()).unwrap();
    let lens = [1, FRAME_PAYLOAD, FRAME_PAYLOAD + 1, 70_000, 1_000_000, 300_000, 9];
    let data: Vec<Vec<u8>> = (0..).zip(lens).map(|(seed, len)| noise(seed, len)).collect();
    let mut written: Vec<ExtentRef> = data[..4].iter().map(|data| later(&extents, data)).collect();
    // One that is written at once lies between them.
    let between = extents.write(&noise(90, 20_000), false).unwrap();
    written.extend(data[4..].iter().map(|data| later(&extents, data)));
    let check = |extents: &Extents| {
        extents.verify(&between).unwrap();
        for (extent, data) in written.iter().zip(&data) {
            let (from, to) = (data.len() / 3, data.len());
            assert_eq!(read(extents, extent, from, to - from).unwrap(), data[from..]);
            extents.verify(extent).unwrap();
        }
    };
    check(&extents);
    let before = disk.operations();
    extents.sync().unwrap();
    // Before the one between, after it in two because of its length; a sync, and one of the folder.
    assert_eq!(disk.operations() - before, 3 + 2);
    check(&extents);
    drop(extents);
    check(&open(&disk));
}

#[test]
fn a_full_disk_refuses_what_would_be_written_later() {
    let disk = SimulatedDisk::new();
    let extents = Extents::open(Arc::new(disk.clone()), ExtentOptions::default()).unwrap();
    let one = later(&extents, &noise(1, 100));
    let reserved = disk.disk_bytes();
    disk.set_capacity(Some(reserved));
    let two = later(&extents, &noise(2, 4 << 20));
    let three = later(&extents, &noise(3, 4 << 20));
    extents.write(&noise(4, 4 << 20), false).unwrap();
    let error = extents.write_later(noise(5, 4 << 20).into()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("disk full"), "{error}");
    extents.sync().unwrap();
    for extent in [one, two, three] {
        extents.verify(&extent).unwrap();
    }
    assert_eq!(disk.disk_bytes(), reserved, "all was reserved");
}

#[test]
fn what_is_freed_before_it_is_written_is_never_written() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    let (one, two) = (later(&extents, &noise(1, 50_000)), later(&extents, &noise(2, 50_000)));
    extents.free(&[one]).unwrap();
    extents.sync().unwrap();
    let error = extents.verify(&one).unwrap_err();
    assert!(error.message().contains("there is a hole"), "{error}");
    extents.verify(&two).unwrap();
}

#[test]
fn a_file_that_is_left_keeps_no_space_that_was_reserved() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    let extent = later(&extents, &noise(1, 30_000));
    let next = later(&extents, &noise(1, 30_000));
    assert_eq!((extent.file, next.file), (1, 2));
    extents.sync().unwrap();
    let files = extents.files().unwrap();
    assert_eq!(files[0].len, FRAME_LEN as u64 + Extents::stored_len(&extent));
}

#[test]
fn much_that_waits_is_written_before_more_is_taken_in() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    let data = Bytes::from(noise(1, limits::EXTENT_LEN_MAX as usize));
    let count = QUEUED_LEN_MAX / data.len() + 3;
    let written: Vec<_> = (0..count).map(|_| extents.write_later(data.clone()).unwrap()).collect();
    assert!(extents.queue.len() < QUEUED_LEN_MAX);
    written.iter().for_each(|extent| extents.verify(extent).unwrap());
}

#[test]
fn a_write_that_fails_when_it_is_due_ends_writing() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    later(&extents, &noise(1, 30_000));
    disk.fail(FaultyOperation::Write, 0, Fault::Broken);
    for error in [extents.sync(), extents.sync(), extents.write_later(vec![1].into()).map(drop)] {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("open the store again"), "{error}");
    }
}

/// What lies beside an extent is read while it is written past the system's cache.
#[test]
#[allow(clippy::disallowed_methods, reason = "what is tested is that threads may share it")]
fn extents_are_read_while_their_neighbours_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let disk = crate::disk::RealDisk::create(folder.path()).unwrap();
    let extents = Extents::open(Arc::new(disk), ExtentOptions::default()).unwrap();
    let (written, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    let all: Vec<(ExtentRef, Bytes)> = written.lock().clone();
                    for (extent, data) in all.iter().rev().take(8) {
                        assert_eq!(read(&extents, extent, 0, data.len()).unwrap(), *data);
                    }
                }
            });
        }
        for round in 0..150 {
            let data = Bytes::from(noise(round, 20_000 + 100 * round as usize));
            for _ in 0..3 {
                let extent = extents.write_later(data.clone()).unwrap();
                written.lock().push((extent, data.clone()));
            }
            extents.sync().unwrap();
        }
        is_over.store(true, Ordering::Release);
    });
    written.lock().iter().for_each(|(extent, _)| extents.verify(extent).unwrap());
}

#[test]
fn reclaim_gives_back_all_that_is_not_live() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    let written: Vec<_> =
        (0..5).map(|seed| extents.write(&noise(seed, 9_000), false).unwrap()).collect();
    let error = extents.reclaim(1, &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let extents = open(&disk);
    let before = disk.disk_bytes();
    let given = extents.reclaim(1, &[written[1], written[2], written[4]]).unwrap();
    assert_eq!(given, 2 * Extents::stored_len(&written[0]));
    assert_eq!(before - disk.disk_bytes(), given);
    for (number, extent) in written.iter().enumerate() {
        assert_eq!(extents.verify(extent).is_ok(), [1, 2, 4].contains(&number), "{number}");
    }
    assert_eq!(extents.reclaim(1, &[written[1], written[2], written[4]]).unwrap(), 0);
    assert!(extents.reclaim(1, &[written[2], written[1]]).is_err());
}

#[test]
fn the_number_of_a_removed_file_is_not_given_again() {
    let disk = SimulatedDisk::new();
    open(&disk).write(&noise(1, 100), false).unwrap();
    open(&disk).remove_file(1).unwrap();
    assert_eq!(disk.content(&name(1)).len(), 4096);
    let extents = open(&disk);
    assert_eq!(extents.write(&noise(2, 100), false).unwrap().file, 2);
    extents.remove_file(1).unwrap();
    let files: Vec<_> = extents.files().unwrap().iter().map(|file| file.number).collect();
    assert_eq!(files, [2]);
}

#[test]
fn a_stray_name_in_the_folder_is_passed_over() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    for stray in ["extents/1.ext", "extents/ffffffff.ext", "extents/note", "extents/0000000G.ext"] {
        disk.open(stray, disk::OpenMode::CreateNew).unwrap();
    }
    assert_eq!(extents.files().unwrap(), []);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "what is tested is that threads may share it")]
fn many_threads_write_at_once_without_mixing() {
    let disk = SimulatedDisk::new();
    let extents = open(&disk);
    let written: Vec<_> = std::thread::scope(|scope| {
        let extents = &extents;
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                scope.spawn(move || {
                    let write = |number: u64| {
                        let data = text(writer * 100 + number, 10_000 + number as usize * 7);
                        let extent = extents.write(&data, number.is_multiple_of(2)).unwrap();
                        extents.sync().unwrap();
                        (extent, data)
                    };
                    (0..20).map(write).collect::<Vec<_>>()
                })
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let left = open(&disk.crash(1));
    for (extent, data) in written {
        assert_eq!(read(&left, &extent, 0, data.len()).unwrap(), data);
    }
}
