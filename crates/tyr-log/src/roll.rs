//! Where a partition goes on: a segment is closed and the next one made, in one transaction.
//!
//! So there is never a closed segment without the one behind it, whenever who does it dies. Of all
//! who notice that a segment is full one closes it: the others meet it closed. To seal a log is to
//! close the last segments of all partitions at once.

use std::sync::atomic::Ordering;

use tyr::{ErrorKind, Result};

use crate::description::{SEALED_AT, last_at};
use crate::log::{Log, Segment};
use crate::segment::{self, CLOSED_AT, Closed};
use crate::tries::Tries;

impl Log {
    /// Closes a segment and makes the next one, unless somebody has done or does so.
    pub(crate) async fn roll(&self, full: &Segment) -> Result<()> {
        let tail = self.tail_of(full.partition)?;
        if tail.current().number != full.number || tail.is_rolling.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let rolled = self.close_and_make(full).await;
        tail.is_rolling.store(false, Ordering::Release);
        match rolled {
            // What else is due is no affair of who appends.
            Ok(()) => self.keep_up().await,
            Err(error) if error.kind() == ErrorKind::Conflict => self.refresh(full.partition).await,
            Err(error) => Err(error),
        }
    }

    async fn close_and_make(&self, full: &Segment) -> Result<()> {
        let shared = &*self.shared;
        let next = Segment::new(&shared.name, full.partition, full.number + 1)?;
        let head = segment::new_head(&shared.name, next.partition, next.number)?;
        let mut transaction = shared.store.begin();
        // A log that is being deleted is not to be described again by this.
        transaction.expect_present(&shared.keyspace, &shared.key)?;
        transaction.compare(&shared.keyspace, &full.key, 0, segment::open_bytes())?;
        let closed = Closed::Rolled.word().to_vec();
        transaction.write(&shared.keyspace, &full.key, CLOSED_AT, closed)?;
        transaction.put(&shared.keyspace, &next.key, head)?;
        let last = next.number.to_le_bytes().to_vec();
        transaction.write(&shared.keyspace, &shared.key, last_at(next.partition), last)?;
        transaction.commit().await?;
        self.tail_of(full.partition)?.advance(next);
        Ok(())
    }

    /// Makes a checkpoint, and lets go of what the retention says.
    async fn keep_up(&self) -> Result<()> {
        self.checkpoint().await?;
        self.apply_retention(|_| Ok(())).await.map(drop)
    }

    /// Seals the log: it takes no more entries, in any partition, from one moment on. What it has
    /// can be read. A sealed log stays sealed, and to seal it again does nothing.
    ///
    /// # Errors
    /// `NotFound` when it was deleted; whatever the store answers.
    pub async fn seal(&self) -> Result<()> {
        let shared = &*self.shared;
        let mut tries = Tries::default();
        loop {
            let description = self.describe().await?;
            if description.is_sealed {
                return Ok(());
            }
            let mut transaction = shared.store.begin();
            transaction.expect_present(&shared.keyspace, &shared.key)?;
            for (row, partition) in description.rows.iter().zip(0..) {
                let last = Segment::new(&shared.name, partition, row.last)?;
                transaction.compare(&shared.keyspace, &last.key, 0, segment::open_bytes())?;
                let closed = Closed::Sealed.word().to_vec();
                transaction.write(&shared.keyspace, &last.key, CLOSED_AT, closed)?;
            }
            let is_sealed = 1_u64.to_le_bytes().to_vec();
            transaction.write(&shared.keyspace, &shared.key, SEALED_AT, is_sealed)?;
            match transaction.commit().await {
                Err(error) if tries.again(&error).await => {}
                Err(error) => {
                    return Err(error.context(format!("log {} is not sealed", shared.name)));
                }
                Ok(_) => return Ok(()),
            }
        }
    }
}
