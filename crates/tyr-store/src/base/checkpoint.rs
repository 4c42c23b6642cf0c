//! Checkpoints: from where on the log is needed, and what may be forgotten once that is written.
//!
//! The record lies in a file of its own, outside the index, and names the last batch that the index
//! had when it was synced. So an index that lost batches, or was lost as a whole, is noticed.
//!
//! ```text
//!   "TYRC" 01 sequence:u64 timestamp:14 batch:u64 crc32c:u32
//! ```

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tyr_types::{Error, ExtentRef, Result};

use super::dead::bury;
use super::fold::Fold;
use super::giving::WAITING_MAX;
use super::types::Checkpoint;
use super::{Base, key, record};
use crate::disk::{self, Disk, OpenMode};
use crate::extents::Extents;
use crate::index::{IndexBatch, Table};
use crate::log::Start;

/// The record's file, in the store's folder.
pub const FILE: &str = "checkpoint";
const NEW_FILE: &str = "checkpoint.new";
const MAGIC: &[u8; 4] = b"TYRC";
const FORMAT_VERSION: u8 = 1;
const RECORD_LEN: usize = 4 + 1 + 8 + key::TIMESTAMP_LEN + 8 + 4;

/// Entries that are forgotten in one batch.
const FORGET_AT_ONCE: usize = 4096;

/// What the file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CheckpointRecord {
    pub checkpoint: Checkpoint,
    /// The index's last batch that was synced before.
    pub batch: u64,
}

impl CheckpointRecord {
    fn encode(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(FORMAT_VERSION);
        bytes.extend_from_slice(&self.checkpoint.sequence.to_le_bytes());
        bytes.extend_from_slice(&key::timestamp(self.checkpoint.timestamp));
        bytes.extend_from_slice(&self.batch.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        assert_eq!(bytes.len(), RECORD_LEN, "a record of another length is damage to who reads it");
        bytes
    }

    /// What is wrong with `bytes` is said of `path`.
    fn decode(bytes: &[u8], path: &str) -> Result<Self> {
        let damaged = |what: &str| Error::corrupt(format!("{path} {what}"));
        if let Some([magic @ .., version]) = bytes.first_chunk::<5>()
            && magic == MAGIC
            && *version > FORMAT_VERSION
        {
            let format = format_args!("checkpoint format {version}");
            return Err(Error::later_release(path, format, FORMAT_VERSION));
        }
        let bytes: &[u8; RECORD_LEN] =
            bytes.try_into().map_err(|_| damaged("has the wrong length"))?;
        let (body, checksum) = bytes.split_last_chunk::<4>().expect("the length is fixed");
        if crc32c::crc32c(body) != u32::from_le_bytes(*checksum) {
            return Err(damaged("is damaged: its checksum does not match"));
        }
        let (head, body) = body.split_first_chunk::<5>().expect("the length is fixed");
        let [magic @ .., version] = head;
        if magic != MAGIC {
            return Err(damaged("is no checkpoint"));
        }
        if *version != FORMAT_VERSION {
            return Err(damaged("has a format that there never was"));
        }
        let (sequence, body) = body.split_first_chunk().expect("the length is fixed");
        let (timestamp, batch) = body.split_first_chunk().expect("the length is fixed");
        Ok(Self {
            checkpoint: Checkpoint {
                sequence: u64::from_le_bytes(*sequence),
                timestamp: key::timestamp_from(timestamp),
            },
            batch: u64::from_le_bytes(batch.try_into().expect("the length is fixed")),
        })
    }

    /// What the file says; `None` in a folder that never had one.
    pub fn read(disk: &dyn Disk) -> Result<Option<Self>> {
        let name = || format!("{}/{FILE}", disk.describe());
        let file = match disk.open(FILE, OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(format!("cannot open {}", name()), error)),
        };
        // One byte more than there should be, so that a longer file is noticed.
        let mut bytes = [0; RECORD_LEN + 1];
        let len = file
            .read_at(&mut bytes, 0)
            .map_err(|error| Error::io(format!("cannot read {}", name()), error))?;
        Self::decode(&bytes[..len], &name()).map(Some)
    }

    /// Replaces the file, durably.
    pub fn write(self, disk: &dyn Disk) -> Result<()> {
        let write = || {
            match disk.remove(NEW_FILE) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let file = disk.open(NEW_FILE, OpenMode::CreateNew)?;
            file.write_at(&self.encode(), 0)?;
            file.sync()?;
            disk.rename(NEW_FILE, FILE)?;
            disk.sync_folder("")
        };
        write().map_err(|error| {
            disk::refusal(format_args!("cannot write {}/{FILE}", disk.describe()), error)
        })
    }
}

/// Entries of `meta` below one prefix.
type Found = Vec<(Vec<u8>, Bytes)>;

impl Base {
    /// Makes everything folded so far durable and records that the log is needed from `at` on
    /// only; then forgets old tombstones, and notes what [`Base::give_back`] may give back, since
    /// nothing refers to it any more. What is in `kept` stays for a later checkpoint: others than
    /// blobs refer to it.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses. [`Base::last_checkpoint`] tells whether the record was
    /// written; if so, only space was not given back, and the next checkpoint tries again.
    pub fn checkpoint(&self, at: Checkpoint, kept: &BTreeSet<ExtentRef>) -> Result<()> {
        let alone = self.changing.lock();
        let before = self.last_checkpoint();
        // The log below the last one is gone: a replay from there would not find its records.
        assert!(before.sequence <= at.sequence, "a checkpoint at {at:?} after one at {before:?}");
        debug_assert!(before.timestamp <= at.timestamp, "{at:?} has less than {before:?}");
        self.record(at)?;
        self.is_log_folded.store(true, Ordering::Release);
        self.forget_tombstones(at)?;
        self.find_dead(kept)?;
        self.free_pages.note_checkpoint();
        drop(alone);
        self.give_back_in_need()
    }

    /// The checkpoint that a replay of the log begins with.
    pub fn last_checkpoint(&self) -> Checkpoint {
        *self.checkpoint.lock()
    }

    /// Where a replay of the log begins, and whether there must be a log.
    pub fn log_start(&self) -> Start {
        let sequence = self.last_checkpoint().sequence;
        Start { sequence, is_used: sequence > 0 || !self.keyspaces().is_empty() }
    }

    /// Syncs the index and writes it down.
    pub(super) fn record(&self, checkpoint: Checkpoint) -> Result<()> {
        // Before the sync: a batch that comes meanwhile is not known to be durable.
        let batch = self.index.last_batch();
        self.index.sync()?;
        CheckpointRecord { checkpoint, batch }.write(&*self.disk)?;
        self.free_pages.settle();
        *self.checkpoint.lock() = checkpoint;
        Ok(())
    }

    fn some_of_meta(&self, from: &[u8], to: &[u8], limit: usize) -> Result<Found> {
        let mut found = Vec::new();
        let mut visit = |key: &[u8], value: &Bytes| {
            found.push((key.to_vec(), value.clone()));
            Ok(found.len() < limit)
        };
        self.index.scan(Table::Meta, from, Some(to), &mut visit)?;
        debug_assert!(
            found.iter().all(|(key, _)| from <= key.as_slice() && key.as_slice() < to),
            "the index answers more than was asked for, and it would be given back"
        );
        Ok(found)
    }

    /// Removes tombstones of blobs of which no replay will see an operation.
    fn forget_tombstones(&self, at: Checkpoint) -> Result<()> {
        let mut end = [key::GRAVE, &key::timestamp(at.timestamp)].concat();
        // Graves of exactly this timestamp belong to it; what follows it there is a blob's name.
        end = key::behind(&end).unwrap_or(end);
        loop {
            let graves = self.some_of_meta(key::GRAVE, &end, FORGET_AT_ONCE)?;
            let is_all = graves.len() < FORGET_AT_ONCE;
            let mut batch = IndexBatch::new();
            for (grave, _) in graves {
                if let Some((folded_at, blob)) = key::grave_parts(&grave) {
                    let key = key::blob(&blob);
                    let entry = self.entry(&key, &blob)?.map(|(_, entry)| entry.blob);
                    if entry.is_some_and(|blob| !blob.exists && blob.folded_at == folded_at) {
                        batch.remove(Table::Blobs, key);
                    }
                }
                batch.remove(Table::Meta, grave);
            }
            if !batch.is_empty() {
                self.index.commit(batch)?;
            }
            if is_all {
                return Ok(());
            }
        }
    }

    /// Finds the dead extents that may be given back: all but those `kept`. They were noted in a
    /// batch that is synced, so no older state of the index, in which they were alive, can come
    /// back.
    fn find_dead(&self, kept: &BTreeSet<ExtentRef>) -> Result<()> {
        let end = key::behind(key::DEAD).expect("the prefix is not the last");
        let files: BTreeSet<u32> =
            self.extents.files()?.into_iter().map(|file| file.number).collect();
        let mut waiting = BTreeSet::new();
        let mut from = key::DEAD.to_vec();
        loop {
            let dead = self.some_of_meta(&from, &end, FORGET_AT_ONCE)?;
            let is_all = dead.len() < FORGET_AT_ONCE;
            let mut batch = IndexBatch::new();
            for (key, value) in dead {
                let extent = self.dead_extent(&key, &value)?;
                from.clone_from(&key);
                from.push(0);
                if !files.contains(&extent.file) {
                    batch.remove(Table::Meta, key);
                } else if !overlaps(kept, &extent) {
                    waiting.insert(extent);
                }
            }
            if !batch.is_empty() {
                self.index.commit(batch)?;
            }
            // What is more stays noted, and the next checkpoint finds it.
            if is_all || waiting.len() >= WAITING_MAX {
                *self.dead_extents.lock() = waiting;
                return Ok(());
            }
        }
    }

    fn dead_extent(&self, key: &[u8], value: &[u8]) -> Result<ExtentRef> {
        let place = key::extent_place(key::DEAD, key);
        place.and_then(|place| record::decode_dead(place, value)).ok_or_else(|| {
            let key = key.escape_ascii();
            Error::corrupt(format!("index table meta, key \"{key}\": no extent"))
        })
    }

    /// Hands extents over that nothing refers to, to be given back after the next checkpoint.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn give_up(&self, extents: &[ExtentRef]) -> Result<()> {
        let _alone = self.changing.lock();
        let mut fold = Fold::new(self);
        for extent in extents {
            if !self.is_referenced(extent)? {
                bury(*extent, fold.batch());
            }
        }
        fold.commit()
    }

    /// Nothing of an extent is given back that a blob refers to again.
    ///
    /// That comes about when the base is ahead of a log that is read again: what a map takes away
    /// there was, in the base, what came after it, and comes once more.
    pub(super) fn revive(&self, extent: &ExtentRef, batch: &mut IndexBatch) -> Result<()> {
        if extent.file >= self.first_new_file || self.is_log_folded.load(Ordering::Acquire) {
            return Ok(()); // It was written since the log was read, or the log is done with.
        }
        let end = extent.position + Extents::stored_len(extent);
        let from = key::extent(key::DEAD, extent.file, extent.position);
        let to = key::extent(key::DEAD, extent.file, end);
        for (key, _) in self.some_of_meta(&from, &to, FORGET_AT_ONCE)? {
            batch.remove(Table::Meta, key);
        }
        Ok(())
    }

    /// Whether a segment of a blob refers to this extent.
    ///
    /// # Errors
    /// `Corrupt` when the index is damaged there.
    pub fn is_referenced(&self, extent: &ExtentRef) -> Result<bool> {
        Ok(self.extent_entry(&key::extent_of(extent))?.is_some())
    }

    /// Gives back what abandoned uploads and crashes left in extent files, once after a replay of
    /// the log and before anything new is written. `in_log` are the extents that the log still
    /// refers to. Answers how many bytes that was.
    ///
    /// # Errors
    /// `Corrupt` when the index is damaged; `Unavailable` when the disk refuses.
    pub fn reclaim(&self, in_log: &[ExtentRef]) -> Result<u64> {
        let _alone = self.changing.lock();
        // Nothing may come back that refers to what is given back now.
        self.record(self.last_checkpoint())?;
        self.pages.trim()?;
        self.forget_lost_files()?;
        let done = match self.index.get(Table::Meta, key::RECLAIMED)? {
            Some(value) => record::decode_number(&value).unwrap_or(0),
            None => 0,
        };
        let mut reclaimed = 0;
        let files = self.extents.files()?;
        for file in files.iter().filter(|file| file.number < self.first_new_file) {
            let mut live: Vec<ExtentRef> =
                in_log.iter().filter(|extent| extent.file == file.number).copied().collect();
            self.extents_of_file(file.number, &mut live)?;
            live.sort_unstable_by_key(|extent| (extent.position, extent.len));
            live.dedup_by_key(|extent| extent.position);
            debug_assert!(
                live.iter().all(|extent| extent.file == file.number),
                "what lives in another file keeps nothing of file {}",
                file.number
            );
            if file.number >= done || live.is_empty() {
                reclaimed += self.extents.reclaim(file.number, &live)?;
            }
        }
        // What only the log refers to is looked at again next time.
        let still_open = in_log.iter().map(|extent| extent.file).min();
        let next = still_open.map_or(self.first_new_file, |file| file.min(self.first_new_file));
        if next != done {
            let mut batch = IndexBatch::new();
            let next = record::encode_number(next);
            batch.put(Table::Meta, key::RECLAIMED.to_vec(), next);
            self.index.commit(batch)?;
        }
        Ok(reclaimed)
    }

    /// Forgets what is dead in files that a loss of power took as a whole: others will have their
    /// numbers, and nothing of those is to be given back.
    fn forget_lost_files(&self) -> Result<()> {
        let from = key::extent(key::DEAD, self.first_new_file, 0);
        let end = key::behind(key::DEAD).expect("the prefix is not the last");
        loop {
            let dead = self.some_of_meta(&from, &end, FORGET_AT_ONCE)?;
            if dead.is_empty() {
                return Ok(());
            }
            let mut batch = IndexBatch::new();
            dead.into_iter().for_each(|(key, _)| batch.remove(Table::Meta, key));
            self.index.commit(batch)?;
        }
    }

    /// Adds all extents of one file that blobs refer to.
    fn extents_of_file(&self, file: u32, live: &mut Vec<ExtentRef>) -> Result<()> {
        let from = key::extent(b"", file, 0);
        let to = file.checked_add(1).map(|next| key::extent(b"", next, 0));
        let mut visit = |key: &[u8], value: &Bytes| {
            let entry = Self::decode_extent(key, value)?;
            let (file, position) = key::extent_place(b"", key).ok_or_else(|| {
                Error::corrupt("index table extents holds a key that is no place")
            })?;
            let (len, compressed_len) = (entry.len, entry.compressed_len);
            live.push(ExtentRef { file, position, len, compressed_len });
            Ok(true)
        };
        self.index.scan(Table::Extents, &from, to.as_deref(), &mut visit)
    }
}

/// Whether the extent, a whole one or some frames of one, shares a frame with any of `kept`, which
/// are whole ones.
fn overlaps(kept: &BTreeSet<ExtentRef>, extent: &ExtentRef) -> bool {
    let end = |of: &ExtentRef| of.position + Extents::stored_len(of);
    let mut before = kept.range(..=ExtentRef { len: u32::MAX, ..*extent }).rev();
    let mut behind = kept.range(extent..);
    let is_in_one =
        before.next().is_some_and(|it| it.file == extent.file && end(it) > extent.position);
    is_in_one || behind.next().is_some_and(|it| it.file == extent.file && it.position < end(extent))
}

/// The number of the last index batch that is known to be synced in this folder: what
/// [`crate::index::fjall::FjallIndex::open`] has to find.
///
/// # Errors
/// `Corrupt` when the checkpoint file is damaged.
pub fn synced_batch(disk: &dyn Disk) -> Result<u64> {
    Ok(CheckpointRecord::read(disk)?.map_or(0, |record| record.batch))
}
