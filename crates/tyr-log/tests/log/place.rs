//! Where a test makes its logs, and what it asks of them again and again.

use std::future::Future;

use tokio::runtime::Builder;
use tyr::{Result, Tyr};
use tyr_log::{Batch, Cut, Entry, Log, Options, Reader, Start};

use tyr_testing::{Kind, Opened, stores};

/// A store, and the keyspace in it that is this test's.
#[derive(Clone)]
pub struct Place {
    pub store: Tyr,
    pub keyspace: String,
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
    let store = opened.tyr.clone().into_async();
    let place = Place { store, keyspace: opened.name("logs") };
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap()
        .block_on(test(place));
}

impl Place {
    /// Options for this place with small segments, so that a log goes on in others all the time.
    pub fn options(&self, partitions: u16) -> Options {
        let keyspace = self.keyspace.clone();
        Options { keyspace, partitions, segment_bytes: Some(1 << 10), ..Options::default() }
    }

    /// A new log with small segments.
    pub async fn log(&self, name: &str, partitions: u16) -> Log {
        Log::create(&self.store, name, &self.options(partitions)).await.unwrap()
    }

    /// The log as somebody else opens it.
    pub async fn open(&self, name: &str) -> Result<Log> {
        Log::open_in(&self.store, &self.keyspace, name).await
    }
}

/// So many entries, or all that there are.
pub async fn take(reader: &mut Reader, count: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    while entries.len() < count {
        let more = reader.next(count - entries.len()).await.unwrap();
        if more.is_empty() {
            break;
        }
        entries.extend(more);
    }
    entries
}

/// Everything from some place on.
pub async fn all_from(log: &Log, from: &Start) -> Vec<Entry> {
    let mut reader = log.reader(from).await.unwrap();
    let mut entries = Vec::new();
    loop {
        let more = reader.next(7).await.unwrap();
        if more.is_empty() {
            return entries;
        }
        entries.extend(more);
    }
}

/// Everything in a log.
pub async fn all(log: &Log) -> Vec<Entry> {
    all_from(log, &Start::Oldest).await
}

/// What entries have, as text.
pub fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| String::from_utf8(entry.data.to_vec()).unwrap()).collect()
}

/// A cut of a log with one partition.
pub fn cut(text: &str) -> Cut {
    text.parse().unwrap()
}

/// A batch of so many numbered entries.
pub fn numbered(from: u64, to: u64) -> Batch {
    Batch::of((from..to).map(|n| n.to_string())).unwrap()
}
