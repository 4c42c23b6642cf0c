//! Reading: positions, one after the other, up to the tail. Nobody is waited for but who has got a
//! position and has not written it, and that not for long.

use std::time::{Duration, Instant};

use blocking::unblock;
use futures_util::future::{join_all, try_join_all};
use tyr::{Bytes, Error, ErrorKind, Result};
use tyr_object::Failure;

use crate::class::{Fields, Refusal};
use crate::log::Log;
use crate::recovery::next_of;
use crate::view::Stripe;

/// Positions that are read side by side.
const AHEAD_MAX: u64 = 32;

/// How often something is tried while views change.
const TRIES_MAX: u32 = 64;

/// How often a position is looked at again that is not written yet.
const LOOK: Duration = Duration::from_millis(5);

/// An entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its position.
    pub position: u64,
    /// What was appended.
    pub data: Bytes,
}

/// What is at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// An entry.
    Data(Bytes),
    /// Nothing yet.
    Unwritten,
    /// Nothing, for good: it was filled, or trimmed.
    Invalid,
}

impl Log {
    /// The position behind the highest one that is written: every entry whose append was
    /// acknowledged before is below it. The sequencer is not asked.
    ///
    /// # Errors
    /// `NotFound` when the log was deleted; whatever the store answers.
    pub async fn tail(&self) -> Result<u64> {
        let mut missing = Ok(());
        for _ in 0..TRIES_MAX {
            let view = self.refresh().await?;
            let mut tail = view.begin;
            for stripe in view.stripes_backwards() {
                match self.next_in(view.epoch, stripe).await {
                    Ok(0) => {}
                    Ok(next) => {
                        tail = tail.max(next);
                        missing = Ok(());
                        break;
                    }
                    Err(failure) if is_to_be_tried_again(&failure) => {
                        missing = Err(failure);
                        break;
                    }
                    Err(failure) => return Err(failure.into()),
                }
            }
            if missing.is_ok() {
                return Ok(tail);
            }
        }
        missing.map(|()| 0).map_err(Error::from)
    }

    /// The highest position that is written in a stripe, and one; 0 for none.
    async fn next_in(&self, epoch: u64, stripe: Stripe) -> Result<u64, Failure> {
        let of = async |column| {
            let key = self.client.object(stripe, column)?;
            let answer = self.call(&key, "max_position", Fields::of([epoch])).await?;
            Ok::<u64, Failure>(next_of(&answer)?)
        };
        let all = try_join_all((0..stripe.width).map(of)).await?;
        Ok(all.into_iter().max().unwrap_or_default())
    }

    /// What is at a position.
    ///
    /// # Errors
    /// `NotFound` when the log was deleted; whatever the store answers.
    pub async fn slot(&self, position: u64) -> Result<Slot> {
        let mut failed = None;
        for _ in 0..TRIES_MAX {
            if self.client.place_of(position)?.is_none() {
                self.refresh().await?;
            }
            let Some(place) = self.client.place_of(position)? else {
                let is_trimmed = position < self.client.view().begin;
                return Ok(if is_trimmed { Slot::Invalid } else { Slot::Unwritten });
            };
            if position < place.view.begin {
                return Ok(Slot::Invalid);
            }
            let input = Fields::of([place.view.epoch, position]);
            let failure = match self.call(&place.key, "read", input).await {
                Ok(data) => return Ok(Slot::Data(data)),
                Err(failure) => failure,
            };
            match Refusal::of(&failure) {
                Some(Refusal::NotWritten) => return Ok(Slot::Unwritten),
                Some(Refusal::Invalid) => return Ok(Slot::Invalid),
                _ if is_to_be_tried_again(&failure) => drop(self.refresh().await?),
                _ => return Err(failure.into()),
            }
            failed = Some(failure);
        }
        Err(failed.map_or_else(|| Error::conflict("try again"), Error::from))
    }

    /// The data at a position, if it has some.
    pub(crate) async fn find(&self, position: u64) -> Result<Option<Bytes>> {
        Ok(match self.slot(position).await? {
            Slot::Data(data) => Some(data),
            Slot::Unwritten | Slot::Invalid => None,
        })
    }

    /// The entry at a position.
    ///
    /// # Errors
    /// `NotFound` when there is none, in words: it is not written yet, or was filled or trimmed.
    pub async fn read(&self, position: u64) -> Result<Entry> {
        let missing = match self.slot(position).await? {
            Slot::Data(data) => return Ok(Entry { position, data }),
            Slot::Unwritten => "is not written yet",
            Slot::Invalid => "has no entry: it was filled or trimmed",
        };
        let text = format!("position {position} of log {} {missing}", self.name());
        Err(Error::new(ErrorKind::NotFound, text))
    }

    /// The entries from one position up to another. Holes in between are filled as
    /// [`Reader::next`] does.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub async fn read_range(&self, from: u64, to: u64) -> Result<Vec<Entry>> {
        let mut reader = self.reader(from);
        let mut entries = Vec::new();
        while reader.position() < to {
            let before = reader.position();
            entries.extend(reader.next_before(to).await?);
            if reader.position() == before {
                break;
            }
        }
        Ok(entries)
    }

    /// Makes a position that nobody wrote one that nobody will; answers whether it is so now: false
    /// when it has an entry. Whoever was given it appends at another one.
    ///
    /// # Errors
    /// `InvalidArgument` for a position that the log is not long enough for; `NotFound` when the
    /// log was deleted; whatever the store answers.
    pub async fn fill(&self, position: u64) -> Result<bool> {
        self.settle("fill", position).await
    }

    /// Forgets the entry at a position, or makes sure that there never is one. Its space is given
    /// back with its stripe, see [`Log::trim`].
    ///
    /// # Errors
    /// As [`Log::fill`].
    pub async fn trim_one(&self, position: u64) -> Result<()> {
        self.settle("trim", position).await.map(drop)
    }

    async fn settle(&self, method: &str, position: u64) -> Result<bool> {
        let mut failed = None;
        for _ in 0..TRIES_MAX {
            if self.client.place_of(position)?.is_none() {
                self.refresh().await?;
            }
            let begin = self.client.view().begin;
            let Some(place) = self.client.place_of(position)?.filter(|_| position >= begin) else {
                if position < begin {
                    return Ok(true);
                }
                return Err(Error::invalid(format!(
                    "log {} has no object for position {position} yet: nothing to {method} there",
                    self.name()
                )));
            };
            let mut numbers = Fields::of([place.view.epoch, position]);
            if method == "trim" {
                numbers = numbers.and(&1_u64.to_le_bytes());
            }
            let failure = match self.call(&place.key, method, numbers).await {
                Ok(_) => return Ok(true),
                Err(failure) => failure,
            };
            match Refusal::of(&failure) {
                Some(Refusal::ReadOnly) => return Ok(false),
                _ if is_to_be_tried_again(&failure) => drop(self.refresh().await?),
                _ => return Err(failure.into()),
            }
            failed = Some(failure);
        }
        Err(failed.map_or_else(|| Error::conflict("try again"), Error::from))
    }

    /// The last entries, `count` of them or all there are, and a reader behind them.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub async fn last(&self, count: usize) -> Result<(Vec<Entry>, Reader)> {
        let (tail, begin) = (self.tail().await?, self.client.view().begin);
        let mut back = count as u64;
        loop {
            let from = tail.saturating_sub(back).max(begin);
            let mut entries = self.read_range(from, tail).await?;
            if entries.len() >= count || from == begin {
                entries.drain(..entries.len().saturating_sub(count));
                return Ok((entries, self.reader(tail)));
            }
            // There were holes.
            back = back.saturating_mul(2);
        }
    }

    /// Reads from a position on.
    pub fn reader(&self, from: u64) -> Reader {
        Reader { log: self.clone(), position: from, tail: 0, hole: None }
    }
}

/// Whether a newer view is to be looked for.
fn is_of_older_view(failure: &Failure) -> bool {
    matches!(Refusal::of(failure), Some(Refusal::Stale | Refusal::NoObject))
}

/// Or others write to the object again and again.
fn is_to_be_tried_again(failure: &Failure) -> bool {
    is_of_older_view(failure) || failure.kind().is_retryable()
}

/// Reads a log; see [`Log::reader`].
#[derive(Clone, Debug)]
pub struct Reader {
    log: Log,
    position: u64,
    /// As it was last looked at: what is before it is written, or a hole.
    tail: u64,
    /// The hole that it waits at, and since when.
    hole: Option<(u64, Instant)>,
}

impl Reader {
    /// The position that it reads next.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next entries, up to 32; none when there is nothing more now. What was trimmed or filled
    /// is passed by. A position that was given to somebody who does not write it is waited for as
    /// long as [`Opening::fill_after`](crate::Opening::fill_after) says, and then filled.
    ///
    /// # Errors
    /// `NotFound` when the log was deleted; whatever the store answers. Asked again it goes on
    /// where it was.
    pub async fn next(&mut self) -> Result<Vec<Entry>> {
        self.next_before(u64::MAX).await
    }

    /// The same, of entries before a position only.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub async fn next_before(&mut self, end: u64) -> Result<Vec<Entry>> {
        loop {
            if self.position >= self.tail {
                self.tail = self.log.tail().await?;
                self.position = self.position.max(self.log.client.view().begin.min(self.tail));
            }
            let to = self.tail.min(end).min(self.position.saturating_add(AHEAD_MAX));
            if self.position >= to {
                return Ok(Vec::new());
            }
            let slots = join_all((self.position..to).map(|it| self.log.slot(it))).await;
            let mut entries = Vec::new();
            let mut is_at_hole = false;
            for slot in slots {
                match slot? {
                    Slot::Data(data) => entries.push(Entry { position: self.position, data }),
                    Slot::Invalid => {}
                    Slot::Unwritten => {
                        is_at_hole = true;
                        break;
                    }
                }
                self.position += 1;
            }
            if !entries.is_empty() {
                return Ok(entries);
            }
            if is_at_hole {
                self.wait_or_fill().await?;
            }
        }
    }

    /// Waits a little for who was given the position, or fills it.
    async fn wait_or_fill(&mut self) -> Result<()> {
        let now = Instant::now();
        let (_, since) = match self.hole {
            Some(hole) if hole.0 == self.position => hole,
            _ => *self.hole.insert((self.position, now)),
        };
        if now.duration_since(since) >= self.log.opening.fill_after {
            // If it was written meanwhile, it is read now.
            self.log.fill(self.position).await?;
        } else {
            unblock(|| std::thread::sleep(LOOK)).await;
        }
        Ok(())
    }
}
