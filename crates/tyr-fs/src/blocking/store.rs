//! A file system of a store: its keyspaces, superblock, numbers, and the session of this program.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use parking_lot::Mutex;
use rustix::io::Errno;
use tyr::blocking::{Keyspace, Lock, Tyr};
use tyr::{ErrorKind, LeaseOptions, Number, Transform};

use super::bundle::Bundle;
use super::driver::absent_is_none;
use super::opens::Opens;
use super::quota::QuotaState;
use crate::error::{Error, Result};
use crate::layout::header::{DirectoryPlace, Header};
use crate::layout::key::{Blob, NUMBER_MIN, ROOT};
use crate::layout::record::{Kind, Record, Time};
use crate::layout::superblock::Superblock;
use crate::options::{AccessTimes, Clock, Options};
use crate::plan::known::Others;
use crate::plan::rights::Credentials;

/// How many numbers a program takes at a time.
const NUMBERS_TAKEN: u64 = 65_536;

/// Chunks of the keyspace of names: small files lie in one.
pub(super) const META_CHUNK_SIZE: u64 = 64 << 20;

/// Chunks of the keyspace of content.
pub(super) const DATA_CHUNK_SIZE: u64 = 4 << 20;

/// A file system, opened. Cheap to clone; clones share everything, but each may be of a user of its
/// own ([`FileSystem::acting_as`]).
#[derive(Clone, Debug)]
pub struct FileSystem {
    pub(super) shared: Arc<Shared>,
    /// Whose rights are checked, if anybody's.
    pub(super) user: Option<Arc<Credentials>>,
    pub(super) access_times: AccessTimes,
    /// What its calls are bundled in, if they are to be committed together.
    pub(super) bundle: Option<Arc<Mutex<Bundle>>>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub tyr: Tyr,
    pub name: String,
    pub meta: Keyspace,
    pub data: Keyspace,
    pub superblock: Superblock,
    pub clock: Clock,
    pub opens: Opens,
    pub session: u64,
    /// The sessions of others, as they were found last.
    pub others: Mutex<Option<Others>>,
    pub quota: Mutex<QuotaState>,
    /// Dropped with this, which ends the thread that tends orphans.
    pub tended: Mutex<Option<Sender<()>>>,
    /// Held while this program uses the file system.
    lock: Mutex<Option<Lock>>,
    /// Numbers that this program may give: the next, and where they end.
    numbers: Mutex<(u64, u64)>,
}

fn keyspace_names(name: &str) -> [String; 2] {
    [format!("{name}.meta"), format!("{name}.data")]
}

impl FileSystem {
    /// Makes a file system in a store, and opens it.
    ///
    /// # Errors
    /// `EEXIST` when there is one of this name; `EINVAL` for a name that keyspaces cannot have with
    /// `.meta` behind, and for options out of range.
    pub fn create(store: &Tyr, name: &str, options: &Options) -> Result<Self> {
        options.validate()?;
        let [meta, data] = keyspace_names(name);
        let meta = store.keyspace_or_create(&meta, options.keyspace(META_CHUNK_SIZE))?;
        store.keyspace_or_create(&data, options.keyspace(DATA_CHUNK_SIZE))?;
        let superblock = Superblock { segment_bits: options.segment_bits };
        let root = Record::new(Kind::Directory, ROOT, options.root, Clock::system().now());
        let mut transaction = store.begin();
        let place = Blob::superblock().key;
        transaction.expect_absent(&meta, &place)?;
        transaction.put(&meta, &place, superblock.encode().to_vec())?;
        let numbers = NUMBER_MIN.to_le_bytes().to_vec();
        transaction.put(&meta, &Blob::next_number().key, numbers)?;
        transaction.put(&meta, &Blob::session_changes().key, 0_u64.to_le_bytes().to_vec())?;
        let header = Header::new(root, DirectoryPlace::ROOT).encode().to_vec();
        transaction.put(&meta, &Blob::header(ROOT).key, header)?;
        match transaction.commit() {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let text = format!("there is a file system {name} already: open it");
                Err(Error::new(Errno::EXIST, text))
            }
            Err(error) => Err(error.into()),
            Ok(_) => Self::open(store, name),
        }
    }

    /// Opens a file system. What programs that are gone left without a name is let go of.
    ///
    /// # Errors
    /// `ENOENT` when the store has no such file system; `EOPNOTSUPP` for one of another format;
    /// `EIO` for one that is damaged.
    pub fn open(store: &Tyr, name: &str) -> Result<Self> {
        Self::open_with(store, name, Clock::system())
    }

    /// The same with a clock of one's own.
    ///
    /// # Errors
    /// As [`FileSystem::open`].
    pub fn open_with(store: &Tyr, name: &str, clock: Clock) -> Result<Self> {
        let none = || {
            let text = format!("the store has no file system {name}: make one first");
            Error::new(Errno::NOENT, text)
        };
        let [meta, data] = keyspace_names(name);
        let meta = absent_is_none(store.keyspace(&meta))?.ok_or_else(none)?;
        let data = absent_is_none(store.keyspace(&data))?.ok_or_else(none)?;
        let superblock = absent_is_none(meta.get(&Blob::superblock().key))?.ok_or_else(none)?;
        let superblock = Superblock::decode(&superblock)?;
        let session = take_numbers(&meta, 1)?;
        let holder = format!("process {}", std::process::id());
        let options = LeaseOptions::exclusive().no_wait().holder(holder);
        let lock = meta.lock(&Blob::session(session).key, &options)?;
        // Whoever takes the last name of a file from now on knows that it may be open here.
        meta.apply(&Blob::session_changes().key, 0, Transform::add(Number::U64(1)))?;
        let shared = Shared {
            tyr: store.clone(),
            name: name.to_owned(),
            meta,
            data,
            superblock,
            clock,
            opens: Opens::default(),
            session,
            others: Mutex::default(),
            quota: Mutex::default(),
            tended: Mutex::default(),
            lock: Mutex::new(Some(lock)),
            numbers: Mutex::new((0, 0)),
        };
        let (shared, user) = (Arc::new(shared), None);
        let access_times = AccessTimes::default();
        let opened = Self { shared, user, access_times, bundle: None };
        opened.end_sessions()?;
        opened.start_tending()?;
        Ok(opened)
    }

    /// The file systems of a store, by name.
    ///
    /// # Errors
    /// `EIO` when the store does not answer.
    pub fn list(store: &Tyr) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for keyspace in store.keyspaces()? {
            let Some(name) = keyspace.name.as_str().strip_suffix(".meta") else { continue };
            let meta = store.keyspace(keyspace.name.as_str())?;
            if absent_is_none(meta.stat(&Blob::superblock().key))?.is_some() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The store that it is in.
    pub fn store(&self) -> &Tyr {
        &self.shared.tyr
    }

    /// The same file system, when reading from open files is noted otherwise.
    #[must_use]
    pub fn with_access_times(&self, access_times: AccessTimes) -> Self {
        Self { access_times, ..self.clone() }
    }

    /// Everything that was done is on disk when it returns, also where the keyspaces are
    /// `buffered`.
    ///
    /// # Errors
    /// `EIO` when the disk fails.
    pub fn sync(&self) -> Result<()> {
        Ok(self.shared.tyr.sync()?)
    }

    /// Gives the session back. Files that are open without a name are let go of by who opens the
    /// file system next. The same happens when the last clone is dropped, without errors.
    ///
    /// # Errors
    /// `EIO` when the store does not answer.
    pub fn close(self) -> Result<()> {
        self.shared.end()
    }

    pub(super) fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// What time it is for this file system.
    pub(crate) fn clock_now(&self) -> Time {
        self.now()
    }

    /// What holds for all of it.
    pub(crate) fn superblock(&self) -> Superblock {
        self.shared.superblock
    }

    /// The session of this program.
    pub(crate) fn session(&self) -> u64 {
        self.shared.session
    }

    /// A number that no file has had.
    pub(crate) fn new_number(&self) -> Result<u64> {
        let mut numbers = self.shared.numbers.lock();
        let (next, end) = &mut *numbers;
        if next == end {
            *next = take_numbers(&self.shared.meta, NUMBERS_TAKEN)?;
            *end = *next + NUMBERS_TAKEN;
        }
        let number = *next;
        *next += 1;
        drop(numbers);
        if self.bundle.is_some() {
            self.bundle()?.add_fresh(number);
        }
        Ok(number)
    }
}

impl Shared {
    fn end(&self) -> Result<()> {
        drop(self.tended.lock().take());
        let Some(lock) = self.lock.lock().take() else { return Ok(()) };
        let mut transaction = self.tyr.begin();
        transaction.fence(&lock)?;
        transaction.delete(&self.meta, &Blob::session(self.session).key)?;
        let more = Transform::add(Number::U64(1));
        transaction.apply(&self.meta, &Blob::session_changes().key, 0, more)?;
        transaction.commit()?;
        drop(lock);
        Ok(())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::debug!(%error, "the session of a file system is ended by who opens it next");
        }
    }
}

/// So many numbers that nobody else has; answers the first.
fn take_numbers(meta: &Keyspace, count: u64) -> Result<u64> {
    let transform = Transform::add(Number::U64(count));
    match meta.apply(&Blob::next_number().key, 0, transform)? {
        Number::U64(next) => Ok(next - count),
        other => unreachable!("{other:?} is no u64"),
    }
}
