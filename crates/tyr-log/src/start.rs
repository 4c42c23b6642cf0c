//! Where reading begins: at an end, a place, a number or a time.
//!
//! A number and a time are looked up in checkpoints, and found by reading on from the last one
//! before: so they cost a listing of the checkpoints and up to a segment of each partition.

use tyr::{Error, Result};

use crate::entry::Entry;
use crate::log::Log;
use crate::position::{Cut, Position};
use crate::reader::Reader;

/// Entries that are passed by at a time.
const STEP: usize = 4_096;

/// Where a reader or a group begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the first entry that was not trimmed.
    Oldest,
    /// Behind all that there is.
    Newest,
    /// At a place, or the end.
    At(Cut),
    /// At the entry of this number, of a strict log.
    Number(u64),
    /// At the first entry that was appended at or after this time, in microseconds since 1970, by
    /// the store's clock.
    Time(u64),
}

impl Log {
    /// Reads forward from some place; all partitions as one. Entries of one partition come in the
    /// order in which they were appended; those of several in the order of their stamps, which all
    /// readers see, and which in a cluster may differ from that of their acknowledgements where the
    /// log is not strict.
    ///
    /// # Errors
    /// `NotFound` when what is there was trimmed, or nothing was written there yet;
    /// `InvalidArgument` where no entry begins, for a cut of another number of partitions, and for
    /// a number in a log that is not strict; whatever the store answers.
    pub async fn reader(&self, from: &Start) -> Result<Reader> {
        match from {
            Start::Oldest => Ok(Reader::new(self, &self.oldest().await?, 0)),
            Start::Newest => Ok(Reader::new(self, &self.tail().await?, 0)),
            Start::At(cut) => {
                self.check_cut(cut).await?;
                Ok(Reader::new(self, cut, 0))
            }
            Start::Time(time_us) => {
                let (oldest, mut from) = (self.oldest().await?, None);
                self.each_checkpoint(|_, found| {
                    let Some(found) = found else { return true };
                    let is_before = found.at.clock < *time_us;
                    from = if is_before { Some(found.cut) } else { from.take() };
                    is_before
                })
                .await?;
                let from = from.filter(|cut| is_behind(cut, &oldest)).unwrap_or(oldest);
                Ok(Reader::new(self, &from, *time_us))
            }
            Start::Number(number) => self.reader_at_number(*number).await,
        }
    }

    /// Reads one entry.
    ///
    /// # Errors
    /// As [`Log::reader`].
    pub async fn read(&self, position: Position) -> Result<Entry> {
        self.tail_of(position.partition)?;
        let mut lane = self.lane(position);
        loop {
            self.read_lane(&mut lane).await?;
            match lane.pop() {
                Some(entry) if entry.position == position => return Ok(entry),
                None if lane.unread() == position => {}
                Some(_) | None => return Err(self.explain(position).await),
            }
            // Read whole, and there was none: it is the end.
            if lane.is_at_end() {
                return Err(self.explain(position).await);
            }
        }
    }

    /// Reads the entries from one cut up to before another, but at most `max`.
    ///
    /// # Errors
    /// As [`Log::reader`].
    pub async fn read_range(&self, from: &Cut, to: &Cut, max: usize) -> Result<Vec<Entry>> {
        self.check_cut(to).await?;
        let mut reader = self.reader(&Start::At(from.clone())).await?;
        let mut entries = Vec::new();
        while entries.len() < max {
            let more = reader.next(max - entries.len()).await?;
            if more.is_empty() || is_behind(&reader.cut(), to) {
                entries.extend(more.into_iter().filter(|entry| is_before(entry.position, to)));
                break;
            }
            entries.extend(more.into_iter().filter(|entry| is_before(entry.position, to)));
        }
        Ok(entries)
    }

    /// What is before was trimmed.
    pub(crate) async fn oldest(&self) -> Result<Cut> {
        let description = self.describe().await?;
        let marks = description.rows.iter().map(|row| row.mark).collect();
        Cut::new(marks, description.is_strict.then_some(description.marked_number))
    }

    async fn reader_at_number(&self, number: u64) -> Result<Reader> {
        let name = &self.shared.name;
        let oldest = self.oldest().await?;
        let (Some(first), Some(end)) = (oldest.number(), self.tail().await?.number()) else {
            return Err(Error::invalid(format!(
                "entries of log {name} have no numbers, as it is not strict: give a position"
            )));
        };
        if number < first {
            return Err(Error::not_found(format!(
                "entry {number} of log {name} was trimmed: the first that is left is {first}"
            )));
        }
        if number > end {
            return Err(Error::not_found(format!(
                "log {name} has no entry {number} yet: the next will be {end}"
            )));
        }
        let mut from = oldest;
        self.each_checkpoint(|_, found| {
            let found = found.map(|found| found.cut);
            let Some(cut) = found.filter(|cut| is_behind(cut, &from)) else { return true };
            let is_before = cut.number().is_some_and(|at| at <= number);
            from = if is_before { cut } else { from.clone() };
            is_before
        })
        .await?;
        let mut reader = Reader::new(self, &from, 0);
        while let Some(left) = reader.cut().number().and_then(|at| number.checked_sub(at))
            && left > 0
        {
            let step = usize::try_from(left).unwrap_or(STEP).min(STEP);
            if reader.next(step).await?.is_empty() {
                break;
            }
        }
        Ok(reader)
    }

    /// Refuses a cut that is not one of this log, or not where entries begin or will.
    pub(crate) async fn check_cut(&self, cut: &Cut) -> Result<()> {
        self.check_partitions(cut)?;
        let oldest = self.oldest().await?;
        for (position, mark) in cut.positions().iter().zip(oldest.positions()) {
            if position < mark {
                return Err(self.explain(*position).await);
            }
            if position != mark {
                self.check_position(*position).await?;
            }
        }
        Ok(())
    }

    /// As [`Self::check_cut`], but lets pass what was trimmed, also what is trimmed meanwhile.
    pub(crate) async fn check_cut_or_trimmed(&self, cut: &Cut) -> Result<()> {
        self.check_partitions(cut)?;
        let oldest = self.oldest().await?;
        for (n, position) in cut.positions().iter().enumerate() {
            if *position > oldest.positions()[n]
                && let Err(error) = self.check_position(*position).await
                && *position > self.oldest().await?.positions()[n]
            {
                return Err(error);
            }
        }
        Ok(())
    }

    fn check_partitions(&self, cut: &Cut) -> Result<()> {
        let (given, partitions) = (cut.positions().len(), self.partitions());
        if given != usize::from(partitions) {
            return Err(Error::invalid(format!(
                "log {} has {partitions} partitions, and this names {given}: give one position for \
                 each, with commas between them",
                self.shared.name
            )));
        }
        Ok(())
    }

    /// Refuses a position where no entry begins, and that is not an end of a segment.
    async fn check_position(&self, position: Position) -> Result<()> {
        let mut lane = self.lane(position);
        self.read_lane(&mut lane).await?;
        if lane.position() == position && lane.next_stamp().is_some() {
            return Ok(());
        }
        let key =
            crate::layout::segment_key(&self.shared.name, position.partition, position.segment)?;
        let size = self.shared.keyspace.stat(&key).await?.size;
        match position.index == 0 && position.offset == size {
            true => Ok(()),
            // Somebody may have appended there meanwhile.
            false if position.offset < size => self.read(position).await.map(drop),
            false => Err(self.explain(position).await),
        }
    }

    /// A lane that reads one entry.
    fn lane(&self, position: Position) -> crate::lane::Lane {
        /// Most entries are shorter; of a longer one the length is known then.
        const WINDOW: u64 = 4 << 10;
        crate::lane::Lane::new(position, WINDOW)
    }
}

/// Whether a cut has all that another has.
pub(crate) fn is_behind(cut: &Cut, other: &Cut) -> bool {
    cut.positions().iter().zip(other.positions()).all(|(position, other)| position >= other)
}

fn is_before(position: Position, cut: &Cut) -> bool {
    cut.positions().get(usize::from(position.partition)).is_some_and(|end| position < *end)
}
