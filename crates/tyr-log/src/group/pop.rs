//! Taking entries out for good: at most once.
//!
//! A pop writes the cursor on the condition that nothing of the group's blob was written since the
//! cursor was read: of two consumers that meet there, the second runs again. What a pop has read
//! beyond its entries stays, with the version of the blob that it left, so a consumer that is alone
//! at a partition pops in one trip. Whether it still is alone the condition says; that there is
//! nothing to be had, only a look at the cursor.

use tyr::{Result, Timestamp};

use super::state::{CURSOR_AT, HEAD_LEN, State};
use super::{Group, WINDOW};
use crate::description::mark_bytes;
use crate::entry::Entry;
use crate::lane::Lane;
use crate::position::Position;
use crate::tries::again;

/// Bytes of a partition that are asked for at once: as much stays read of each.
const WINDOW_MAX: u64 = 64 << 10;

/// Where a handle has left a partition.
#[derive(Debug)]
pub(super) struct Left {
    /// Of the group's blob.
    version: Timestamp,
    cursor: Position,
    /// At the cursor, with what was read behind it.
    lane: Lane,
    /// Whether nobody else had been there when it was looked last.
    is_alone: bool,
}

impl Group {
    /// Up to `max` entries that nobody else gets: of one partition, in their order. None when there
    /// are no more now. If who has got them dies, nobody has worked on them: see [`Group::take`].
    /// Entries that were trimmed are given out where they had been read before.
    ///
    /// # Errors
    /// `NotFound` when what comes next was trimmed before it was read ([`Group::seek`] goes on), or
    /// the group was deleted; `Conflict` when too many consumers are at one partition; whatever the
    /// store answers.
    pub async fn pop(&self, max: usize) -> Result<Vec<Entry>> {
        for partition in self.partitions_in_turn() {
            let entries = again(|| self.pop_once(partition, max)).await?;
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
        Ok(Vec::new())
    }

    async fn pop_once(&self, partition: u16, max: usize) -> Result<Vec<Entry>> {
        let left = &self.left[usize::from(partition)];
        // Nobody else has it until it is put back: others who use this handle look.
        let known = left.lock().take();
        let (mut here, mut is_looked) = match known {
            Some(known) if known.is_alone => (known, false),
            known => (self.look(partition, known).await?, true),
        };
        let entries = loop {
            match self.read_on(&mut here.lane, max).await {
                Ok(entries) if is_looked || !entries.is_empty() => break entries,
                Ok(none) => {
                    here = self.look(partition, Some(here)).await?;
                    if here.is_alone {
                        break none;
                    }
                }
                Err(error) => {
                    // What is next here was trimmed: others may have left this place behind.
                    let now = self.look(partition, None).await?;
                    if now.version == here.version {
                        return Err(error);
                    }
                    here = now;
                }
            }
            is_looked = true;
        };
        let behind = here.lane.position();
        if behind != here.cursor {
            let (keyspace, key) = (&self.log.shared.keyspace, self.key(partition));
            let mut transaction = self.log.shared.store.begin();
            transaction.expect_version(keyspace, key, here.version)?;
            transaction.write(keyspace, key, CURSOR_AT, mark_bytes(behind).to_vec())?;
            here.version = transaction.commit().await?.version();
            here.cursor = behind;
        }
        let mut left = left.lock();
        if left.as_ref().is_none_or(|left| left.version < here.version) {
            *left = Some(here);
        }
        Ok(entries)
    }

    /// Where the cursor is: as this handle has left it, or not.
    async fn look(&self, partition: u16, known: Option<Left>) -> Result<Left> {
        let (keyspace, key) = (&self.log.shared.keyspace, self.key(partition));
        let (stat, head) = self.of_blob(keyspace.read_with_stat(key, 0, HEAD_LEN as u64).await)?;
        if let Some(known) = known
            && known.version == stat.version
        {
            return Ok(Left { is_alone: true, ..known });
        }
        let cursor = State::read(&head, partition)?.cursor;
        let lane = Lane::new(cursor, WINDOW).with_window_max(WINDOW_MAX);
        Ok(Left { version: stat.version, cursor, lane, is_alone: false })
    }
}
