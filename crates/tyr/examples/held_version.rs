//! What a long snapshot costs beside a counter which is changed all the time: how often that is,
//! and whether the snapshot reads in the end what there was when it began.
//!
//! `cargo run --release -p tyr --example held_version -- STORE SECONDS [transaction]`, where STORE
//! is a cluster (`tyr://127.0.0.1:7070`) or a folder. With `transaction` it is a transaction that has
//! read the counter first; without, a snapshot that has read nothing. Versions held for readers are
//! the metric `tyr_versions_held` of each node.

use std::env;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tyr::blocking::{Keyspace, Snapshot, Transaction, Tyr};
use tyr::{Bytes, Error, KeyspaceConfig, Number, Result, Transform};

/// Callers that add to the counter, each waiting for its answer.
const WRITERS: usize = 64;

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let store = arguments.next().unwrap_or_else(|| "held-version".to_owned());
    let seconds = arguments.next().map_or(Ok(10), |text| text.parse::<u64>());
    let seconds = seconds.map_err(|error| Error::invalid(format!("SECONDS: {error}")))?;
    let tyr = match store.starts_with("tyr://") {
        true => Tyr::connect(&store)?,
        false => Tyr::open(&store)?,
    };
    let data = tyr.keyspace_or_create("held-version", KeyspaceConfig::default())?;
    data.apply("counter", 0, Transform::add(Number::U64(1)))?;
    let first = data.get("counter")?;
    let mut held = match arguments.next().as_deref() {
        Some("transaction") => Held::Transaction(Box::new(tyr.begin())),
        Some(_) | None => Held::Snapshot(tyr.snapshot()?),
    };
    if let Held::Transaction(_) = held {
        held.get(&data)?;
    }
    let (written, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let write = || -> Result<()> {
            while !is_over.load(Ordering::Relaxed) {
                data.apply("counter", 0, Transform::add(Number::U64(1)))?;
                written.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(write)).collect();
        while begun.elapsed() < Duration::from_secs(seconds) {
            std::thread::sleep(Duration::from_secs(1).min(Duration::from_secs(seconds)));
            let written = written.load(Ordering::Relaxed);
            println!("{:>4} s  {written} writes", begun.elapsed().as_secs());
        }
        is_over.store(true, Ordering::Relaxed);
        let ended = writers.into_iter().map(|writer| writer.join().expect("it does not panic"));
        ended.collect::<Result<Vec<()>>>()
    })?;
    let is_same = held.get(&data)? == first;
    let written = written.load(Ordering::Relaxed);
    println!("{written} writes in {:?}; it reads the same: {is_same}", begun.elapsed());
    Ok(())
}

/// What holds the version.
enum Held {
    Snapshot(Snapshot),
    Transaction(Box<Transaction>),
}

impl Held {
    fn get(&mut self, data: &Keyspace) -> Result<Bytes> {
        match self {
            Self::Snapshot(snapshot) => snapshot.get(data, "counter"),
            Self::Transaction(transaction) => transaction.get(data, "counter"),
        }
    }
}
