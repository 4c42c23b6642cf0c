//! A large blob that is overwritten at random places: what that costs, how much of the disk it
//! takes meanwhile, and what reading costs afterwards, beside what it cost before.
//!
//! ```text
//! fill ─► open: read through ─► overwrite ─► open: rest, read through, at random, cold
//!    close                           close
//! ```
//!
//! Which of two threads that meet at one place came last is not known here. So what is written
//! tells where it belongs and which write it is of, and every read is verified: what it answers
//! must be whole writes, each at its place.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use tyr::blocking::Keyspace;
use tyr::{Durability, Error, Key, KeyspaceConfig, Result};

use super::latencies::Latencies;
use super::meter::{self, Cost, Figures, Moment};
use super::place::{Opened, Place};
use crate::failure::Outcome;
use crate::random::Random;

/// The keyspace and the blob in it.
const NAME: &str = "random";
/// Bytes of a piece when all of the blob is written or read.
const PIECE_LEN: u64 = 1 << 20;
/// Threads that overwrite.
const WRITERS: u64 = 32;
/// Bytes of a read at random.
const READ_LEN: u64 = 4096;
/// Reads at random, unless the blob is smaller than that.
const READS_MAX: u64 = 100_000;
/// Reads at random of what the system's cache has forgotten.
const COLD_READS_MAX: u64 = 5_000;
/// How often it is looked how much of the disk the store takes.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often it is looked whether the store still has something to do, and for how long at most.
const REST_EVERY: Duration = Duration::from_millis(500);
const REST_MAX: Duration = Duration::from_secs(300);
/// What a store at rest takes of a CPU at most: a node's is never quite still.
const REST_SHARE: f64 = 0.05;
/// Bytes of what tells its place and its write.
const RECORD_LEN: usize = 16;
/// The seed of what the blob is filled with.
const FILL: u64 = 0x6A09_E667_F3BC_C908;

/// What is written over what.
#[derive(Clone, Copy, Debug)]
pub struct Overwrites {
    /// How each is acknowledged.
    pub durability: Durability,
    /// Bytes of each: a power of two from 512 to 1 MiB.
    pub len: u64,
    /// Bytes of the blob: whole pieces, as [`whole_pieces`] makes them.
    pub bytes: u64,
}

impl Overwrites {
    /// How many there are: as many as write the blob three times over. What is small costs more a
    /// byte, and what waits for the disk far more, so there it is half of the blob or an eighth.
    fn count(&self) -> u64 {
        let bytes = match self.durability {
            Durability::Sync => self.bytes / 8,
            Durability::Memory | Durability::Buffered if self.len < 4096 => self.bytes / 2,
            Durability::Memory | Durability::Buffered => 3 * self.bytes,
        };
        bytes / self.len
    }

    /// Where the pieces begin.
    fn pieces(&self) -> impl Iterator<Item = u64> {
        (0..self.bytes / PIECE_LEN).map(|number| number * PIECE_LEN)
    }
}

/// Bytes of a blob of about `bytes`: whole pieces, one at least.
pub fn whole_pieces(bytes: u64) -> u64 {
    (bytes / PIECE_LEN).max(1) * PIECE_LEN
}

/// Fills a blob, overwrites it at random, and reads it before and after.
pub fn run(place: &Place, overwrites: &Overwrites) -> Outcome<Figures> {
    let mut figures = Figures::default();
    fill(place, overwrites)?;
    let blob = Blob::open(place)?;
    let untouched = blob.read_through(overwrites)?;
    overwrite(blob, place, overwrites, &mut figures)?;

    let blob = Blob::open(place)?;
    blob.rest(overwrites, &mut figures);
    // Once for the system's cache, which the reads after it are to find all in.
    blob.read_through(overwrites)?;
    let through = blob.read_through(overwrites)?;
    blob.read_at_random(overwrites, &mut figures)?;
    blob.read_cold(place.dir(), overwrites, &mut figures)?;
    figures.set("node_peak_mib", blob.opened.node_memory_mib("VmHWM"));
    blob.close()?;
    figures.set("untouched_mib_per_s", untouched);
    figures.set("through_mib_per_s", through);
    figures.set("through_share", through / untouched);
    Ok(figures)
}

fn fill(place: &Place, overwrites: &Overwrites) -> Outcome {
    let opened = place.open()?;
    let config = KeyspaceConfig { durability: overwrites.durability, ..KeyspaceConfig::default() };
    let keyspace = opened.store.create_keyspace(NAME, config)?;
    let blob = Blob { opened, keyspace, key: Key::new(NAME)? };
    for offset in overwrites.pieces() {
        blob.keyspace.write(&blob.key, offset, content(FILL, offset, PIECE_LEN))?;
    }
    Ok(blob.close()?)
}

/// Overwrites, and closes the store.
///
/// CPU time and bytes written are those until it is closed, so that what was put off counts; the
/// rate is that until the last overwrite was acknowledged.
fn overwrite(blob: Blob, place: &Place, overwrites: &Overwrites, figures: &mut Figures) -> Outcome {
    let dir = place.dir();
    let written_before = (meter::bytes_written(), meter::device_bytes_written(dir));
    let cpu_before = Place::cpu_of_ended() + blob.opened.node_cpu();
    let moment = Moment::now();
    let run = run_writers(&blob, dir, overwrites, moment)?;
    blob.close()?;
    let cpu = Place::cpu_of_ended().saturating_sub(cpu_before);

    let count = overwrites.count() as f64;
    figures.set("writes_per_s", count / run.cost.wall.as_secs_f64());
    figures.set("write_cpu_us", cpu.as_secs_f64() * 1e6 / count);
    moment.cost_of(cpu).report_foreign(figures);
    let written = (meter::bytes_written(), meter::device_bytes_written(dir));
    for (name, before, after) in [
        ("written_per_byte", written_before.0, written.0),
        ("device_written_per_byte", written_before.1, written.1),
    ] {
        if let (Some(before), Some(after)) = (before, after) {
            let overwritten = count * overwrites.len as f64;
            figures.set(name, after.saturating_sub(before) as f64 / overwritten);
        }
    }
    figures.set("disk_per_byte_max", run.on_disk_max as f64 / overwrites.bytes as f64);
    for (name, quantile) in [("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999)] {
        figures.set(name, run.latencies.at_us(quantile));
    }
    figures.set("slowest_ms", run.latencies.at_us(1.0) / 1e3);
    Ok(())
}

/// What the writers did.
struct Run {
    latencies: Latencies,
    /// Until the last of them ended.
    cost: Cost,
    /// Bytes on disk while they ran, at most.
    on_disk_max: u64,
}

/// Runs all writers, and one more thread that looks at the disk.
fn run_writers(blob: &Blob, dir: &Path, overwrites: &Overwrites, moment: Moment) -> Result<Run> {
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        let (taken, keyspace, key) = (&taken, &blob.keyspace, &blob.key);
        let (end, ended) = mpsc::channel();
        let watcher = scope.spawn(move || watch_disk(dir, &ended));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || write_share(keyspace, key, overwrites, writer, taken))
            })
            .collect();
        let mut latencies = Latencies::default();
        let mut outcome = Ok(());
        for writer in writers {
            match writer.join().expect("a benchmark thread does not panic") {
                Ok(of_one) => latencies.add(&of_one),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        let cost = moment.cost();
        drop(end);
        let on_disk_max = watcher.join().expect("a benchmark thread does not panic");
        outcome?;
        Ok(Run { latencies, cost, on_disk_max: on_disk_max? })
    })
}

/// One thread's share of the overwrites, of which `taken` are begun by all threads.
fn write_share(
    keyspace: &Keyspace,
    key: &Key,
    overwrites: &Overwrites,
    writer: u64,
    taken: &AtomicU64,
) -> Result<Latencies> {
    let count = overwrites.count();
    let mut random = Random::new(writer);
    let mut latencies = Latencies::default();
    while taken.fetch_add(1, Ordering::Relaxed) < count {
        let offset = random.below(overwrites.bytes / overwrites.len) * overwrites.len;
        let content = content(random.next(), offset, overwrites.len);
        let begin = Instant::now();
        if let Err(error) = keyspace.write(key, offset, content) {
            // The others end too.
            taken.store(count, Ordering::Relaxed);
            return Err(error);
        }
        latencies.record(begin.elapsed());
    }
    Ok(latencies)
}

/// The most bytes on disk that are seen until the sender of `ended` is gone.
fn watch_disk(dir: &Path, ended: &Receiver<()>) -> Result<u64> {
    let look = || {
        meter::bytes_on_disk(dir)
            .map_err(|error| Error::io(format!("cannot look at {}", dir.display()), error))
    };
    let mut most = look()?;
    while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
        most = most.max(look()?);
    }
    Ok(most.max(look()?))
}

/// The blob in an open store.
struct Blob {
    opened: Opened,
    keyspace: Keyspace,
    key: Key,
}

impl Blob {
    fn open(place: &Place) -> Outcome<Self> {
        let opened = place.open()?;
        let keyspace = opened.store.keyspace(NAME)?;
        Ok(Self { opened, keyspace, key: Key::new(NAME)? })
    }

    /// Closes the store, with every handle to it.
    fn close(self) -> Result<()> {
        let Self { opened, keyspace, .. } = self;
        drop(keyspace);
        opened.close()
    }

    /// Waits until the store does nothing more by itself. What that takes is what the overwrites
    /// have put off, such as giving space back, and is no cost of the reads that follow.
    fn rest(&self, overwrites: &Overwrites, figures: &mut Figures) {
        let cpu = || meter::process_cpu() + self.opened.node_cpu();
        let (begin, before) = (Instant::now(), cpu());
        let mut last = before;
        while begin.elapsed() < REST_MAX {
            thread::sleep(REST_EVERY);
            let now = cpu();
            if now.saturating_sub(last) < REST_EVERY.mul_f64(REST_SHARE) {
                break;
            }
            last = now;
        }
        let spent = cpu().saturating_sub(before);
        figures.set("rest_s", begin.elapsed().as_secs_f64());
        figures.set("rest_cpu_us", spent.as_secs_f64() * 1e6 / overwrites.count() as f64);
    }

    /// Reads and verifies all of it. Answers MiB a second, of reading alone.
    fn read_through(&self, overwrites: &Overwrites) -> Result<f64> {
        let mut spent = Duration::ZERO;
        for offset in overwrites.pieces() {
            spent += self.read(offset, PIECE_LEN, overwrites.len)?;
        }
        let mib = overwrites.bytes as f64 / (1 << 20) as f64;
        Ok(mib / spent.as_secs_f64())
    }

    /// Reads and verifies at random places what the system's cache has nothing of: how much is read
    /// from the disk for it.
    fn read_cold(&self, dir: &Path, overwrites: &Overwrites, figures: &mut Figures) -> Result<()> {
        meter::forget_cached(dir)
            .map_err(|error| Error::io(format!("cannot look at {}", dir.display()), error))?;
        let places = overwrites.bytes / READ_LEN;
        let count = places.min(COLD_READS_MAX);
        let mut random = Random::new(WRITERS + 1);
        let before = self.opened.bytes_read();
        for _ in 0..count {
            self.read(random.below(places) * READ_LEN, READ_LEN, overwrites.len)?;
        }
        if let (Some(before), Some(after)) = (before, self.opened.bytes_read()) {
            let kib = after.saturating_sub(before) as f64 / 1024.0;
            figures.set("cold_kib_per_read", kib / count as f64);
        }
        Ok(())
    }

    /// Reads and verifies at random places.
    fn read_at_random(&self, overwrites: &Overwrites, figures: &mut Figures) -> Result<()> {
        let places = overwrites.bytes / READ_LEN;
        let count = places.min(READS_MAX);
        let mut random = Random::new(WRITERS);
        let mut latencies = Latencies::default();
        let cpu = || meter::process_cpu() + self.opened.node_cpu();
        let cpu_before = cpu();
        for _ in 0..count {
            let offset = random.below(places) * READ_LEN;
            latencies.record(self.read(offset, READ_LEN, overwrites.len)?);
        }
        let spent = cpu().saturating_sub(cpu_before);
        figures.set("read_cpu_us", spent.as_secs_f64() * 1e6 / count as f64);
        figures.set("read_us_p50", latencies.at_us(0.5));
        Ok(())
    }

    /// Reads `len` bytes at `offset`, and verifies that they are of writes of `write_len` bytes.
    /// Answers how long reading took.
    fn read(&self, offset: u64, len: u64, write_len: u64) -> Result<Duration> {
        let begin = Instant::now();
        let got = self.keyspace.read(&self.key, offset, len)?;
        let spent = begin.elapsed();
        if got.len() as u64 != len {
            let got = got.len();
            return Err(Error::corrupt(format!("{got} bytes instead of {len} at byte {offset}")));
        }
        match first_wrong(&got, offset, write_len) {
            None => Ok(spent),
            Some(place) => Err(Error::corrupt(format!("byte {place} is not as any write left it"))),
        }
    }
}

/// What the write of this seed leaves in `len` bytes at `offset`: records, none alike, which cannot
/// be compressed.
pub fn content(seed: u64, offset: u64, len: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len as usize);
    for place in (offset..offset + len).step_by(RECORD_LEN) {
        bytes.extend_from_slice(&record(seed, place).to_le_bytes());
    }
    bytes
}

/// The first place of `bytes`, which are at `offset`, that no write of `write_len` bytes leaves so:
/// it belongs elsewhere, or to another write than what is before it.
pub fn first_wrong(bytes: &[u8], offset: u64, write_len: u64) -> Option<u64> {
    let mut begin = offset;
    for written in bytes.chunks(write_len as usize) {
        let (records, rest) = written.as_chunks::<RECORD_LEN>();
        assert!(rest.is_empty(), "reads and writes are of whole records");
        let mut seed = None;
        let mut place = begin;
        for got in records {
            let got = u128::from_le_bytes(*got);
            if got != record(*seed.get_or_insert_with(|| seed_of(got, place)), place) {
                return Some(place);
            }
            place += RECORD_LEN as u64;
        }
        begin += write_len;
    }
    None
}

/// The record at `place` of the write of this seed: its lower half tells the seed to who knows the
/// place, its upper half proves it.
fn record(seed: u64, place: u64) -> u128 {
    (u128::from(scramble(seed ^ place)) << 64) | u128::from(seed ^ scramble(place))
}

fn seed_of(record: u128, place: u64) -> u64 {
    record as u64 ^ scramble(place)
}

/// Another number for each number: cheap, for it is part of what is measured.
fn scramble(number: u64) -> u64 {
    let product = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product ^ (product >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overwrites(durability: Durability, len: u64) -> Overwrites {
        Overwrites { durability, len, bytes: 8 * PIECE_LEN }
    }

    #[test]
    fn content_is_right_at_its_place_only() {
        let bytes = content(7, 8192, 4096);
        assert_eq!(first_wrong(&bytes, 8192, 4096), None);
        // A part of a write, and several writes that happen to be one.
        assert_eq!(first_wrong(&bytes[512..1024], 8192 + 512, 4096), None);
        assert_eq!(first_wrong(&bytes, 8192, 512), None);
        assert_eq!(first_wrong(&bytes, 4096, 4096), Some(4096));
        assert_eq!(first_wrong(&[0; 512], 0, 512), Some(0));
    }

    #[test]
    fn two_writes_in_the_place_of_one_are_wrong_where_the_second_begins() {
        let mut bytes = content(7, 0, 4096);
        bytes.extend(content(8, 4096, 4096));
        assert_eq!(first_wrong(&bytes, 0, 4096), None);
        assert_eq!(first_wrong(&bytes, 0, 8192), Some(4096));
        bytes[5000] ^= 1;
        assert_eq!(first_wrong(&bytes, 0, 4096), Some(4992));
    }

    #[test]
    fn what_costs_more_is_written_less_often() {
        let count = |durability, len| overwrites(durability, len).count();
        assert_eq!(count(Durability::Buffered, 65_536), 3 * 8 * 16);
        assert_eq!(count(Durability::Buffered, 4096), 3 * 8 * 256);
        assert_eq!(count(Durability::Buffered, 512), 4 * 2048);
        assert_eq!(count(Durability::Sync, 4096), 256);
    }

    #[test]
    fn a_blob_is_of_whole_pieces() {
        assert_eq!(whole_pieces(0), PIECE_LEN);
        assert_eq!(whole_pieces(3 * PIECE_LEN - 1), 2 * PIECE_LEN);
        let all: Vec<u64> = overwrites(Durability::Buffered, 512).pieces().take(2).collect();
        assert_eq!(all, [0, PIECE_LEN]);
    }
}
