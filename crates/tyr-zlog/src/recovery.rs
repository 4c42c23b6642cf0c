//! What the next sequencer begins with: the counter that the one before left, or what is found in
//! the log when it left none.
//!
//! ```text
//!   give back   {fence, counter: token, term, next}                     one transaction
//!   take over   counter.token = own token - 1 ?  go on with `next`
//!               else: stripe by stripe, the newest first, seal its objects with the next epoch,
//!               until one has a position written; view of that epoch, with the highest and one
//!                                                              one transaction, under the fence
//! ```
//!
//! The token of a lock grows by one with each who gets it (K4). So a counter that the last holder
//! left is one with the token before; any other one is of somebody after whom another came, and
//! died. The fence keeps who lost the lock without knowing from leaving a counter, or a view,
//! behind.

use tyr::blocking::{Lock, Transaction};
use tyr::{Bytes, Error, ErrorKind, Result};
use tyr_object::Failure;

use crate::class::Fields;
use crate::client::Client;
use crate::layout;
use crate::view::Stripe;

/// A counter of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The epoch of the view with which it began.
    pub term: u64,
    /// The position that it gives next.
    pub next: u64,
}

impl Counter {
    /// As it is left by the holder of a token.
    pub fn bytes(self, token: u64) -> Bytes {
        Fields::of([token, self.term, self.next]).into()
    }

    /// What the holder before the one with this token left, if it did.
    fn left_before(token: u64, bytes: &[u8]) -> Option<Self> {
        let ([left, term, next], []) = bytes.as_chunks().0.split_first_chunk()? else {
            return None;
        };
        let [left, term, next] = [left, term, next].map(|it| u64::from_le_bytes(*it));
        (left.checked_add(1) == Some(token)).then_some(Self { term, next })
    }
}

impl Client {
    /// The counter to go on with for who has just got the lock.
    ///
    /// # Errors
    /// `Conflict` when the lock was lost meanwhile; whatever the store answers.
    pub fn take_over(&self, lock: &Lock) -> Result<Counter> {
        let left = match self.keyspace.get(layout::counter_key(&self.name)?) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            left => Counter::left_before(lock.token(), &left?),
        };
        match left {
            Some(counter) => Ok(counter),
            None => self.recover(lock),
        }
    }

    /// Leaves the counter for who comes next.
    ///
    /// # Errors
    /// `Conflict` when the lock was lost meanwhile; whatever the store answers.
    pub fn leave(&self, lock: &Lock, counter: Counter) -> Result<()> {
        let mut transaction = self.store.begin();
        transaction.fence(lock)?;
        let key = layout::counter_key(&self.name)?;
        transaction.put(&self.keyspace, key, counter.bytes(lock.token()))?;
        transaction.commit().map(drop)
    }

    /// Seals what the lost counter may still be written to, and begins a new one behind all that
    /// was written.
    fn recover(&self, lock: &Lock) -> Result<Counter> {
        let recovered = self.transact(|transaction| {
            if !lock.is_held() {
                // Nothing more is tried for who has lost it: the fence would refuse it.
                return Err(Error::unavailable("the sequencer's lease was over too soon").into());
            }
            transaction.fence(lock)?;
            let view = self.view_in(transaction)?;
            let mut next = view.begin;
            for stripe in view.stripes_backwards() {
                let found = self.seal_in(transaction, view.epoch + 1, stripe)?;
                next = next.max(found);
                if found > 0 {
                    break;
                }
            }
            let view = view.restarted(next);
            self.propose_in(transaction, &view)?;
            Ok(view)
        });
        let view = recovered.map_err(Error::from)?;
        let counter = Counter { term: view.term, next: view.start };
        self.learn(view);
        Ok(counter)
    }

    /// Seals the objects of a stripe; answers the highest position that is written in them, and
    /// one; 0 when there is none.
    fn seal_in(
        &self,
        transaction: &mut Transaction,
        epoch: u64,
        stripe: Stripe,
    ) -> Result<u64, Failure> {
        let mut next = 0;
        for column in 0..stripe.width {
            let key = self.object(stripe, column)?;
            let answer = self.call_object(transaction, &key, "seal", Fields::of([epoch]))?;
            next = next.max(next_of(&answer)?);
        }
        Ok(next)
    }
}

/// What `seal` and `max_position` answer: the highest position written, and one.
pub fn next_of(answer: &[u8]) -> Result<u64> {
    match answer.as_chunks().0 {
        [_, next] => Ok(u64::from_le_bytes(*next)),
        _ => Err(Error::corrupt("the class zlog answered no position")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_holder_before_left_is_gone_on_with() {
        let counter = Counter { term: 3, next: 17 };
        let bytes = counter.bytes(4);
        assert_eq!(Counter::left_before(5, &bytes), Some(counter));
        for token in [3, 4, 6] {
            assert_eq!(Counter::left_before(token, &bytes), None);
        }
        assert_eq!(Counter::left_before(5, &bytes[1..]), None);
        assert_eq!(Counter::left_before(1, b""), None);
    }
}
