//! A file system as its users see it, on a store in this process.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod async_face;
mod clients;
mod concurrency;
mod holes;
mod large;
mod model;
mod moments;
mod open;
mod program;
mod quota;
mod random;
mod rights;
mod swap;
mod transactions;
mod walking;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use tyr::blocking::Tyr;
use tyr::{Durability, KeyspaceConfig};
use tyr_fs::blocking::FileSystem;
use tyr_fs::{Access, Clock, Options, Time};

/// Rights that do not matter.
const MINE: Access = Access { mode: 0o644, owner: 7, group: 8 };

/// How file systems are made here: not synced, with short segments.
fn options() -> Options {
    let keyspace_config =
        KeyspaceConfig { durability: Durability::Buffered, ..KeyspaceConfig::default() };
    Options { keyspace_config, segment_bits: 16, ..Options::default() }
}

/// Asks until it holds, with a bound.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A file system in a folder that goes away with it.
struct Fixture {
    files: FileSystem,
    _folder: tempfile::TempDir,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let store = Tyr::open(folder.path()).unwrap();
    let files = FileSystem::create(&store, "test", &options()).unwrap();
    Fixture { files, _folder: folder }
}

impl Fixture {
    /// It is clean, and nothing in it is an orphan.
    fn verify(&self) {
        let report = self.files.check(&mut |_| true).unwrap();
        assert_eq!(report.findings, []);
        assert_eq!(report.orphans, 0);
    }
}

/// A clock that stands still until it is told otherwise.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicI64>);

impl Hand {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::SeqCst))
    }

    fn tick(&self) {
        self.0.fetch_add(1_000, Ordering::SeqCst);
    }

    fn clock(&self) -> Clock {
        let hand = self.clone();
        Clock::new(move || hand.now())
    }
}
