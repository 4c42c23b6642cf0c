//! Whether what was listed is still so (Q3), against a model: whatever is deleted, folded and
//! forgotten meanwhile.

use super::*;

fn is_stale(store: &Store, keys: KeyRange, is_keys_only: bool, when: u64) -> bool {
    store.is_listing_stale(KEYSPACE, &Listed { keys, is_keys_only }, at(when)).unwrap()
}

fn all() -> KeyRange {
    KeyRange::of(b"k", None)
}

#[test]
fn a_listing_is_stale_when_a_key_came_went_or_was_written_since() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    change(&store, 1, Some(10), 5, EVERYWHERE);
    assert!(!is_stale(&store, all(), false, 5));
    change(&store, 2, Some(20), 6, EVERYWHERE);
    change(&store, 1, Some(11), 7, EVERYWHERE);
    change(&store, 2, None, 8, EVERYWHERE);
    let seen = |when| [false, true].map(|is_keys_only| is_stale(&store, all(), is_keys_only, when));
    assert_eq!([5, 6, 7, 8].map(seen), [[true, false], [true, true], [true, true], [false, false]]);
    let beside = KeyRange { start: vec![b'k', 3].into(), end: None };
    assert!(!is_stale(&store, beside, false, 4));
    let other = Listed { keys: all(), is_keys_only: false };
    assert!(!store.is_listing_stale(KeyspaceId(9), &other, at(4)).unwrap());
}

/// A key that went and of which nothing tells any more.
#[test]
fn where_it_is_not_known_what_there_was_a_listing_is_stale() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    change(&store, 1, Some(10), 5, EVERYWHERE);
    change(&store, 1, None, 7, 7);
    fold(&store, 8);
    shrink(&store);
    assert!(is_stale(&store, all(), true, 6) && !is_stale(&store, all(), true, 7));
    store.base().close();
    drop(store);
    let store = open(folder.path());
    assert!(is_stale(&store, all(), true, 7), "the base is of 8, and knows nothing before");
    assert!(!is_stale(&store, all(), true, 8));
}

#[test]
fn more_keys_than_a_transaction_lists_are_stale() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let put = |number: usize| {
        let key = Key::new(format!("many/{number}")).unwrap();
        let cell = store.chunk(&BlobName { keyspace: KEYSPACE, key }).unwrap();
        let (create, start) = (std::slice::from_ref(&Operation::Create), Start::Known(0));
        store.apply_chunk(&cell, PLACE, create, start, at(5), Readers::from(at(0))).unwrap();
    };
    (0..limits::TRANSACTION_LISTED_MAX).for_each(put);
    assert!(!is_stale(&store, KeyRange::of(b"many/", None), false, 5));
    put(limits::TRANSACTION_LISTED_MAX);
    assert!(is_stale(&store, KeyRange::of(b"many/", None), false, 5));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tyr_chance::part(64)))]

    #[test]
    fn what_is_stale_is_what_has_changed_or_is_forgotten(acts in acts(), low in 0..8_u8) {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let keys = KeyRange { start: vec![b'k', low].into(), end: Some(vec![b'k', 7].into()) };
        let is_in = |number: &u8| keys.contains(key(*number).as_bytes());
        // Of each key the version that is there; when one was touched last.
        let (mut model, mut touched) = (BTreeMap::new(), 0);
        let mut moments = vec![BTreeMap::new()];
        for (act, when) in acts.iter().zip(1..) {
            match act {
                Act::Change { number, size, keeps } => {
                    change(&store, *number, *size, when, if *keeps { EVERYWHERE } else { when });
                    if is_in(number) {
                        touched = when;
                        match size {
                            Some(_) => model.insert(*number, when),
                            None => model.remove(number),
                        };
                    }
                }
                Act::Fold => fold(&store, when),
                Act::Shrink => shrink(&store),
            }
            moments.push(model.clone());
            for (moment, then) in (0..).zip(&moments) {
                let [whole, by_key] = [false, true]
                    .map(|is_keys_only| is_stale(&store, keys.clone(), is_keys_only, moment));
                prop_assert!(whole || model == *then, "at {}", moment);
                prop_assert!(by_key || model.keys().eq(then.keys()), "keys at {}", moment);
                if touched <= moment && listed(&store, moment, 100).is_ok() {
                    prop_assert!(!whole && !by_key, "nothing has changed since {}", moment);
                }
            }
        }
    }
}
