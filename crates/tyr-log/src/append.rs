//! Appending: a transaction of a condition and an append, in one trip.
//!
//! The condition is that the segment is not closed. It meets nobody but who closes it, so appends
//! do not hold each other up, and an append that comes too late changes nothing and goes on in the
//! next segment. Whoever notices that a segment is full closes it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tyr::{
    Committed, Error, ErrorKind, Number, OperationId, Result, Timestamp, Transaction, Transform,
};

use crate::frame::Batch;
use crate::log::{Log, Segment};
use crate::position::Position;
use crate::segment;
use crate::tries::Tries;

/// Where a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Of its first entry; the others have the indices behind.
    pub position: Position,
    /// How many entries.
    pub count: u32,
    /// The commit timestamp: entries of all partitions are in its order.
    pub stamp: Timestamp,
    /// Of a strict log: the number of the first entry; the others have the numbers behind. `None`
    /// in other logs, and where one transaction appended several batches to several partitions:
    /// then readers tell it.
    pub number: Option<u64>,
}

/// A batch that is in a transaction: where it is once that has committed.
#[derive(Debug)]
#[must_use = "tell it what came of the transaction, so that the log goes on without looking"]
pub struct Appending {
    log: Log,
    segment: Arc<Segment>,
    offset: OperationId,
    number: Option<OperationId>,
    count: u32,
    frame_len: u64,
}

impl Appended {
    /// Where one of its entries is.
    pub(crate) fn entry(self, index: u32) -> Self {
        let position = Position { index: self.position.index + index, ..self.position };
        let number = self.number.map(|first| first + u64::from(index));
        Self { position, count: 1, number, ..self }
    }
}

impl Log {
    /// Appends an entry; answers where it is. With several partitions each entry goes to the next
    /// one in turn. On a cluster, entries that one handle and its clones append at once share
    /// transactions, and so their stamps: see [`gather`](crate::gather). An entry may be appended
    /// although its future was dropped.
    ///
    /// # Errors
    /// `InvalidArgument` for more than 8 MiB, and when the log is sealed; `NotFound` when it was
    /// deleted; `TimedOut` when it is not known whether it was appended; whatever the store
    /// answers. Nothing is appended then, but after `TimedOut`.
    pub async fn append(&self, entry: impl AsRef<[u8]>) -> Result<Appended> {
        let partition = self.next_partition();
        if self.shared.is_gathering {
            return self.append_gathered(partition, entry.as_ref()).await;
        }
        self.append_batch(&Batch::of([entry])?.in_partition(partition)).await
    }

    /// Appends a batch: all of its entries or none, one after another.
    ///
    /// # Errors
    /// As [`Log::append`]; `InvalidArgument` for a batch of no entries.
    pub async fn append_batch(&self, batch: &Batch) -> Result<Appended> {
        let partition = batch.partition().unwrap_or_else(|| self.next_partition());
        let tail = self.tail_of(partition)?;
        let mut tries = Tries::default();
        loop {
            let mut transaction = self.shared.store.begin();
            let appending = self.add(&mut transaction, tail.current(), batch)?;
            let committed = match transaction.commit().await {
                // It takes effect once, however often it is asked for.
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    self.shared.store.outcome(&error).await
                }
                other => other,
            };
            match committed {
                Ok(committed) => return appending.finish(&committed).await,
                Err(error) if tries.again(&error).await => self.refresh(partition).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Appends a batch with a transaction, which may do anything else beside: all of it takes
    /// effect or nothing. Append last: what it needs to know of the log is as of now. The
    /// transaction may end as `Conflict`, when the log goes on in another segment meanwhile; in
    /// [`Tyr::transact`](tyr::Tyr::transact) it runs again by itself.
    ///
    /// Several batches that one transaction appends to a log have one stamp, and are in the order
    /// of partitions, and in each in the order in which they were appended.
    ///
    /// # Errors
    /// As [`Log::append_batch`].
    pub async fn append_in(
        &self,
        transaction: &mut Transaction,
        batch: &Batch,
    ) -> Result<Appending> {
        let partition = batch.partition().unwrap_or_else(|| self.next_partition());
        let tail = self.tail_of(partition)?;
        if tail.is_open_ended.swap(true, Ordering::AcqRel) {
            self.look(partition).await?;
        }
        self.add(transaction, tail.current(), batch)
    }

    /// Adds to a transaction what appends a batch to a segment.
    fn add(
        &self,
        transaction: &mut Transaction,
        segment: Arc<Segment>,
        batch: &Batch,
    ) -> Result<Appending> {
        let shared = &*self.shared;
        let frame = batch.frame(segment.guard)?;
        transaction.compare(&shared.keyspace, &segment.key, 0, segment::open_bytes())?;
        let offset = transaction.append(&shared.keyspace, &segment.key, frame)?;
        let count = batch.len() as u32;
        let add = Transform::add(Number::U64(u64::from(count)));
        let number = match &shared.number_key {
            Some(key) => Some(transaction.apply(&shared.keyspace, key, 0, add)?),
            None => None,
        };
        let frame_len = batch.frame_len() as u64;
        Ok(Appending { log: self.clone(), segment, offset, number, count, frame_len })
    }

    /// Looks where a partition takes entries now.
    ///
    /// # Errors
    /// `InvalidArgument` when the log is sealed.
    pub(crate) async fn refresh(&self, partition: u16) -> Result<()> {
        let description = self.describe().await?;
        if description.created != self.shared.created {
            return Err(Error::not_found(format!(
                "log {} was deleted, and another one of this name made: open it again",
                self.shared.name
            )));
        }
        if description.is_sealed {
            return Err(Error::invalid(format!(
                "log {} is sealed: it takes no more entries, and stays as it is",
                self.shared.name
            )));
        }
        let last = description.rows[usize::from(partition)].last;
        let segment = Segment::new(&self.shared.name, partition, last)?;
        self.tail_of(partition)?.advance(segment);
        Ok(())
    }

    /// The same, and goes on in another segment where the last one is full.
    async fn look(&self, partition: u16) -> Result<()> {
        self.refresh(partition).await?;
        let segment = self.tail_of(partition)?.current();
        let size = self.shared.keyspace.stat(&segment.key).await?.size;
        if size >= self.shared.segment_bytes { self.roll(&segment).await } else { Ok(()) }
    }
}

impl Appending {
    /// Where the batch is, of what its transaction answered; the log goes on in another segment if
    /// this one is full.
    ///
    /// # Errors
    /// `InvalidArgument` when that is the answer of another transaction.
    pub async fn finish(self, committed: &Committed) -> Result<Appended> {
        let shared = &*self.log.shared;
        let Segment { partition, number: segment, .. } = *self.segment;
        let offset = committed.offset(self.offset).ok_or_else(|| {
            Error::invalid("this is the answer of a transaction that appended nothing here")
        })?;
        let number = self.number.filter(|number| {
            // The counter was added to in the order of appends, and entries of one stamp are in
            // the order of partitions.
            let second = OperationId { operation: 1, ..*number };
            self.log.partitions() == 1 || committed.value(second).is_none()
        });
        let number = match number.map(|number| committed.value(number)) {
            Some(Some(Number::U64(behind))) => behind.checked_sub(u64::from(self.count)),
            Some(_) | None => None,
        };
        shared.tails[usize::from(partition)].is_open_ended.store(false, Ordering::Release);
        if offset + self.frame_len >= shared.segment_bytes {
            // The entries are there, whatever comes of this: who appends next notices, too.
            let _ = self.log.roll(&self.segment).await;
        }
        let position = Position { partition, segment, offset, index: 0 };
        Ok(Appended { position, count: self.count, stamp: committed.version(), number })
    }
}
