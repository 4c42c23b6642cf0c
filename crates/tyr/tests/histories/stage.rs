//! A store in a temporary folder, and many threads on it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tyr::blocking::{Keyspace, Tyr};
use tyr::{
    Bytes, CheckFinding, CheckSeverity, Durability, ErrorKind, Key, KeyspaceConfig, Options,
    ReadRequest, Result,
};

use super::history::{Action, Clock, Entry, Object, Recorder, Seen, Value};
use crate::seed::Random;

/// A store with its keyspaces; objects go round over these.
pub struct Stage {
    pub tyr: Tyr,
    pub keyspaces: Vec<Keyspace>,
    pub clock: Clock,
    seed: u64,
    values: AtomicU64,
    _folder: tempfile::TempDir,
}

/// How a store of these tests is opened: it folds all the time.
pub fn options() -> Options {
    Tyr::options().cache_bytes(8 << 20).fold_log_bytes(32 << 10)
}

impl Stage {
    /// A store with a keyspace for each of these durabilities.
    pub fn new(seed: u64, durabilities: &[Durability]) -> Self {
        Self::with(seed, durabilities, true, |path| options().open_blocking(path))
    }

    /// The same, opened otherwise, with older versions or without.
    pub fn with(
        seed: u64,
        durabilities: &[Durability],
        is_multi_versioned: bool,
        open: impl FnOnce(&std::path::Path) -> Result<Tyr>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tyr = open(folder.path()).unwrap();
        let make = |(n, durability): (usize, &Durability)| {
            let config = KeyspaceConfig {
                durability: *durability,
                is_multi_versioned,
                ..KeyspaceConfig::default()
            };
            tyr.create_keyspace(&format!("k{n}"), config).unwrap()
        };
        let keyspaces = durabilities.iter().enumerate().map(make).collect();
        let (clock, values) = (Clock::default(), AtomicU64::new(0));
        Self { tyr, keyspaces, clock, seed, values, _folder: folder }
    }

    /// The keyspace that holds an object.
    pub fn keyspace(&self, object: Object) -> &Keyspace {
        &self.keyspaces[object as usize % self.keyspaces.len()]
    }

    /// A value that nobody else writes.
    pub fn value(&self) -> Value {
        self.values.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What [`Tyr::read_many`] is asked for to read whole objects.
    pub fn requests(&self, objects: &[Object]) -> Vec<ReadRequest> {
        let request = |object: &Object| ReadRequest {
            keyspace: self.keyspace(*object).clone().into_async(),
            key: Key::new(key(*object)).unwrap(),
            range: tyr::ByteRange { start: 0, end: 1 << 20 },
        };
        objects.iter().map(request).collect()
    }

    /// Lets `work` run in many threads at once; answers all that they recorded. Another thread
    /// folds, and verifies what is on disk, until they are done.
    pub fn play(
        &self,
        threads: u64,
        work: impl Fn(&mut Recorder, &mut Random) + Sync,
    ) -> Vec<Entry> {
        thread::scope(|scope| {
            let begin = |thread: u64| {
                let work = &work;
                scope.spawn(move || {
                    let mut recorder = Recorder::new(&self.clock, thread);
                    work(&mut recorder, &mut Random::new(self.seed ^ thread << 48));
                    recorder.into_entries()
                })
            };
            let running: Vec<_> = (0..threads).map(begin).collect();
            while running.iter().any(|thread| !thread.is_finished()) {
                self.fold();
            }
            running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// Folds, and verifies what is on disk.
    pub fn fold(&self) {
        let report = self.tyr.check(&mut |_| {}).unwrap();
        let is_damage = |finding: &CheckFinding| finding.severity != CheckSeverity::Warning;
        assert!(!report.findings.iter().any(is_damage), "{report:?}");
    }
}

/// The key of an object.
pub fn key(object: Object) -> String {
    format!("o{object}")
}

/// `None` where there is no such blob; other errors end the test, unless they are conflicts.
pub fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind().is_retryable() => Err(error),
        Err(error) => panic!("{error:?}"),
    }
}

/// Whether it took effect; errors that no retry mends end the test.
pub fn is_done<T>(result: Result<T>) -> bool {
    match result {
        Ok(_) => true,
        Err(error) if error.kind().is_retryable() => false,
        Err(error) => panic!("{error:?}"),
    }
}

/// A blob of 8-byte values as a read of a list.
pub fn read_of(object: Object, bytes: Option<Bytes>) -> Action {
    let list = bytes.map(|bytes| values(&bytes)).unwrap_or_default();
    Action::Read { object, seen: Seen::List(list) }
}

/// The 8-byte values of a blob.
pub fn values(bytes: &[u8]) -> Vec<Value> {
    assert!(bytes.len().is_multiple_of(8), "values have 8 bytes, the blob has {}", bytes.len());
    let value = |bytes: &[u8]| Value::from_le_bytes(bytes.try_into().unwrap());
    bytes.chunks(8).map(value).collect()
}
