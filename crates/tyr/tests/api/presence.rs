//! Service metadata that is there while a program is.

use std::time::Duration;

use tyr::ErrorKind;
use tyr::metadata::{Expected, Path, Transaction};

use tyr_testing::{Kind, Opened, stores};

const TTL: Duration = Duration::from_secs(2);

#[test]
fn what_is_bound_goes_with_who_put_it_and_watches_tell() {
    for kind in stores() {
        let opened = Opened::new(kind);
        let metadata = opened.tyr.metadata();
        let key = format!("{}/web/1", opened.name("service"));
        let presence = metadata.presence(TTL).unwrap();
        presence.put(&key, "10.0.0.1:80").unwrap();
        // On a cluster it is renewed meanwhile, more than once.
        if kind == Kind::Cluster {
            assert!(!presence.lost_within(TTL * 2));
        }
        assert!(presence.is_there());
        let other = opened.other().metadata();
        assert_eq!(other.get(&key).unwrap().unwrap().value, "10.0.0.1:80");
        let page = other.list(&key, None, 1).unwrap();
        let mut watch = other.watch(&key, page.revision);
        drop(presence);
        let told = watch.next().unwrap().unwrap();
        assert_eq!((told.changes[0].path.as_str(), &told.changes[0].value), (key.as_str(), &None));
        assert_eq!(metadata.get(&key).unwrap(), None);
    }
}

#[test]
fn of_two_who_want_a_key_one_has_it_while_it_is_there() {
    for kind in stores() {
        let opened = Opened::new(kind);
        let metadata = opened.tyr.metadata();
        let key = Path::new(format!("{}/leader", opened.name("service"))).unwrap();
        let claim = |value: &'static str| {
            Transaction::new().when(key.clone(), Expected::Absent).put(key.clone(), value)
        };
        let (one, other) = (metadata.presence(TTL).unwrap(), metadata.presence(TTL).unwrap());
        one.transact(claim("one")).unwrap();
        let late = other.transact(claim("other")).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Conflict);
        one.end().unwrap();
        other.transact(claim("other")).unwrap();
        metadata.put(key.as_str(), "kept").unwrap();
        other.end().unwrap();
        assert_eq!(metadata.get(key.as_str()).unwrap().unwrap().value, "kept");
        let long = metadata.presence(Duration::from_secs(61));
        match kind {
            Kind::Embedded => drop(long.unwrap()),
            Kind::Cluster => assert_eq!(long.unwrap_err().kind(), ErrorKind::InvalidArgument),
        }
    }
}

#[test]
fn what_a_program_that_died_had_bound_is_gone_when_its_directory_is_opened_again() {
    let opened = Opened::new(Kind::Embedded);
    let metadata = opened.tyr.metadata();
    let presence = metadata.presence(TTL).unwrap();
    presence.put("service/a", "1").unwrap();
    metadata.put("service/b", "2").unwrap();
    let revision = metadata.list("service/", None, 10).unwrap().revision;
    // It ends without a word.
    opened.tyr.clone().close().unwrap();
    drop((presence, metadata));
    let opened = opened.reopen();
    let page = opened.tyr.metadata().list("service/", None, 10).unwrap();
    let keys: Vec<_> = page.entries.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(keys, ["service/b"]);
    assert!(page.revision > revision, "it is a change like any other");
}
