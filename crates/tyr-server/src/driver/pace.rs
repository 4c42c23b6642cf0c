//! How much a node takes in at a time: what it finishes within a quarter of a second, at the rate
//! at which it finishes now.
//!
//! By Little's law what is in flight, divided by what is finished in a second, is how long each of
//! it takes. A fixed bound is too low for a fast node and too high for a slow one, where what is
//! taken in is asked for again before it is done. So the bound is lowered to what is finished in
//! time as soon as there has been too much for longer than a burst takes, and raised step by step
//! while there is not. It never goes below what a few clients have in flight, so that a pause, as
//! when a node is gone and nothing is finished at all, turns nobody away.
//!
//! That is for what is begun here. What other heads send over their chains is in flight here too,
//! but it is taken however much there is: it has been validated elsewhere. Each of them keeps its
//! own bound; and a node that has far more in flight ([`CROWD`]) than a head begins tells all by
//! rumour that nothing new is to come its way.

use tyr_types::NodeId;

/// Of transactions: their number, and the bytes that they carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    /// Transactions.
    pub count: u64,
    /// Bytes.
    pub len: u64,
}

/// More outcomes are remembered than a node has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// The node that is not done with what all others remember, if that is known.
    pub slowest: Option<NodeId>,
}

/// What is in flight, and how much may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub in_flight: Amount,
    pub may: Amount,
    /// So many outcomes are remembered that nothing may be begun (F10).
    pub backlog: Option<Backlog>,
}

impl Load {
    /// Whether something more may be begun, besides what waits.
    pub fn has_room(&self, waiting: Amount) -> bool {
        let Self { in_flight, may, backlog } = self;
        let has_room =
            in_flight.count + waiting.count < may.count && in_flight.len + waiting.len < may.len;
        has_room && backlog.is_none()
    }

    /// Whether there is so much that others should begin nothing either that comes here.
    pub fn is_crowded(&self) -> bool {
        self.in_flight.count >= CROWD.count || self.in_flight.len >= CROWD.len
    }
}

impl Default for Load {
    fn default() -> Self {
        Self { in_flight: Amount::default(), may: MOST, backlog: None }
    }
}

/// How long what is taken in should take, in microseconds: well below the time after which it
/// counts as held up (F6), and far below that after which clients ask again.
const TARGET_US: u64 = 250_000;

/// The rate is measured over this time, in microseconds.
const INTERVAL_US: u64 = 100_000;

/// For so many intervals there is too much before the bound is lowered.
const BURST_INTERVALS: u32 = 3;

/// The bounds of the bound.
const LEAST: Amount = Amount { count: 512, len: 64 << 20 };
const MOST: Amount = Amount { count: 4096, len: 256 << 20 };

/// With so much in flight nothing new is to come here: what sixteen heads begin at most, and the
/// bytes that four do. So this is met only where many heads send to one node that falls behind.
const CROWD: Amount = Amount { count: 16 * MOST.count, len: 4 * MOST.len };

const _: () = assert!(LEAST.count <= MOST.count && LEAST.len <= MOST.len);
const _: () = assert!(MOST.count < CROWD.count && MOST.len < CROWD.len);
const _: () = assert!(0 < INTERVAL_US && INTERVAL_US <= TARGET_US && BURST_INTERVALS > 0);

/// One bound: of the number, or of the bytes.
#[derive(Debug)]
struct Bound {
    least: u64,
    most: u64,
    now: u64,
    /// Finished in [`TARGET_US`], as measured of late.
    in_time: u64,
    /// What was finished when it was last looked at.
    finished: u64,
    /// The intervals for which there was too much.
    exceeded: u32,
}

impl Bound {
    fn new(least: u64, most: u64) -> Self {
        assert!(0 < least && least <= most, "something may be in flight");
        Self { least, most, now: most, in_time: 0, finished: 0, exceeded: 0 }
    }

    /// An interval of `elapsed_us` is over.
    fn note(&mut self, elapsed_us: u64, finished: u64, in_flight: u64) {
        debug_assert!(elapsed_us >= INTERVAL_US, "an interval is over");
        // A node that begins empty counts anew.
        let done = u128::from(finished.saturating_sub(self.finished));
        self.finished = finished;
        let in_time = done * u128::from(TARGET_US) / u128::from(elapsed_us);
        let in_time = u64::try_from(in_time).unwrap_or(u64::MAX);
        self.in_time = self.in_time / 2 + in_time / 2;
        match in_flight > self.in_time.max(self.least) {
            true => self.exceeded += 1,
            false => self.exceeded = 0,
        }
        self.now = match self.exceeded {
            0 => (self.now + self.now / 16).min(self.most),
            few if few < BURST_INTERVALS => self.now,
            _ => self.in_time.clamp(self.least, self.most),
        };
        debug_assert!((self.least..=self.most).contains(&self.now), "the bound has bounds");
    }
}

/// Measures how much is finished, and says how much may be in flight.
#[derive(Debug)]
pub(super) struct Pace {
    noted_us: u64,
    count: Bound,
    len: Bound,
}

impl Default for Pace {
    fn default() -> Self {
        let (count, len) = (Bound::new(LEAST.count, MOST.count), Bound::new(LEAST.len, MOST.len));
        Self { noted_us: 0, count, len }
    }
}

impl Pace {
    /// `finished` since the start, and in flight, at a time of the monotonic clock; answers how
    /// much may be.
    pub fn note(&mut self, now_us: u64, finished: Amount, in_flight: Amount) -> Load {
        debug_assert!(self.noted_us <= now_us, "the monotonic clock never goes back");
        let elapsed_us = now_us.saturating_sub(self.noted_us);
        if elapsed_us >= INTERVAL_US {
            self.noted_us = now_us;
            self.count.note(elapsed_us, finished.count, in_flight.count);
            self.len.note(elapsed_us, finished.len, in_flight.len);
        }
        let may = Amount { count: self.count.now, len: self.len.now };
        Load { in_flight, may, ..Load::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node that finishes `rate` transactions of `len` bytes a second, and takes in as much as
    /// may be in flight, for so many intervals; answers what may be in flight then.
    fn press(pace: &mut Pace, rate: u64, len: u64, intervals: u64) -> Amount {
        let mut may = Amount::default();
        let (start_us, finished) = (pace.noted_us, pace.count.finished);
        let finished_len = pace.len.finished;
        for interval in 1..=intervals {
            let done = rate * interval / 10;
            let finished = Amount { count: finished + done, len: finished_len + done * len };
            let count = pace.count.now.min(pace.len.now / len);
            let in_flight = Amount { count, len: count * len };
            may = pace.note(start_us + interval * INTERVAL_US, finished, in_flight).may;
        }
        may
    }

    #[test]
    fn what_many_heads_send_crowds_a_node_and_what_one_head_begins_does_not() {
        let load = |count, len| Load { in_flight: Amount { count, len }, ..Load::default() };
        assert!(!load(MOST.count, MOST.len).is_crowded());
        assert!(load(16 * MOST.count, 0).is_crowded() && load(0, 4 * MOST.len).is_crowded());
    }

    #[test]
    fn a_fast_node_takes_the_most() {
        assert_eq!(press(&mut Pace::default(), 20_000, 300, 100), MOST);
    }

    #[test]
    fn a_slow_one_takes_what_it_finishes_in_a_quarter_of_a_second() {
        let may = press(&mut Pace::default(), 8_000, 300, 20);
        assert!((1_900..=2_300).contains(&may.count), "{may:?}");
        let may = press(&mut Pace::default(), 400, 1 << 20, 20);
        assert!((95 << 20..=115 << 20).contains(&may.len), "{may:?}");
    }

    #[test]
    fn a_burst_is_taken_and_a_pause_turns_few_away() {
        let mut pace = Pace::default();
        assert_eq!(press(&mut pace, 0, 300, 2), MOST);
        let few = press(&mut pace, 0, 300, 50).count;
        assert!((LEAST.count..=LEAST.count * 9 / 8).contains(&few), "{few}");
    }

    #[test]
    fn who_was_slow_takes_the_most_again_when_there_is_little_to_do() {
        let mut pace = Pace::default();
        press(&mut pace, 2_000, 300, 20);
        let finished = Amount { count: pace.count.finished, len: pace.len.finished };
        let mut may = Amount::default();
        for _ in 0..50 {
            may = pace.note(pace.noted_us + INTERVAL_US, finished, Amount::default()).may;
        }
        assert_eq!(may, MOST);
    }
}
