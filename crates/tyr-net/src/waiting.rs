//! Callers that have not said hello yet: few, none for long, and the oldest goes first.
//!
//! Whoever says hello at once, as programs of ours do, is not the oldest for long; so a flood of
//! silent connections pushes out itself, also when it comes from the address of somebody else.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The callers that have not said hello yet.
#[derive(Debug)]
pub(super) struct Waiting {
    max: usize,
    per_address_max: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    /// In the order in which they came.
    callers: BTreeMap<u64, Caller>,
}

#[derive(Debug)]
struct Caller {
    address: IpAddr,
    pushed_out: Arc<Notify>,
}

/// A caller's place among those that wait; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    waiting: &'a Waiting,
    number: u64,
    pushed_out: Arc<Notify>,
}

impl Waiting {
    pub fn new(max: usize, per_address_max: usize) -> Self {
        assert!(max > 0 && per_address_max > 0, "some may wait: the configuration was checked");
        Self { max, per_address_max, table: Mutex::default() }
    }

    /// A caller came; where there are too many, the oldest goes.
    pub fn enter(&self, address: IpAddr) -> Turn<'_> {
        let mut table = self.table.lock();
        let same = |caller: &Caller| caller.address == address;
        let count = table.callers.values().filter(|caller| same(caller)).count();
        let oldest = if count >= self.per_address_max {
            table.callers.iter().find(|(_, caller)| same(caller)).map(|(number, _)| *number)
        } else if table.callers.len() >= self.max {
            table.callers.keys().next().copied()
        } else {
            None
        };
        if let Some(caller) = oldest.and_then(|number| table.callers.remove(&number)) {
            caller.pushed_out.notify_one();
        }
        debug_assert!(table.callers.len() < self.max, "there is a place");
        let number = table.next;
        table.next += 1;
        let pushed_out = Arc::new(Notify::new());
        debug_assert!(
            table.callers.last_key_value().is_none_or(|(last, _)| *last < number),
            "who came last is the youngest"
        );
        table.callers.insert(number, Caller { address, pushed_out: Arc::clone(&pushed_out) });
        debug_assert!(
            table.callers.values().filter(|caller| same(caller)).count() <= self.per_address_max,
            "those of an address are bounded"
        );
        Turn { waiting: self, number, pushed_out }
    }

    /// How many wait.
    pub fn count(&self) -> usize {
        self.table.lock().callers.len()
    }
}

impl Turn<'_> {
    /// Until the caller has to go because others came.
    pub async fn pushed_out(&self) {
        self.pushed_out.notified().await;
    }

    /// The caller has said hello. False when it had to go before.
    pub fn end(&self) -> bool {
        self.waiting.table.lock().callers.remove(&self.number).is_some()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    #[test]
    fn the_oldest_of_an_address_goes_when_the_address_has_too_many() {
        let waiting = Waiting::new(10, 2);
        let other = waiting.enter(address(2));
        let first = waiting.enter(address(1));
        let second = waiting.enter(address(1));
        let third = waiting.enter(address(1));
        assert_eq!(waiting.count(), 3);
        assert!(!first.end());
        assert!(second.end() && third.end() && other.end());
        assert_eq!(waiting.count(), 0);
    }

    #[test]
    fn the_oldest_of_all_goes_when_there_are_too_many() {
        let waiting = Waiting::new(3, 2);
        let turns: Vec<_> = (0..5).map(|last| waiting.enter(address(last))).collect();
        let stayed: Vec<_> = turns.iter().map(Turn::end).collect();
        assert_eq!(stayed, [false, false, true, true, true]);
    }

    #[test]
    fn who_goes_gives_its_place_back() {
        let waiting = Waiting::new(3, 2);
        drop(waiting.enter(address(1)));
        assert_eq!(waiting.count(), 0);
    }
}
