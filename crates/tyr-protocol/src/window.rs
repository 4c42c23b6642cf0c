//! What is kept for a certain time, and then let go, oldest first.
//!
//! Times are of a node's clock that neither jumps nor goes back, in microseconds. What was taken in
//! before the clock was first told, as from a log, counts from then. How much there may be is for
//! the owner to bound.

use std::collections::VecDeque;

/// Items of a segment.
const SEGMENT_LEN: usize = 512;

/// Items in the order they came, each with when it did.
#[derive(Clone, Debug)]
pub(crate) struct Window<T> {
    /// None is empty. There may be a million items: one piece of memory for all of them would be
    /// moved each time that it has to grow.
    segments: VecDeque<VecDeque<(u64, T)>>,
    len: usize,
    /// What the clock last said; 0 before it did.
    now_us: u64,
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self { segments: VecDeque::new(), len: 0, now_us: 0 }
    }
}

impl<T> Window<T> {
    /// Takes in an item.
    pub fn push(&mut self, item: T) {
        self.len += 1;
        let item = (self.now_us, item);
        match self.segments.back_mut() {
            Some(last) if last.len() < SEGMENT_LEN => last.push_back(item),
            _ => self.segments.push_back(VecDeque::from([item])),
        }
    }

    /// The clock says so.
    pub fn advance(&mut self, now_us: u64) {
        if self.now_us == 0 {
            self.segments.iter_mut().flatten().for_each(|(came_us, _)| *came_us = now_us);
        }
        self.now_us = self.now_us.max(now_us);
    }

    /// The oldest item, out of the window when it has been there for `lasts_us`, or when there are
    /// more than `count_max`.
    pub fn pop(&mut self, lasts_us: u64, count_max: usize) -> Option<T> {
        let first = self.segments.front_mut()?;
        let (came_us, _) = first.front()?;
        let is_old = self.now_us - came_us >= lasts_us;
        if !is_old && self.len <= count_max {
            return None;
        }
        self.len -= 1;
        let popped = first.pop_front();
        if first.is_empty() {
            self.segments.pop_front();
        }
        popped.map(|(_, item)| item)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Those from the first one on that is not `before`, which must hold for no item after one for
    /// which it does not.
    pub fn from(&self, before: impl Fn(&T) -> bool) -> impl Iterator<Item = &T> {
        let is_over = |segment: &VecDeque<_>| segment.back().is_some_and(|(_, it)| before(it));
        let mut segments = self.segments.range(self.segments.partition_point(is_over)..);
        let first = segments
            .next()
            .map(|segment| segment.range(segment.partition_point(|(_, item)| before(item))..));
        first.into_iter().flatten().chain(segments.flatten()).map(|(_, item)| item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_goes_when_its_time_is_over_or_there_is_too_much() {
        let mut window = Window::default();
        window.advance(100);
        window.push('a');
        window.advance(105);
        window.push('b');
        assert_eq!(window.pop(10, 9), None);
        window.advance(110);
        assert_eq!(window.pop(10, 9), Some('a'));
        assert_eq!(window.pop(10, 9), None);
        assert_eq!(window.pop(10, 0), Some('b'));
        assert_eq!(window.len(), 0);
    }

    #[test]
    fn many_go_in_the_order_they_came_and_are_found_by_it() {
        let mut window = Window::default();
        let count = 3 * SEGMENT_LEN + 7;
        (0..count).for_each(|number| window.push(number));
        for start in [0, 1, SEGMENT_LEN - 1, SEGMENT_LEN, 2 * SEGMENT_LEN + 3, count - 1, count] {
            let found: Vec<_> = window.from(|number| *number < start).copied().collect();
            assert_eq!(found, (start..count).collect::<Vec<_>>());
        }
        let popped: Vec<_> = std::iter::from_fn(|| window.pop(10, 100)).collect();
        assert_eq!(popped, (0..count - 100).collect::<Vec<_>>());
        assert_eq!((window.len(), window.from(|_| false).count()), (100, 100));
    }

    #[test]
    fn what_came_before_the_clock_was_told_counts_from_then() {
        let mut window = Window::default();
        window.push('a');
        window.advance(1_000_000);
        assert_eq!(window.pop(10, 9), None);
        window.advance(1_000_010);
        assert_eq!(window.pop(10, 9), Some('a'));
    }
}
