//! Lines of the log of one kind that come again and again are held back, and counted.
//!
//! Whoever can reach a port, or has a peer that restarts, can make a program say the same as often
//! as it likes. Of each kind so many lines are written in a window of time; how many more there
//! were is said when the window is over. What a kind is, the caller says.
//!
//! It must not know what is logged, nor the time: who asks gives it.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// How many lines of each kind are written, for each of which a key stands.
#[derive(Debug)]
pub struct RepeatLimit<K> {
    lines_max: u64,
    window: Duration,
    kinds_max: usize,
    kinds: HashMap<K, Window>,
}

/// The lines of a kind in a window.
#[derive(Debug)]
struct Window {
    since: Instant,
    lines: u64,
}

impl<K: Eq + Hash> RepeatLimit<K> {
    /// Of each kind so many lines in a window are written. More kinds than `kinds_max` are not told
    /// apart at a time: nothing is written of those beyond.
    pub fn new(lines_max: u64, window: Duration, kinds_max: usize) -> Self {
        assert!(lines_max > 0 && kinds_max > 0, "some line of some kind is written");
        Self { lines_max, window, kinds_max, kinds: HashMap::new() }
    }

    /// A line of this kind is to be written: `None` holds it back. Else answers how many were held
    /// back in the window before, if nobody has been told of them.
    pub fn admit(&mut self, kind: K, now: Instant) -> Option<u64> {
        let (lines_max, window) = (self.lines_max, self.window);
        if let Some(known) = self.kinds.get_mut(&kind) {
            if !known.is_over(window, now) {
                known.lines = known.lines.saturating_add(1);
                return (known.lines <= lines_max).then_some(0);
            }
            let held_back = known.held_back(lines_max);
            *known = Window { since: now, lines: 1 };
            return Some(held_back);
        }
        if self.kinds.len() >= self.kinds_max {
            self.kinds.retain(|_, it| !it.is_over(window, now));
        }
        if self.kinds.len() >= self.kinds_max {
            return None;
        }
        self.kinds.insert(kind, Window { since: now, lines: 1 });
        debug_assert!(self.kinds.len() <= self.kinds_max, "kinds are bounded");
        Some(0)
    }

    /// Ends the windows that are over; answers the kinds of which lines were held back, and how
    /// many.
    pub fn end_windows(&mut self, now: Instant) -> Vec<(K, u64)> {
        let (lines_max, window) = (self.lines_max, self.window);
        let ended = self.kinds.extract_if(|_, it| it.is_over(window, now));
        let sums = ended.map(|(kind, it)| (kind, it.held_back(lines_max)));
        sums.filter(|(_, held_back)| *held_back > 0).collect()
    }
}

impl Window {
    fn is_over(&self, window: Duration, now: Instant) -> bool {
        now.duration_since(self.since) >= window
    }

    fn held_back(&self, lines_max: u64) -> u64 {
        self.lines.saturating_sub(lines_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    #[test]
    fn so_many_lines_of_a_kind_are_written_in_a_window_and_the_next_says_how_many_were_not() {
        let (mut limit, start) = (RepeatLimit::new(2, WINDOW, 8), Instant::now());
        let admitted: Vec<_> = (0..5).map(|_| limit.admit("a", start)).collect();
        assert_eq!(admitted, [Some(0), Some(0), None, None, None]);
        assert_eq!(limit.admit("b", start), Some(0), "another kind has a window of its own");
        assert_eq!(limit.admit("a", start + WINDOW / 2), None);
        assert_eq!(limit.admit("a", start + WINDOW), Some(4));
        assert_eq!(limit.admit("a", start + 2 * WINDOW), Some(0));
    }

    #[test]
    fn what_was_held_back_is_told_once_though_nothing_of_its_kind_comes_any_more() {
        let (mut limit, start) = (RepeatLimit::new(1, WINDOW, 8), Instant::now());
        (0..5).for_each(|_| _ = limit.admit("a", start));
        limit.admit("b", start);
        assert_eq!(limit.end_windows(start + WINDOW / 2), []);
        assert_eq!(limit.end_windows(start + WINDOW), [("a", 4)]);
        assert_eq!(limit.end_windows(start + 2 * WINDOW), []);
        assert_eq!(limit.admit("a", start + 2 * WINDOW), Some(0));
    }

    #[test]
    fn kinds_beyond_those_that_are_told_apart_wait_until_a_window_is_over() {
        let (mut limit, start) = (RepeatLimit::new(1, WINDOW, 4), Instant::now());
        let admitted = (0..100).filter(|kind| limit.admit(*kind, start).is_some()).count();
        assert_eq!(admitted, 4);
        assert_eq!(limit.admit(50, start + WINDOW), Some(0));
    }
}
