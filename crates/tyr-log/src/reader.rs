//! Reading: all partitions as one, in the order of stamps.
//!
//! All partitions of which nothing is left are read at one moment. Of those that had no more then,
//! everything that will come has a later stamp than all that was read; of the others, than the
//! last that was read of them. What is not behind any of these is the next stretch of the one
//! order, and is handed out.

use tyr::{Error, Result, Timestamp};

use crate::entry::Entry;
use crate::lane::{Lane, Reached};
use crate::log::Log;
use crate::position::{Cut, Position};

/// Bytes that a reader asks all partitions for together at first.
const WINDOW: u64 = 256 << 10;

/// The fewest bytes that it asks one partition for at first.
const WINDOW_MIN: u64 = 16 << 10;

/// Reads a log forward from some place; see [`Log::reader`].
#[derive(Debug)]
pub struct Reader {
    log: Log,
    lanes: Vec<Lane>,
    number: Option<u64>,
    /// Entries before this moment are passed by.
    from_us: u64,
}

impl Reader {
    pub(crate) fn new(log: &Log, from: &Cut, from_us: u64) -> Self {
        let window = (WINDOW / from.positions().len() as u64).max(WINDOW_MIN);
        let lanes = from.positions().iter().map(|position| Lane::new(*position, window)).collect();
        Self { log: log.clone(), lanes, number: from.number(), from_us }
    }

    /// Where it is: behind all entries that it has handed out, and before all others.
    pub fn cut(&self) -> Cut {
        let positions = self.lanes.iter().map(Lane::position).collect();
        Cut::new(positions, self.number).expect("there is a lane for each partition, in order")
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Where partitions are to be watched: what comes next comes there. Of those that have ended
    /// nothing comes.
    pub(crate) fn watched(&self) -> impl Iterator<Item = Position> {
        self.lanes.iter().filter(|lane| !lane.is_ended()).map(Lane::unread)
    }

    /// Whether the log is sealed, and all of it was handed out.
    pub fn is_ended(&self) -> bool {
        self.lanes.iter().all(|lane| lane.is_ended() && lane.next_stamp().is_none())
    }

    /// The next entries in the one order, up to `max`; none when there are no more now. What was
    /// acknowledged before it was asked is among them, or among those that follow at once.
    ///
    /// # Errors
    /// `NotFound` when what comes next was trimmed meanwhile, or the log was deleted;
    /// `InvalidArgument` when the reader began where no entry does; whatever the store answers.
    /// Asked again it goes on where it was.
    pub async fn next(&mut self, max: usize) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        while entries.is_empty() && max > 0 {
            let is_end = self.read().await?;
            let bound = self.bound(&is_end);
            while entries.len() < max
                && let Some(entry) = self.pop_before(bound)
            {
                entries.extend(entry);
            }
            let is_over = |(is_end, lane): (&bool, &Lane)| {
                (*is_end || lane.is_ended()) && lane.next_stamp().is_none()
            };
            if is_end.iter().zip(&self.lanes).all(is_over) {
                break;
            }
        }
        Ok(entries)
    }

    /// Reads all lanes of which nothing is left, at one moment; which of them had no more then.
    async fn read(&mut self) -> Result<Vec<bool>> {
        let shared = &*self.log.shared;
        let wanting: Vec<usize> =
            (0..self.lanes.len()).filter(|lane| self.lanes[*lane].is_wanting()).collect();
        let mut is_end = vec![false; self.lanes.len()];
        let mut requests = Vec::with_capacity(2 * wanting.len());
        for lane in &wanting {
            requests.extend(self.lanes[*lane].requests(&shared.name, &shared.keyspace)?);
        }
        if requests.is_empty() {
            return Ok(is_end);
        }
        let mut answers = shared.store.read_many(&requests).await?.into_iter();
        for lane in wanting {
            let (head, frames) = (answers.next().flatten(), answers.next().flatten());
            let at = self.lanes[lane].unread();
            match self.lanes[lane].take(&shared.name, head, frames)? {
                Reached::End => is_end[lane] = true,
                Reached::More => {}
                Reached::NoSegment | Reached::NoEntry => return Err(self.log.explain(at).await),
            }
        }
        Ok(is_end)
    }

    /// The first stamp and partition that something may still come before; `None` when nothing
    /// will: all that was read may go.
    fn bound(&self, is_end: &[bool]) -> Option<(Timestamp, usize)> {
        let lanes = self.lanes.iter().zip(is_end).enumerate();
        let open = lanes.filter(|(_, (lane, is_end))| !**is_end && !lane.is_ended());
        // One of which nothing was read yet holds all others back.
        let last = |lane: &Lane| lane.last_stamp().unwrap_or(Timestamp::ZERO);
        open.map(|(partition, (lane, _))| (last(lane), partition)).min()
    }

    /// The next entry that is not behind the bound: `Some(None)` is one that is passed by.
    fn pop_before(&mut self, bound: Option<(Timestamp, usize)>) -> Option<Option<Entry>> {
        let stamps =
            self.lanes.iter().zip(0..).filter_map(|(lane, n)| Some((lane.next_stamp()?, n)));
        let (stamp, partition) = stamps.min()?;
        if bound.is_some_and(|bound| (stamp, partition) > bound) {
            return None;
        }
        let mut entry = self.lanes[partition].pop()?;
        entry.number = self.number;
        self.number = self.number.map(|number| number + 1);
        Some((stamp.clock >= self.from_us).then_some(entry))
    }
}

impl Log {
    /// Reads one lane on.
    pub(crate) async fn read_lane(&self, lane: &mut Lane) -> Result<Reached> {
        let at = lane.unread();
        match self.look_into(lane).await? {
            Reached::NoSegment | Reached::NoEntry => Err(self.explain(at).await),
            reached @ (Reached::End | Reached::More) => Ok(reached),
        }
    }

    /// Reads one lane on, whatever comes of it.
    async fn look_into(&self, lane: &mut Lane) -> Result<Reached> {
        let shared = &*self.shared;
        let requests = lane.requests(&shared.name, &shared.keyspace)?;
        let mut answers = shared.store.read_many(&requests).await?.into_iter();
        let (head, frames) = (answers.next().flatten(), answers.next().flatten());
        lane.take(&shared.name, head, frames)
    }

    /// Why there is no entry to be read at this position.
    pub(crate) async fn explain(&self, position: Position) -> Error {
        self.find_reason(position).await.unwrap_or_else(|error| error)
    }

    async fn find_reason(&self, position: Position) -> Result<Error> {
        let name = &self.shared.name;
        let description = self.describe().await?;
        let row = &description.rows[usize::from(position.partition)];
        if position < row.mark {
            return Ok(Error::not_found(format!(
                "what was at {position} of log {name} was trimmed: the partition begins at {}",
                row.mark
            )));
        }
        let end = self.tail().await?.positions()[usize::from(position.partition)];
        if position >= end {
            return Ok(Error::not_found(format!(
                "nothing has been written at {position} of log {name}: the partition ends at {end}"
            )));
        }
        // Somebody may have appended there since it was found empty.
        if self.is_written(position).await? {
            return Ok(Error::not_found(format!(
                "nothing has been written at {position} of log {name} until just now: read again"
            )));
        }
        Ok(Error::invalid(format!(
            "{position} of log {name} is not where an entry begins: give a position that `append` \
             or a reader told"
        )))
    }

    /// Whether an entry begins at this position.
    async fn is_written(&self, position: Position) -> Result<bool> {
        let mut lane = Lane::new(position, WINDOW_MIN);
        loop {
            let reached = self.look_into(&mut lane).await?;
            if lane.next_stamp().is_some() {
                return Ok(lane.position() == position);
            }
            if reached != Reached::More || lane.unread() != position {
                return Ok(false);
            }
        }
    }
}
