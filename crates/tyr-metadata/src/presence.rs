//! Entries that are bound to somebody's presence: they go when it does.
//!
//! What is bound is an entry as any other. Beside it lies a record, written in the same
//! transaction:
//!
//! ```text
//!   cluster/presence/<id>        that somebody is there, and until when without a word from them
//!   cluster/bound/<id>/<path>    that the entry at <path>, as of this record's revision, is theirs
//! ```
//!
//! So an entry that somebody has changed since is not bound any more: its revision is another. A
//! record without a presence is of one that is over: what it is of goes, and the record with it.
//!
//! Must not know: when a presence is over. Monitors say so by time, a directory by being opened.

use tyr_types::{Error, Result};

use super::access;
use super::limits::{PATH_LEN_MAX, TRANSACTION_STEPS_MAX};
use super::{Expected, Path, Store, Transaction, reserved};

/// That somebody is there, one key for each.
pub const PRESENCE: &str = "cluster/presence/";

/// What is bound to somebody's presence, one key for each entry.
pub const BOUND: &str = "cluster/bound/";

/// Bytes of the key of an entry that is bound: its record has the rest of a key's.
pub const BOUND_PATH_LEN_MAX: usize = PATH_LEN_MAX - BOUND.len() - ID_LEN - 1;

/// Digits of an id.
const ID_LEN: usize = 16;

/// Entries that go in one transaction: of each, a condition, the entry and its record.
pub const REMOVED_MAX: usize = (TRANSACTION_STEPS_MAX - 1) / 3;

const _: () = assert!(0 < BOUND_PATH_LEN_MAX && 3 * REMOVED_MAX < TRANSACTION_STEPS_MAX);

/// Where it lies that somebody is there.
pub fn presence(id: u64) -> Path {
    reserved::path(&format!("{PRESENCE}{id:016x}"))
}

/// Whose presence lies there.
pub fn presence_id(path: &str) -> Option<u64> {
    u64::from_str_radix(path.strip_prefix(PRESENCE)?, 16).ok()
}

/// Where it lies that an entry is bound.
fn record(id: u64, path: &Path) -> Path {
    reserved::path(&format!("{BOUND}{id:016x}/{path}"))
}

/// To whom an entry is bound, and which, by the key of its record.
fn bound(record: &str) -> Option<(u64, &str)> {
    let (id, path) = record.strip_prefix(BOUND)?.split_once('/')?;
    Some((u64::from_str_radix(id, 16).ok()?, path))
}

/// The transaction with what it puts bound to a presence.
///
/// # Errors
/// `InvalidArgument` for the cluster's own keys, and those that are too long.
pub fn bind(transaction: &Transaction, id: u64) -> Result<Transaction> {
    let mut binding = transaction.clone();
    for alteration in &transaction.alterations {
        let path = alteration.path();
        let own = [reserved::CLUSTER, reserved::USERS, reserved::QUOTAS, access::PREFIX];
        if own.iter().any(|prefix| path.as_str().starts_with(prefix)) {
            return Err(Error::invalid(format!(
                "{path}: what is the cluster's own is not bound to anybody's presence"
            )));
        }
        if path.as_str().len() > BOUND_PATH_LEN_MAX {
            return Err(Error::invalid(format!(
                "a key that is bound has at most {BOUND_PATH_LEN_MAX} bytes, {path} has {}",
                path.as_str().len()
            )));
        }
        binding = match alteration.value() {
            Some(_) => binding.put(record(id, path), Vec::new()),
            None => binding.delete(record(id, path)),
        };
    }
    binding.check()?;
    Ok(binding)
}

/// Takes away what is bound to a presence that is not there, at most [`REMOVED_MAX`] entries of it,
/// those of `only` alone if it is said; nothing where there is nothing.
pub fn removal(store: &Store, only: Option<u64>) -> Transaction {
    let prefix = only.map_or(BOUND.to_owned(), |id| format!("{BOUND}{id:016x}/"));
    let is_over = |id: u64| store.get(presence(id).as_str()).is_none();
    let mut removal = Transaction::new();
    let records = store.paths(&prefix).filter_map(|record| Some((record, bound(record.as_str())?)));
    for (record, (_, path)) in records.filter(|(_, (id, _))| is_over(*id)).take(REMOVED_MAX) {
        let bound_at = store.get(record.as_str()).map(|it| it.changed);
        let is_bound = store.get(path).is_some_and(|it| Some(it.changed) == bound_at);
        if let (true, Some(revision), Ok(path)) = (is_bound, bound_at, Path::new(path)) {
            removal = removal.when(path.clone(), Expected::Revision(revision)).delete(path);
        }
        removal = removal.delete(record.clone());
    }
    removal
}

#[cfg(test)]
mod tests {
    use tyr_types::ErrorKind;

    use super::*;
    use crate::Actor;

    fn path(text: &str) -> Path {
        Path::new(text).unwrap()
    }

    fn apply(store: &mut Store, transaction: &Transaction) -> u64 {
        store.apply(&Actor::System, transaction).unwrap()
    }

    fn put(key: &str) -> Transaction {
        Transaction::new().put(path(key), "x")
    }

    /// The keys that are not the cluster's own.
    fn keys(store: &Store) -> Vec<&str> {
        store.entries().map(|(path, _)| path.as_str()).filter(|it| it.starts_with("s/")).collect()
    }

    #[test]
    fn what_is_bound_goes_with_its_presence_unless_somebody_has_changed_it() {
        let mut store = Store::new();
        apply(&mut store, &Transaction::new().put(presence(7), "").put(presence(8), ""));
        for key in ["s/a", "s/b", "s/c", "s/d"] {
            apply(&mut store, &bind(&put(key), 7).unwrap());
        }
        apply(&mut store, &bind(&put("s/e"), 8).unwrap());
        apply(&mut store, &put("s/b"));
        apply(&mut store, &bind(&put("s/c"), 8).unwrap());
        apply(&mut store, &bind(&Transaction::new().delete(path("s/d")), 7).unwrap());
        assert_eq!(removal(&store, None), Transaction::new(), "both are there");
        apply(&mut store, &Transaction::new().delete(presence(7)));
        assert_eq!(removal(&store, Some(8)), Transaction::new());
        let gone = removal(&store, None);
        apply(&mut store, &gone);
        assert_eq!(keys(&store), ["s/b", "s/c", "s/e"]);
        assert_eq!(removal(&store, None), Transaction::new());
        apply(&mut store, &Transaction::new().delete(presence(8)));
        let gone = removal(&store, Some(8));
        apply(&mut store, &gone);
        assert_eq!(keys(&store), ["s/b"]);
        assert_eq!(store.paths(BOUND).count(), 0);
    }

    #[test]
    fn a_removal_that_somebody_was_faster_than_takes_nothing() {
        let mut store = Store::new();
        apply(&mut store, &bind(&put("s/a"), 7).unwrap());
        let gone = removal(&store, None);
        apply(&mut store, &put("s/a"));
        let refused = store.apply(&Actor::System, &gone).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
    }

    #[test]
    fn much_goes_in_several_steps() {
        let mut store = Store::new();
        for number in 0..2 * REMOVED_MAX + 1 {
            apply(&mut store, &bind(&put(&format!("s/{number}")), 7).unwrap());
        }
        let mut steps = 0;
        loop {
            let gone = removal(&store, None);
            if gone == Transaction::new() {
                break;
            }
            apply(&mut store, &gone);
            steps += 1;
        }
        assert_eq!((steps, keys(&store).len()), (3, 0));
    }

    #[test]
    fn the_clusters_own_keys_and_long_ones_are_not_bound() {
        for own in ["cluster/map", "users/a", "quotas/1", "access/s/"] {
            assert!(bind(&put(own), 1).unwrap_err().message().contains("cluster's own"));
        }
        let long = "s".repeat(BOUND_PATH_LEN_MAX + 1);
        assert!(bind(&put(&long), 1).unwrap_err().message().contains("at most"));
        assert!(bind(&put(&long[1..]), 1).is_ok());
        assert_eq!(presence_id(presence(0xab).as_str()), Some(0xab));
    }
}
