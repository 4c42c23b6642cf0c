//! What a long transaction costs that has read a counter which is changed all the time: how often
//! that is, and whether it still reads what it read first.
//!
//! `cargo run --release -p tyr --example held_version -- STORE SECONDS`, where STORE is a cluster
//! (`tyr://127.0.0.1:7070`) or a folder. Versions held for readers are the metric `tyr_versions_held`
//! of each node.

use std::env;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tyr::blocking::Tyr;
use tyr::{Error, KeyspaceConfig, Number, Result, Transform};

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
    let mut reading = tyr.begin();
    let first = reading.get(&data, "counter")?;
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
    let is_same = reading.get(&data, "counter")? == first;
    let written = written.load(Ordering::Relaxed);
    println!("{written} writes in {:?}; it reads the same: {is_same}", begun.elapsed());
    Ok(())
}
