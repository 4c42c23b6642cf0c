//! A store, and many threads on it: in a temporary folder, or a cluster that several programs use.

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use tyr::blocking::{Keyspace, Tyr};
use tyr::{
    Bytes, CheckFinding, CheckSeverity, Durability, ErrorKind, Key, KeyspaceConfig, Options,
    ReadRequest, Result,
};
use tyr_chance::Chance;

use super::history::{Action, Clock, Entry, Object, Recorder, Seen, Value};
use tyr_testing::{Kind, Opened};

/// A store with its keyspaces; objects go round over these.
pub struct Stage {
    /// Those who use the store; threads go round over them.
    clients: Vec<Client>,
    pub clock: Clock,
    pub kind: Kind,
    seed: u64,
    values: AtomicU64,
    _place: Place,
}

/// A user of the store.
struct Client {
    tyr: Tyr,
    keyspaces: Vec<Keyspace>,
}

/// Where the store is, for as long as it is used.
enum Place {
    Folder(#[expect(dead_code, reason = "it is removed when it is dropped")] tempfile::TempDir),
    Cluster(#[expect(dead_code, reason = "it ends when it is dropped")] Opened),
}

/// How a store of these tests is opened: it folds all the time.
pub fn options() -> Options {
    Tyr::options().cache_bytes(8 << 20).fold_log_bytes(32 << 10)
}

fn config(durability: Durability, is_multi_versioned: bool) -> KeyspaceConfig {
    KeyspaceConfig { durability, is_multi_versioned, ..KeyspaceConfig::default() }
}

thread_local! {
    /// Which client this thread has, modulo their number.
    static SEAT: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed)
    };
}

impl Stage {
    /// A store of a kind, with a keyspace for each of these durabilities.
    pub fn new(kind: Kind, seed: u64, durabilities: &[Durability], is_multi: bool) -> Self {
        match kind {
            Kind::Embedded => {
                let open = |path: &Path| options().open_blocking(path);
                Self::embedded(seed, durabilities, is_multi, open)
            }
            Kind::Cluster => Self::cluster(seed, durabilities, is_multi),
        }
    }

    /// A store in this process, opened in a special way.
    pub fn embedded(
        seed: u64,
        durabilities: &[Durability],
        is_multi: bool,
        open: impl FnOnce(&Path) -> Result<Tyr>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tyr = open(folder.path()).unwrap();
        let make = |(n, durability): (usize, &Durability)| {
            tyr.create_keyspace(&format!("k{n}"), config(*durability, is_multi)).unwrap()
        };
        let keyspaces = durabilities.iter().enumerate().map(make).collect();
        Self::with(Kind::Embedded, seed, vec![Client { tyr, keyspaces }], Place::Folder(folder))
    }

    /// A cluster that two programs use.
    fn cluster(seed: u64, durabilities: &[Durability], is_multi: bool) -> Self {
        let opened = Opened::new(Kind::Cluster);
        let make = |(n, durability): (usize, &Durability)| {
            opened.create(&format!("k{n}"), config(*durability, is_multi))
        };
        let keyspaces: Vec<Keyspace> = durabilities.iter().enumerate().map(make).collect();
        let other = opened.other();
        let find = |keyspace: &Keyspace| other.keyspace(keyspace.name()).unwrap();
        let found = keyspaces.iter().map(find).collect();
        let clients = vec![
            Client { tyr: opened.tyr.clone(), keyspaces },
            Client { tyr: other.clone(), keyspaces: found },
        ];
        Self::with(Kind::Cluster, seed, clients, Place::Cluster(opened))
    }

    fn with(kind: Kind, seed: u64, clients: Vec<Client>, place: Place) -> Self {
        let (clock, values) = (Clock::default(), AtomicU64::new(0));
        Self { clients, clock, kind, seed, values, _place: place }
    }

    fn client(&self) -> &Client {
        &self.clients[SEAT.with(|client| client % self.clients.len())]
    }

    /// The store, as this thread uses it.
    pub fn tyr(&self) -> &Tyr {
        &self.client().tyr
    }

    /// Whether it is in this process.
    pub fn is_embedded(&self) -> bool {
        self.kind == Kind::Embedded
    }

    /// All keyspaces, as this thread uses them.
    pub fn keyspaces(&self) -> &[Keyspace] {
        &self.client().keyspaces
    }

    /// The keyspace that holds an object.
    pub fn keyspace(&self, object: Object) -> &Keyspace {
        &self.keyspaces()[object as usize % self.keyspaces().len()]
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

    /// Lets `work` run in many threads at once; answers all that they recorded. In this process
    /// another thread folds, and verifies what is on disk, until they are done.
    pub fn play(
        &self,
        threads: u64,
        work: impl Fn(&mut Recorder, &mut Chance) + Sync,
    ) -> Vec<Entry> {
        thread::scope(|scope| {
            let begin = |thread: u64| {
                let work = &work;
                scope.spawn(move || {
                    let mut recorder = Recorder::new(&self.clock, thread);
                    work(&mut recorder, &mut Chance::new(self.seed ^ thread << 48));
                    recorder.into_entries()
                })
            };
            let running: Vec<_> = (0..threads).map(begin).collect();
            while self.is_embedded() && running.iter().any(|thread| !thread.is_finished()) {
                self.fold();
            }
            running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// Folds, and verifies what is on disk, of a store in this process.
    pub fn fold(&self) {
        let report = self.tyr().check(&mut |_| {}).unwrap();
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
