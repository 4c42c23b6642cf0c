//! A long queue whose memory does not move.
//!
//! It is kept in segments: there may be a million items, and one piece of memory for all of them
//! would be moved each time that it has to grow.

use std::collections::VecDeque;

/// Items of a segment.
const SEGMENT_LEN: usize = 512;

/// Items in the order they came. How many there may be is for the owner to bound.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    /// None is empty.
    segments: VecDeque<VecDeque<T>>,
    len: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { segments: VecDeque::new(), len: 0 }
    }
}

impl<T> Queue<T> {
    /// Takes in an item.
    pub fn push(&mut self, item: T) {
        self.len += 1;
        match self.segments.back_mut() {
            Some(last) if last.len() < SEGMENT_LEN => last.push_back(item),
            _ => self.segments.push_back(VecDeque::from([item])),
        }
        debug_assert!(self.segments.back().is_some_and(|it| it.len() <= SEGMENT_LEN), "none grows");
    }

    /// The oldest item, out of the queue, if this holds for it.
    pub fn pop_if(&mut self, is_due: impl Fn(&T) -> bool) -> Option<T> {
        let first = self.segments.front_mut()?;
        if !first.front().is_some_and(is_due) {
            return None;
        }
        self.len -= 1;
        let popped = first.pop_front();
        if first.is_empty() {
            self.segments.pop_front();
            let counted: usize = self.segments.iter().map(VecDeque::len).sum();
            debug_assert_eq!(counted, self.len, "items are counted");
        }
        debug_assert!(popped.is_some(), "no segment is empty");
        debug_assert_eq!(self.len == 0, self.segments.is_empty(), "items are counted");
        popped
    }

    /// All of them, oldest first.
    pub fn into_items(self) -> impl Iterator<Item = T> {
        self.segments.into_iter().flatten()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Those from the first one on that is not `before`, which must hold for no item after one for
    /// which it does not.
    pub fn from(&self, before: impl Fn(&T) -> bool) -> impl Iterator<Item = &T> {
        let is_over = |segment: &VecDeque<_>| segment.back().is_some_and(&before);
        let mut segments = self.segments.range(self.segments.partition_point(is_over)..);
        let first = segments
            .next()
            .map(|segment| segment.range(segment.partition_point(|it| before(it))..));
        first.into_iter().flatten().chain(segments.flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_due_goes_oldest_first() {
        let mut queue = Queue::default();
        [1, 2, 9, 3].into_iter().for_each(|number| queue.push(number));
        let popped: Vec<_> = std::iter::from_fn(|| queue.pop_if(|number| *number < 5)).collect();
        assert_eq!((popped, queue.len()), (vec![1, 2], 2), "what is behind one that stays, stays");
    }

    #[test]
    fn many_go_in_the_order_they_came_and_are_found_by_it() {
        let mut queue = Queue::default();
        let count = 3 * SEGMENT_LEN + 7;
        (0..count).for_each(|number| queue.push(number));
        for start in [0, 1, SEGMENT_LEN - 1, SEGMENT_LEN, 2 * SEGMENT_LEN + 3, count - 1, count] {
            let found: Vec<_> = queue.from(|number| *number < start).copied().collect();
            assert_eq!(found, (start..count).collect::<Vec<_>>());
        }
        let popped: Vec<_> =
            std::iter::from_fn(|| queue.pop_if(|number| *number < count - 100)).collect();
        assert_eq!(popped, (0..count - 100).collect::<Vec<_>>());
        assert_eq!((queue.len(), queue.from(|_| false).count()), (100, 100));
    }
}
