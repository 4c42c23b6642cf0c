//! What is overwritten or abandoned gives its space back, and not too early.

use tyr_types::ExtentRef;

use super::*;

/// Blob "a" shows an extent of 1 MiB of ones, and there is a checkpoint.
fn show_extent(fixture: &Fixture) -> ExtentRef {
    let extent = fixture.extents.write(&vec![1; 1 << 20], false).unwrap();
    let mut change = fixture.change("a", 1, 1 << 20);
    change.pieces.push((0, PieceData::Extent { extent, skip: 0, len: 1 << 20 }));
    fixture.fold(vec![change]);
    fixture.checkpoint(1, 1);
    extent
}

#[test]
fn an_overwritten_extent_gives_its_space_back_after_the_checkpoint_and_not_before() {
    let fixture = Fixture::new(false);
    let len = 400_000;
    fixture.write("a", 1, 0, &vec![1; len]);
    let before = fixture.disk.disk_bytes();
    fixture.write("a", 2, 0, &vec![2; len]);
    let both = fixture.disk.disk_bytes();
    assert!(both >= before + len as u64, "{before} {both}");
    fixture.checkpoint(1, 2);
    assert!(fixture.disk.disk_bytes() < both - len as u64 * 9 / 10);
    assert!(fixture.content("a").unwrap().iter().all(|byte| *byte == 2));
    fixture.assert_sound();
}

#[test]
fn a_checkpoint_leaves_dead_extents_to_be_given_back_and_what_dies_there_since_is_for_the_next() {
    let fixture = Fixture::new(false);
    let extent = show_extent(&fixture);
    let checkpoint = |clock| {
        let checkpoint = Checkpoint { sequence: clock, timestamp: at(clock) };
        fixture.base.checkpoint(checkpoint, &BTreeSet::new()).unwrap();
    };
    fixture.write("a", 2, 0, &vec![2; 500_000]);
    checkpoint(2);
    let both = fixture.extents.disk_bytes().unwrap();
    // Now all of it is dead, and has the place of the part that is about to be given back.
    fixture.write("a", 3, 500_000, &vec![3; (1 << 20) - 500_000]);
    fixture.base.give_all_back(|| false).unwrap();
    let left = fixture.extents.disk_bytes().unwrap();
    assert!(left < both + 600_000 - 490_000, "{both} bytes, then {left}");
    assert_eq!(fixture.findings(), [], "what is dead is known to be");
    checkpoint(3);
    fixture.base.give_all_back(|| false).unwrap();
    assert!(fixture.extents.disk_bytes().unwrap() < (1 << 20) + 50_000, "twice what is shown");
    fixture.extents.verify(&extent).unwrap_err();
    assert!(fixture.content("a").unwrap() == [vec![2; 500_000], vec![3; 548_576]].concat());
    assert_eq!(fixture.findings(), []);
}

/// The file system takes long to give so many frames back, and folds would wait for that.
#[test]
fn what_dies_of_an_extent_from_before_the_opening_is_left_to_be_given_back_as_well() {
    let fixture = Fixture::new(false);
    show_extent(&fixture);
    let fixture = fixture.reopened();
    fixture.base.reclaim(&[]).unwrap();
    fixture.write("a", 2, 0, &vec![2; 500_000]);
    let both = fixture.extents.disk_bytes().unwrap();
    let checkpoint = Checkpoint { sequence: 2, timestamp: at(2) };
    fixture.base.checkpoint(checkpoint, &BTreeSet::new()).unwrap();
    assert_eq!(fixture.extents.disk_bytes().unwrap(), both, "the checkpoint gave it back");
    fixture.base.give_all_back(|| false).unwrap();
    let left = fixture.extents.disk_bytes().unwrap();
    assert!(left < both - 490_000, "{both} bytes, then {left}");
    assert_eq!(fixture.findings(), []);
}

#[test]
fn a_dead_extent_that_is_kept_stays_whole_and_goes_with_a_later_checkpoint() {
    let fixture = Fixture::new(false);
    let extent = show_extent(&fixture);
    let kept = BTreeSet::from([extent]);
    // Frames of its middle die first, then its beginning and its end.
    fixture.write("a", 2, 100_000, &vec![2; 500_000]);
    fixture.base.checkpoint(Checkpoint { sequence: 2, timestamp: at(2) }, &kept).unwrap();
    fixture.extents.verify(&extent).unwrap();
    fixture.write("a", 3, 0, &vec![3; 1 << 20]);
    fixture.base.checkpoint(Checkpoint { sequence: 3, timestamp: at(3) }, &kept).unwrap();
    fixture.extents.verify(&extent).unwrap();
    let before = fixture.extents.disk_bytes().unwrap();
    fixture.checkpoint(4, 3);
    assert!(fixture.extents.disk_bytes().unwrap() + 1_000_000 < before);
    fixture.extents.verify(&extent).unwrap_err();
    fixture.assert_sound();
}

#[test]
fn a_hole_gives_its_space_back_after_the_checkpoint_and_leaves_what_is_around_it() {
    let fixture = Fixture::new(false);
    let len = 2 << 20;
    let content: Vec<u8> = (0..len).map(|place| (place % 251) as u8 + 1).collect();
    fixture.write("a", 1, 0, &content);
    // Small ones lie inline.
    fixture.write("a", 2, len as u64, &content[..3 * 16 * 1024]);
    fixture.checkpoint(1, 2);
    let before = fixture.disk.disk_bytes();
    let size = len as u64 + 3 * 16 * 1024;
    let mut change = fixture.change("a", 3, size);
    let holes = [(100_000, 900_001), (len as u64 - 50_000, size - 7)];
    change.holes.extend(holes.map(|(start, end)| ByteRange { start, end }));
    change.pieces.push((900_001, PieceData::Bytes(Bytes::from_static(b"behind"))));
    fixture.fold(vec![change]);
    fixture.checkpoint(2, 3);
    assert!(fixture.disk.disk_bytes() + 850_000 < before);
    let mut expected = [&content[..], &content[..3 * 16 * 1024]].concat();
    for (start, end) in holes {
        expected[start as usize..end as usize].fill(0);
    }
    expected[900_001..900_007].copy_from_slice(b"behind");
    assert!(fixture.content("a").unwrap() == expected);
    fixture.assert_sound();
}

/// A loss of power may take a file of extents as a whole, and leave in the index what died in it.
#[test]
fn what_died_in_a_file_that_was_lost_takes_nothing_of_the_file_that_gets_its_number() {
    let fixture = Fixture::new(false);
    let extent = fixture.extents.write(&[1; 40_000], false).unwrap();
    let mut change = fixture.change("small", 1, 10);
    change.pieces.push((0, PieceData::Extent { extent, skip: 0, len: 10 }));
    fixture.fold(vec![change]);
    let kept = fixture.index.unsynced_batches();
    let lost = (0..100).map(|seed| fixture.crashed(kept, seed));
    let lost = lost.into_iter().find(|it| it.extents.files().unwrap().is_empty()).unwrap();
    lost.base.reclaim(&[]).unwrap();
    lost.write("large", 2, 0, &[2; 40_000]);
    lost.checkpoint(2, 2);
    assert!(lost.content("large").unwrap() == [2; 40_000]);
    lost.assert_sound();
}

#[test]
fn a_checkpoint_that_fails_frees_nothing_that_a_loss_of_power_could_bring_back() {
    for operation in [FaultyOperation::Create, FaultyOperation::Write] {
        let fixture = Fixture::new(false);
        fixture.write("a", 1, 0, &[1; 100_000]);
        fixture.checkpoint(1, 1);
        fixture.write("a", 2, 0, &[2; 100_000]);
        fixture.disk.fail(operation, 0, Fault::Broken);
        // The power goes before the checkpoint's sync of the index is done.
        let before = Arc::new(fixture.index.crash(0));
        let at = Checkpoint { sequence: 2, timestamp: at(2) };
        assert_eq!(
            fixture.base.checkpoint(at, &BTreeSet::new()).unwrap_err().kind(),
            ErrorKind::Unavailable
        );
        assert_eq!(fixture.base.last_checkpoint().sequence, 1);
        let left = Fixture::open(Arc::new(fixture.disk.copy()), before);
        assert_eq!(left.content("a").unwrap(), [1; 100_000]);
        left.assert_sound();
    }
}

#[test]
fn an_extent_overwritten_in_its_middle_gives_back_the_frames_there() {
    let fixture = Fixture::new(false);
    show_extent(&fixture);
    let before = fixture.extents.disk_bytes().unwrap();
    fixture.write("a", 2, 100_000, &vec![2; 500_000]);
    fixture.checkpoint(2, 2);
    let after = fixture.extents.disk_bytes().unwrap();
    assert!(after < before + 40_000, "{before} -> {after}");
    let content = fixture.content("a").unwrap();
    assert!(content[..100_000].iter().chain(&content[600_000..]).all(|byte| *byte == 1));
    assert!(content[100_000..600_000].iter().all(|byte| *byte == 2));
    fixture.assert_sound();
}

#[test]
fn an_extent_shown_in_two_parts_keeps_both() {
    let fixture = Fixture::new(false);
    let payload: Vec<u8> = (0..100_000u32).map(|place| (place / 500) as u8).collect();
    let extent = fixture.extents.write(&payload, false).unwrap();
    let mut change = fixture.change("a", 1, 100_000);
    change.pieces = vec![
        (0, PieceData::Extent { extent, skip: 0, len: 30_000 }),
        (60_000, PieceData::Extent { extent, skip: 60_000, len: 40_000 }),
    ];
    fixture.fold(vec![change]);
    fixture.checkpoint(1, 1);
    let content = fixture.content("a").unwrap();
    assert_eq!(content[..30_000], payload[..30_000]);
    assert_eq!(content[60_000..], payload[60_000..]);
    assert!(content[30_000..60_000].iter().all(|byte| *byte == 0));
    fixture.assert_sound();
}

#[test]
fn what_an_abandoned_upload_left_is_given_back_and_what_the_log_refers_to_is_not() {
    let fixture = Fixture::new(false);
    fixture.write("a", 1, 0, &[1; 100_000]);
    let in_log = fixture.extents.write(&[2; 50_000], false).unwrap();
    fixture.extents.write(&[3; 300_000], false).unwrap();
    fixture.extents.sync().unwrap();
    let fixture = fixture.reopened();
    assert!(fixture.base.reclaim(&[in_log]).unwrap() >= 300_000);
    fixture.extents.verify(&in_log).unwrap();
    assert_eq!(fixture.content("a").unwrap(), [1; 100_000]);
    let fixture = fixture.reopened();
    assert!(fixture.base.reclaim(&[]).unwrap() >= 50_000, "the log has forgotten it now");
    assert_eq!(fixture.content("a").unwrap(), [1; 100_000]);
}

#[test]
fn frames_that_are_overwritten_bit_by_bit_give_their_space_back_with_the_last_bit() {
    let fixture = Fixture::new(false);
    let (page, count) = (4096, 512);
    let mut content: Vec<u8> = (0..page * count).map(|place| (place % 251) as u8 + 1).collect();
    fixture.write("a", 1, 0, &content);
    fixture.checkpoint(1, 1);
    let before = fixture.extents.disk_bytes().unwrap();
    // In an order in which neighbours come far apart; every second first.
    let order = (0..count).map(|place| place * 205 % count);
    let (even, odd): (Vec<_>, Vec<_>) = order.partition(|place| place % 2 == 0);
    let taken = |clock| {
        fixture.checkpoint(clock, clock);
        fixture.assert_sound();
        fixture.extents.disk_bytes().unwrap()
    };
    let mut clock = 1;
    let mut overwrite = |places: &[usize]| {
        for place in places {
            clock += 1;
            let bytes = vec![clock as u8; page];
            content[place * page..][..page].copy_from_slice(&bytes);
            fixture.write("a", clock, (place * page) as u64, &bytes);
        }
        assert!(fixture.content("a").as_ref() == Some(&content));
        clock
    };
    let clock = overwrite(&even);
    assert!(taken(clock) > before / 2, "each frame but few shares bytes with what stays");
    let (first, rest) = odd.split_at(odd.len() / 2);
    let clock = overwrite(first);
    let now = taken(clock);
    assert!(now < before * 6 / 10, "{now} of {before}: frames between two that went go, too");
    let clock = overwrite(&rest[1..]);
    assert!(taken(clock) < before / 50, "all but a few frames around one page");
    assert!(fixture.content("a").is_some());
}
