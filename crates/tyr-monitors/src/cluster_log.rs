//! The cluster log: what happened to the cluster, for who looks back later.
//!
//! ```text
//!   cluster/log/0000000012                        what became different with the map of epoch 12
//!   cluster/log/0000000012.0000000000.user        what a user did while it was in effect
//!   cluster/log/0000000012.0000000001.node-3-…    what node 3 said while it was
//! ```
//!
//! An entry of a map is written with that map, and one of a user's act with what the user changes,
//! each in one transaction: none is missing, and none is of what never was. What nodes say comes
//! by a request of its own, and is noted once however often it comes. The leader numbers entries
//! within an epoch. Of each kind the oldest go.
//!
//! A value is the wall clock of the leader in microseconds since 1970, perhaps ` by ` and users,
//! and then lines. Where others have filled the store, nothing is noted, and what it would be about
//! takes effect all the same.

use tyr_control::message::{REMARK_LEN_MAX, REMARKS_MAX, Remark, Remarks};
use tyr_control::{Fault, NodeRecord};
use tyr_metadata::access::ANYBODY;
use tyr_metadata::limits::{LIST_MAX, TRANSACTION_STEPS_MAX};
use tyr_metadata::{Actor, Alteration, Path, Store, Transaction, access, reserved};
use tyr_protocol::map::ClusterMap;
use tyr_protocol::wire;
use tyr_runtime::clock;
use tyr_types::{Error, ErrorKind};

use super::monitor::Monitor;

/// Entries of maps that are kept: as many as one listing answers.
const ENTRIES_MAX: usize = LIST_MAX;

/// Entries of what happened that are kept: of twenty a minute, some hours.
pub(super) const EVENTS_MAX: usize = 4096;

/// Lines of one entry; the rest are counted. All entries together then take 10 MB at most.
const LINES_MAX: usize = 100;

/// That the same node is refused is noted once in so long: it asks again every few seconds.
const REFUSED_EVERY_US: u64 = 3_600_000_000;

/// Bytes of a line of a user's act.
const LINE_LEN_MAX: usize = 512;

const _: () = assert!(ENTRIES_MAX > 1 && LINES_MAX > 1 && EVENTS_MAX > 2 * REMARKS_MAX);
const _: () = assert!(2 * REMARKS_MAX < TRANSACTION_STEPS_MAX, "each may take the place of one");

/// The user who acts; `None`: the cluster itself, or somebody without a name.
pub(super) fn user(actor: &Actor) -> Option<&str> {
    match actor {
        Actor::System => None,
        Actor::User { name, .. } => Some(name.as_str()).filter(|name| *name != ANYBODY),
    }
}

/// The first line of an entry.
fn head(now_us: u64, by: &[String]) -> String {
    match by {
        [] => now_us.to_string(),
        by => format!("{now_us} by {}", by.join(", ")),
    }
}

/// Adds an entry to what publishes a map: a line for each difference from the map in effect, and
/// the users who asked for it. None where only the epoch is another.
pub(super) fn note(
    publish: Transaction,
    store: &Store,
    map: &ClusterMap,
    by: &[String],
    now_us: u64,
) -> Transaction {
    let before = store.get(reserved::MAP).and_then(|entry| wire::decode_map(&entry.value).ok());
    let Some(mut lines) = before.map(|before| map.differences(&before)) else { return publish };
    if lines.is_empty() {
        return publish;
    }
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(format!("and {more} more"));
    }
    let value = format!("{}\n{}", head(now_us, by), lines.join("\n"));
    let mut noted = publish.clone().put(reserved::log_entry(map.epoch.0), value);
    if let Some(oldest) = oldest(store, is_of_map, ENTRIES_MAX, 1).pop() {
        noted = noted.delete(oldest);
    }
    // The map counts, also where others have filled the store.
    if store.has_room_for(&noted) { noted } else { publish }
}

fn is_of_map(path: &Path) -> bool {
    matches!(reserved::log_place(path.as_str()), Some((_, None)))
}

fn is_of_event(path: &Path) -> bool {
    matches!(reserved::log_place(path.as_str()), Some((_, Some(_))))
}

/// The oldest entries of a kind that have to go for `more` to come.
fn oldest(store: &Store, is_of_kind: fn(&Path) -> bool, max: usize, more: usize) -> Vec<Path> {
    let of_kind = || store.paths(reserved::LOG).filter(|path| is_of_kind(path));
    let excess = (of_kind().count() + more).saturating_sub(max);
    // What is beyond by more was left by others; it goes in time.
    of_kind().take(excess.min(2 * more)).cloned().collect()
}

/// The last number that an entry has in each epoch that this leader wrote in, at least.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    epoch: u32,
    next: u64,
}

impl Numbers {
    /// The next number in the epoch that is in effect.
    fn take(&mut self, store: &Store) -> (u32, u64) {
        let last = store.paths(reserved::LOG).filter_map(|path| reserved::log_place(path.as_str()));
        let last = last.max_by_key(|(epoch, event)| (*epoch, event.map(|(number, _)| number)));
        let map = store.get(reserved::MAP).and_then(|entry| wire::decode_map(&entry.value).ok());
        let in_effect = map.map_or(0, |map| map.epoch.0);
        let (epoch, next) = match last {
            Some((epoch, event)) if epoch >= in_effect => {
                (epoch, event.map_or(0, |(number, _)| number + 1))
            }
            Some(_) | None => (in_effect, 0),
        };
        match self.epoch.cmp(&epoch) {
            std::cmp::Ordering::Less => (self.epoch, self.next) = (epoch, next),
            std::cmp::Ordering::Equal => self.next = self.next.max(next),
            // What it gave in a later epoch is not in the store yet.
            std::cmp::Ordering::Greater => {}
        }
        self.next += 1;
        (self.epoch, self.next - 1)
    }
}

impl Monitor {
    /// Adds an entry to what a user changes of what is the cluster's own: users, quotas, rights,
    /// and what lies under `cluster/`; and to what is done to a class of objects. It is numbered,
    /// and told what was there before, by what is here: whoever asks is the leader, and current.
    pub(super) fn note_act(&self, actor: &Actor, transaction: Transaction) -> Transaction {
        let Actor::User { .. } = actor else { return transaction };
        if !transaction.alterations.iter().any(is_act) {
            return transaction;
        }
        let store = self.shared.committed.read();
        let acts = transaction.alterations.iter().filter(|it| is_act(it));
        let mut lines: Vec<String> = acts.map(|it| self.describe(&store, it)).collect();
        if lines.len() > LINES_MAX {
            lines.truncate(LINES_MAX);
            lines.push("and more".to_owned());
        }
        self.with_act(actor, transaction, &store, lines.join("\n"))
    }

    /// Adds an entry of what somebody does, unless there is no room for it.
    pub(super) fn with_act(
        &self,
        actor: &Actor,
        transaction: Transaction,
        store: &Store,
        text: String,
    ) -> Transaction {
        let by: Vec<String> = user(actor).into_iter().map(str::to_owned).collect();
        let value = format!("{}\n{text}", head(clock::now_us(), &by));
        let noted = self.with_event(transaction.clone(), store, "user", value);
        let has_steps = noted.conditions.len() + noted.alterations.len() <= TRANSACTION_STEPS_MAX;
        if has_steps && store.has_room_for(&noted) { noted } else { transaction }
    }

    /// What a change of an entry is, in words.
    fn describe(&self, store: &Store, alteration: &Alteration) -> String {
        let path = alteration.path();
        let before = store.get(path.as_str()).map(|entry| &entry.value[..]);
        let after = alteration.value().map(|value| &value[..]);
        let known = (self.shared.options.describe)(path, before, after);
        let said = known.unwrap_or_else(|| match after {
            Some(_) => format!("{path} was changed"),
            None => format!("{path} was removed"),
        });
        shortened(said, LINE_LEN_MAX)
    }

    /// Adds an entry, under the next number, and lets the oldest go.
    fn with_event(
        &self,
        transaction: Transaction,
        store: &Store,
        of: &str,
        value: String,
    ) -> Transaction {
        let (epoch, number) = self.shared.log_numbers.lock().take(store);
        let noted = transaction.put(reserved::log_event(epoch, number, of), value);
        let oldest = oldest(store, is_of_event, EVENTS_MAX, 1);
        oldest.into_iter().fold(noted, Transaction::delete)
    }

    /// Notes what a node says; what was noted before is not noted again.
    pub(super) async fn note_remarks(&self, actor: &Actor, said: Remarks) -> Result<(), Fault> {
        let refused = |error: Error| Fault::Refused(error.into());
        if *actor != Actor::System {
            let text = "only nodes note what happens at nodes";
            return Err(refused(Error::new(ErrorKind::PermissionDenied, text)));
        }
        let Remarks { node, run, first, remarks } = said;
        if remarks.len() > REMARKS_MAX {
            let text = format!("at most {REMARKS_MAX} remarks at once, not {}", remarks.len());
            return Err(refused(Error::invalid(text)));
        }
        self.be_current().await?;
        let noted = {
            let store = self.shared.committed.read();
            let name = |number: u64| format!("node-{node}-{run:016x}-{number}");
            let is_known = |of: &str| {
                let mut noted = store.paths(reserved::LOG);
                noted.any(|path| {
                    let place = reserved::log_place(path.as_str());
                    matches!(place, Some((_, Some((_, other)))) if other == of)
                })
            };
            let now_us = clock::now_us();
            let mut noted = Transaction::new();
            for (number, Remark { ago_ms, text }) in (first..).zip(remarks) {
                let of = name(number);
                if is_known(&of) {
                    continue;
                }
                let at_us = now_us.saturating_sub(ago_ms.saturating_mul(1000));
                let line = shortened(text.replace('\n', " "), REMARK_LEN_MAX);
                let (epoch, number) = self.shared.log_numbers.lock().take(&store);
                let value = format!("{}\nnode {node}: {line}", head(at_us, &[]));
                noted = noted.put(reserved::log_event(epoch, number, &of), value);
            }
            let oldest = oldest(&store, is_of_event, EVENTS_MAX, noted.alterations.len());
            oldest.into_iter().fold(noted, Transaction::delete)
        };
        match noted.alterations.is_empty() {
            true => Ok(()),
            false => self.write(&Actor::System, noted).await.map(|_| ()),
        }
    }
}

impl Monitor {
    /// Refuses a node whose program is too old for the cluster, and notes that, once in a while.
    pub(super) async fn check_program(&self, record: &NodeRecord) -> Result<(), Fault> {
        let (error, noted) = {
            let store = self.shared.committed.read();
            let map = store.get(reserved::MAP).map(|entry| wire::decode_map(&entry.value));
            let checked = map.and_then(Result::ok).map(|map| map.check_program(record.level));
            let Some(Err(error)) = checked else { return Ok(()) };
            let address = record.addresses.first().map_or("an unknown address", String::as_str);
            let line = format!("a node at {address} may not join: {error}");
            let now_us = clock::now_us();
            let is_known = store.paths(reserved::LOG).any(|path| {
                let entry = store.get(path.as_str()).map(|entry| &entry.value[..]);
                entry.is_some_and(|value| is_lately(value, &line, now_us))
            });
            let value = format!("{}\n{line}", head(now_us, &[]));
            let noted = || self.with_event(Transaction::new(), &store, "join", value);
            (error, (!is_known).then(noted))
        };
        if let Some(noted) = noted {
            // That it is refused matters more than whether it is noted.
            _ = self.write(&Actor::System, noted).await;
        }
        Err(Fault::Refused(error.into()))
    }
}

/// Whether an entry says this, and is not old.
fn is_lately(value: &[u8], line: &str, now_us: u64) -> bool {
    let text = std::str::from_utf8(value).unwrap_or_default();
    let Some((time, lines)) = text.split_once('\n') else { return false };
    let at_us: u64 = time.parse().unwrap_or_default();
    lines == line && now_us.saturating_sub(at_us) < REFUSED_EVERY_US
}

/// Whether something of the cluster's own is changed, or a class of objects.
fn is_act(alteration: &Alteration) -> bool {
    let path = alteration.path().as_str();
    let own = [reserved::CLUSTER, reserved::USERS, reserved::QUOTAS, access::PREFIX];
    own.iter().any(|prefix| path.starts_with(prefix)) || reserved::class(path).is_some()
}

/// A text of at most so many bytes, cut where a character ends.
fn shortened(mut text: String, len: usize) -> String {
    if text.len() > len {
        let room = len.saturating_sub(3);
        let ends = text.char_indices().map(|(at, _)| at);
        text.truncate(ends.take_while(|at| *at <= room).last().unwrap_or(0));
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tyr_protocol::map::Change;
    use tyr_types::{KeyspaceConfig, KeyspaceName};

    use super::*;
    use crate::leadership::map_bytes;

    fn store(map: &ClusterMap) -> Store {
        let mut store = Store::new();
        apply(&mut store, reserved::path(reserved::MAP), map_bytes(map));
        store
    }

    fn apply(store: &mut Store, path: Path, value: impl Into<Bytes>) {
        store.apply(&Actor::System, &Transaction::new().put(path, value)).unwrap();
    }

    #[test]
    fn the_oldest_goes_when_there_are_as_many_as_are_kept_however_large() {
        let before = ClusterMap::of(3, &[]);
        let mut store = store(&before);
        for epoch in 0..ENTRIES_MAX as u32 {
            // Together more than one listing answers.
            apply(&mut store, reserved::log_entry(epoch), vec![b'x'; 8 << 10]);
        }
        // Of another kind, which is bounded by itself.
        apply(&mut store, reserved::log_event(0, 0, "user"), "1\nx");
        let name = KeyspaceName::new("notes").unwrap();
        let change = Change::CreateKeyspace { name, config: KeyspaceConfig::default(), seed: 1 };
        let after = before.changed(&change).unwrap();
        let noted = note(Transaction::new(), &store, &after, &["alice".to_owned()], 1);
        let paths: Vec<_> =
            noted.alterations.iter().map(|it| (it.path(), it.value().is_some())).collect();
        let (new, first) = (reserved::log_entry(after.epoch.0), reserved::log_entry(0));
        assert_eq!(paths, [(&new, true), (&first, false)]);
        let value = noted.alterations[0].value().unwrap();
        assert_eq!(&value[..], b"1 by alice\nkeyspace notes was created");
        assert_eq!(oldest(&store, is_of_event, EVENTS_MAX, 1), []);
        assert_eq!(oldest(&store, is_of_event, 1, 1), [reserved::log_event(0, 0, "user")]);
    }

    #[test]
    fn numbers_go_on_behind_what_is_there_and_what_was_given_and_begin_anew_with_a_map() {
        let map = ClusterMap::of(3, &[]);
        let epoch = map.epoch.0;
        let mut store = store(&map);
        let mut numbers = Numbers::default();
        assert_eq!(numbers.take(&store), (epoch, 0));
        assert_eq!(numbers.take(&store), (epoch, 1), "what was given is not in the store yet");
        apply(&mut store, reserved::log_event(epoch, 7, "user"), "1\nx");
        assert_eq!(numbers.take(&store), (epoch, 8));
        assert_eq!(Numbers::default().take(&store), (epoch, 8), "of the next leader");
        apply(&mut store, reserved::log_entry(epoch + 1), "1\nx");
        assert_eq!(numbers.take(&store), (epoch + 1, 0));
        let first = reserved::log_event(epoch + 1, 0, "user");
        assert!(reserved::log_entry(epoch + 1) < first && first < reserved::log_entry(epoch + 2));
    }

    #[test]
    fn texts_are_cut_at_a_character() {
        assert_eq!(shortened("abc".to_owned(), 3), "abc");
        assert_eq!(shortened("äöüäöü".to_owned(), 8), "äö...");
    }
}
