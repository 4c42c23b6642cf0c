//! The numbers that a session gives to its transactions and questions (F4).
//!
//! A machine, or a process, that is copied while a client runs in it makes two sessions of one:
//! both have the client's number, and count on from the same place. Then an answer to one of them
//! would pass for an answer to the other. But no two live through the same: when a message comes,
//! or a call, differs by microseconds, and whatever differed once is in all that follows. So a part
//! of every number is made of the moments of all steps so far.
//!
//! ```text
//!   | 0 | how many before it, 43 bits | made of all moments so far, 20 bits |
//! ```
//!
//! So numbers grow, and none is given twice. It knows nothing of what is numbered.

use crate::message::Now;

/// Bits that are made of the moments.
const DRAWN_BITS: u32 = 20;

/// So many are numbered at most: a hundred days of a million a second. What is above is left to
/// the driver, for questions of its own.
const COUNT_MAX: u64 = (1 << (63 - DRAWN_BITS)) - 1;

/// Odd, with bits all over: the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a session has lived through, in short.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers(u64);

impl Numbers {
    /// Of a session that has just begun.
    pub fn new(client: u64) -> Self {
        Self(client)
    }

    /// The session is stepped now. Each of the operations can be undone, so two that differ do so
    /// for ever, if the same happens to both.
    pub fn live_through(&mut self, now: Now) {
        let moment = now.wall_us ^ now.monotonic_us.rotate_left(32);
        self.0 = (self.0.rotate_left(23) ^ moment).wrapping_mul(SPREAD);
    }

    /// The number of what comes after so many others.
    pub fn of(self, count: u64) -> u64 {
        Self::least(count) | self.0 >> (u64::BITS - DRAWN_BITS)
    }

    /// No number of what comes after so many others is below this.
    pub fn least(count: u64) -> u64 {
        assert!(count <= COUNT_MAX, "no session lives so long");
        count << DRAWN_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(wall_us: u64) -> Now {
        Now { wall_us, monotonic_us: wall_us - 900 }
    }

    /// F4.
    #[test]
    fn what_two_copies_of_a_session_number_differs_from_their_first_own_moment_on() {
        let mut numbers = Numbers::new(77);
        (1_000..1_100).for_each(|us| numbers.live_through(at(us)));
        let mut copy = numbers;
        assert_eq!(numbers.of(100), copy.of(100), "what was begun before is the same");
        numbers.live_through(at(1_100));
        copy.live_through(at(1_101));
        let mut same = 0;
        for count in 101..10_101 {
            same += u32::from(numbers.of(count) == copy.of(count));
            numbers.live_through(at(2_000 + count));
            copy.live_through(at(2_000 + count));
        }
        assert!(same <= 1, "one in a million: {same}");
    }

    #[test]
    fn numbers_grow_and_leave_the_upper_half_to_others() {
        let mut numbers = Numbers::new(u64::MAX);
        let mut last = 0;
        for count in 1..1_000 {
            numbers.live_through(at(7_000_000 + count));
            let number = numbers.of(count);
            assert!(last < Numbers::least(count) && Numbers::least(count) <= number);
            last = number;
        }
        assert!(numbers.of(COUNT_MAX) <= u64::MAX / 2);
    }
}
