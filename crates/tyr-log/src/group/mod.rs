//! Groups of consumers: each entry goes to one of them.
//!
//! A group has a cursor in each partition: what is before it was given out. [`state`] is what is
//! stored of it. How sure it is that an entry is worked on depends on how it is asked for:
//!
//! | | the cursor moves | an entry is worked on |
//! |---|---|---|
//! | [`Group::pop`] | when the entry is given out | at most once: not, if who has got it dies |
//! | [`Group::take`], [`Group::ack`] | likewise, and who has it is remembered | at least once |
//! | [`Group::fetch`], [`Fetched::commit_in`] | with what is done about it | exactly once |
//!
//! Entries of one partition are given out in their order, to one consumer after the other. A
//! consumer is asked for no name, and looks into each partition in turn.

mod deliveries;
mod effect;
mod pop;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tyr::{Error, ErrorKind, Key, Result, Scan};

pub use deliveries::{Delivery, LENT_MAX};
pub use effect::Fetched;

use crate::entry::Entry;
use crate::lane::{Lane, Reached};
use crate::layout;
use crate::log::Log;
use crate::name::Name;
use crate::position::Position;
use crate::start::Start;
use crate::tries::Tries;
use pop::Left;
use state::{HEAD_LEN, State};

/// Bytes that a group asks for at first.
const WINDOW: u64 = 16 << 10;

/// Consumers that share the entries of a log. Cheap to clone; clones are the same group, as are
/// handles of other processes.
#[derive(Clone, Debug)]
pub struct Group {
    log: Log,
    name: Name,
    keys: Arc<[Key]>,
    turn: Arc<AtomicUsize>,
    /// Where pops have left each partition.
    left: Arc<[Mutex<Option<Left>>]>,
}

/// Where a group is in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// Where the next entry is, or will be, that was not given out.
    pub position: Position,
    /// Bytes from there to the end.
    pub behind_bytes: u64,
    /// Deliveries that were taken and not acknowledged.
    pub lent: u64,
}

impl Log {
    /// A group of consumers, which is made if there is none of this name: then it begins at `from`.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that cannot be; as [`Log::reader`] for where it begins.
    pub async fn group(&self, name: &str, from: &Start) -> Result<Group> {
        let group = self.group_handle(name)?;
        let shared = &*self.shared;
        // The description of a log of one partition, or of many, has each of them.
        match shared.keyspace.stat(&group.keys[0]).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => return found.map(|_| group),
        }
        let begin = self.reader(from).await?.cut();
        let mut transaction = shared.store.begin();
        transaction.expect_present(&shared.keyspace, &shared.key)?;
        for (key, position) in group.keys.iter().zip(begin.positions()) {
            transaction.expect_absent(&shared.keyspace, key)?;
            transaction.put(&shared.keyspace, key, State::new(*position).write())?;
        }
        match transaction.commit().await {
            // Somebody else was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(group),
            Err(error) => Err(error),
            Ok(_) => Ok(group),
        }
    }

    /// A group that is there.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name.
    pub async fn open_group(&self, name: &str) -> Result<Group> {
        let group = self.group_handle(name)?;
        match self.shared.keyspace.stat(&group.keys[0]).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Err(group.missing()),
            found => found.map(|_| group),
        }
    }

    /// The names of its groups, in order.
    ///
    /// # Errors
    /// Whatever the store answers.
    pub async fn groups(&self) -> Result<Vec<String>> {
        let shared = &*self.shared;
        let prefix = layout::group_prefix(&shared.name, 0);
        let mut names = Vec::new();
        let mut next = Some(Scan::new().prefix(&prefix).keys_only());
        while let Some(scan) = next {
            let page = shared.keyspace.scan_page(&scan).await?;
            next = scan.resumed(&page);
            let name = |key: &Key| key.as_bytes()[prefix.len()..].to_vec();
            let found = page.entries.iter().map(|entry| name(&entry.key));
            names.extend(found.map(|name| String::from_utf8_lossy(&name).into_owned()));
        }
        Ok(names)
    }

    fn group_handle(&self, name: &str) -> Result<Group> {
        let name = Name::new("group", name)?;
        let keys = (0..self.partitions())
            .map(|partition| layout::group_key(&self.shared.name, partition, &name));
        let keys = keys.collect::<Result<Vec<_>>>()?.into();
        let left = (0..self.partitions()).map(|_| Mutex::default()).collect();
        Ok(Group { log: self.clone(), name, keys, turn: Arc::default(), left })
    }
}

impl Group {
    /// Its name.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Moves the group: what is given out next is there. What was taken and not acknowledged does
    /// not come again.
    ///
    /// # Errors
    /// As [`Log::reader`]; `NotFound` when the group was deleted.
    pub async fn seek(&self, to: &Start) -> Result<()> {
        let shared = &*self.log.shared;
        let cut = self.log.reader(to).await?.cut();
        let mut tries = Tries::default();
        loop {
            let mut transaction = shared.store.begin();
            for (key, position) in self.keys.iter().zip(cut.positions()) {
                let old = self.of_blob(transaction.get(&shared.keyspace, key).await)?;
                let state = State::read(&old, position.partition)?.moved(*position);
                transaction.put(&shared.keyspace, key, state.write())?;
            }
            match transaction.commit().await {
                Err(error) if tries.again(&error).await => {}
                moved => return moved.map(drop),
            }
        }
    }

    /// Where it is, in each partition.
    ///
    /// # Errors
    /// `NotFound` when the group was deleted; whatever the store answers.
    pub async fn status(&self) -> Result<Vec<GroupStatus>> {
        let shared = &*self.log.shared;
        let mut statuses = Vec::with_capacity(self.keys.len());
        for (key, partition) in self.keys.iter().zip(0..) {
            let state = self.of_blob(shared.keyspace.get(key).await)?;
            let state = State::read(&state, partition)?;
            let (position, sizes) = (state.cursor, self.log.sizes(partition).await?);
            let behind = sizes.iter().filter(|(segment, _)| *segment >= position.segment);
            let behind_bytes: u64 = behind
                .map(|(segment, size)| match *segment == position.segment {
                    true => size.saturating_sub(position.offset),
                    false => size - crate::segment::HEAD_LEN,
                })
                .sum();
            let lent = state.lent.len() as u64;
            statuses.push(GroupStatus { position, behind_bytes, lent });
        }
        Ok(statuses)
    }

    /// Deletes the group. Consumers that are at it are told.
    ///
    /// # Errors
    /// `NotFound` when there is none; whatever the store answers.
    pub async fn delete(&self) -> Result<()> {
        let shared = &*self.log.shared;
        let mut transaction = shared.store.begin();
        for key in &*self.keys {
            transaction.expect_present(&shared.keyspace, key)?;
            transaction.delete(&shared.keyspace, key)?;
        }
        self.of_blob(transaction.commit().await.map(drop))
    }

    /// The partitions, beginning with the one that is next in turn.
    fn partitions_in_turn(&self) -> impl Iterator<Item = u16> + use<> {
        let count = self.keys.len();
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % count;
        (0..count).map(move |n| ((first + n) % count) as u16)
    }

    fn key(&self, partition: u16) -> &Key {
        &self.keys[usize::from(partition)]
    }

    /// What came of reading entries where the group was, by what was stored of it: an error is
    /// `Conflict` if others have moved it since, for what it is at now may not be missing.
    async fn of_entries<T>(&self, partition: u16, was: &[u8], result: Result<T>) -> Result<T> {
        let Err(error) = result else { return result };
        let keyspace = &self.log.shared.keyspace;
        let now = self.of_blob(keyspace.read(self.key(partition), 0, HEAD_LEN as u64).await)?;
        Err(match was.get(..HEAD_LEN) == Some(&now) {
            true => error,
            false => Error::conflict(format!("group {} was moved by others again", self.name)),
        })
    }

    /// Up to `max` entries from a position on, and where what follows is.
    async fn read_from(&self, from: Position, max: usize) -> Result<(Vec<Entry>, Position)> {
        let mut lane = Lane::new(from, WINDOW);
        let entries = self.read_on(&mut lane, max).await?;
        Ok((entries, lane.position()))
    }

    /// Up to `max` entries that come next in a lane; fewer where there are no more now.
    async fn read_on(&self, lane: &mut Lane, max: usize) -> Result<Vec<Entry>> {
        let (mut entries, mut is_end) = (Vec::new(), false);
        loop {
            while entries.len() < max
                && let Some(entry) = lane.pop()
            {
                entries.push(entry);
            }
            if is_end || entries.len() >= max {
                return Ok(entries);
            }
            let reached = self.log.read_lane(lane).await;
            let reached = reached.map_err(|error| match error.kind() {
                ErrorKind::NotFound => error.context(format!(
                    "group {} has not got all that was there before it was trimmed; seek to go on",
                    self.name
                )),
                _ => error,
            })?;
            is_end = reached == Reached::End;
        }
    }

    fn missing(&self) -> Error {
        Error::not_found(format!(
            "log {} has no group {}: make it first",
            self.log.name(),
            self.name
        ))
    }

    /// What came of looking at a blob of the group: where there is none, there is no group.
    fn of_blob<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.missing(),
            _ => error,
        })
    }
}
