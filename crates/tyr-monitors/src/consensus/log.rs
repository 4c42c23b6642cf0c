//! Raft's log and vote: in memory to be read, in the journal to be kept.
//!
//! What is not purged lies in memory, so that no read waits for the disk; a snapshot is made often
//! enough that this stays little ([`LogStore::bytes`]). What is written is durable before Raft is
//! told. The disk is waited for on threads of the runtime's own, so that heartbeats go on.
//!
//! ```text
//!   append ─► journal: Entry ─┐
//!   truncate ─► Truncated ────┼─ synced ─► memory ─► answered
//!   purge ─► Purged ──────────┘                      segments without a kept entry are removed
//! ```

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::ops::RangeBounds;
use std::sync::Arc;

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{AnyError, LogState, OptionalSend, RaftLogReader, StorageIOError, Vote};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tyr_control::frame::FRAME_LEN_MAX;
use tyr_store::disk::Disk;
use tyr_types::{Error, Result};

use super::ballot::{Ballot, BallotFile};
use super::journal::{FOLDER, Journal, PAYLOAD_LEN_MAX};
use super::types::{Entry, LogId, StorageError, TypeConfig};

/// Bytes of entries that are sent at once: one message to another monitor, which must fit a frame
/// of the control plane with one entry of any size.
const BATCH_BYTES_MAX: usize = 4 << 20;

const _: () = {
    assert!(PAYLOAD_LEN_MAX < FRAME_LEN_MAX, "an entry of any size goes to another monitor");
    assert!(BATCH_BYTES_MAX < FRAME_LEN_MAX, "and so do several that are smaller");
};

/// A record of the journal.
#[derive(Serialize, Deserialize)]
enum Item {
    /// An entry, the one after the last.
    Entry(Entry),
    /// There are no entries from this index on.
    Truncated(u64),
    /// What is up to here is in a snapshot, and not needed any more.
    Purged(LogId),
}

/// An entry in memory.
struct Held {
    entry: Entry,
    /// The segment of the journal that it lies in.
    segment: u64,
    /// Bytes that it takes there.
    bytes: usize,
}

/// What Raft reads.
#[derive(Default)]
struct Memory {
    /// Without gaps.
    entries: BTreeMap<u64, Held>,
    purged: Option<LogId>,
}

struct Files {
    journal: Journal,
    ballot: BallotFile,
}

struct Shared {
    /// Held while the disk is written to. Taken before `memory`.
    files: Mutex<Files>,
    memory: Mutex<Memory>,
}

/// Raft's log and vote. Clones are the same log.
#[derive(Clone)]
pub struct LogStore {
    shared: Arc<Shared>,
}

impl LogStore {
    /// Opens what lies on this disk, or begins anew.
    ///
    /// # Errors
    /// `Corrupt` when something durable is damaged; `Unavailable` when the disk fails.
    pub fn open(disk: Arc<dyn Disk>) -> Result<Self> {
        let ballot = BallotFile::open(&*disk)?;
        let place = format!("{}/{FOLDER}", disk.describe());
        let (journal, records) = Journal::open(disk, ballot.ballot().journal)?;
        if ballot.is_new() && !records.is_empty() {
            return Err(Error::corrupt(format!(
                "{place}: the vote is missing beside a journal, so this monitor might vote twice; \
                 take it out and let it join anew"
            )));
        }
        let mut memory = Memory::default();
        for record in records {
            let item = postcard::from_bytes(&record.payload).map_err(|error| {
                Error::corrupt(format!("{place}: a record is none of ours")).with_source(error)
            })?;
            let is_sound = memory.replay(item, record.segment, record.payload.len());
            if !is_sound {
                return Err(Error::corrupt(format!("{place}: entries do not follow each other")));
            }
        }
        memory.check(&place)?;
        let (files, memory) = (Mutex::new(Files { journal, ballot }), Mutex::new(memory));
        Ok(Self { shared: Arc::new(Shared { files, memory }) })
    }

    /// Bytes of the entries that are kept: what a snapshot would make superfluous, once those are
    /// purged that it contains.
    pub fn bytes(&self) -> usize {
        self.shared.memory.lock().entries.values().map(|held| held.bytes).sum()
    }

    /// Whether nothing was ever written: this monitor knows of no cluster.
    pub fn is_pristine(&self) -> bool {
        let memory = self.shared.memory.lock();
        memory.entries.is_empty() && memory.purged.is_none()
    }

    /// Notes how far the journal reaches, so that its loss would be noticed. To be called last.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails.
    pub fn seal(&self) -> Result<()> {
        let mut files = self.shared.files.lock();
        let journal = files.journal.durable();
        let vote = files.ballot.ballot().vote;
        files.ballot.write(Ballot { vote, journal })
    }

    /// Does something with the files, where waiting for the disk holds nobody up.
    async fn with_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Files, &Mutex<Memory>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        let done = tokio::task::spawn_blocking(move || {
            let mut files = shared.files.lock();
            work(&mut files, &shared.memory)
        });
        done.await.map_err(|error| {
            Error::unavailable("the thread that writes the monitors' journal ended")
                .with_source(error)
        })?
    }
}

impl Memory {
    /// Works a record in; answers whether it fits what came before.
    fn replay(&mut self, item: Item, segment: u64, bytes: usize) -> bool {
        match item {
            Item::Entry(entry) => {
                let index = entry.log_id.index;
                let last = self.entries.last_key_value().map(|it| *it.0);
                if last.is_some_and(|last| last + 1 != index) {
                    return false;
                }
                self.entries.insert(index, Held { entry, segment, bytes });
            }
            Item::Truncated(from) => {
                self.entries.split_off(&from);
            }
            Item::Purged(up_to) => self.purge(up_to),
        }
        true
    }

    fn purge(&mut self, up_to: LogId) {
        self.entries = self.entries.split_off(&(up_to.index + 1));
        self.purged = self.purged.max(Some(up_to));
        debug_assert!(
            self.entries.first_key_value().is_none_or(|(first, _)| *first > up_to.index),
            "what is purged is not kept"
        );
        debug_assert!(self.purged >= Some(up_to), "it only grows");
    }

    /// Refuses a log whose beginning is missing.
    fn check(&self, place: &str) -> Result<()> {
        let expected = self.purged.map_or(0, |it| it.index + 1);
        match self.entries.first_key_value() {
            Some((first, _)) if *first != expected => Err(Error::corrupt(format!(
                "{place}: entries {expected} to {first} are missing; take this monitor out and let \
                 it join anew"
            ))),
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether each entry is the one after that before it.
pub(super) fn is_dense(entries: &[Entry]) -> bool {
    let index = |entry: &Entry| entry.log_id.index;
    entries.windows(2).all(|pair| index(&pair[0]).checked_add(1) == Some(index(&pair[1])))
}

fn encoded(item: &Item) -> Vec<u8> {
    postcard::to_stdvec(item).expect("plain values can be written")
}

fn failed(error: &Error) -> AnyError {
    AnyError::error(error)
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, StorageError> {
        let memory = self.shared.memory.lock();
        let entries: Vec<Entry> =
            memory.entries.range(range).map(|(_, held)| held.entry.clone()).collect();
        debug_assert!(is_dense(&entries), "a follower takes entries one after the other");
        Ok(entries)
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry>, StorageError> {
        let memory = self.shared.memory.lock();
        let mut entries = Vec::new();
        let mut bytes = 0;
        for held in memory.entries.range(start..end).map(|it| it.1) {
            bytes += held.bytes;
            if bytes > BATCH_BYTES_MAX && !entries.is_empty() {
                break;
            }
            entries.push(held.entry.clone());
        }
        debug_assert!(
            entries.first().is_none_or(|first| first.log_id.index >= start),
            "they are of the range"
        );
        debug_assert!(is_dense(&entries), "a follower takes entries one after the other");
        Ok(entries)
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, StorageError> {
        let memory = self.shared.memory.lock();
        let last = memory.entries.last_key_value().map(|(_, held)| held.entry.log_id);
        let last_purged_log_id = memory.purged;
        Ok(LogState { last_purged_log_id, last_log_id: last.or(last_purged_log_id) })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote<u64>) -> Result<(), StorageError> {
        let vote = Some(*vote);
        let written = self.with_files(move |files, _| {
            let journal = files.journal.durable();
            files.ballot.write(Ballot { vote, journal })
        });
        written.await.map_err(|error| StorageIOError::write_vote(failed(&error)).into())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote<u64>>, StorageError> {
        Ok(self.shared.files.lock().ballot.ballot().vote)
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<TypeConfig>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let written = self.with_files(move |files, memory| {
            let payloads: Vec<Vec<u8>> =
                entries.iter().map(|entry| encoded(&Item::Entry(entry.clone()))).collect();
            files.journal.append(&payloads)?;
            let segment = files.journal.segment();
            let mut memory = memory.lock();
            debug_assert_eq!(entries.len(), payloads.len(), "each entry is written");
            debug_assert!(is_dense(&entries), "an opening refuses a journal with a gap");
            for (entry, payload) in entries.into_iter().zip(payloads) {
                let held = Held { segment, bytes: payload.len(), entry };
                let before = memory.entries.insert(held.entry.log_id.index, held);
                debug_assert!(before.is_none(), "an entry is replaced only after it was truncated");
            }
            Ok(())
        });
        match written.await {
            Ok(()) => callback.log_io_completed(Ok(())),
            Err(error) => callback.log_io_completed(Err(io::Error::other(error))),
        }
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let written = self.with_files(move |files, memory| {
            files.journal.append(&[encoded(&Item::Truncated(log_id.index))])?;
            let mut memory = memory.lock();
            debug_assert!(
                memory.purged.is_none_or(|purged| purged.index < log_id.index),
                "what is in a snapshot is committed, and stays"
            );
            memory.entries.split_off(&log_id.index);
            Ok(())
        });
        written.await.map_err(|error| StorageIOError::write_logs(failed(&error)).into())
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let written = self.with_files(move |files, memory| {
            files.journal.append(&[encoded(&Item::Purged(log_id))])?;
            let kept = {
                let mut memory = memory.lock();
                memory.purge(log_id);
                memory.entries.first_key_value().map(|(_, held)| held.segment)
            };
            let kept = kept.unwrap_or_else(|| files.journal.segment());
            debug_assert!(kept <= files.journal.segment(), "entries lie in segments there are");
            files.journal.remove_before(kept)
        });
        written.await.map_err(|error| StorageIOError::write_logs(failed(&error)).into())
    }
}
