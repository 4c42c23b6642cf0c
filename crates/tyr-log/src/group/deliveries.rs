//! Entries that are lent: what is not acknowledged in time is given to somebody else.
//!
//! Who takes writes down until when, by its own clock, and who comes later goes by its own: clocks
//! that differ make entries come again earlier or later by as much. None is lost by that.

use std::time::Duration;

use tyr::{Error, Result, Transaction};

use super::Group;
use super::state::{Lent, State};
use crate::entry::Entry;
use crate::log::now_us;
use crate::tries::{Tries, again};

/// Deliveries of a group and partition that are not acknowledged, at most: 64 KiB of state.
pub const LENT_MAX: usize = 1_024;

/// Entries that were taken; see [`Group::take`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The entries, of one partition, in their order.
    pub entries: Vec<Entry>,
    /// How often they were given out, this time included: more than once where nobody acknowledged
    /// them in time.
    pub times: u32,
    partition: u16,
    id: u64,
}

impl Group {
    /// Up to `max` entries, for so long: unless they are acknowledged by then, somebody else gets
    /// them, together. What was not acknowledged comes before what was not given out yet. `None`
    /// when there is nothing now.
    ///
    /// # Errors
    /// As [`Group::pop`]; `Unavailable` when 1,024 deliveries of a partition are not acknowledged.
    pub async fn take(&self, max: usize, timeout: Duration) -> Result<Option<Delivery>> {
        for partition in self.partitions_in_turn() {
            let taken = again(|| self.take_once(partition, max, timeout)).await?;
            if taken.is_some() {
                return Ok(taken);
            }
        }
        Ok(None)
    }

    async fn take_once(
        &self,
        partition: u16,
        max: usize,
        timeout: Duration,
    ) -> Result<Option<Delivery>> {
        let (keyspace, key) = (&self.log.shared.keyspace, self.key(partition));
        let mut transaction = self.log.shared.store.begin();
        let bytes = self.of_blob(transaction.get(keyspace, key).await)?;
        let mut state = State::read(&bytes, partition)?;
        let now_us = now_us();
        let late = state.lent.iter().position(|lent| lent.until_us <= now_us);
        let given = match late {
            Some(late) => {
                let lent = state.lent.remove(late);
                self.read_whole(&lent).await.map(|entries| Some((lent, entries)))
            }
            None => self.lend(&mut state, max).await,
        };
        let given = self.of_entries(partition, &bytes, given).await?;
        let Some((mut lent, entries)) = given else { return Ok(None) };
        lent.id = state.next_id;
        lent.until_us =
            now_us.saturating_add(u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX));
        lent.times = lent.times.saturating_add(1);
        state.next_id += 1;
        state.lent.push(lent);
        transaction.put(keyspace, key, state.write())?;
        transaction.commit().await?;
        Ok(Some(Delivery { entries, times: lent.times, partition, id: lent.id }))
    }

    /// The entries of a delivery of before.
    async fn read_whole(&self, lent: &Lent) -> Result<Vec<Entry>> {
        let (mut entries, mut from) = (Vec::new(), lent.from);
        while entries.len() < lent.entries as usize {
            let (more, behind) =
                self.read_from(from, lent.entries as usize - entries.len()).await?;
            if more.is_empty() {
                return Err(Error::corrupt(format!(
                    "group {} has given out entries from {} on that are not there",
                    self.name, lent.from
                )));
            }
            entries.extend(more);
            from = behind;
        }
        Ok(entries)
    }

    /// Moves the cursor behind entries that nobody has got yet.
    async fn lend(&self, state: &mut State, max: usize) -> Result<Option<(Lent, Vec<Entry>)>> {
        let (entries, to) = self.read_from(state.cursor, max).await?;
        if entries.is_empty() {
            return Ok(None);
        }
        if state.lent.len() >= LENT_MAX {
            return Err(Error::unavailable(format!(
                "{LENT_MAX} deliveries of group {} in partition {} are not acknowledged: \
                 acknowledge some, or take more entries at a time",
                self.name, state.cursor.partition
            )));
        }
        let from = std::mem::replace(&mut state.cursor, to);
        let count = entries.len() as u32;
        Ok(Some((Lent { id: 0, from, to, until_us: 0, times: 0, entries: count }, entries)))
    }

    /// Says that the entries of a delivery are worked on. `false`: it comes too late, somebody else
    /// has got them since, or the group was moved.
    ///
    /// # Errors
    /// `NotFound` when the group was deleted; whatever the store answers.
    pub async fn ack(&self, delivery: &Delivery) -> Result<bool> {
        self.change_alone(delivery, |state, at| {
            state.lent.remove(at);
        })
        .await
    }

    /// The same as part of a transaction, with what was done about the entries: it takes effect
    /// once, by whoever acknowledges in time. `false`: it comes too late, and the transaction is
    /// not to be committed.
    ///
    /// # Errors
    /// As [`Group::ack`].
    pub async fn ack_in(&self, transaction: &mut Transaction, delivery: &Delivery) -> Result<bool> {
        self.change(transaction, delivery, |state, at| {
            state.lent.remove(at);
        })
        .await
    }

    /// Gives a delivery back: somebody gets it at once. `false`: somebody has got it since, or the
    /// group was moved.
    ///
    /// # Errors
    /// As [`Group::ack`].
    pub async fn release(&self, delivery: &Delivery) -> Result<bool> {
        self.change_alone(delivery, |state, at| state.lent[at].until_us = 0).await
    }

    async fn change_alone(
        &self,
        delivery: &Delivery,
        change: impl Fn(&mut State, usize),
    ) -> Result<bool> {
        let mut tries = Tries::default();
        loop {
            let mut transaction = self.log.shared.store.begin();
            let changed = match self.change(&mut transaction, delivery, &change).await {
                Ok(true) => transaction.commit().await.map(|_| true),
                other => other,
            };
            match changed {
                Err(error) if tries.again(&error).await => {}
                changed => return changed,
            }
        }
    }

    async fn change(
        &self,
        transaction: &mut Transaction,
        delivery: &Delivery,
        change: impl FnOnce(&mut State, usize),
    ) -> Result<bool> {
        let keyspace = &self.log.shared.keyspace;
        let key = self.key(delivery.partition);
        let bytes = self.of_blob(transaction.get(keyspace, key).await)?;
        let mut state = State::read(&bytes, delivery.partition)?;
        let Some(at) = state.lent.iter().position(|lent| lent.id == delivery.id) else {
            return Ok(false);
        };
        change(&mut state, at);
        transaction.put(keyspace, key, state.write())?;
        Ok(true)
    }
}
