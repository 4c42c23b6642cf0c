//! A slot: count, sum, min and max of one window, in 32 bytes that any writer updates blindly.
//!
//! An aggregate blob holds one day: the day's slot, 24 hours, 1440 minutes.
//!
//! ```text
//!   slot   0     1 .. 24   25 .. 1464          byte  0       8       16      24      32
//!         day │  hours   │  minutes                  │ count │  sum  │  max  │  min  │
//!                                                      u64     f64     u64     u64
//! ```
//!
//! Blobs are sparse and absent bytes are zeros, so a slot must be right when it starts as zeros,
//! and a transaction must not look. Count and sum start at zero anyway. Max is kept as the largest
//! [`code`] of the values, an encoding that orders as the values do and is never 0 for a finite
//! one; min as the largest complement of it. So 0 means "empty" in all four.

use tyr::{Number, Transform};

use crate::calendar::{Day, HOUR_US, MINUTE_US, Window};

/// Bytes of a slot.
pub const SLOT_LEN: u64 = 32;
/// Slots of a day: itself, its hours, its minutes.
pub const SLOTS: usize = 1 + 24 + 24 * 60;
const HOUR_FIRST: u16 = 1;
const MINUTE_FIRST: u16 = 25;

const COUNT_AT: usize = 0;
const SUM_AT: usize = 8;
const MAX_AT: usize = 16;
const MIN_AT: usize = 24;

const _: () = assert!(SLOTS == MINUTE_FIRST as usize + 1440);

/// Where a window's slot lies in the blob of its day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotIndex(pub u16);

impl SlotIndex {
    /// The slot of the window that holds `time_us`.
    pub fn of(window: Window, time_us: i64) -> Self {
        let of_day = time_us - Day::of(time_us).start_us();
        let number = |len: i64| u16::try_from(of_day / len).expect("a day has 1440 minutes");
        match window {
            Window::Day => Self(0),
            Window::Hour => Self(HOUR_FIRST + number(HOUR_US)),
            Window::Minute => Self(MINUTE_FIRST + number(MINUTE_US)),
        }
    }

    /// The slot of the hour that a minute's slot belongs to; itself for wider ones.
    #[must_use]
    pub fn hour(self) -> Self {
        match self.window() {
            Window::Minute => Self(HOUR_FIRST + (self.0 - MINUTE_FIRST) / 60),
            Window::Hour | Window::Day => self,
        }
    }

    /// The width of its window.
    pub fn window(self) -> Window {
        match self.0 {
            0 => Window::Day,
            HOUR_FIRST..MINUTE_FIRST => Window::Hour,
            _ => Window::Minute,
        }
    }

    /// The first microsecond of its window on `day`.
    pub fn start_us(self, day: Day) -> i64 {
        let within = match self.window() {
            Window::Day => 0,
            Window::Hour => i64::from(self.0 - HOUR_FIRST) * HOUR_US,
            Window::Minute => i64::from(self.0 - MINUTE_FIRST) * MINUTE_US,
        };
        day.start_us() + within
    }

    /// Its first byte in the blob.
    pub fn offset(self) -> u64 {
        u64::from(self.0) * SLOT_LEN
    }
}

/// Count, sum, min and max of the values of one window, as stored.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slot {
    /// How many values.
    pub count: u64,
    /// Their sum, rounded in the order of arrival.
    pub sum: f64,
    /// The [`code`] of the largest; 0 when there is none.
    pub max_code: u64,
    /// The complement of the [`code`] of the smallest; 0 when there is none.
    pub min_code: u64,
}

impl Slot {
    /// A slot of this one value.
    pub fn of(value: f64) -> Self {
        let code = code(value);
        Self { count: 1, sum: value, max_code: code, min_code: !code }
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.wrapping_add(other.count);
        self.sum += other.sum;
        self.max_code = self.max_code.max(other.max_code);
        self.min_code = self.min_code.max(other.min_code);
    }

    /// Whether nothing was ever counted in it.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.sum == 0.0 && self.max_code == 0 && self.min_code == 0
    }

    /// The largest value; NaN when there is none.
    pub fn max(&self) -> f64 {
        if self.max_code == 0 { f64::NAN } else { value(self.max_code) }
    }

    /// The smallest value; NaN when there is none.
    pub fn min(&self) -> f64 {
        if self.min_code == 0 { f64::NAN } else { value(!self.min_code) }
    }

    /// The four transforms that add these values to the slot at `index`, with their offsets.
    pub fn transforms(&self, index: SlotIndex) -> [(u64, Transform); 4] {
        let at = |field: usize| index.offset() + field as u64;
        [
            (at(COUNT_AT), Transform::add(Number::U64(self.count))),
            (at(SUM_AT), Transform::add(Number::F64(self.sum))),
            (at(MAX_AT), Transform::max(Number::U64(self.max_code))),
            (at(MIN_AT), Transform::max(Number::U64(self.min_code))),
        ]
    }

    /// The slot in these bytes; what lies beyond their end is zeros, as everywhere in a blob.
    pub fn load(bytes: &[u8]) -> Self {
        let number = |at: usize| {
            let mut word = [0; 8];
            let present = bytes.len().saturating_sub(at).min(8);
            if present > 0 {
                word[..present].copy_from_slice(&bytes[at..at + present]);
            }
            u64::from_le_bytes(word)
        };
        Self {
            count: number(COUNT_AT),
            sum: f64::from_bits(number(SUM_AT)),
            max_code: number(MAX_AT),
            min_code: number(MIN_AT),
        }
    }
}

/// An unsigned number that orders as the finite values do, and is never 0 nor `u64::MAX`.
///
/// Positive values have their sign bit set, negative ones all bits flipped. -0 counts as 0.
pub fn code(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// The value of a [`code`].
pub fn value(code: u64) -> f64 {
    f64::from_bits(if code >> 63 == 1 { code & !(1 << 63) } else { !code })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::DAY_US;

    const VALUES: [f64; 11] =
        [-1e288, -3.5, -1.0, -1e-300, -f64::MIN_POSITIVE / 2.0, 0.0, 5e-324, 0.1, 1.0, 2.0, 1e288];

    #[test]
    fn codes_order_as_values_and_leave_zero_for_empty() {
        for pair in VALUES.windows(2) {
            assert!(code(pair[0]) < code(pair[1]), "{pair:?}");
        }
        for finite in VALUES {
            assert_eq!(value(code(finite)), finite);
            assert!(code(finite) != 0 && code(finite) != u64::MAX);
        }
        assert_eq!(code(-0.0), code(0.0));
    }

    #[test]
    fn every_slot_of_a_day_is_reached_by_exactly_one_window() {
        let mut reached = std::collections::BTreeSet::new();
        for minute in 0..1440 {
            for window in Window::ALL {
                let time_us = -DAY_US + minute * MINUTE_US + 59_999_999;
                let index = SlotIndex::of(window, time_us);
                assert_eq!(index.window(), window);
                let start = index.start_us(Day(-1));
                assert!(start <= time_us && time_us < start + window.len_us());
                reached.insert(index);
            }
        }
        assert_eq!(reached.len(), SLOTS);
        assert_eq!(reached.last(), Some(&SlotIndex(SLOTS as u16 - 1)));
    }

    #[test]
    fn a_minute_knows_its_hour() {
        for minute in [0, 59, 60, 1439] {
            let time_us = minute * MINUTE_US;
            let hour = SlotIndex::of(Window::Minute, time_us).hour();
            assert_eq!(hour, SlotIndex::of(Window::Hour, time_us));
        }
    }

    #[test]
    fn slots_start_as_zeros_and_add_up() {
        let mut slot = Slot::load(&[]);
        assert!(slot.is_empty() && slot.min().is_nan() && slot.max().is_nan());
        for number in [2.0, -3.0, 0.5] {
            slot.merge(&Slot::of(number));
        }
        assert_eq!((slot.count, slot.sum, slot.min(), slot.max()), (3, -0.5, -3.0, 2.0));
    }

    #[test]
    fn a_slot_cut_short_reads_as_zeros_beyond() {
        let mut bytes = [0; 32];
        bytes[0] = 7;
        bytes[16..24].copy_from_slice(&code(4.0).to_le_bytes());
        assert_eq!(Slot::load(&bytes[..24]).max(), 4.0);
        assert_eq!(Slot::load(&bytes[..1]).count, 7);
    }
}
