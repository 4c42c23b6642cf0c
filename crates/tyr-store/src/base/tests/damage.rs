//! Damage is noticed, and named.

use super::*;

#[test]
fn a_lost_checkpoint_file_is_noticed() {
    let fixture = Fixture::new(false);
    fixture.disk.remove(CHECKPOINT_FILE).unwrap();
    let (disk, index) = (fixture.disk.clone(), fixture.index.clone());
    let extents = fixture.extents.clone();
    let error = Base::open(Box::new(Shared(index)), extents, disk).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn any_damage_of_the_checkpoint_file_is_noticed() {
    let fixture = Fixture::new(false);
    fixture.checkpoint(77, 5);
    assert_eq!(synced_batch(&*fixture.disk).unwrap(), fixture.index.last_batch());
    let len = fixture.disk.content(CHECKPOINT_FILE).len();
    for place in 0..len * 8 {
        let disk = fixture.disk.copy();
        disk.damage(CHECKPOINT_FILE, |bytes| bytes[place / 8] ^= 1 << (place % 8));
        let error = synced_batch(&disk).unwrap_err();
        // A higher version is what a later release would write: that cannot be told from damage.
        let is_later = place / 8 == 4 && place % 8 > 0;
        let kind = if is_later { ErrorKind::Unavailable } else { ErrorKind::Corrupt };
        assert_eq!(error.kind(), kind, "bit {place}: {error}");
        let disk = fixture.disk.copy();
        disk.damage(CHECKPOINT_FILE, |bytes| bytes.truncate(place / 8));
        assert_eq!(synced_batch(&disk).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

#[test]
fn an_index_that_lost_synced_batches_is_noticed() {
    let fixture = Fixture::new(false);
    fixture.write("a", 1, 0, b"x");
    let disk = fixture.disk.copy();
    let old = Arc::new(fixture.index.crash(0));
    fixture.checkpoint(1, 1);
    disk.damage(CHECKPOINT_FILE, |bytes| *bytes = fixture.disk.content(CHECKPOINT_FILE));
    let error = Base::open(Box::new(Shared(old)), fixture.extents.clone(), Arc::new(disk));
    assert_eq!(error.map(drop).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_blob_whose_segments_hold_more_than_it_has_is_not_written_anew() {
    let fixture = Fixture::new(false);
    fixture.write("a", 1, 150_000, &[1; 50_000]);
    let (name, key) = (fixture.name("a"), key::blob(&fixture.name("a")));
    let (_, entry) = fixture.base.entry(&key, &name).unwrap().unwrap();
    let mut batch = IndexBatch::new();
    batch.put(Table::Blobs, key, BlobEntry { stored: 200_000, ..entry }.encode());
    fixture.index.commit(batch).unwrap();
    let mut change = fixture.change("a", 2, 200_000);
    change.pieces.push((0, PieceData::Bytes(Bytes::from_static(&[2; 50_000]))));
    let error = fixture.base.fold(vec![change]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[test]
fn a_walk_finds_damage_and_goes_on_behind_it() {
    let fixture = Fixture::new(false);
    for key in ["a", "b", "c"] {
        fixture.write(key, 1, 0, &[1; 50_000]);
        fixture.write(key, 2, 60_000, &[1; 100]);
    }
    fixture.assert_sound();
    let damage = |table, key: &[u8]| {
        assert!(fixture.index.damage(table, key, |value| value[0] ^= 1));
    };
    damage(Table::Blobs, &key::blob(&fixture.name("a")));
    damage(Table::Segments, &key::SegmentKeys::new(&fixture.name("b")).at(60_000));
    let files = fixture.extents.files().unwrap();
    assert_eq!(files.len(), 1);
    let name = fixture.disk.names().into_iter().find(|name| name.contains(".ext")).unwrap();
    // The last of the three extents, each of 13 frames behind the header's.
    fixture.disk.damage(&name, |bytes| bytes[(1 + 13 * 2 + 5) * 4096 + 100] ^= 1);
    let findings = fixture.findings();
    for (key, count) in [("\"a\"", 0), ("\"b\"", 1), ("\"c\"", 1)] {
        let found = findings.iter().filter(|finding| finding.place.contains(key)).count();
        assert!(found >= count, "{key}: {findings:#?}");
    }
    assert!(findings.iter().any(|finding| finding.what.contains("checksum")), "{findings:#?}");
    let places: Vec<&str> = findings.iter().map(|finding| finding.place.as_str()).collect();
    assert!(places.contains(&"index table blobs, keyspace test blob \"a\""), "{places:#?}");
    assert!(places.iter().all(|place| !place.contains("keyspace 1")), "{places:#?}");
    let mut out = vec![0; 100];
    let range = ByteRange { start: 60_000, end: 60_100 };
    let error = fixture.base.read(&fixture.name("b"), range, &mut out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(fixture.read("c", range), vec![1; 100], "damage elsewhere does not matter");
}
