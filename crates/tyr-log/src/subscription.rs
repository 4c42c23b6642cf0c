//! Following a log: entries as they are appended.

use tyr::Result;

use crate::arrivals::Arrivals;
use crate::entry::Entry;
use crate::log::Log;
use crate::position::Cut;
use crate::reader::Reader;
use crate::start::Start;

/// Follows a log; see [`Log::subscribe`].
#[derive(Debug)]
pub struct Subscription {
    reader: Reader,
    arrivals: Arrivals,
}

impl Log {
    /// Follows the log from some place on: what there is, and then what is appended, in the order
    /// of [`Log::reader`].
    ///
    /// # Errors
    /// As [`Log::reader`].
    pub async fn subscribe(&self, from: &Start) -> Result<Subscription> {
        let reader = self.reader(from).await?;
        Ok(Subscription { reader, arrivals: self.arrivals() })
    }
}

impl Subscription {
    /// The next entries, up to `max` and at least one; waits until there are some. `None` when the
    /// log is sealed and all of it was handed out. Dropping the future loses nothing.
    ///
    /// # Errors
    /// As [`Reader::next`]. Asked again it goes on where it was.
    pub async fn next(&mut self, max: usize) -> Result<Option<Vec<Entry>>> {
        loop {
            let entries = self.reader.next(max.max(1)).await?;
            if !entries.is_empty() {
                return Ok(Some(entries));
            }
            if self.reader.is_ended() {
                return Ok(None);
            }
            // What comes next comes where nothing was read yet.
            let wanted: Vec<(u16, u64)> =
                self.reader.watched().map(|it| (it.partition, it.segment)).collect();
            self.arrivals.wait_for(&wanted).await?;
        }
    }

    /// Where it is: behind all entries that it has handed out, and before all others.
    pub fn cut(&self) -> Cut {
        self.reader.cut()
    }
}
