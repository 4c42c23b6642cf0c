//! What will happen, in order of time; what is due at one time happens in the order it was put in.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queue of things that will happen.
#[derive(Debug)]
pub struct Queue<T> {
    /// Time, the count of those put in, and the place in `items`: small, for it moves a lot.
    order: BinaryHeap<Reverse<(u64, u64, u32)>>,
    items: Vec<Option<T>>,
    free: Vec<u32>,
    count: u64,
}

/// A queue of nothing.
impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { order: BinaryHeap::new(), items: Vec::new(), free: Vec::new(), count: 0 }
    }
}

impl<T> Queue<T> {
    /// A queue of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets `item` happen at `at_us`.
    pub fn push(&mut self, at_us: u64, item: T) {
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.items.push(None);
                u32::try_from(self.items.len() - 1).expect("a run has fewer than 2^32 messages")
            }
        };
        self.items[place as usize] = Some(item);
        self.count += 1;
        self.order.push(Reverse((at_us, self.count, place)));
    }

    /// Takes out what happens next, with its time.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        let Reverse((at_us, _, place)) = self.order.pop()?;
        self.free.push(place);
        let item = self.items[place as usize].take().expect("what is in order is there");
        Some((at_us, item))
    }

    /// The number of things that will happen.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether nothing will happen.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_at_one_time_happens_in_the_order_it_was_put_in() {
        let mut queue = Queue::new();
        for (at_us, item) in [(5, 'c'), (1, 'a'), (5, 'd'), (2, 'b')] {
            queue.push(at_us, item);
        }
        assert_eq!(queue.pop(), Some((1, 'a')));
        queue.push(5, 'e');
        assert_eq!(queue.len(), 4);
        let rest: Vec<char> = std::iter::from_fn(|| queue.pop()).map(|(_, item)| item).collect();
        assert_eq!(rest, ['b', 'c', 'd', 'e']);
    }
}
