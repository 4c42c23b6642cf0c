//! Snapshots, and listings of a moment.

use super::*;

#[test]
fn a_group_is_listed_as_any_prefix_is() {
    for opened in stores().into_iter().map(Opened::new) {
        let placed_by = PlacedBy::UpTo(b'/');
        let config = KeyspaceConfig { placed_by, ..KeyspaceConfig::default() };
        let keyspace = opened.tyr.create_keyspace(&opened.name("groups"), config).unwrap();
        assert_eq!(keyspace.config().placed_by, placed_by);
        let keys = ["a", "a/", "a/1", "a/2/3", "ab/1", "b/1"];
        keys.iter().for_each(|key| keyspace.put(key, "x").unwrap());
        let listed = |prefix: &str| -> Vec<String> {
            let page = keyspace.scan(prefix.as_bytes(), None, 10).unwrap();
            page.iter().map(|(key, _)| key.to_string()).collect()
        };
        assert_eq!(listed("a/"), ["a/", "a/1", "a/2/3"]);
        assert_eq!(listed("a/2/"), ["a/2/3"]);
        assert_eq!(listed("a"), keys[..5]);
        assert_eq!(listed(""), keys);
    }
}

#[test]
fn a_snapshot_keeps_its_version_while_writers_and_folds_go_on() {
    for store in buffered() {
        let keyspace = &store.keyspace;
        keyspace.put("a", vec![1; 50_000]).unwrap();
        keyspace.put("gone", "soon").unwrap();
        let snapshot = store.tyr().snapshot().unwrap();
        keyspace.put("a", "new").unwrap();
        keyspace.put("later", "x").unwrap();
        keyspace.delete("gone").unwrap();
        for _ in 0..2 {
            assert_eq!(snapshot.get(keyspace, "a").unwrap(), vec![1; 50_000]);
            assert_eq!(snapshot.get(keyspace, "gone").unwrap(), "soon");
            assert_eq!(snapshot.stat(keyspace, "later").unwrap_err().kind(), ErrorKind::NotFound);
            let keys: Vec<_> = snapshot.scan(keyspace, b"", None, 10).unwrap();
            let keys: Vec<_> = keys.iter().map(|(key, _)| key.to_string()).collect();
            assert_eq!(keys, ["a", "gone"]);
        }
        assert_eq!(keyspace.get("a").unwrap(), "new");
    }
}

/// Q1.
#[test]
fn a_snapshot_lists_the_same_while_blobs_are_deleted_and_folded_until_it_is_too_old() {
    let folder = tempfile::tempdir().unwrap();
    let tyr = Tyr::options().fold_log_bytes(64 << 10).open_blocking(folder.path()).unwrap();
    let keyspace = tyr.create_keyspace("test", KeyspaceConfig::default()).unwrap();
    let keys: Vec<String> = (0..50).map(|number| format!("key-{number:02}")).collect();
    keys.iter().for_each(|key| keyspace.put(key, vec![1; 500]).unwrap());
    let snapshot = tyr.snapshot().unwrap();
    let first = snapshot.scan(&keyspace, b"", None, 100).unwrap();
    assert_eq!(first.len(), keys.len());
    keys.iter().for_each(|key| keyspace.delete(key).map(drop).unwrap());
    // The log grows until a fold waits no longer for who reads below it.
    let (begun, mut listed) = (Instant::now(), 0);
    let error = loop {
        keyspace.put("other", vec![2; 30_000]).unwrap();
        match snapshot.scan(&keyspace, b"", None, 100) {
            Ok(again) => assert_eq!(again, first),
            Err(error) => break error,
        }
        listed += 1;
        assert!(begun.elapsed() < PATIENCE, "no fold ended it");
    };
    assert_eq!((error.kind(), listed > 0), (ErrorKind::SnapshotTooOld, true));
    assert_eq!(snapshot.get(&keyspace, "key-07").unwrap_err().kind(), ErrorKind::SnapshotTooOld);
    let now = tyr.snapshot().unwrap().scan(&keyspace, b"", None, 100).unwrap();
    assert_eq!(now.len(), 1);
}

/// Q2.
#[test]
fn pages_have_sizes_and_first_bytes_of_one_moment_and_groups_once() {
    for is_compressed in [false, true] {
        for kind in stores() {
            let config = KeyspaceConfig { is_compressed, ..KeyspaceConfig::default() };
            let Store { opened, keyspace, .. } = &Store::new(kind, config);
            for number in 0..30_u8 {
                keyspace.put(format!("dir/{number:02}"), vec![number; 10]).unwrap();
            }
            let large: Vec<u8> = (0..100_000_u32).map(|at| (at / 100) as u8).collect();
            keyspace.put("large", large.clone()).unwrap();
            keyspace.truncate("sparse", 50).unwrap();
            let snapshot = opened.tyr.snapshot().unwrap();
            keyspace.put("dir/07", "changed").unwrap();
            keyspace.delete("dir/08").unwrap();
            let scan = Scan::new().limit(7).range(ByteRange { start: 4, end: 300 });
            let pages: Vec<_> = snapshot.scan_pages(keyspace, &scan).map(Result::unwrap).collect();
            assert!(pages.len() == 5 && pages[..4].iter().all(|page| page.entries.len() == 7));
            let entries: Vec<_> = pages.iter().flat_map(|page| &page.entries).collect();
            assert_eq!(entries.len(), 32);
            for (number, entry) in (0..30_u8).zip(&entries) {
                assert_eq!(entry.bytes, vec![number; 6], "{:?}", entry.key);
                let stat = snapshot.stat(keyspace, &entry.key).unwrap();
                assert_eq!(entry.stat.map(|stat| stat.size), Some(stat.size));
            }
            assert_eq!(entries[30].bytes, large[4..300]);
            assert_eq!(entries[31].bytes, vec![0; 46], "nothing was written of it");
            let now = keyspace.scan_page(&Scan::new().prefix("dir/0").first_bytes(4)).unwrap();
            assert_eq!((now.entries.len(), now.is_end()), (9, true));
            assert_eq!(now.entries[7].bytes, "chan");
            let scan = Scan::new().delimiter("/").keys_only();
            let page = snapshot.scan_page(keyspace, &scan).unwrap();
            let keys: Vec<_> = page.entries.iter().map(|entry| entry.key.to_string()).collect();
            assert_eq!(
                (keys, page.groups),
                (vec!["large".into(), "sparse".into()], vec!["dir/".into()])
            );
        }
    }
}

#[test]
fn a_scan_out_of_range_is_refused_in_words_wherever_the_store_is() {
    for store in buffered() {
        let refused = |scan: Scan| {
            let error = store.keyspace.scan_page(&scan).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            error.message().to_owned()
        };
        assert!(refused(Scan::new().from("b").to("a")).contains("exchange them"));
        assert!(refused(Scan::new().delimiter("")).contains("delimiter"));
        assert!(
            refused(Scan::new().range(ByteRange::at(1 << 40, 8).unwrap())).contains("first chunk")
        );
        assert!(refused(Scan::new().limit(limits::SCAN_LIMIT_MAX + 1)).contains("limit"));
    }
}
