//! Entries and what is done about them in one transaction: exactly once.

use tyr::{Result, Transaction};

use super::Group;
use super::state::{CURSOR_AT, HEAD_LEN, State};
use crate::description::mark_bytes;
use crate::entry::Entry;
use crate::position::Position;
use crate::tries::again;

/// Entries that the group is at: they are given out when what is done about them commits.
#[derive(Debug)]
#[must_use = "the group stays where it is until this is part of a transaction"]
pub struct Fetched {
    /// The entries, of one partition, in their order; none when there are no more now.
    pub entries: Vec<Entry>,
    group: Group,
    partition: u16,
    from: Position,
    to: Position,
}

impl Group {
    /// Up to `max` entries of one partition, without moving the group: others may get the same.
    /// [`Fetched::commit_in`] moves it, with what is done about them: of all who have fetched the
    /// same one commits.
    ///
    /// # Errors
    /// As [`Group::pop`].
    pub async fn fetch(&self, max: usize) -> Result<Fetched> {
        let mut none = None;
        for partition in self.partitions_in_turn() {
            let fetched = again(|| self.fetch_once(partition, max)).await?;
            if !fetched.entries.is_empty() {
                return Ok(fetched);
            }
            none = none.or(Some(fetched));
        }
        Ok(none.expect("a log has a partition"))
    }

    async fn fetch_once(&self, partition: u16, max: usize) -> Result<Fetched> {
        let (shared, key) = (&*self.log.shared, self.key(partition));
        let head = self.of_blob(shared.keyspace.read(key, 0, HEAD_LEN as u64).await)?;
        let from = State::read(&head, partition)?.cursor;
        let read = self.read_from(from, max).await;
        let (entries, to) = self.of_entries(partition, &head, read).await?;
        Ok(Fetched { entries, group: self.clone(), partition, from, to })
    }
}

impl Fetched {
    /// Makes the transaction move the group behind these entries. It commits only if the group is
    /// where it was, else it ends as `Conflict` and changes nothing: somebody else has worked on
    /// them. Then fetch again; a body of [`Tyr::transact`](tyr::Tyr::transact) fetches in itself.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits of a transaction.
    pub fn commit_in(&self, transaction: &mut Transaction) -> Result<()> {
        let keyspace = &self.group.log.shared.keyspace;
        let key = self.group.key(self.partition);
        let (from, to) = (mark_bytes(self.from).to_vec(), mark_bytes(self.to).to_vec());
        transaction.compare(keyspace, key, CURSOR_AT, from)?;
        transaction.write(keyspace, key, CURSOR_AT, to)?;
        Ok(())
    }
}
