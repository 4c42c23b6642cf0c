//! What values may be: guards of prefixes, which administrators put.
//!
//! A key `guards/<prefix>` says what all keys that begin with that prefix may hold, and how they
//! may change. Of all prefixes that a key begins with, the longest that has a guard decides, alone.
//! Its value is text, one rule a line:
//!
//! ```text
//!   guards/service/log/   ──►   bytes: 1..64          so long, from and to
//!                               value: text           UTF-8; or `number`, a whole one in decimal
//!                               range: 1..100         of numbers, from and to
//!                               change: once          never again once it is there; or `up`: a
//!                                                     number that only grows, and stays
//! ```
//!
//! A guard is looked at before a transaction is agreed on, and what is agreed on is the plain
//! transaction: where a rule is about what was there before, with a condition that it still is. So
//! programs that know nothing of guards apply the same. It holds for all that is asked after the
//! put of it was answered.

use tyr_types::{Error, ErrorKind, Result};

use super::access::Actor;
use super::{Alteration, Expected, Path, Store, Transaction};

/// Where guards are kept.
pub const PREFIX: &str = "guards/";

/// What a guard says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    bytes: Option<(usize, usize)>,
    is_text: bool,
    is_number: bool,
    range: Option<(i64, i64)>,
    change: Change,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Change {
    #[default]
    Free,
    Once,
    Up,
}

impl Guard {
    /// Reads the value of an entry.
    ///
    /// # Errors
    /// `InvalidArgument` that says what the lines look like.
    pub fn parse(value: &[u8]) -> Result<Self> {
        let wrong = |what: &str| {
            Error::invalid(format!(
                "a guard is lines such as \"bytes: 1..64\", \"value: text\" or \"value: number\", \
                 \"range: 1..100\", \"change: once\" or \"change: up\"; {what}"
            ))
        };
        let text = std::str::from_utf8(value).map_err(|_| wrong("these are not UTF-8"))?;
        let mut guard = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let Some((rule, says)) = line.split_once(':') else {
                return Err(wrong(&format!("there is no colon in {line:?}")));
            };
            let none = || wrong(&format!("{line:?} is none"));
            match (rule.trim(), says.trim()) {
                ("bytes", says) => guard.bytes = Some(bounds(says).ok_or_else(none)?),
                ("value", "text") => guard.is_text = true,
                ("value", "number") => guard.is_number = true,
                ("range", says) => guard.range = Some(bounds(says).ok_or_else(none)?),
                ("change", "once") => guard.change = Change::Once,
                ("change", "up") => guard.change = Change::Up,
                _ => return Err(none()),
            }
        }
        // What these two say is said of numbers only.
        guard.is_number |= guard.range.is_some() || guard.change == Change::Up;
        Ok(guard)
    }

    /// Refuses a value that no key may hold.
    fn check_value(&self, path: &Path, value: &[u8]) -> Result<()> {
        let refused = |what: String| Err(refusal(path, &what));
        if let Some((least, most)) = self.bytes
            && !(least..=most).contains(&value.len())
        {
            return refused(format!("has {least} to {most} bytes, not {}", value.len()));
        }
        if self.is_text && std::str::from_utf8(value).is_err() {
            return refused("is UTF-8".to_owned());
        }
        let number = number(value);
        if self.is_number && number.is_none() {
            return refused("is a whole number in decimal, of 64 bits".to_owned());
        }
        match (self.range, number) {
            (Some((least, most)), Some(number)) if !(least..=most).contains(&number) => {
                refused(format!("is from {least} to {most}, not {number}"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a change from one value to another, `None` for none.
    fn check_change(&self, path: &Path, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<()> {
        match (self.change, old, new) {
            (Change::Free, _, _) | (_, None, _) => Ok(()),
            (Change::Once, Some(_), _) => Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("{path}: its guard lets it be put once, and it is there"),
            )),
            (Change::Up, Some(_), None) => Err(refusal(path, "stays, once it is there")),
            (Change::Up, Some(old), Some(new)) if number(old) >= number(new) => {
                let old = String::from_utf8_lossy(old);
                Err(refusal(path, &format!("only grows, and is {old} already")))
            }
            (Change::Up, Some(_), Some(_)) => Ok(()),
        }
    }
}

fn refusal(path: &Path, what: &str) -> Error {
    Error::invalid(format!("{path}: by its guard it {what}"))
}

fn number(value: &[u8]) -> Option<i64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// `LEAST..MOST`.
fn bounds<T: std::str::FromStr + PartialOrd>(says: &str) -> Option<(T, T)> {
    let (least, most) = says.split_once("..")?;
    let (least, most) = (least.trim().parse().ok()?, most.trim().parse().ok()?);
    (least <= most).then_some((least, most))
}

/// What is to be agreed on for a transaction that somebody asks for: the transaction, and that what
/// the guards were asked about stays so.
///
/// # Errors
/// `InvalidArgument`, or `AlreadyExists` for what is put once, with the guard's rule;
/// `PermissionDenied` for guards that are put by who is no administrator.
pub fn guarded(store: &Store, actor: &Actor, transaction: &Transaction) -> Result<Transaction> {
    let mut guarded = transaction.clone();
    if !is_concerned(store, transaction) {
        return Ok(guarded);
    }
    for (index, alteration) in transaction.alterations.iter().enumerate() {
        let (path, new) = (alteration.path(), alteration.value().map(|value| &value[..]));
        if path.as_str().starts_with(PREFIX) {
            check_administrator(actor, path)?;
            new.map(Guard::parse).transpose()?;
        }
        let Some(guard) = deciding(store, path.as_str()) else { continue };
        new.map_or(Ok(()), |new| guard.check_value(path, new))?;
        if guard.change == Change::Free {
            continue;
        }
        let own = transaction.alterations[..index].iter().rev().find(|it| it.path() == path);
        let entry = store.get(path.as_str());
        let old = match own {
            Some(own) => own.value().map(|value| &value[..]),
            None => entry.map(|entry| &entry.value[..]),
        };
        guard.check_change(path, old, new)?;
        if own.is_none() {
            let expected =
                entry.map_or(Expected::Absent, |entry| Expected::Revision(entry.changed));
            guarded = guarded.when(path.clone(), expected);
        }
    }
    Ok(guarded)
}

/// Whether anything that a transaction changes may be guarded: else it needs no look.
fn is_concerned(store: &Store, transaction: &Transaction) -> bool {
    let is_guard = |it: &Alteration| it.path().as_str().starts_with(PREFIX);
    store.paths(PREFIX).next().is_some() || transaction.alterations.iter().any(is_guard)
}

fn check_administrator(actor: &Actor, path: &Path) -> Result<()> {
    match actor {
        Actor::System | Actor::User { is_administrator: true, .. } => Ok(()),
        Actor::User { name, .. } => Err(Error::new(
            ErrorKind::PermissionDenied,
            format!("{name} may not write {path}: guards are for administrators"),
        )),
    }
}

/// The guard of the longest prefix of the key that has one.
fn deciding(store: &Store, path: &str) -> Option<Guard> {
    let lengths: Vec<usize> = path.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
    let guards = lengths.into_iter().rev().map(|len| format!("{PREFIX}{}", &path[..len]));
    let entry = guards.filter_map(|guard| store.get(&guard)).next()?;
    // Only what can be read is ever put; what cannot guards nothing.
    Guard::parse(&entry.value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        Path::new(text).unwrap()
    }

    fn put(key: &str, value: &str) -> Transaction {
        Transaction::new().put(path(key), value.to_owned())
    }

    fn user() -> Actor {
        Actor::User { name: "bob".to_owned(), is_administrator: false }
    }

    /// A store with a guard.
    fn store(prefix: &str, rules: &str) -> Store {
        let mut store = Store::new();
        store.apply(&Actor::System, &put(&format!("{PREFIX}{prefix}"), rules)).unwrap();
        store
    }

    /// Asks for a transaction as whoever agrees on it does.
    fn ask(store: &mut Store, transaction: Transaction) -> Result<u64> {
        let guarded = guarded(store, &Actor::System, &transaction)?;
        store.apply(&Actor::System, &guarded)
    }

    #[test]
    fn values_are_what_the_guard_of_the_longest_prefix_says() {
        let mut store = store("s/", "bytes: 2..4\nvalue: text");
        ask(&mut store, put("guards/s/n/", "range: -1..100")).unwrap();
        for (key, value) in [("s/a", "ab"), ("s/a", "abcd"), ("s/n/a", "100"), ("t", "")] {
            ask(&mut store, put(key, value)).unwrap();
        }
        for (key, value, says) in [
            ("s/a", "a", "2 to 4 bytes, not 1"),
            ("s/a", "abcde", "not 5"),
            ("s/n/a", "101", "from -1 to 100, not 101"),
            ("s/n/a", "x", "a whole number"),
        ] {
            let error = ask(&mut store, put(key, value)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.message().contains(says), "{error}");
        }
        let binary = Transaction::new().put(path("s/a"), vec![0xff, 0xfe]);
        assert!(ask(&mut store, binary).unwrap_err().message().contains("UTF-8"));
        ask(&mut store, Transaction::new().delete(path("guards/s/"))).unwrap();
        ask(&mut store, put("s/a", "anything goes")).unwrap();
    }

    #[test]
    fn what_is_put_once_stays_and_what_goes_up_never_goes_back() {
        let mut store = store("once/", "change: once");
        ask(&mut store, put("guards/up/", "change: up")).unwrap();
        ask(&mut store, put("once/a", "x")).unwrap();
        for again in [put("once/a", "x"), Transaction::new().delete(path("once/a"))] {
            let error = ask(&mut store, again).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
        }
        ask(&mut store, put("up/a", "9")).unwrap();
        ask(&mut store, put("up/a", "10")).unwrap();
        for back in [put("up/a", "10"), put("up/a", "9"), Transaction::new().delete(path("up/a"))] {
            assert_eq!(ask(&mut store, back).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        // Within one transaction, too.
        let twice = put("up/b", "2").put(path("up/b"), "1");
        ask(&mut store, twice).unwrap_err();
        ask(&mut store, put("up/b", "1").put(path("up/b"), "2")).unwrap();
    }

    #[test]
    fn of_two_who_were_let_pass_side_by_side_the_second_is_a_conflict() {
        let mut store = store("once/", "change: once");
        let [one, two] =
            ["1", "2"].map(|value| guarded(&store, &Actor::System, &put("once/a", value)).unwrap());
        store.apply(&Actor::System, &one).unwrap();
        let error = store.apply(&Actor::System, &two).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
    }

    #[test]
    fn guards_are_for_administrators_and_say_what_is_wrong_with_them() {
        let mut store = Store::new();
        let error = guarded(&store, &user(), &put("guards/s/", "change: once")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        for wrong in ["bytes", "bytes: 3..2", "range: a..b", "value: json", "change: down"] {
            let error = ask(&mut store, put("guards/s/", wrong)).unwrap_err();
            assert!(error.message().contains("a guard is lines such as"), "{error}");
        }
        assert!(!is_concerned(&store, &put("s/a", "x")));
        assert!(is_concerned(&store, &put("guards/s/", "change: once")));
    }
}
