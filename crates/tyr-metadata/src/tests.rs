//! The service metadata, rule by rule, and against a plain model.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use tyr_types::ErrorKind;

use super::limits::{
    ENTRIES_MAX, HISTORY_MAX, LIST_MAX, PATH_LEN_MAX, TRANSACTION_STEPS_MAX, VALUE_LEN_MAX,
};
use super::{Actor, Alteration, Condition, Expected, Path, Store, Transaction};

fn path(text: &str) -> Path {
    Path::new(text).unwrap()
}

fn put(text: &str, value: &'static str) -> Transaction {
    Transaction::new().put(path(text), value)
}

fn user(name: &str) -> Actor {
    Actor::User { name: name.to_owned(), is_administrator: false }
}

fn administrator() -> Actor {
    Actor::User { name: "root".to_owned(), is_administrator: true }
}

/// A store in which the system has put these, one revision each.
fn store_of(entries: &[(&str, &'static str)]) -> Store {
    let mut store = Store::new();
    for (text, value) in entries {
        store.apply(&Actor::System, &put(text, value)).unwrap();
    }
    store
}

/// The same store, from what was written down of it.
fn restored(store: &Store) -> Store {
    let entries = store.entries().map(|(path, entry)| (path.clone(), entry.clone())).collect();
    Store::restore(store.revision(), entries).unwrap()
}

#[test]
fn each_entry_knows_the_revisions_of_its_creation_and_of_its_last_change() {
    let mut store = store_of(&[("a", "1"), ("b", "1"), ("a", "2")]);
    let entry = store.get("a").unwrap();
    assert_eq!((&entry.value[..], entry.created, entry.changed), (&b"2"[..], 1, 3));
    store.apply(&Actor::System, &Transaction::new().delete(path("a"))).unwrap();
    assert_eq!(store.get("a"), None);
    store.apply(&Actor::System, &put("a", "3")).unwrap();
    assert_eq!(store.get("a").unwrap().created, 5, "it has come to be anew");
}

#[test]
fn a_transaction_whose_condition_does_not_hold_changes_nothing() {
    let mut store = store_of(&[("a", "1"), ("b", "1")]);
    let before = store.clone();
    for (key, expected) in [
        ("a", Expected::Revision(2)),
        ("a", Expected::Absent),
        ("c", Expected::Present),
        ("c", Expected::Revision(0)),
    ] {
        let transaction = put("b", "2").when(path(key), expected);
        let error = store.apply(&Actor::System, &transaction).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert_eq!(store, before);
    }
    let transaction = put("b", "2")
        .when(path("a"), Expected::Revision(1))
        .when(path("b"), Expected::Present)
        .when(path("c"), Expected::Absent);
    assert_eq!(store.apply(&Actor::System, &transaction).unwrap(), 3);
}

#[test]
fn what_changes_nothing_is_no_revision() {
    let mut store = store_of(&[("a", "1")]);
    let transaction = Transaction::new().delete(path("b")).when(path("a"), Expected::Present);
    assert_eq!(store.apply(&Actor::System, &transaction).unwrap(), 1);
}

#[test]
fn a_listing_goes_on_after_the_last_key_and_keeps_to_its_prefix() {
    let store = store_of(&[("a", ""), ("s/1", ""), ("s/2", ""), ("s/3", ""), ("t", "")]);
    let keys = |after: Option<&str>, limit| -> Vec<String> {
        let found = store.list(&Actor::System, "s/", after, limit);
        found.into_iter().map(|(path, _)| path.to_string()).collect()
    };
    assert_eq!(keys(None, 2), ["s/1", "s/2"]);
    assert_eq!(keys(Some("s/2"), 2), ["s/3"]);
    assert_eq!(keys(Some("a"), LIST_MAX), ["s/1", "s/2", "s/3"]);
    assert_eq!(keys(Some("t"), LIST_MAX), Vec::<String>::new());
}

#[test]
fn bounds_are_refused_by_name() {
    let mut store = Store::new();
    assert!(Path::new("x".repeat(PATH_LEN_MAX)).is_ok());
    for wrong in ["", "/a", "a\nb", &"x".repeat(PATH_LEN_MAX + 1)] {
        assert_eq!(Path::new(wrong).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    let large = Transaction::new().put(path("a"), vec![0; VALUE_LEN_MAX + 1]);
    let many = (0..=TRANSACTION_STEPS_MAX)
        .fold(Transaction::new(), |it, step| it.delete(path(&format!("k{step}"))));
    let value = vec![0; VALUE_LEN_MAX];
    let wide = Transaction::new().put(path("a"), value.clone()).put(path("b"), value.clone());
    for transaction in [large, many, wide] {
        let error = store.apply(&Actor::System, &transaction).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    let fill = |n: usize| Transaction::new().put(path(&format!("k{n}")), value.clone());
    let full = (0..20).map(|n| store.apply(&Actor::System, &fill(n))).find_map(Result::err);
    assert_eq!(full.unwrap().kind(), ErrorKind::QuotaExceeded);
    store.apply(&Actor::System, &Transaction::new().delete(path("k0"))).unwrap();
    store.apply(&Actor::System, &fill(0)).unwrap();
    store.invariants();
    assert!(store.len() < ENTRIES_MAX);
}

#[test]
fn the_longest_prefix_with_rights_decides() {
    let mut store = store_of(&[
        ("access/service/", "read: *\nwrite: alice"),
        ("access/service/log/", "read: bob\nwrite: bob"),
        ("service/a", "1"),
        ("service/log/a", "1"),
    ]);
    let may_write = |store: &mut Store, who: &str, key: &str| {
        store.apply(&user(who), &put(key, "2")).map_err(|error| error.kind())
    };
    assert!(may_write(&mut store, "alice", "service/a").is_ok());
    let denied = Err(ErrorKind::PermissionDenied);
    assert_eq!(may_write(&mut store, "bob", "service/a"), denied);
    assert!(may_write(&mut store, "bob", "service/log/a").is_ok());
    assert_eq!(may_write(&mut store, "alice", "service/log/a"), denied, "the longer decides alone");
    assert_eq!(may_write(&mut store, "alice", "other"), denied);
    let seen = |who: &str| -> Vec<String> {
        let found = store.list(&user(who), "", None, LIST_MAX);
        found.into_iter().map(|(path, _)| path.to_string()).collect()
    };
    assert_eq!(seen("carol"), ["service/a"]);
    assert_eq!(seen("bob"), ["service/a", "service/log/a"]);
}

#[test]
fn a_condition_needs_the_right_to_read() {
    let mut store = store_of(&[("access/mine/", "write: alice"), ("secret", "1"), ("mine/a", "1")]);
    let probe = put("mine/a", "2").when(path("secret"), Expected::Present);
    let error = store.apply(&user("alice"), &probe).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}

#[test]
fn what_the_cluster_uses_is_for_administrators_and_some_of_it_for_the_system_alone() {
    let mut store = store_of(&[("access/", "read: *\nwrite: *"), ("access/c", "write: *")]);
    for key in ["cluster/nodes/1", "users/alice", "access/x"] {
        assert!(store.apply(&user("alice"), &put(key, "read: *")).is_err(), "{key}");
        assert!(store.apply(&administrator(), &put(key, "read: *")).is_ok(), "{key}");
    }
    for key in ["cluster/map", "cluster/epoch_max", "cluster/id"] {
        let error = store.apply(&administrator(), &put(key, "1")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{key}");
        assert!(store.apply(&Actor::System, &put(key, "1")).is_ok(), "{key}");
    }
}

#[test]
fn rights_that_cannot_be_read_are_not_put() {
    let mut store = Store::new();
    for wrong in ["alice", "own: alice", "read alice"] {
        let error = store.apply(&administrator(), &put("access/a", wrong)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn a_watch_resumes_where_it_was_and_gets_whole_revisions() {
    let mut store = store_of(&[("s/a", "1"), ("t", "1")]);
    let both = put("s/b", "1").put(path("s/c"), "1");
    store.apply(&Actor::System, &both).unwrap();
    store.apply(&Actor::System, &Transaction::new().delete(path("s/a"))).unwrap();
    let (first, up_to) = store.history().after("s/", 0, store.revision(), 2).unwrap();
    let seen: Vec<_> = first.iter().map(|it| (it.revision, it.path.as_str())).collect();
    assert_eq!((seen, up_to), (vec![(1, "s/a"), (3, "s/b"), (3, "s/c")], 3));
    let (rest, up_to) = store.history().after("s/", up_to, store.revision(), 2).unwrap();
    assert_eq!((rest.len(), rest[0].value.is_none(), up_to), (1, true, 4));
    let (none, up_to) = store.history().after("s/", 4, store.revision(), 2).unwrap();
    assert_eq!((none.len(), up_to), (0, 4));
}

#[test]
fn entries_that_are_not_of_one_store_are_refused() {
    let store = store_of(&[("a", "1"), ("b", "2")]);
    let entries = || store.entries().map(|(path, entry)| (path.clone(), entry.clone()));
    assert_eq!(Store::restore(2, entries().collect()).unwrap(), store);
    for (revision, wrong) in [
        (1, entries().collect::<Vec<_>>()),
        (2, entries().rev().collect()),
        (2, entries().chain(entries()).collect()),
    ] {
        let error = Store::restore(revision, wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}

#[test]
fn who_is_too_far_behind_is_told_to_list_anew() {
    let mut store = Store::new();
    for _ in 0..=HISTORY_MAX {
        store.apply(&Actor::System, &put("a", "1")).unwrap();
    }
    store.invariants();
    let after = |revision| store.history().after("", revision, store.revision(), 1);
    assert_eq!(after(0).unwrap_err().kind(), ErrorKind::SnapshotTooOld);
    assert_eq!(after(1).unwrap().0[0].revision, 2);
    let again = restored(&store);
    let error = again.history().after("", 1, again.revision(), 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SnapshotTooOld);
}

/// The model: what each key holds, and when it came to be and changed.
#[derive(Default)]
struct Model {
    entries: BTreeMap<String, (Bytes, u64, u64)>,
    revision: u64,
}

impl Model {
    fn holds(&self, condition: &Condition) -> bool {
        let found = self.entries.get(condition.path.as_str());
        match condition.expected {
            Expected::Revision(revision) => found.is_some_and(|it| it.2 == revision),
            Expected::Absent => found.is_none(),
            Expected::Present => found.is_some(),
        }
    }

    fn apply(&mut self, transaction: &Transaction) -> Option<u64> {
        if !transaction.conditions.iter().all(|condition| self.holds(condition)) {
            return None;
        }
        let next = self.revision + 1;
        for alteration in &transaction.alterations {
            let key = alteration.path().to_string();
            match alteration.value() {
                Some(value) => {
                    let created = self.entries.get(&key).map_or(next, |it| it.1);
                    self.entries.insert(key, (value.clone(), created, next));
                    self.revision = next;
                }
                None => {
                    if self.entries.remove(&key).is_some() {
                        self.revision = next;
                    }
                }
            }
        }
        Some(self.revision)
    }
}

fn any_path() -> impl Strategy<Value = Path> {
    "[ab]/[a-c]".prop_map(|text| path(&text))
}

fn any_transaction() -> impl Strategy<Value = Transaction> {
    let expected = prop_oneof![
        (0_u64..12).prop_map(Expected::Revision),
        Just(Expected::Absent),
        Just(Expected::Present),
    ];
    let condition =
        (any_path(), expected).prop_map(|(path, expected)| Condition { path, expected });
    let value = proptest::collection::vec(any::<u8>(), 0..5).prop_map(Bytes::from);
    let alteration = prop_oneof![
        3 => (any_path(), value).prop_map(|(path, value)| Alteration::Put { path, value }),
        1 => any_path().prop_map(|path| Alteration::Delete { path }),
    ];
    let conditions = proptest::collection::vec(condition, 0..2);
    let alterations = proptest::collection::vec(alteration, 0..4);
    (conditions, alterations)
        .prop_map(|(conditions, alterations)| Transaction { conditions, alterations })
}

proptest! {
    #[test]
    fn the_store_answers_like_its_model_and_a_watch_gives_the_same(
        transactions in proptest::collection::vec(any_transaction(), 1..40),
        restored_at in 0_usize..40,
        page in 1_usize..4,
    ) {
        let (mut store, mut model) = (Store::new(), Model::default());
        let mut watched: BTreeMap<String, Bytes> = BTreeMap::new();
        let mut seen = 0;
        for (at, transaction) in transactions.iter().enumerate() {
            let answer = store.apply(&Actor::System, transaction).ok();
            prop_assert_eq!(answer, model.apply(transaction));
            store.invariants();
            if at == restored_at {
                // A watch that has seen everything goes on over a restored store.
                while seen < store.revision() {
                    seen = watch(&store, &mut watched, seen, page);
                }
                let again = restored(&store);
                prop_assert_eq!(&again, &store);
                store = again;
            }
            if at % 3 == 0 {
                seen = watch(&store, &mut watched, seen, page);
            }
        }
        while seen < store.revision() {
            seen = watch(&store, &mut watched, seen, page);
        }
        let listed = store.list(&Actor::System, "", None, LIST_MAX);
        let expected: Vec<_> =
            model.entries.iter().map(|(key, it)| (key.clone(), it.clone())).collect();
        let listed: Vec<_> = listed.into_iter()
            .map(|(path, it)| (path.to_string(), (it.value, it.created, it.changed))).collect();
        prop_assert_eq!(&listed, &expected);
        let held: BTreeMap<String, Bytes> =
            listed.into_iter().map(|(key, it)| (key, it.0)).collect();
        prop_assert_eq!(watched, held);
    }
}

/// One page of what a watch is told, worked into what it knows.
fn watch(store: &Store, known: &mut BTreeMap<String, Bytes>, seen: u64, page: usize) -> u64 {
    let (changes, up_to) = store.history().after("", seen, store.revision(), page).unwrap();
    for change in changes {
        assert!(change.revision > seen && change.revision <= up_to);
        match change.value {
            Some(value) => known.insert(change.path.to_string(), value),
            None => known.remove(change.path.as_str()),
        };
    }
    up_to
}
