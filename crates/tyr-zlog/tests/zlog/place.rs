//! Where a test makes its logs, and what it asks of them again and again.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Builder;
use tyr::Tyr;
use tyr_zlog::{Entry, Log, Methods, Opening, Options, Policy};

use tyr_testing::{Cluster, Kind, Opened, stores};

/// A store, as two programs have it open, and the keyspace in it that is this test's.
#[derive(Clone)]
pub struct Place {
    pub stores: [Tyr; 2],
    pub keyspace: String,
    /// The cluster that it is on, if it is.
    pub cluster: Option<&'static Cluster>,
}

/// Runs the test on each kind of store.
pub fn on_each<F: Future<Output = ()>>(test: impl Fn(Place) -> F) {
    for kind in stores() {
        on(kind, &test);
    }
}

/// Runs the test on this kind of store.
pub fn on<F: Future<Output = ()>>(kind: Kind, test: impl Fn(Place) -> F) {
    let opened = Opened::new(kind);
    let stores = [opened.tyr.clone(), opened.other()].map(|store| store.into_async());
    let (keyspace, cluster) = (opened.name("zlogs"), opened.cluster());
    let place = Place { stores, keyspace, cluster };
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(test(place));
}

/// A handle that gives the sequencer on at once, and waits long before it fills.
pub fn patient() -> Opening {
    Opening {
        policy: Policy::BestEffort,
        fill_after: Duration::from_secs(600),
        ..Opening::default()
    }
}

/// The same, but for holes, which it fills at once.
pub fn hasty() -> Opening {
    Opening { fill_after: Duration::ZERO, ..patient() }
}

impl Place {
    /// A new log of two objects with four positions each, so that it goes on in others all the
    /// time.
    pub async fn log(&self, name: &str) -> Log {
        let keyspace = self.keyspace.clone();
        let options = Options { keyspace, width: 2, slots: 4, ..Options::default() };
        Log::create(&self.stores[0], name, &options).await.unwrap();
        self.open(name, 0, patient()).await
    }

    /// The log as one of the programs opens it; the second one calls what is in it, in Rust.
    pub async fn open(&self, name: &str, program: usize, opening: Opening) -> Log {
        let methods = if program == 0 { Methods::Installed } else { Methods::Native };
        let opening = Opening { methods, ..opening };
        Log::open_as(&self.stores[program], &self.keyspace, name, opening).await.unwrap()
    }
}

/// Everything from a position on.
pub async fn all_from(log: &Log, from: u64) -> Vec<Entry> {
    let mut reader = log.reader(from);
    let mut entries = Vec::new();
    loop {
        let more = reader.next().await.unwrap();
        if more.is_empty() {
            return entries;
        }
        entries.extend(more);
    }
}

/// Positions and texts.
pub fn texts(entries: &[Entry]) -> Vec<(u64, String)> {
    let text = |entry: &Entry| String::from_utf8(entry.data.to_vec()).unwrap();
    entries.iter().map(|entry| (entry.position, text(entry))).collect()
}
