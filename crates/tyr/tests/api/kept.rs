//! Kept snapshots, as programs use them.

use std::io::Read as _;

use tyr::blocking::Tyr;
use tyr::{ByteRange, ErrorKind, KeyspaceConfig, Scan};

use tyr_testing::{Kind, Store};

/// Keys and sizes of all blobs.
fn listed(snapshot: &tyr::blocking::Snapshot, keyspace: &tyr::blocking::Keyspace) -> Vec<String> {
    let pages = snapshot.scan_pages(keyspace, &Scan::new().limit(2));
    let entries = pages.flat_map(|page| page.unwrap().entries);
    entries.map(|it| format!("{} {}", it.key, it.stat.unwrap().size)).collect()
}

#[test]
fn what_is_kept_reads_as_it_was_also_after_restarts_and_read_only() {
    let folder = tempfile::tempdir().unwrap();
    let tyr = Tyr::open(folder.path()).unwrap();
    let notes = tyr.create_keyspace("notes", KeyspaceConfig::default()).unwrap();
    let large: Vec<u8> = (0..300_000_u32).map(|place| (place % 251) as u8 + 1).collect();
    notes.put("large", large.clone()).unwrap();
    notes.put("small", "walk").unwrap();
    notes.put("gone", "soon").unwrap();
    notes.write("sparse", 100_000, "end").unwrap();
    let kept = tyr.keep("monday").unwrap();
    assert_eq!((kept.name.as_str(), kept.bytes), ("monday", 0));
    let changes = |notes: &tyr::blocking::Keyspace, round: u8| {
        notes.write("large", 100_000, vec![round; 50_000]).unwrap();
        notes.put("small", format!("run {round}")).unwrap();
        notes.write("sparse", 40_000, vec![round; 10]).unwrap();
        notes.put(format!("new/{round}").as_str(), "new").unwrap();
    };
    let check = |tyr: &Tyr| {
        let notes = tyr.keyspace("notes").unwrap();
        let monday = tyr.kept_snapshot("monday").unwrap();
        assert_eq!(monday.version(), kept.at);
        assert_eq!(listed(&monday, &notes), ["gone 4", "large 300000", "small 4", "sparse 100003"]);
        assert_eq!(monday.get(&notes, "small").unwrap(), "walk");
        assert_eq!(monday.get(&notes, "gone").unwrap(), "soon");
        assert_eq!(monday.read(&notes, "large", 99_990, 20).unwrap(), large[99_990..100_010]);
        let mut all = Vec::new();
        let range = ByteRange::from(0);
        monday.reader(&notes, "large", range).unwrap().read_to_end(&mut all).unwrap();
        assert!(all == large);
        let stretches = monday.stretches(&notes, "sparse", range).unwrap();
        assert!(stretches.written.iter().all(|it| it.start > 50_000), "{stretches:?}");
        let absent = monday.get(&notes, "new/1").unwrap_err();
        assert_eq!(absent.kind(), ErrorKind::NotFound);
    };
    changes(&notes, 1);
    notes.delete("gone").unwrap();
    check(&tyr);
    assert!(tyr.check(&mut |_| {}).unwrap().is_sound());
    check(&tyr);
    changes(&notes, 2);
    tyr.close().unwrap();
    let tyr = Tyr::open(folder.path()).unwrap();
    changes(&tyr.keyspace("notes").unwrap(), 3);
    check(&tyr);
    assert!(tyr.check(&mut |_| {}).unwrap().is_sound());
    let held = tyr.kept().unwrap()[0].bytes;
    assert!((50_000..200_000).contains(&held), "{held} bytes are held");
    tyr.close().unwrap();
    let tyr = Tyr::options().is_read_only(true).open_blocking(folder.path()).unwrap();
    check(&tyr);
    assert_eq!(tyr.keep("other").unwrap_err().kind(), ErrorKind::PermissionDenied);
    tyr.close().unwrap();
    let tyr = Tyr::open(folder.path()).unwrap();
    let monday = tyr.kept_snapshot("monday").unwrap();
    tyr.drop_kept("monday").unwrap();
    let notes = tyr.keyspace("notes").unwrap();
    for error in
        [monday.get(&notes, "large").unwrap_err(), tyr.kept_snapshot("monday").unwrap_err()]
    {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
    assert_eq!(tyr.kept().unwrap(), []);
    assert!(tyr.check(&mut |_| {}).unwrap().is_sound());
}

#[test]
fn a_cluster_keeps_what_was_there_until_it_is_dropped() {
    for is_multi_versioned in [true, false] {
        let config =
            KeyspaceConfig { chunk_size: 64 << 10, is_multi_versioned, ..Default::default() };
        let store = Store::new(Kind::Cluster, config);
        let (tyr, notes) = (store.tyr(), &store.keyspace);
        let large: Vec<u8> = (0..300_000_u32).map(|place| (place % 251) as u8 + 1).collect();
        notes.put("large", large.clone()).unwrap();
        notes.put("small", "walk").unwrap();
        notes.put("gone", "soon").unwrap();
        notes.write("sparse", 100_000, "end").unwrap();
        let name = store.opened.name("monday").replace("-", ":");
        let kept = tyr.keep(&name).unwrap();
        assert_eq!(tyr.keep(&name).unwrap_err().kind(), ErrorKind::AlreadyExists);
        notes.write("large", 100_000, vec![7; 50_000]).unwrap();
        notes.put("small", "run").unwrap();
        notes.put("new", "new").unwrap();
        notes.delete("gone").unwrap();
        let monday = tyr.kept_snapshot(&name).unwrap();
        assert_eq!(listed(&monday, notes), ["gone 4", "large 300000", "small 4", "sparse 100003"]);
        assert_eq!(monday.get(notes, "small").unwrap(), "walk");
        assert_eq!(monday.get(notes, "gone").unwrap(), "soon");
        assert_eq!(monday.read(notes, "large", 99_990, 20).unwrap(), large[99_990..100_010]);
        let mut all = Vec::new();
        let range = ByteRange::from(0);
        monday.reader(notes, "large", range).unwrap().read_to_end(&mut all).unwrap();
        assert!(all == large);
        let stretches = monday.stretches(notes, "sparse", range).unwrap();
        assert!(stretches.written.iter().all(|it| it.start > 50_000), "{stretches:?}");
        assert_eq!(monday.get(notes, "new").unwrap_err().kind(), ErrorKind::NotFound);
        let known = tyr.kept().unwrap();
        assert!(known.iter().any(|it| (&it.name, it.at) == (&kept.name, kept.at)), "{known:?}");
        tyr.drop_kept(&name).unwrap();
        let errors = [
            monday.get(notes, "large").unwrap_err(),
            tyr.kept_snapshot(&name).unwrap_err(),
            tyr.drop_kept(&name).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        }
    }
}
