//! A store of many small blobs: how long it takes to open, and how much memory it holds.

use std::path::Path;

use tyr::blocking::Tyr;
use tyr::{Durability, Error, Key, KeyspaceConfig, Result};

use super::meter::{self, Figures, Moment};
use crate::random::Random;

/// Bytes of a blob.
const BLOB_LEN: usize = 100;
/// Blobs of one transaction.
const BATCH: u64 = 1000;
/// Blobs that are read after opening.
const READS: u64 = 1000;

fn key(number: u64) -> Result<Key> {
    Key::new(format!("blob/{number:012}"))
}

/// What blob `number` holds.
fn content(number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    (0..BLOB_LEN).map(|_| random.next() as u8).collect()
}

/// Makes the store.
pub fn build(dir: &Path, blobs: u64) -> Result<Figures> {
    let moment = Moment::now();
    let store = Tyr::open(dir)?;
    let config = KeyspaceConfig { durability: Durability::Buffered, ..KeyspaceConfig::default() };
    let keyspace = store.create_keyspace("blobs", config)?;
    let mut number = 0;
    while number < blobs {
        let end = blobs.min(number + BATCH);
        let mut transaction = store.begin();
        for number in number..end {
            transaction.put(&keyspace, key(number)?, content(number))?;
        }
        transaction.commit()?;
        number = end;
    }
    store.close()?;
    let mut figures = Figures::default();
    moment.cost().report(blobs, &mut figures);
    let on_disk = meter::bytes_on_disk(dir)
        .map_err(|error| Error::io(format!("cannot look at {}", dir.display()), error))?;
    figures.set("disk_per_byte", on_disk as f64 / (blobs * BLOB_LEN as u64) as f64);
    Ok(figures)
}

/// Opens the store, looks at the memory, then reads some blobs.
pub fn open(dir: &Path, blobs: u64) -> Result<Figures> {
    let moment = Moment::now();
    let store = Tyr::open(dir)?;
    let keyspace = store.keyspace("blobs")?;
    let mut figures = Figures::default();
    let cost = moment.cost();
    figures.set("open_ms", cost.wall.as_secs_f64() * 1e3);
    figures.set("open_cpu_ms", cost.cpu.as_secs_f64() * 1e3);
    figures.set("memory_opened_mib", meter::memory_mib("VmRSS"));
    let mut random = Random::new(9);
    let moment = Moment::now();
    for _ in 0..READS {
        let number = random.below(blobs);
        let got = keyspace.get(key(number)?)?;
        if got != content(number) {
            return Err(Error::corrupt(format!("blob {number} is not what was written")));
        }
    }
    let cost = moment.cost();
    figures.set("first_reads_cpu_us", cost.cpu.as_secs_f64() * 1e6 / READS as f64);
    figures.set("memory_read_mib", meter::memory_mib("VmRSS"));
    store.close()?;
    Ok(figures)
}
