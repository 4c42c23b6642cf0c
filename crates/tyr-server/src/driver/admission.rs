//! The admission queue: what clients ask for waits here a moment while a node takes nothing in.
//!
//! Who asks for much is refused at once, and sends less. Who asks for little cannot: without a
//! place to wait it would be refused as often as those who fill the node. So a few small
//! transactions of each client wait, first come first, and go in before what comes later. What has
//! waited too long is refused as it would have been.
//!
//! It must not know what is in flight: whoever asks for the next one says that there is room.

use std::collections::{BTreeMap, VecDeque};

use tyr_protocol::message::{Address, Envelope};
use tyr_types::limits;

/// Of one client so many wait.
const OF_CLIENT_MAX: usize = 8;

/// Of all together so many, and bytes that they carry: what a node takes in within a quarter of a
/// second, beside what it has.
const WAITING_MAX: usize = 1024;
const WAITING_LEN_MAX: u64 = 16 << 20;

const _: () = assert!(0 < OF_CLIENT_MAX && OF_CLIENT_MAX < WAITING_MAX);
const _: () = assert!(limits::TRANSACTION_INLINE_MAX as u64 <= WAITING_LEN_MAX);

/// For so long they wait, in microseconds: as long as what was taken in should take.
const PATIENCE_US: u64 = 250_000;

/// A transaction that waits.
#[derive(Debug)]
struct Waiting {
    until_us: u64,
    client: u64,
    envelope: Envelope,
    len: u64,
    /// What its client is told when it has waited too long.
    refusal: Envelope,
}

/// Those that wait to be taken in.
#[derive(Debug, Default)]
pub(super) struct AdmissionQueue {
    waiting: VecDeque<Waiting>,
    len: u64,
    by_client: BTreeMap<u64, usize>,
}

impl AdmissionQueue {
    /// Whether one more transaction of `client`, of `len` bytes, may wait.
    pub fn has_place(&self, client: u64, len: u64) -> bool {
        let of_client = self.by_client.get(&client).copied().unwrap_or(0);
        let is_full = self.waiting.len() >= WAITING_MAX || self.len + len > WAITING_LEN_MAX;
        !is_full && of_client < OF_CLIENT_MAX
    }

    /// A transaction of `client`, `len` bytes, waits from now on, or its refusal is given back.
    ///
    /// # Errors
    /// The refusal, when too much waits.
    pub fn put(
        &mut self,
        client: u64,
        len: u64,
        envelope: Envelope,
        refusal: Envelope,
        now_us: u64,
    ) -> Result<(), Box<Envelope>> {
        if !self.has_place(client, len) {
            return Err(Box::new(refusal));
        }
        *self.by_client.entry(client).or_default() += 1;
        self.len += len;
        let until_us = now_us + PATIENCE_US;
        debug_assert!(
            self.waiting.back().is_none_or(|last| last.until_us <= until_us),
            "who came first has waited longest"
        );
        self.waiting.push_back(Waiting { until_us, client, envelope, len, refusal });
        self.check();
        Ok(())
    }

    /// The one that has waited longest.
    pub fn next(&mut self) -> Option<Envelope> {
        self.leave().map(|waiting| waiting.envelope)
    }

    /// The refusal of the next that has waited too long, and whom it is for.
    pub fn late(&mut self, now_us: u64) -> Option<(Address, Envelope)> {
        self.waiting.front().filter(|first| first.until_us <= now_us)?;
        self.leave().map(|waiting| (Address::Client(waiting.client), waiting.refusal))
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn leave(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.len -= first.len;
        let of_client = self.by_client.get_mut(&first.client).expect("it was counted");
        *of_client -= 1;
        if *of_client == 0 {
            self.by_client.remove(&first.client);
        }
        self.check();
        Some(first)
    }

    /// What holds between two calls.
    fn check(&self) {
        debug_assert!(self.waiting.len() <= WAITING_MAX, "their number is bounded");
        debug_assert!(self.len <= WAITING_LEN_MAX, "their bytes are bounded");
        debug_assert_eq!(
            self.by_client.values().sum::<usize>(),
            self.waiting.len(),
            "who waits is counted, and nobody else"
        );
        debug_assert!(
            self.by_client.values().all(|count| (1..=OF_CLIENT_MAX).contains(count)),
            "few of each client wait"
        );
        debug_assert_eq!(self.waiting.is_empty(), self.by_client.is_empty(), "and the reverse");
        debug_assert!(!self.waiting.is_empty() || self.len == 0, "nobody carries nothing");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tyr_protocol::message::Body;
    use tyr_types::Epoch;

    fn envelope(client: u64, incarnation: u64) -> Envelope {
        let (epoch, from, body) = (Epoch::default(), Address::Client(client), Body::FetchMap);
        Envelope { epoch, incarnation, from, body }
    }

    fn put(queue: &mut AdmissionQueue, client: u64, number: u64, len: u64, now_us: u64) -> bool {
        let (asked, refusal) = (envelope(client, number), envelope(client, 1_000 + number));
        queue.put(client, len, asked, refusal, now_us).is_ok()
    }

    #[test]
    fn a_few_of_each_client_wait_in_turn() {
        let mut queue = AdmissionQueue::default();
        let many = (0..20).filter(|number| put(&mut queue, 1, *number, 10, 0)).count();
        assert_eq!(many, OF_CLIENT_MAX);
        assert!(put(&mut queue, 2, 30, 10, 0), "another asks for little");
        assert_eq!(queue.next().map(|envelope| envelope.incarnation), Some(0));
        assert!(put(&mut queue, 1, 31, 10, 0), "one of the first has gone in");
        let rest: Vec<u64> = std::iter::from_fn(|| queue.next()).map(|it| it.incarnation).collect();
        assert_eq!(rest, [1, 2, 3, 4, 5, 6, 7, 30, 31]);
        assert!(queue.is_empty() && queue.by_client.is_empty() && queue.len == 0);
    }

    #[test]
    fn who_has_waited_too_long_is_refused() {
        let mut queue = AdmissionQueue::default();
        assert!(put(&mut queue, 1, 1, 10, 0) && put(&mut queue, 2, 2, 10, 5));
        assert!(queue.late(PATIENCE_US - 1).is_none());
        let (to, refusal) = queue.late(PATIENCE_US).unwrap();
        assert_eq!((to, refusal.incarnation), (Address::Client(1), 1_001));
        assert!(queue.late(PATIENCE_US).is_none());
        assert_eq!(queue.next().map(|envelope| envelope.incarnation), Some(2));
    }

    #[test]
    fn what_waits_is_bounded_by_bytes_and_by_number() {
        let mut queue = AdmissionQueue::default();
        assert!(put(&mut queue, 1, 1, WAITING_LEN_MAX, 0));
        assert!(!put(&mut queue, 2, 2, 1, 0));
        queue.next();
        let all = (0..2_000).filter(|client| put(&mut queue, *client, 0, 0, 0)).count();
        assert_eq!(all, WAITING_MAX);
    }
}
