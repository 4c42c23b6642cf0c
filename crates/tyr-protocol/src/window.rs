//! What is kept for a certain time, and then let go, oldest first.
//!
//! Times are of a node's clock that neither jumps nor goes back, in microseconds. What was taken in
//! before the clock was first told, as from a log, counts from then. How much there may be is for
//! the owner to bound.

use std::collections::VecDeque;

/// Items in the order they came, each with when it did.
#[derive(Clone, Debug)]
pub(crate) struct Window<T> {
    items: VecDeque<(u64, T)>,
    /// What the clock last said; 0 before it did.
    now_us: u64,
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self { items: VecDeque::new(), now_us: 0 }
    }
}

impl<T> Window<T> {
    /// Takes in an item.
    pub fn push(&mut self, item: T) {
        self.items.push_back((self.now_us, item));
    }

    /// The clock says so.
    pub fn advance(&mut self, now_us: u64) {
        if self.now_us == 0 {
            self.items.iter_mut().for_each(|(came_us, _)| *came_us = now_us);
        }
        self.now_us = self.now_us.max(now_us);
    }

    /// The oldest item, out of the window when it has been there for `lasts_us`, or when there are
    /// more than `count_max`.
    pub fn pop(&mut self, lasts_us: u64, count_max: usize) -> Option<T> {
        let (came_us, _) = self.items.front()?;
        let is_old = self.now_us - came_us >= lasts_us;
        let is_due = is_old || self.items.len() > count_max;
        is_due.then(|| self.items.pop_front().expect("it was just there").1)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Those from the first one on that is not `before`, which must hold for no item after one for
    /// which it does not.
    pub fn from(&self, before: impl Fn(&T) -> bool) -> impl Iterator<Item = &T> {
        let start = self.items.partition_point(|(_, item)| before(item));
        self.items.range(start..).map(|(_, item)| item)
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
    fn what_came_before_the_clock_was_told_counts_from_then() {
        let mut window = Window::default();
        window.push('a');
        window.advance(1_000_000);
        assert_eq!(window.pop(10, 9), None);
        window.advance(1_000_010);
        assert_eq!(window.pop(10, 9), Some('a'));
    }
}
