//! Appending: a position from the sequencer, then a write of that position, once.
//!
//! ```text
//!   next ──► view of the position's term ──► object ──► write(epoch, position, data)
//!    ▲          │ no object for it yet: a stripe more, by a new view      │
//!    └──────────┴──── the term is over (stale), or it was filled ◄────────┘
//! ```
//!
//! The position must be written in a view of the term that it was given in: a later counter may
//! give it to somebody else. So who learns of a later term takes a new position.

use std::sync::Arc;

use blocking::unblock;
use tyr::{Bytes, Error, ErrorKind, Result};

use crate::class::{ENTRY_LEN_MAX, Fields, Refusal};
use crate::client::Place;
use crate::log::Log;
use crate::sequencer::Given;

/// How many positions an append takes before it gives up: that many were filled by others.
const POSITIONS_MAX: u32 = 10_000;

/// How often one position is tried while views change, or nobody answers.
const TRIES_MAX: u32 = 64;

impl Log {
    /// Appends an entry of up to 64 KiB; answers its position. All that was appended before this
    /// was called has lower positions.
    ///
    /// # Errors
    /// `InvalidArgument` for a longer entry; `TimedOut` when it may be in the log, and nobody can
    /// tell; `NotFound` when the log was deleted; `Unavailable`. Dropping the future leaves it open
    /// whether it is appended.
    pub async fn append(&self, data: impl Into<Bytes>) -> Result<u64> {
        let data = data.into();
        check_len(&data)?;
        for _ in 0..POSITIONS_MAX {
            let given = self.sequencer.next().await?;
            if self.write_given(given, &data).await? {
                return Ok(given.position);
            }
        }
        Err(Error::conflict(format!(
            "others filled {POSITIONS_MAX} positions before they were written: have readers wait \
             longer before they fill"
        )))
    }

    /// A position to be written with [`Log::write`], before the data is known. Until then it is a
    /// hole, which readers fill after a while.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub async fn next_position(&self) -> Result<Given> {
        self.sequencer.next().await
    }

    /// Writes a position that was given to this program; false when it cannot be had any more: it
    /// was filled or trimmed, or the sequencer that gave it was lost. Then it has no entry of this
    /// call, and never will.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub async fn write(&self, given: Given, data: impl Into<Bytes>) -> Result<bool> {
        let data = data.into();
        check_len(&data)?;
        self.write_given(given, &data).await
    }

    async fn write_given(&self, given: Given, data: &Bytes) -> Result<bool> {
        // What left open whether the position is written.
        let mut open: Option<Error> = None;
        let done = self.try_to_write(given, data, &mut open).await;
        match (done, open) {
            (Ok(Some(is_written)), _) => Ok(is_written),
            (_, Some(open)) => Err(open),
            (Ok(None), None) => Ok(false),
            (Err(error), None) => Err(error),
        }
    }

    /// Whether the position is written; `None`: this writes it no more, but what was left open may
    /// have.
    async fn try_to_write(
        &self,
        given: Given,
        data: &Bytes,
        open: &mut Option<Error>,
    ) -> Result<Option<bool>> {
        let mut failed = None;
        for _ in 0..TRIES_MAX {
            let Some(place) = self.place_for(given).await? else { return Ok(None) };
            let input = Fields::of([place.view.epoch, given.position]).and(data);
            let failure = match self.call(&place.key, "write", input).await {
                Ok(_) => return Ok(Some(true)),
                Err(failure) => failure,
            };
            match Refusal::of(&failure) {
                // The position is of this append alone, so whatever data is there is its own.
                Some(Refusal::ReadOnly) if open.is_some() => {
                    return Ok(self.find(given.position).await?.map(|_| true));
                }
                Some(Refusal::ReadOnly) => return Ok(Some(false)),
                Some(Refusal::Stale) => {
                    self.refresh().await?;
                    return Ok(None);
                }
                // Trimmed as a whole, which a newer view tells.
                Some(Refusal::NoObject) => drop(self.refresh().await?),
                _ if failure.kind() == ErrorKind::TimedOut => *open = Some(failure.into()),
                // Others write to the object again and again.
                _ if failure.kind().is_retryable() => failed = Some(failure),
                _ => return Err(failure.into()),
            }
        }
        Err(failed.map_or_else(changing, Error::from))
    }

    /// Where a position is to be written, in a view of its term; `None` when that is over, or the
    /// position is trimmed.
    async fn place_for(&self, given: Given) -> Result<Option<Place>> {
        for _ in 0..TRIES_MAX {
            let view = self.client.view();
            if view.term < given.term {
                self.refresh().await?;
                continue;
            }
            if view.term > given.term || given.position < view.begin {
                return Ok(None);
            }
            if given.position < view.end() {
                return self.client.place_in(&view, given.position).map(Some);
            }
            let client = Arc::clone(&self.client);
            unblock(move || client.extend(&view)).await?;
        }
        Err(changing())
    }
}

fn check_len(data: &Bytes) -> Result<()> {
    match data.len() {
        0..=ENTRY_LEN_MAX => Ok(()),
        len => Err(Error::invalid(format!(
            "an entry has at most {ENTRY_LEN_MAX} bytes, not {len}: put it into a blob, and append \
             its key"
        ))),
    }
}

fn changing() -> Error {
    Error::conflict("the views of the log change again and again: try again")
}
