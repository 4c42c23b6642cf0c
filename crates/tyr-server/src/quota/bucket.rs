//! A token bucket: so many operations a second, and at once what a second has.
//!
//! Must not know: clocks. Who asks says when it is.

use std::time::Instant;

/// So many operations a second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    /// Operations that may be done at once; below zero after more was done at once than a second
    /// has, which is then waited for.
    tokens: f64,
    /// When the tokens were as many; `None` before the first question: then it is full.
    at: Option<Instant>,
}

impl Bucket {
    /// Whether so many operations may be done now, at `rate` a second. What costs more than the
    /// bucket holds may be done when it is full.
    pub fn has(&mut self, cost: u64, rate: f64, now: Instant) -> bool {
        if rate <= 0.0 {
            return cost == 0;
        }
        debug_assert!(rate.is_finite(), "a rate is a number");
        let room = rate.max(1.0);
        self.tokens = match self.at {
            Some(at) => {
                let passed = now.saturating_duration_since(at).as_secs_f64();
                room.min(self.tokens + passed * rate)
            }
            None => room,
        };
        self.at = Some(self.at.map_or(now, |at| at.max(now)));
        debug_assert!(self.tokens <= room, "no more than a second is saved up");
        self.tokens >= room.min(cost as f64)
    }

    /// They are done.
    pub fn spend(&mut self, cost: u64) {
        debug_assert!(cost == 0 || self.at.is_some(), "it was asked for before");
        self.tokens -= cost as f64;
        debug_assert!(self.tokens.is_finite(), "what is spent is a number");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn take(bucket: &mut Bucket, cost: u64, rate: f64, now: Instant) -> bool {
        let has = bucket.has(cost, rate, now);
        if has {
            bucket.spend(cost);
        }
        has
    }

    #[test]
    fn a_second_may_come_at_once_and_then_each_in_its_time() {
        let (mut bucket, start) = (Bucket::default(), Instant::now());
        let ms = |ms| start + Duration::from_millis(ms);
        assert_eq!((0..20).filter(|_| take(&mut bucket, 1, 10.0, start)).count(), 10);
        assert!(!take(&mut bucket, 1, 10.0, ms(90)));
        assert!(take(&mut bucket, 1, 10.0, ms(110)));
        assert!(!take(&mut bucket, 1, 10.0, ms(110)));
        let much_later = (0..20).filter(|_| take(&mut bucket, 1, 10.0, ms(60_000))).count();
        assert_eq!(much_later, 10, "no more than a second is saved up");
    }

    #[test]
    fn what_is_asked_all_the_time_gets_the_rate_and_no_more() {
        let (mut bucket, start) = (Bucket::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        let taken = (0..10_000).filter(|ms| take(&mut bucket, 1, 50.0, at(*ms))).count();
        assert!((540..=551).contains(&taken), "{taken} in ten seconds");
    }

    #[test]
    fn what_costs_more_than_a_second_waits_for_a_full_bucket_and_is_paid_for() {
        let (mut bucket, start) = (Bucket::default(), Instant::now());
        let s = |s| start + Duration::from_secs(s);
        assert!(take(&mut bucket, 40, 10.0, start));
        assert!(!take(&mut bucket, 1, 10.0, s(3)), "40 are paid for in 4 s, of which 1 was saved");
        assert!(take(&mut bucket, 1, 10.0, s(4)));
    }

    #[test]
    fn less_than_one_a_second_still_gets_one_and_none_gets_none() {
        let (mut bucket, start) = (Bucket::default(), Instant::now());
        assert!(take(&mut bucket, 1, 0.25, start));
        assert!(!take(&mut bucket, 1, 0.25, start + Duration::from_secs(3)));
        assert!(take(&mut bucket, 1, 0.25, start + Duration::from_secs(4)));
        assert!(!Bucket::default().has(1, 0.0, start));
    }

    #[test]
    fn a_clock_that_is_read_out_of_order_gives_nothing_twice() {
        let (mut bucket, start) = (Bucket::default(), Instant::now());
        let later = start + Duration::from_secs(5);
        assert!(take(&mut bucket, 10, 10.0, later));
        assert!(!take(&mut bucket, 1, 10.0, start));
        assert!(!take(&mut bucket, 1, 10.0, later));
    }
}
