//! Appends of one entry that are under way at once share transactions.
//!
//! On a cluster an append waits for its trip through a chain of nodes, and each of them pays for
//! the transaction, not for its bytes. So of each partition few transactions of single entries are
//! under way from one handle. What comes while they are gathers, and goes as one batch when one of
//! them is back: the more appends at once, the more entries a transaction, as a log on one disk has
//! it with the syncs. Whoever is alone waits for nobody.
//!
//! Whoever waits drives what it waits for, its own batch and those before: so nobody is stuck when
//! the future of another is dropped, or kept without being polled.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared, select_all};
use parking_lot::Mutex;
use tyr::{Error, Result};

use crate::append::Appended;
use crate::frame::Batch;
use crate::log::Log;

/// Transactions of single entries under way in one partition, from one handle. One would do for
/// who counts CPU time, and let two who append wait for each other.
const UNDER_WAY_MAX: usize = 4;

/// Bytes that gather before others begin to.
const GATHERED_BYTES_MAX: usize = 256 << 10;

/// A longer entry goes alone.
const ENTRY_BYTES_MAX: usize = GATHERED_BYTES_MAX / 4;

/// What becomes of a batch, for all who wait for it.
type Flight = Shared<BoxFuture<'static, Result<Appended, Arc<Error>>>>;
type WeakFlight = WeakShared<BoxFuture<'static, Result<Appended, Arc<Error>>>>;

/// The entries for one partition: those under way, and those that gather.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    under_way: Mutex<Vec<WeakFlight>>,
    last: Mutex<Option<Gathered>>,
}

/// The entries that came last.
#[derive(Debug)]
struct Gathered {
    waiting: Waiting,
    /// While somebody waits for it.
    flight: WeakFlight,
}

/// A batch until it is under way.
type Waiting = Arc<Mutex<Option<Batch>>>;

impl Log {
    /// Appends an entry with others that are appended to this partition meanwhile.
    pub(crate) async fn append_gathered(&self, partition: u16, entry: &[u8]) -> Result<Appended> {
        if entry.len() > ENTRY_BYTES_MAX {
            return self.append_batch(&Batch::of([entry])?.in_partition(partition)).await;
        }
        let (flight, index) = self.gather(partition, entry)?;
        let appended = flight.await.map_err(|error| error.duplicate())?;
        Ok(appended.entry(index))
    }

    /// Adds an entry to those that wait, or begins with it; tells which of the batch it is.
    fn gather(&self, partition: u16, entry: &[u8]) -> Result<(Flight, u32)> {
        let mut last = self.tail_of(partition)?.gathering.last.lock();
        if let Some(joined) = last.as_ref().and_then(|gathered| gathered.join(entry)) {
            return Ok(joined);
        }
        let batch = Batch::of([entry])?.in_partition(partition);
        let waiting: Waiting = Arc::new(Mutex::new(Some(batch)));
        let flight = self.clone().fly(partition, Arc::clone(&waiting)).boxed().shared();
        *last = flight.downgrade().map(|flight| Gathered { waiting, flight });
        Ok((flight, 0))
    }

    /// Appends a batch when it is its turn.
    async fn fly(self, partition: u16, waiting: Waiting) -> Result<Appended, Arc<Error>> {
        loop {
            match self.begin(partition, &waiting)? {
                Turn::Now(flight) => return flight.await,
                Turn::After(flights) => drop(select_all(flights).await),
            }
        }
    }

    /// Begins to append a batch if few others are under way.
    fn begin(&self, partition: u16, waiting: &Waiting) -> Result<Turn> {
        let mut under_way = self.tail_of(partition)?.gathering.under_way.lock();
        let flights = under_way.iter().filter_map(WeakShared::upgrade);
        let flights: Vec<Flight> = flights.filter(|flight| flight.peek().is_none()).collect();
        if flights.len() >= UNDER_WAY_MAX {
            return Ok(Turn::After(flights));
        }
        let batch = waiting.lock().take().expect("a batch begins once");
        let log = self.clone();
        let flight = async move { log.append_batch(&batch).await.map_err(Arc::new) };
        let flight = flight.boxed().shared();
        *under_way = flights.iter().chain([&flight]).filter_map(Shared::downgrade).collect();
        Ok(Turn::Now(flight))
    }
}

/// Whether a batch is to be appended.
enum Turn {
    Now(Flight),
    /// When one of these has ended.
    After(Vec<Flight>),
}

impl Gathered {
    /// Adds an entry, if it waits and there is room.
    fn join(&self, entry: &[u8]) -> Option<(Flight, u32)> {
        let flight = self.flight.upgrade()?;
        let mut waiting = self.waiting.lock();
        let batch = waiting.as_mut()?;
        let index = batch.len() as u32;
        let is_room = batch.frame_len() + entry.len() <= GATHERED_BYTES_MAX;
        (is_room && batch.push(entry).is_ok()).then_some((flight, index))
    }
}
