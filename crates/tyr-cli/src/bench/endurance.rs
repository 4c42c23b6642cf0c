//! A store that is used for hours by everybody at once: whether it goes on as it began.
//!
//! ```text
//!   measurements · overwrites at random · a snapshot held for 30 s, then the next · listings
//!   ├──── window 1 ────┼──── window 2 ────┼── … ──┤   rates, CPU time, memory, bytes on disk
//!   └────────────── first half ────────┴─ second half ─┘   are compared
//! ```
//!
//! What is read is verified all the time: overwrites are whole, and a snapshot's aggregates agree
//! with each other, when it begins and when it ends.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tyr::blocking::Tyr;
use tyr::{Durability, Error, ErrorKind, Key, Result};

use super::meter::{self, Figures, Moment};
use super::random::{content, first_wrong};
use super::workload::Workload;
use crate::random::Random;

/// The times that are looked at, each by itself.
const WINDOWS: usize = 12;
/// Threads that commit measurements, and that overwrite.
const MEASURERS: usize = 4;
const OVERWRITERS: usize = 4;
/// Bytes of an overwrite, and of a piece when the blob is filled.
const OVERWRITE_LEN: u64 = 4096;
const PIECE_LEN: u64 = 1 << 20;
/// One overwrite of so many is read back at a random place.
const READ_EVERY: u64 = 16;
/// How long a snapshot is held, unless a window is shorter.
const HELD: Duration = Duration::from_secs(30);
/// Between two listings.
const LIST_PAUSE: Duration = Duration::from_secs(1);
/// How soon a thread that waits sees that all is over.
const NAP: Duration = Duration::from_millis(50);
/// The seed of what the blob is filled with.
const FILL: u64 = 0xBB67_AE85_84CA_A73B;

/// What was done since it was looked at last.
#[derive(Default)]
struct Counts {
    measured: AtomicU64,
    overwritten: AtomicU64,
    listed: AtomicU64,
    held: AtomicU64,
    /// Snapshots that the store ended (V4).
    ended: AtomicU64,
    slowest_ns: AtomicU64,
}

/// What one window was like.
#[derive(Clone, Copy, Default)]
struct Window {
    measured_per_s: f64,
    overwritten_per_s: f64,
    cpu_us: f64,
    foreign_percent: f64,
    slowest_ms: f64,
    resident_mib: f64,
    disk_mib: f64,
}

/// Everything that the threads share.
struct Use<'a> {
    workload: &'a Workload,
    /// The blob that is overwritten, and its bytes.
    key: Key,
    bytes: u64,
    window: Duration,
    counts: Counts,
    is_over: AtomicBool,
}

/// Uses a store in `dir` for so long, with a blob of about `bytes` in it.
pub fn run(dir: &Path, time: Duration, bytes: u64) -> Result<Figures> {
    let workload = Workload::create(Tyr::open(dir)?, Durability::Buffered)?;
    workload.preload()?;
    let (key, window) = (Key::new("large")?, time / WINDOWS as u32);
    let (counts, is_over) = (Counts::default(), AtomicBool::new(false));
    let used = Use { workload: &workload, key, bytes, window, counts, is_over };
    used.fill()?;
    let mut measured = 0;
    let windows = used.run_all(dir, &mut measured)?;
    let counts = used.counts;
    workload.verify(measured, true)?;
    workload.close()?;

    let mut figures = Figures::default();
    figures.set("snapshots", counts.held.into_inner() as f64);
    figures.set("snapshots_ended", counts.ended.into_inner() as f64);
    figures.set("listings", counts.listed.into_inner() as f64);
    report(&windows, &mut figures);
    Ok(figures)
}

impl Use<'_> {
    fn fill(&self) -> Result<()> {
        for offset in (0..self.bytes).step_by(PIECE_LEN as usize) {
            let piece = content(FILL, offset, PIECE_LEN);
            self.workload.keyspace.write(&self.key, offset, piece)?;
        }
        Ok(())
    }

    /// Runs all threads; adds up how many measurements were acknowledged.
    fn run_all(&self, dir: &Path, measured: &mut u64) -> Result<Vec<Window>> {
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for number in 0..MEASURERS as u64 {
                threads.push(scope.spawn(move || self.until_over(|| self.measure(number))));
            }
            for number in 0..OVERWRITERS as u64 {
                threads.push(scope.spawn(move || self.until_over(|| self.overwrite(number))));
            }
            threads.push(scope.spawn(|| self.until_over(|| self.hold_snapshots())));
            threads.push(scope.spawn(|| self.until_over(|| self.list())));
            let mut windows = Vec::with_capacity(WINDOWS);
            let mut looked = Ok(());
            while windows.len() < WINDOWS && looked.is_ok() && !self.is_over() {
                looked = self.watch(dir, measured).map(|window| windows.push(window));
                if let Some(window) = windows.last() {
                    window.tell(windows.len());
                }
            }
            self.is_over.store(true, Ordering::Relaxed);
            let mut outcome = Ok(());
            for thread in threads {
                let ended = thread.join().expect("a benchmark thread does not panic");
                outcome = outcome.and(ended);
            }
            *measured += self.counts.measured.swap(0, Ordering::Relaxed);
            outcome.and(looked).map(|()| windows)
        })
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Where one thread fails the others end, too.
    fn until_over(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let worked = work();
        if worked.is_err() {
            self.is_over.store(true, Ordering::Relaxed);
        }
        worked
    }

    /// One window.
    fn watch(&self, dir: &Path, measured: &mut u64) -> Result<Window> {
        let moment = Moment::now();
        self.sleep(self.window);
        let (cost, counts) = (moment.cost(), &self.counts);
        let taken = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        let (committed, overwritten) = (taken(&counts.measured), taken(&counts.overwritten));
        *measured += committed;
        let mut foreign = Figures::default();
        cost.report_foreign(&mut foreign);
        let wall = cost.wall.as_secs_f64();
        let disk = meter::bytes_on_disk(dir)
            .map_err(|error| Error::io(format!("cannot look at {}", dir.display()), error))?;
        let operations = (committed + overwritten).max(1) as f64;
        Ok(Window {
            measured_per_s: committed as f64 / wall,
            overwritten_per_s: overwritten as f64 / wall,
            cpu_us: cost.cpu.as_secs_f64() * 1e6 / operations,
            foreign_percent: foreign.get("foreign_cpu_percent").unwrap_or(f64::NAN),
            slowest_ms: taken(&counts.slowest_ns) as f64 / 1e6,
            resident_mib: meter::memory_mib("VmRSS"),
            disk_mib: disk as f64 / f64::from(1 << 20),
        })
    }

    fn measure(&self, number: u64) -> Result<()> {
        let mut random = Random::new(number);
        while !self.is_over() {
            let begin = Instant::now();
            self.workload.measure_in_place(&mut random)?;
            self.note(&self.counts.measured, begin);
        }
        Ok(())
    }

    fn overwrite(&self, number: u64) -> Result<()> {
        let mut random = Random::new(1_000 + number);
        let (keyspace, places) = (&self.workload.keyspace, self.bytes / OVERWRITE_LEN);
        for count in 0.. {
            if self.is_over() {
                break;
            }
            let offset = random.below(places) * OVERWRITE_LEN;
            let begin = Instant::now();
            keyspace.write(&self.key, offset, content(random.next(), offset, OVERWRITE_LEN))?;
            self.note(&self.counts.overwritten, begin);
            if count % READ_EVERY == 0 {
                let offset = random.below(places) * OVERWRITE_LEN;
                let got = keyspace.read(&self.key, offset, OVERWRITE_LEN)?;
                let is_whole = got.len() as u64 == OVERWRITE_LEN;
                if !is_whole || first_wrong(&got, offset, OVERWRITE_LEN).is_some() {
                    let place = format!("4 KiB at byte {offset} are not as any write left them");
                    return Err(Error::corrupt(place));
                }
            }
        }
        Ok(())
    }

    fn note(&self, count: &AtomicU64, begin: Instant) {
        count.fetch_add(1, Ordering::Relaxed);
        let spent = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.counts.slowest_ns.fetch_max(spent, Ordering::Relaxed);
    }

    fn hold_snapshots(&self) -> Result<()> {
        while !self.is_over() {
            let snapshot = self.workload.store.snapshot()?;
            let held = self.workload.count_at(&snapshot).and_then(|first| {
                self.sleep(HELD.min(self.window));
                Ok((first, self.workload.count_at(&snapshot)?))
            });
            match held {
                Ok((first, second)) if first == second => {
                    self.counts.held.fetch_add(1, Ordering::Relaxed);
                }
                Ok((first, second)) => {
                    let differ = format!("a snapshot counted {first} first, and {second} later");
                    return Err(Error::corrupt(differ));
                }
                Err(error) if error.kind() == ErrorKind::SnapshotTooOld => {
                    self.counts.ended.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn list(&self) -> Result<()> {
        let expected = self.workload.blob_count() + 1;
        while !self.is_over() {
            let mut listed = 0;
            for blob in self.workload.keyspace.scan_iter(b"") {
                blob?;
                listed += 1;
            }
            if listed != expected {
                let differ = format!("a listing has {listed} blobs, there are {expected}");
                return Err(Error::corrupt(differ));
            }
            self.counts.listed.fetch_add(1, Ordering::Relaxed);
            self.sleep(LIST_PAUSE);
        }
        Ok(())
    }

    fn sleep(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.is_over() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::sleep(left.min(NAP));
        }
    }
}

impl Window {
    const NAMES: [&'static str; 7] = [
        "measured_per_s",
        "overwritten_per_s",
        "cpu_us",
        "foreign_cpu_percent",
        "slowest_ms",
        "resident_mib",
        "disk_mib",
    ];

    fn values(&self) -> [f64; 7] {
        let Self { measured_per_s, overwritten_per_s, cpu_us, foreign_percent, .. } = *self;
        let Self { slowest_ms, resident_mib, disk_mib, .. } = *self;
        let rates = [measured_per_s, overwritten_per_s, cpu_us, foreign_percent];
        [rates[0], rates[1], rates[2], rates[3], slowest_ms, resident_mib, disk_mib]
    }

    /// Says how it was: the whole takes hours.
    fn tell(&self, number: usize) {
        let of_names = Self::NAMES.iter().zip(self.values());
        let figures: Vec<String> =
            of_names.map(|(name, value)| format!("{name} {value:.1}")).collect();
        eprintln!("window {number} of {WINDOWS}: {}", figures.join(", "));
    }
}

/// Each window, both halves, and the second to the first. Of a half rates and costs are means, what
/// it takes and how long one waits are the most.
fn report(windows: &[Window], figures: &mut Figures) {
    // There is no ratio to what was not there.
    let mut set = |name: &str, value: f64| {
        if value.is_finite() {
            figures.set(name, value);
        }
    };
    for (number, window) in windows.iter().enumerate() {
        for (name, value) in Window::NAMES.iter().zip(window.values()) {
            set(&format!("window_{:02}_{name}", number + 1), value);
        }
    }
    let (first, second) = windows.split_at(windows.len() / 2);
    let halves = [first, second].map(|half| {
        let all: Vec<[f64; 7]> = half.iter().map(Window::values).collect();
        std::array::from_fn::<f64, 7, _>(|place| {
            let values = all.iter().map(|values| values[place]);
            match Window::NAMES[place] {
                "slowest_ms" | "resident_mib" | "disk_mib" => values.fold(0.0, f64::max),
                _ => values.sum::<f64>() / half.len().max(1) as f64,
            }
        })
    });
    for (place, name) in Window::NAMES.iter().enumerate() {
        let [first, second] = halves.map(|half| half[place]);
        set(&format!("first_{name}"), first);
        set(&format!("second_{name}"), second);
        set(&format!("{name}_ratio"), second / first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_halves_are_compared_by_means_and_by_the_most() {
        let window = |rate: f64, resident_mib: f64| Window {
            measured_per_s: rate,
            resident_mib,
            ..Window::default()
        };
        let windows =
            [window(90.0, 10.0), window(110.0, 30.0), window(40.0, 60.0), window(60.0, 5.0)];
        let mut figures = Figures::default();
        report(&windows, &mut figures);
        assert_eq!(figures.get("first_measured_per_s"), Some(100.0));
        assert_eq!(figures.get("measured_per_s_ratio"), Some(0.5));
        assert_eq!(figures.get("resident_mib_ratio"), Some(2.0));
        assert_eq!(figures.get("window_04_resident_mib"), Some(5.0));
    }
}
