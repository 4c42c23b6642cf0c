//! Times, shares, sizes and ranges of them, as a scenario's text writes them.
//!
//! All are whole numbers inside, so that text and value can be turned into each other without
//! loss: a time counts microseconds, a share hundredths of a percent.

use std::fmt;

/// A time or a length of time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub u64);

/// The microseconds of a second.
pub const SECOND: u64 = 1_000_000;
const MILLISECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;

impl Micros {
    /// This many seconds.
    pub const fn seconds(count: u64) -> Self {
        Self(count * SECOND)
    }

    /// Cut to whole milliseconds, which read well.
    #[must_use]
    pub fn in_milliseconds(self) -> Self {
        Self(self.0 / MILLISECOND * MILLISECOND)
    }
}

/// A part of a whole, in hundredths of a percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(pub u32);

impl Share {
    /// All of it.
    pub const WHOLE: Self = Self(10_000);
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// From `low` to `high`, both included: a value is drawn between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span<T> {
    /// The lowest.
    pub low: T,
    /// The highest.
    pub high: T,
}

impl<T: Copy + PartialEq> Span<T> {
    /// Exactly this value.
    pub fn exactly(value: T) -> Self {
        Self { low: value, high: value }
    }

    /// Whether nothing is left to draw.
    pub fn is_exact(&self) -> bool {
        self.low == self.high
    }
}

/// A unit of time that a text may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its name in the text.
    pub name: &'static str,
    /// How many of the smallest unit it is.
    pub scale: u64,
}

/// The units of time, largest first.
pub const TIMES: [Unit; 4] = [
    Unit { name: "h", scale: HOUR },
    SECONDS,
    Unit { name: "ms", scale: MILLISECOND },
    MICROSECONDS,
];
const SECONDS: Unit = Unit { name: "s", scale: SECOND };
const MICROSECONDS: Unit = Unit { name: "us", scale: 1 };

/// The units of sizes, largest first.
pub const SIZES: [Unit; 3] = [
    Unit { name: "MiB", scale: MIB },
    Unit { name: "KiB", scale: KIB },
    Unit { name: "B", scale: 1 },
];

/// The unit of shares.
pub const SHARES: [Unit; 1] = [Unit { name: "%", scale: 100 }];

/// The largest unit in which all of these print with at most three decimals and the largest of
/// them is at least one.
fn time_unit(values: &[u64]) -> Unit {
    let largest = values.iter().copied().max().unwrap_or(0);
    if largest == 0 {
        return SECONDS;
    }
    let prints = |unit: &&Unit| {
        // Nobody reads parts of an hour.
        let step = if unit.scale == HOUR { HOUR } else { (unit.scale / 1_000).max(1) };
        largest >= unit.scale && values.iter().all(|value| value % step == 0)
    };
    TIMES.iter().find(prints).copied().unwrap_or(MICROSECONDS)
}

/// `value` in units of `scale`, without zeros at the end.
fn decimal(value: u64, scale: u64) -> String {
    let (whole, mut rest) = (value / scale, value % scale);
    let mut text = whole.to_string();
    if rest > 0 {
        text.push('.');
    }
    let mut place = scale;
    while rest > 0 {
        place /= 10;
        text.push(char::from(b'0' + (rest / place) as u8));
        rest %= place;
    }
    text
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = time_unit(&[self.0]);
        write!(f, "{} {}", decimal(self.0, unit.scale), unit.name)
    }
}

impl fmt::Display for Span<Micros> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = (self.low.0, self.high.0);
        let unit = time_unit(&[low, high]);
        match self.is_exact() {
            true => write!(f, "{}", self.low),
            false => {
                let (low, high) = (decimal(low, unit.scale), decimal(high, unit.scale));
                write!(f, "{low}..{high} {}", unit.name)
            }
        }
    }
}

impl fmt::Display for Span<u16> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_exact() {
            true => write!(f, "{}", self.low),
            false => write!(f, "{}..{}", self.low, self.high),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", decimal(u64::from(self.0), SHARES[0].scale))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |unit: &&Unit| self.0 >= unit.scale && self.0.is_multiple_of(unit.scale);
        let unit = SIZES.iter().find(fits).unwrap_or(&SIZES[2]);
        write!(f, "{} {}", self.0 / unit.scale, unit.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_in_the_largest_unit_that_loses_nothing() {
        let printed = [0, 7, 200, 1_500, 2_000_000, 1_250_000, 1_000_500];
        let printed = printed.map(|micros| Micros(micros).to_string());
        assert_eq!(printed, ["0 s", "7 us", "200 us", "1.5 ms", "2 s", "1.25 s", "1000.5 ms"]);
    }

    #[test]
    fn a_span_prints_both_ends_in_one_unit() {
        let span = Span { low: Micros(200), high: Micros(3_000) };
        assert_eq!(span.to_string(), "0.2..3 ms");
        assert_eq!(Span::exactly(Micros(3_000)).to_string(), "3 ms");
    }

    #[test]
    fn shares_and_sizes_print_without_waste() {
        assert_eq!(Share(150).to_string(), "1.5 %");
        assert_eq!(Share::WHOLE.to_string(), "100 %");
        assert_eq!(Size(4096).to_string(), "4 KiB");
        assert_eq!(Size(1).to_string(), "1 B");
    }
}
