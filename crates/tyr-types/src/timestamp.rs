//! The one order of all committed transactions.

use std::fmt;

use crate::limits;

/// The version of the cluster map. An embedded store stays in epoch 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// When a transaction took effect: (epoch, hybrid logical clock, node), totally ordered.
///
/// The clock counts microseconds since 1970, and runs ahead of them by one for each timestamp
/// given out faster than that. It is also the version of what the transaction wrote.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// The epoch it was proposed in. Timestamps of a new epoch are above all older ones (F1).
    pub epoch: Epoch,
    /// The hybrid logical clock, in microseconds.
    pub clock: u64,
    /// The node that proposed it; breaks ties.
    pub node: u16,
}

impl Timestamp {
    /// Before everything: the version of a blob that nobody has written.
    pub const ZERO: Self = Self { epoch: Epoch(0), clock: 0, node: 0 };
    /// After everything.
    pub const MAX: Self = Self { epoch: Epoch(u32::MAX), clock: u64::MAX, node: u16::MAX };

    /// How far the day of a machine pulls the clock at most: to the year 2255. Whatever a wrong
    /// clock shows, there is room above this for one timestamp each microsecond, for 500,000 years.
    pub const CLOCK_MAX: u64 = 1 << 53;

    /// As it stands in content (C10): epoch, clock and node in big-endian bytes, and two zeros.
    /// Bytes sort as the timestamps do.
    pub fn to_stamp(self) -> [u8; limits::STAMP_LEN] {
        let mut stamp = [0; limits::STAMP_LEN];
        stamp[..4].copy_from_slice(&self.epoch.0.to_be_bytes());
        stamp[4..12].copy_from_slice(&self.clock.to_be_bytes());
        stamp[12..14].copy_from_slice(&self.node.to_be_bytes());
        stamp
    }

    /// The timestamp that [`Timestamp::to_stamp`] made this of; `None` where it made it of none.
    pub fn from_stamp(stamp: &[u8; limits::STAMP_LEN]) -> Option<Self> {
        let (epoch, rest) = stamp.split_first_chunk()?;
        let (clock, rest) = rest.split_first_chunk()?;
        let (node, rest) = rest.split_first_chunk()?;
        let at = Self {
            epoch: Epoch(u32::from_be_bytes(*epoch)),
            clock: u64::from_be_bytes(*clock),
            node: u16::from_be_bytes(*node),
        };
        (rest == [0; 2]).then_some(at)
    }

    /// The next timestamp of `node` in this epoch, for C3; `now_us` pulls the clock along, up to
    /// [`CLOCK_MAX`](Self::CLOCK_MAX).
    #[must_use]
    pub fn next(self, now_us: u64, node: u16) -> Self {
        let now_us = now_us.min(Self::CLOCK_MAX);
        Self { epoch: self.epoch, clock: (self.clock + 1).max(now_us), node }
    }

    /// The highest timestamp below this one; of the lowest, itself.
    #[must_use]
    pub fn previous(self) -> Self {
        match self {
            Self { node: 1.., .. } => Self { node: self.node - 1, ..self },
            Self { clock: 1.., epoch, .. } => Self { epoch, clock: self.clock - 1, node: u16::MAX },
            Self { epoch: Epoch(1..), .. } => {
                Self { epoch: Epoch(self.epoch.0 - 1), clock: u64::MAX, node: u16::MAX }
            }
            Self { .. } => self,
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.epoch.0, self.clock, self.node)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_epoch_is_above_any_clock_of_an_earlier_one() {
        let old = Timestamp { epoch: Epoch(1), clock: u64::MAX, node: 9 };
        assert!(old < Timestamp { epoch: Epoch(2), ..Timestamp::ZERO });
    }

    #[test]
    fn the_previous_timestamp_is_below_and_nothing_is_between() {
        let at = |epoch, clock, node| Timestamp { epoch: Epoch(epoch), clock, node };
        assert_eq!(at(2, 5, 7).previous(), at(2, 5, 6));
        assert_eq!(at(2, 5, 0).previous(), at(2, 4, u16::MAX));
        assert_eq!(at(2, 0, 0).previous(), at(1, u64::MAX, u16::MAX));
        assert_eq!(Timestamp::ZERO.previous(), Timestamp::ZERO);
    }

    #[test]
    fn stamps_sort_as_timestamps_do_and_tell_them() {
        let at = |epoch, clock, node| Timestamp { epoch: Epoch(epoch), clock, node };
        let ascending = [at(0, 0, 0), at(0, 0, 256), at(0, 1, 1), at(0, 1 << 53, 0), at(1, 0, 2)];
        let stamps = ascending.map(Timestamp::to_stamp);
        assert!(stamps.is_sorted());
        assert_eq!(stamps.map(|stamp| Timestamp::from_stamp(&stamp)), ascending.map(Some));
        assert_eq!(Timestamp::from_stamp(&[1; 16]), None);
    }

    #[test]
    fn the_next_timestamp_grows_even_when_the_clock_stands_still_or_jumps_back() {
        let first = Timestamp::ZERO.next(100, 0);
        assert_eq!(first.clock, 100);
        assert!(first.next(100, 0) > first);
        assert!(first.next(5, 0) > first);
    }

    #[test]
    fn a_clock_that_is_wrong_by_ages_leaves_room_above_it() {
        let wrong = Timestamp::ZERO.next(u64::MAX, 0);
        assert_eq!(wrong.clock, Timestamp::CLOCK_MAX);
        assert!(wrong.next(u64::MAX, 0) > wrong);
    }
}
