//! A machine's clock that is wrong, for tests of whole processes.
//!
//! The file named by `TYR_CLOCK_SHIFT_FILE` holds microseconds, perhaps negative, that are added to
//! the wall clock; it is read anew now and then, so that a test makes the clock of a running node
//! jump. Without the variable nothing is added. Only with the feature `shifted-clock`.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

/// The variable that names the file.
const VARIABLE: &str = "TYR_CLOCK_SHIFT_FILE";

/// The file is read again after so long, in microseconds.
const EVERY_US: u64 = 50_000;

struct Shift {
    file: PathBuf,
    started: Instant,
    read_us: AtomicU64,
    shift_us: AtomicI64,
}

/// By how much the clock is wrong now, in microseconds.
pub(super) fn shift_us() -> i64 {
    static SHIFT: OnceLock<Option<Shift>> = OnceLock::new();
    let shift = SHIFT.get_or_init(|| {
        let file = PathBuf::from(std::env::var_os(VARIABLE)?);
        let (read_us, shift_us) = (AtomicU64::new(0), AtomicI64::new(0));
        Some(Shift { file, started: Instant::now(), read_us, shift_us })
    });
    shift.as_ref().map_or(0, Shift::now)
}

impl Shift {
    fn now(&self) -> i64 {
        let now_us = self.started.elapsed().as_micros() as u64 + EVERY_US;
        let read_us = self.read_us.load(Ordering::Relaxed);
        let is_due = now_us >= read_us + EVERY_US;
        let (taken, lost) = (Ordering::Relaxed, Ordering::Relaxed);
        if is_due && self.read_us.compare_exchange(read_us, now_us, taken, lost).is_ok() {
            // A file that is being written, or is not there, leaves the clock as it is.
            let text = std::fs::read_to_string(&self.file).unwrap_or_default();
            if let Ok(shift_us) = text.trim().parse() {
                self.shift_us.store(shift_us, Ordering::Relaxed);
            }
        }
        self.shift_us.load(Ordering::Relaxed)
    }
}
