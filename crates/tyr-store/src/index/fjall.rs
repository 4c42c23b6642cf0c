//! The index on disk: fjall, an LSM library.
//!
//! The library's worker threads write tables and merge them; batches go to its journal first and
//! reach the disk when [`Index::sync`] says so. What the library does not notice is noticed here:
//! see `preflight` for damaged files, and the batch numbers of [`BATCH_KEY`] for batches that are
//! gone. A panic inside the library becomes an error.

use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bytes::Bytes;
use fjall::{AbstractTree, Database, Keyspace, PersistMode};
use parking_lot::{MappedRwLockReadGuard, Mutex, RwLock, RwLockReadGuard};
use tyr_types::{Error, Result};

use super::elsewhere::Elsewhere;
use super::journal::BatchStamp;
use super::overwritten::Overwritten;
use super::settings::{database_builder, memtable_bytes, table_options};
use super::{BATCH_KEY, Index, IndexBatch, Inspect, Table, Visit, preflight, seal, tables};

/// Bytes that must be free before a batch is taken, and so many times the batch besides: for the
/// journal, for writing tables out and for merging them.
const FREE_BYTES_MIN: u64 = 8 << 20;
const FREE_PER_BATCH: u64 = 8;

/// The library's handles; all are dropped together, behind a guard against its panics.
struct Handles {
    database: Database,
    tables: [Keyspace; Table::ALL.len()],
}

impl Handles {
    fn table(&self, table: Table) -> &Keyspace {
        &self.tables[table as usize]
    }
}

/// Four tables in a folder.
pub struct FjallIndex {
    /// `None` once it is closed. Whoever uses them holds them for reading, also within a visit.
    handles: RwLock<Option<Handles>>,
    folder: PathBuf,
    /// What the library works in, when that is not the folder itself.
    elsewhere: Option<Elsewhere>,
    /// The first damaged file, once the library has met damage and it was looked for.
    damage: OnceLock<Option<String>>,
    /// Held while a batch is committed, so that numbers follow each other in the journal.
    committed: Mutex<Committed>,
}

/// What was committed.
#[derive(Default)]
struct Committed {
    /// The number of the last batch.
    last: u64,
    /// What of it is in the memory of each table.
    overwritten: [Overwritten; Table::ALL.len()],
}

impl FjallIndex {
    /// Opens the index in `folder`, or makes one there. Batches up to number `synced` must be in
    /// it.
    ///
    /// # Errors
    /// `Corrupt`, naming file and place, when the folder is damaged; `Unavailable` when somebody
    /// else has it open or the disk refuses.
    pub fn open(folder: &Path, synced: u64) -> Result<Self> {
        let fail = |error| Error::io(format!("cannot open the index {}", folder.display()), error);
        if !fs::exists(folder).map_err(fail)? {
            if synced > 0 {
                return Err(Error::corrupt(format!("the index {} is gone", folder.display())));
            }
            create(folder)?;
        }
        let found = preflight::check(folder, synced, false)?;
        let handles = open_handles(folder)?;
        let mut index = Self {
            handles: RwLock::new(Some(handles)),
            folder: folder.to_owned(),
            elsewhere: None,
            damage: OnceLock::new(),
            committed: Mutex::default(),
        };
        let last = index.stored_batch()?;
        if last < synced || found.last.is_some_and(|batch| batch.stamp.number > last) {
            return Err(Error::corrupt(format!(
                "the index {} ends with batch {last}, but batch {} was written to it",
                folder.display(),
                found.last.map_or(synced, |batch| batch.stamp.number.max(synced))
            )));
        }
        index.check_against_tail(found)?;
        index.committed.get_mut().last = last;
        Ok(index)
    }

    /// Opens the index in `folder`, on a medium that takes no writes: the library, which writes as
    /// it opens, works beside it ([`Elsewhere`]).
    ///
    /// # Errors
    /// As [`FjallIndex::open`]; `Unavailable` when there is no room for temporary files.
    pub fn open_elsewhere(folder: &Path, synced: u64) -> Result<Self> {
        // What is damaged is named where it is.
        preflight::check(folder, synced, true)?;
        let elsewhere = Elsewhere::of(folder)?;
        let mut index = Self::open(elsewhere.folder(), synced)?;
        index.folder = folder.to_owned();
        index.elsewhere = Some(elsewhere);
        Ok(index)
    }

    fn handles(&self) -> Result<MappedRwLockReadGuard<'_, Handles>> {
        // A visitor may come back to the index while a close waits, so it must not queue behind.
        let handles = self.handles.read_recursive();
        RwLockReadGuard::try_map(handles, Option::as_ref).map_err(|_| {
            Error::unavailable(format!("the index {} is closed", self.folder.display()))
        })
    }

    /// Makes the library write its memory out to tables, so that a test has some.
    #[cfg(test)]
    pub(crate) fn write_out(&self) {
        for table in &self.handles().expect("a test closes it at the end").tables {
            table.rotate_memtable_and_wait().expect("the disk of a test does not refuse");
        }
    }

    /// Has the library's thread write out the tables that have few keys with many values.
    fn write_out_overwritten(
        &self,
        handles: &Handles,
        overwritten: &mut [Overwritten; Table::ALL.len()],
    ) -> Result<()> {
        for (table, overwritten) in handles.tables.iter().zip(overwritten) {
            // One that waits for a busy disk is enough.
            if overwritten.is_due() && table.tree.sealed_memtable_count() == 0 {
                self.guarded(|| table.rotate_memtable())?;
                overwritten.clear();
            }
        }
        Ok(())
    }

    /// How many values a table has in memory.
    #[cfg(test)]
    pub(crate) fn in_memory(&self, table: Table) -> usize {
        let handles = self.handles().expect("a test closes it at the end");
        handles.table(table).tree.active_memtable().len()
    }

    /// How many bytes that takes.
    #[cfg(test)]
    pub(crate) fn bytes_in_memory(&self, table: Table) -> u64 {
        let handles = self.handles().expect("a test closes it at the end");
        handles.table(table).tree.active_memtable().size()
    }

    fn stored_batch(&self) -> Result<u64> {
        let Some(value) = self.get(Table::Meta, BATCH_KEY)? else { return Ok(0) };
        BatchStamp::decode(&value).map(|stamp| stamp.number).ok_or_else(|| {
            Error::corrupt(format!("index {}: the batch number is damaged", self.folder.display()))
        })
    }

    /// A table that was written out beyond a tail that was cut holds what other tables lost.
    fn check_against_tail(&self, found: preflight::Preflight) -> Result<()> {
        let Some(seqno_max) = found.seqno_max else { return Ok(()) };
        for table in Table::ALL {
            let handles = self.handles()?;
            let tree = &handles.table(table).tree;
            let written = self.guarded(|| Ok(tree.get_highest_persisted_seqno()));
            if written?.is_some_and(|seqno| seqno > seqno_max) {
                return Err(Error::corrupt(format!(
                    "index {}: table {} is newer than the journal, whose end is damaged",
                    self.folder.display(),
                    table.name()
                )));
            }
        }
        Ok(())
    }

    /// A library that meets a full disk refuses all work until it is reopened, so it is kept from
    /// meeting one.
    fn check_space(&self, batch: &IndexBatch) -> Result<()> {
        let needed = FREE_BYTES_MIN + FREE_PER_BATCH * batch.bytes() as u64;
        let folder = self.elsewhere.as_ref().map_or(&*self.folder, Elsewhere::folder);
        let free = rustix::fs::statvfs(folder)
            .map_or(u64::MAX, |fs| fs.f_bavail.saturating_mul(fs.f_frsize));
        if free >= needed {
            return Ok(());
        }
        Err(Error::unavailable(format!(
            "disk full: the index {} needs {needed} bytes free, there are {free}; make room and \
             try again",
            self.folder.display()
        )))
    }

    /// Visits what `next` gives, but for the batch number.
    fn visit_all(
        &self,
        table: Table,
        next: &mut dyn FnMut() -> Option<fjall::Guard>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        loop {
            let entry = self.guarded(|| next().map(fjall::Guard::into_inner).transpose())?;
            let Some((key, stored)) = entry else { return Ok(()) };
            if table == Table::Meta && *key == *BATCH_KEY {
                continue;
            }
            if !visit(&key, &seal::open(table, &key, stored.into())?)? {
                return Ok(());
            }
        }
    }

    /// Runs `act`; what the library panics with becomes an error.
    fn guarded<T>(&self, act: impl FnOnce() -> fjall::Result<T>) -> Result<T> {
        // All files are read for it, so they are once.
        guarded(
            &self.folder,
            || self.damage.get_or_init(|| first_damage(&self.folder)).clone(),
            act,
        )
    }
}

/// Makes an index beside its place and moves it there, so that none is ever there in part.
fn create(folder: &Path) -> Result<()> {
    let fail = |error| Error::io(format!("cannot make the index {}", folder.display()), error);
    let new = folder.with_extension("new");
    match fs::remove_dir_all(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
        Ok(()) | Err(_) => {}
    }
    guarded(
        &new,
        || None,
        || {
            let database = database_builder(&new).open()?;
            for table in Table::ALL {
                database.keyspace(table.name(), || table_options(table))?;
            }
            database.persist(PersistMode::SyncAll)
        },
    )?;
    let sync_folder = |path: &Path| fs::File::open(path).and_then(|folder| folder.sync_all());
    sync_folder(&new).map_err(fail)?;
    fs::rename(&new, folder).map_err(fail)?;
    folder.parent().map_or(Ok(()), sync_folder).map_err(fail)
}

fn open_handles(folder: &Path) -> Result<Handles> {
    guarded(
        folder,
        || first_damage(folder),
        || {
            let database = database_builder(folder).open()?;
            if Table::ALL.iter().any(|table| !database.keyspace_exists(table.name())) {
                return Err(fjall::Error::Unrecoverable);
            }
            let open = |table: Table| database.keyspace(table.name(), || table_options(table));
            let [a, b, c, d] = Table::ALL.map(open);
            Ok(Handles { tables: [a?, b?, c?, d?], database })
        },
    )
}

/// Has the library's thread write out the tables that have as much in memory as they may.
///
/// The library would ask its thread for that with each batch from then on, in a queue of 1,000
/// places (fjall 3.1). While the thread merges for long the queue fills, and then the thread, which
/// puts its next task there, waits for itself for ever. So no batch finds a full memory.
fn write_out_full(tables: &[Keyspace; Table::ALL.len()]) -> fjall::Result<()> {
    for (table, keyspace) in Table::ALL.into_iter().zip(tables) {
        if keyspace.tree.active_memtable().size() > memtable_bytes(table) {
            keyspace.rotate_memtable()?;
        }
    }
    Ok(())
}

/// Runs `act`; what the library panics with becomes an error. `damage` looks for a damaged file,
/// since the library names none.
fn guarded<T>(
    folder: &Path,
    damage: impl FnOnce() -> Option<String>,
    act: impl FnOnce() -> fjall::Result<T>,
) -> Result<T> {
    match panic::catch_unwind(AssertUnwindSafe(act)) {
        Ok(result) => result.map_err(|error| explained(folder, damage, error)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("the library gave no reason").to_owned();
            Err(damaged(folder, damage().unwrap_or(text)))
        }
    }
}

fn damaged(folder: &Path, what: String) -> Error {
    Error::corrupt(format!("the index {} is damaged: {what}", folder.display()))
}

/// The first file of an index that is not as it was written.
fn first_damage(folder: &Path) -> Option<String> {
    let mut first = preflight::check(folder, 0, true).err();
    // A disk that refuses to be read names the file, too.
    let verified = tables::verify(folder, &mut |error| {
        first.get_or_insert(error);
    });
    first.or(verified.err()).map(|error| error.to_string())
}

fn explained(folder: &Path, damage: impl FnOnce() -> Option<String>, error: fjall::Error) -> Error {
    let io_kind = match &error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => {
            Some(error.kind())
        }
        _ => None,
    };
    let is_damage = match io_kind {
        Some(kind) => matches!(
            kind,
            io::ErrorKind::UnexpectedEof
                | io::ErrorKind::NotFound
                | io::ErrorKind::InvalidData
                | io::ErrorKind::InvalidInput
                | io::ErrorKind::Other
        ),
        None => !matches!(error, fjall::Error::Poisoned | fjall::Error::Locked),
    };
    if is_damage {
        return damaged(folder, damage().unwrap_or_else(|| error.to_string()));
    }
    let folder = folder.display();
    let advice = match error {
        fjall::Error::Poisoned => "a write to it failed before; close the store and open it again",
        fjall::Error::Locked => "another process has it open",
        _ => "the disk refuses",
    };
    Error::unavailable(format!("the index {folder}: {advice}")).with_source(error)
}

impl Drop for FjallIndex {
    fn drop(&mut self) {
        self.close();
    }
}

impl Index for FjallIndex {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>> {
        let handles = self.handles()?;
        let stored = self.guarded(|| handles.table(table).get(key))?;
        stored.map(|stored| seal::open(table, key, stored.into())).transpose()
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        if to.is_some_and(|to| to <= from) {
            return Ok(());
        }
        let handles = self.handles()?;
        let mut entries = self.guarded(|| {
            Ok(match to {
                Some(to) => handles.table(table).range(from..to),
                None => handles.table(table).range(from..),
            })
        })?;
        self.visit_all(table, &mut || entries.next(), visit)
    }

    fn scan_back(&self, table: Table, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        if to <= from {
            return Ok(());
        }
        let handles = self.handles()?;
        let mut entries = self.guarded(|| Ok(handles.table(table).range(from..to)))?;
        self.visit_all(table, &mut || entries.next_back(), visit)
    }

    fn commit(&self, batch: IndexBatch) -> Result<u64> {
        if batch.changes.iter().any(|change| change.key.is_empty()) {
            return Err(Error::invalid("a key of the index is not empty"));
        }
        self.check_space(&batch)?;
        let mut committed = self.committed.lock();
        let Committed { last, overwritten } = &mut *committed;
        let number = *last + 1;
        let handles = self.handles()?;
        self.guarded(|| {
            let Handles { database, tables } = &*handles;
            let memories = tables.each_ref().map(|table| table.tree.active_memtable().id());
            let mut changes =
                fjall::OwnedWriteBatch::with_capacity(database.clone(), batch.changes.len() + 1);
            for change in batch.changes {
                let at = change.table as usize;
                let table = &tables[at];
                overwritten[at].note(memories[at], &change.key);
                match change.value {
                    Some(value) => changes.insert(table, change.key, value),
                    None => changes.remove(table, change.key),
                }
            }
            let mut stamp = BatchStamp { number, seqno_floor: database.seqno() }.encode();
            seal::close(Table::Meta, BATCH_KEY, &mut stamp);
            changes.insert(&tables[Table::Meta as usize], BATCH_KEY, stamp);
            changes.commit()?;
            write_out_full(tables)
        })?;
        *last = number;
        Ok(number)
    }

    fn sync(&self) -> Result<()> {
        let last = self.last_batch();
        let handles = self.handles()?;
        self.guarded(|| handles.database.persist(PersistMode::SyncData))?;
        let mut committed = self.committed.lock();
        // What is written out must be in the journal on disk.
        if committed.last == last {
            self.write_out_overwritten(&handles, &mut committed.overwritten)?;
        }
        Ok(())
    }

    fn last_batch(&self) -> u64 {
        self.committed.lock().last
    }

    fn close(&self) {
        let handles = self.handles.write().take();
        // A panic here has nobody to go to: everything that was promised is synced already.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| drop(handles)));
    }

    fn disk_bytes(&self) -> u64 {
        tables::disk_bytes(&self.folder)
    }

    fn inspect(&self, table: Table, inspect: &mut Inspect<'_>) -> Result<()> {
        let handles = self.handles()?;
        let mut entries = self.guarded(|| Ok(handles.table(table).iter()))?;
        loop {
            let entry =
                self.guarded(|| entries.next().map(fjall::Guard::into_inner).transpose())?;
            let Some((key, stored)) = entry else { return Ok(()) };
            let value = seal::open(table, &key, stored.into());
            if table != Table::Meta || *key != *BATCH_KEY {
                inspect(&key, value);
            }
        }
    }

    fn verify(&self, found: &mut dyn FnMut(Error)) -> Result<()> {
        tables::verify(&self.folder, found)
    }
}
