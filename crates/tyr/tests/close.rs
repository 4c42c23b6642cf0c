//! Closing and opening: what a closed store answers, and who may open it when.

use tyr::blocking::Tyr;
use tyr::{ErrorKind, KeyspaceConfig};

#[test]
fn a_closed_store_can_be_opened_again_while_its_handles_are_held() {
    let folder = tempfile::tempdir().unwrap();
    let tyr = Tyr::open(folder.path()).unwrap();
    let keyspace = tyr.create_keyspace("held", KeyspaceConfig::default()).unwrap();
    keyspace.put("a", "1").unwrap();
    let snapshot = tyr.snapshot().unwrap();
    let mut transaction = tyr.begin();
    transaction.put(&keyspace, "a", "2").unwrap();
    tyr.clone().close().unwrap();

    let again = Tyr::open(folder.path()).unwrap();
    let reopened = again.keyspace("held").unwrap();
    assert_eq!(reopened.get("a").unwrap(), "1");
    reopened.put("a", "3").unwrap();

    let refused = [
        keyspace.get("a").unwrap_err(),
        keyspace.get("never read").unwrap_err(),
        keyspace.put("a", "4").unwrap_err(),
        keyspace.scan(b"", None, 10).unwrap_err(),
        snapshot.get(&keyspace, "a").unwrap_err(),
        transaction.commit().unwrap_err(),
        tyr.create_keyspace("more", KeyspaceConfig::default()).unwrap_err(),
        tyr.drop_keyspace("held").unwrap_err(),
        tyr.check(&mut |_| {}).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.message().contains("closed"), "{error}");
    }
    tyr.close().unwrap();
    drop((keyspace, snapshot));
    assert_eq!(reopened.get("a").unwrap(), "3");
    again.close().unwrap();
    assert!(tyr::check(folder.path(), &mut |_| {}).unwrap().findings.is_empty());
}

#[test]
fn a_second_opener_is_refused_by_the_name_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let tyr = Tyr::open(folder.path()).unwrap();
    let refused = [
        Tyr::open(folder.path()).unwrap_err(),
        Tyr::options().is_read_only(true).open_blocking(folder.path()).unwrap_err(),
        tyr::check(folder.path(), &mut |_| {}).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        let process = format!("process {}", std::process::id());
        let path = folder.path().display().to_string();
        assert!(error.message().contains(&process), "{error}");
        assert!(error.message().contains(&path), "{error}");
    }
    drop(tyr);
    Tyr::open(folder.path()).unwrap();
}
