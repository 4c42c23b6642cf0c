//! What a day's aggregate should be, added up from samples, and how it compares with what is.

use std::collections::BTreeMap;

use super::Difference;
use super::exact::{ExactSum, error_max};
use crate::calendar::{Day, Window, format_time};
use crate::sample::Sample;
use crate::slot::{SLOT_LEN, SLOTS, Slot, SlotIndex, code};
use crate::subject::AggregateName;

/// Count, exact sum, min and max of the values of one window.
#[derive(Clone, Debug, Default)]
struct Tally {
    count: u64,
    sum: ExactSum,
    magnitude: f64,
    max_code: u64,
    min_code: u64,
}

impl Tally {
    fn add(&mut self, value: f64) {
        let code = code(value);
        self.count += 1;
        self.sum.add(value);
        self.magnitude += value.abs();
        self.max_code = self.max_code.max(code);
        self.min_code = self.min_code.max(!code);
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum.merge(&other.sum);
        self.magnitude += other.magnitude;
        self.max_code = self.max_code.max(other.max_code);
        self.min_code = self.min_code.max(other.min_code);
    }

    /// The slot that this should be, with the sum rounded once.
    fn slot(&self) -> Slot {
        Slot {
            count: self.count,
            sum: self.sum.round(),
            max_code: self.max_code,
            min_code: self.min_code,
        }
    }
}

/// The minutes of one day.
#[derive(Clone, Debug, Default)]
pub struct DayTally {
    minutes: BTreeMap<SlotIndex, Tally>,
}

/// What the comparison of one aggregate found.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Windows that are not empty on either side.
    pub slots: u64,
    /// The largest part of its bound that the error of a sum took up.
    pub sum_error_max: f64,
    /// Where the two differ.
    pub differences: Vec<Difference>,
}

impl DayTally {
    /// Adds a sample of this day.
    pub fn add(&mut self, sample: Sample) {
        let index = SlotIndex::of(Window::Minute, sample.time_us);
        self.minutes.entry(index).or_default().add(sample.value);
    }

    /// Adds everything that was added to `other`.
    pub fn merge(&mut self, other: &Self) {
        for (index, tally) in &other.minutes {
            self.minutes.entry(*index).or_default().merge(tally);
        }
    }

    /// How many samples were added.
    pub fn count(&self) -> u64 {
        self.minutes.values().map(|tally| tally.count).sum()
    }

    /// The minutes with the hours and the day that they make.
    fn windows(&self) -> BTreeMap<SlotIndex, Tally> {
        let mut windows = self.minutes.clone();
        let mut day = Tally::default();
        for (index, minute) in &self.minutes {
            windows.entry(index.hour()).or_default().merge(minute);
            day.merge(minute);
        }
        if day.count > 0 {
            windows.insert(SlotIndex(0), day);
        }
        windows
    }

    /// Compares with the bytes of the aggregate's blob.
    pub fn compare(&self, day: Day, name: &AggregateName, bytes: &[u8]) -> Comparison {
        let mut comparison = Comparison::default();
        let windows = self.windows();
        let empty = Tally::default();
        for at in 0..SLOTS as u16 {
            let index = SlotIndex(at);
            let from = (index.offset() as usize).min(bytes.len());
            let to = (from + SLOT_LEN as usize).min(bytes.len());
            let found = Slot::load(&bytes[from..to]);
            let expected = windows.get(&index).unwrap_or(&empty);
            if expected.count == 0 && found.is_empty() {
                continue;
            }
            comparison.slots += 1;
            comparison.compare_slot(expected, &found, |field, expected, found| Difference {
                day: day.to_string(),
                what: name.to_string(),
                window: format!(
                    "{} of {}",
                    index.window().name(),
                    format_time(index.start_us(day))
                ),
                field,
                expected,
                found,
            });
        }
        if bytes.len() > SLOTS * SLOT_LEN as usize {
            comparison.differences.push(Difference {
                day: day.to_string(),
                what: name.to_string(),
                window: String::new(),
                field: "size",
                expected: format!("at most {}", SLOTS * SLOT_LEN as usize),
                found: bytes.len().to_string(),
            });
        }
        comparison
    }
}

impl Comparison {
    fn compare_slot(
        &mut self,
        tally: &Tally,
        found: &Slot,
        difference: impl Fn(&'static str, String, String) -> Difference,
    ) {
        let expected = tally.slot();
        let mut note = |field, expected: &dyn ToString, found: &dyn ToString| {
            self.differences.push(difference(field, expected.to_string(), found.to_string()));
        };
        if expected.count != found.count {
            note("count", &expected.count, &found.count);
        }
        if expected.max_code != found.max_code {
            note("max", &expected.max(), &found.max());
        }
        if expected.min_code != found.min_code {
            note("min", &expected.min(), &found.min());
        }
        let bound = error_max(tally.count, tally.magnitude);
        let error = tally.sum.error_of(found.sum);
        if !found.sum.is_finite() || error > bound {
            note("sum", &expected.sum, &found.sum);
        } else if error > 0.0 {
            self.sum_error_max = self.sum_error_max.max(error / bound);
        }
    }
}
