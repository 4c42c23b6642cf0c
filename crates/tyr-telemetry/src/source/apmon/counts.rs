//! What became of the datagrams: every one that was sent here is in exactly one of these counts.
//!
//! ```text
//!   sent = received + dropped by the kernel
//!   received = read + refused + overflowed + waiting + unfinished
//!   values of those read = stored + ignored + failed + refused values
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde::Serialize;

use super::datagram::MalformedDatagram;
use super::socket::{KernelDrops, ReceiveBuffer};

/// What became of the datagrams so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DatagramCounts {
    /// Datagrams taken from the kernel.
    pub received: u64,
    /// Those that were understood; what became of their values, the intake counts.
    pub read: u64,
    /// Those that were refused as a whole, by reason.
    pub refused: RefusedDatagrams,
    /// Those for which there was no room in memory, because the store was too slow.
    pub overflowed: u64,
    /// Those that wait for being recorded, or are.
    pub waiting: u64,
    /// Those that were not recorded, or not wholly, when the service stopped.
    pub unfinished: u64,
    /// Datagrams that the kernel dropped because the socket's buffer was full; none where it does
    /// not tell.
    pub dropped_by_kernel: Option<u64>,
    /// Values refused in datagrams that were read, by reason.
    pub values_refused: RefusedValues,
    /// The socket's buffer.
    pub receive_buffer: ReceiveBuffer,
}

impl DatagramCounts {
    /// Datagrams that are lost though nothing is wrong with them.
    pub fn lost(&self) -> u64 {
        self.overflowed + self.unfinished + self.dropped_by_kernel.unwrap_or(0)
    }
}

/// Datagrams refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RefusedDatagrams {
    /// They end too early.
    pub cut: u64,
    /// A string claims to be longer than MonALISA allows.
    pub long_string: u64,
    /// A parameter has a type that the format does not know.
    pub unknown_type: u64,
    /// The password is missing or wrong.
    pub wrong_password: u64,
}

impl RefusedDatagrams {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.by_reason().iter().map(|(_, count)| count).sum()
    }

    /// Each with its reason's name.
    pub fn by_reason(&self) -> [(&'static str, u64); 4] {
        [
            ("cut", self.cut),
            ("long_string", self.long_string),
            ("unknown_type", self.unknown_type),
            ("wrong_password", self.wrong_password),
        ]
    }

    fn count(&mut self, why: &MalformedDatagram) {
        let count = match why {
            MalformedDatagram::Cut { .. } => &mut self.cut,
            MalformedDatagram::LongString { .. } => &mut self.long_string,
            MalformedDatagram::UnknownType { .. } => &mut self.unknown_type,
            MalformedDatagram::WrongPassword => &mut self.wrong_password,
        };
        *count += 1;
    }
}

/// Values refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RefusedValues {
    /// A name is empty or too long.
    pub name: u64,
    /// The datagram's time is outside the calendar.
    pub time: u64,
    /// The value is no number, or too large.
    pub value: u64,
}

impl RefusedValues {
    /// Each with its reason's name.
    pub fn by_reason(&self) -> [(&'static str, u64); 3] {
        [("name", self.name), ("time", self.time), ("value", self.value)]
    }
}

/// Counts what becomes of the datagrams of one socket.
#[derive(Debug)]
pub struct Meter {
    buffer: ReceiveBuffer,
    received: AtomicU64,
    read: AtomicU64,
    overflowed: AtomicU64,
    waiting: AtomicU64,
    unfinished: AtomicU64,
    refused: Mutex<RefusedDatagrams>,
    values_refused: Mutex<RefusedValues>,
    drops: Mutex<KernelDrops>,
}

impl Meter {
    pub(super) fn new(buffer: ReceiveBuffer, drops: KernelDrops) -> Self {
        Self {
            buffer,
            received: AtomicU64::new(0),
            read: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            unfinished: AtomicU64::new(0),
            refused: Mutex::default(),
            values_refused: Mutex::default(),
            drops: Mutex::new(drops),
        }
    }

    /// The counts so far. Asks the kernel for its own.
    pub fn counts(&self) -> DatagramCounts {
        let dropped_by_kernel = self.drops.lock().count();
        DatagramCounts {
            received: self.received.load(Ordering::Relaxed),
            read: self.read.load(Ordering::Relaxed),
            refused: *self.refused.lock(),
            overflowed: self.overflowed.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            unfinished: self.unfinished.load(Ordering::Relaxed),
            dropped_by_kernel,
            values_refused: *self.values_refused.lock(),
            receive_buffer: self.buffer,
        }
    }

    /// Takes the kernel's last word: it forgets its count with the socket.
    pub(super) fn close(&self) {
        self.drops.lock().close();
    }

    /// One was received and waits.
    pub(super) fn take(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    /// One was received and found no room.
    pub(super) fn overflow(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
        self.overflowed.fetch_add(1, Ordering::Relaxed);
    }

    /// One that waited was read, and all its values are done with.
    pub(super) fn finish(&self) {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// One that waited is refused.
    pub(super) fn refuse(&self, why: &MalformedDatagram) {
        self.refused.lock().count(why);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Values are refused.
    pub(super) fn refuse_values(&self, count: impl FnOnce(&mut RefusedValues)) {
        count(&mut self.values_refused.lock());
    }

    /// Nobody works on what waits any more.
    pub(super) fn stop(&self) {
        let waiting = self.waiting.swap(0, Ordering::Relaxed);
        self.unfinished.fetch_add(waiting, Ordering::Relaxed);
    }
}
