//! Taking entries out for good: at most once.
//!
//! What is done at the cursor is one function of its state and of the entries behind it. It is run
//! here, as the body of a transaction that reads the cursor and writes it: two consumers that meet
//! at it run one after the other, the second again. A method that runs where the cursor lies can
//! take this place, with the same bytes.

use tyr::Result;

use super::Group;
use super::state::{CURSOR_AT, HEAD_LEN, State};
use crate::description::mark_bytes;
use crate::entry::Entry;
use crate::tries::Tries;

impl Group {
    /// Up to `max` entries that nobody else gets: of one partition, in their order. None when there
    /// are no more now. If who has got them dies, nobody has worked on them: see [`Group::take`].
    ///
    /// # Errors
    /// `NotFound` when what comes next was trimmed before it was given out ([`Group::seek`] goes
    /// on), or the group was deleted; `Conflict` when too many consumers are at one partition;
    /// whatever the store answers.
    pub async fn pop(&self, max: usize) -> Result<Vec<Entry>> {
        for partition in self.partitions_in_turn() {
            let entries = self.pop_of(partition, max).await?;
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
        Ok(Vec::new())
    }

    async fn pop_of(&self, partition: u16, max: usize) -> Result<Vec<Entry>> {
        let mut tries = Tries::default();
        loop {
            match self.pop_once(partition, max).await {
                Err(error) if tries.again(&error).await => {}
                popped => return popped,
            }
        }
    }

    async fn pop_once(&self, partition: u16, max: usize) -> Result<Vec<Entry>> {
        let (keyspace, key) = (&self.log.shared.keyspace, self.key(partition));
        let mut transaction = self.log.shared.store.begin();
        let head = transaction.read(keyspace, key, 0, HEAD_LEN as u64).await;
        let head = self.of_blob(head)?;
        let cursor = State::read(&head, partition)?.cursor;
        let (entries, behind) = self.read_from(cursor, max).await?;
        if behind != cursor {
            transaction.write(keyspace, key, CURSOR_AT, mark_bytes(behind).to_vec())?;
            transaction.commit().await?;
        }
        Ok(entries)
    }
}
