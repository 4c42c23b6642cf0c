//! A view: what all clients of an epoch go by.
//!
//! ```text
//!    0  "tyr-zlv", version 1
//!    8  term      the epoch of the view with which the counter of positions began
//!   16  start     the position that it began with
//!   24  begin     what is before is trimmed
//!   32  runs      how many; each:
//!        0  first position      8  first stripe     16  stripes
//!       24  width              32  slots
//! ```
//!
//! Positions go round the `width` objects of a stripe, each of which has `slots` of them. Stripes
//! of one shape are one *run*, so that a log grows without its view doing so.

use tyr::{Error, ErrorKind, Result};

use crate::class::{Fields, VIEW_LEN_MAX};

const MAGIC: &[u8; 7] = b"tyr-zlv";
const VERSION: u8 = 1;
const HEAD: usize = 40;
const RUN_LEN: usize = 40;

/// Stripes of one shape, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The position that it begins with.
    pub first: u64,
    /// The number of its first stripe.
    pub stripe: u64,
    /// How many stripes.
    pub stripes: u64,
    /// Objects of a stripe.
    pub width: u64,
    /// Positions of an object.
    pub slots: u64,
}

impl Run {
    fn stripe_len(&self) -> u64 {
        self.width * self.slots
    }

    fn end(&self) -> u64 {
        self.first + self.stripes * self.stripe_len()
    }
}

/// A stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Its number, which no other one of the log ever has.
    pub number: u64,
    /// Its first position.
    pub first: u64,
    /// Its objects.
    pub width: u64,
    /// Positions of each of them.
    pub slots: u64,
}

impl Stripe {
    /// The first position behind it.
    pub fn end(&self) -> u64 {
        self.first + self.width * self.slots
    }

    /// Which of its objects a position of it lies in.
    pub fn column_of(&self, position: u64) -> u64 {
        (position - self.first) % self.width
    }
}

/// A view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its epoch. It is not in its bytes.
    pub epoch: u64,
    /// The epoch of the view with which the counter of positions began that is in use now. One that
    /// is lost is followed by one of a later term.
    pub term: u64,
    /// The position that this counter began with.
    pub start: u64,
    /// What is before was trimmed.
    pub begin: u64,
    /// Where positions are, in their order; never empty.
    pub runs: Vec<Run>,
}

impl View {
    /// The first view of a log, with one stripe.
    pub fn first(width: u64, slots: u64) -> Self {
        let run = Run { first: 0, stripe: 0, stripes: 1, width, slots };
        Self { epoch: 0, term: 0, start: 0, begin: 0, runs: vec![run] }
    }

    /// The first position that no object is there for.
    pub fn end(&self) -> u64 {
        self.last().end()
    }

    fn last(&self) -> &Run {
        self.runs.last().expect("a view has a run, as its decoding sees to")
    }

    /// All stripes, the newest first.
    pub fn stripes_backwards(&self) -> impl Iterator<Item = Stripe> + '_ {
        self.runs.iter().rev().flat_map(|run| {
            (0..run.stripes).rev().map(|n| Stripe {
                number: run.stripe + n,
                first: run.first + n * run.stripe_len(),
                width: run.width,
                slots: run.slots,
            })
        })
    }

    /// The stripe of a position; `None` where there is none.
    pub fn stripe_of(&self, position: u64) -> Option<Stripe> {
        let run = self.runs.iter().find(|run| (run.first..run.end()).contains(&position))?;
        let n = (position - run.first) / run.stripe_len();
        Some(Stripe {
            number: run.stripe + n,
            first: run.first + n * run.stripe_len(),
            width: run.width,
            slots: run.slots,
        })
    }

    /// The view after this one, which has one more stripe, of the shape of the last one; and that
    /// stripe.
    pub fn extended(&self) -> (Self, Stripe) {
        let mut next = Self { epoch: self.epoch + 1, ..self.clone() };
        if let Some(last) = next.runs.last_mut() {
            last.stripes += 1;
        }
        let stripe = next.stripes_backwards().next().expect("one was added");
        (next, stripe)
    }

    /// The view after this one, with a new counter.
    pub fn restarted(&self, start: u64) -> Self {
        let epoch = self.epoch + 1;
        Self { epoch, term: epoch, start, ..self.clone() }
    }

    /// The view after this one, in which what is before a position is trimmed.
    pub fn trimmed(&self, begin: u64) -> Self {
        Self { epoch: self.epoch + 1, begin, ..self.clone() }
    }

    /// The stripes that are trimmed as a whole, the oldest first. The last of all is never.
    pub fn gone(&self) -> impl Iterator<Item = Stripe> + '_ {
        let last = self.stripes_backwards().next().map(|stripe| stripe.number);
        let all: Vec<Stripe> = self.stripes_backwards().collect();
        let is_gone = move |it: &Stripe| it.end() <= self.begin && Some(it.number) != last;
        all.into_iter().rev().filter(is_gone)
    }

    /// The view after this one, without the stripes that end at or before a position. The last of
    /// all stays.
    pub fn without_before(&self, position: u64) -> Self {
        let mut next = Self { epoch: self.epoch + 1, ..self.clone() };
        let last = self.last().stripe;
        next.runs.retain_mut(|run| {
            let gone = position.saturating_sub(run.first) / run.stripe_len();
            let gone = gone.min(if run.stripe == last { run.stripes - 1 } else { run.stripes });
            run.first += gone * run.stripe_len();
            run.stripe += gone;
            run.stripes -= gone;
            run.stripes > 0
        });
        next
    }

    /// Its bytes.
    ///
    /// # Errors
    /// `InvalidArgument` when it has too many runs.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let head = Fields::of([self.term, self.start, self.begin, self.runs.len() as u64]);
        let mut bytes = [&MAGIC[..], &[VERSION], &tyr::Bytes::from(head)].concat();
        for run in &self.runs {
            let run = Fields::of([run.first, run.stripe, run.stripes, run.width, run.slots]);
            bytes.extend_from_slice(&tyr::Bytes::from(run));
        }
        if bytes.len() > VIEW_LEN_MAX {
            return Err(Error::invalid(format!(
                "the log has had stripes of {} shapes, and cannot have more: trim it",
                self.runs.len()
            )));
        }
        Ok(bytes)
    }

    /// The view of an epoch, from its bytes.
    ///
    /// # Errors
    /// `Corrupt` when it is none; `Unavailable` for a later format.
    pub fn decode(epoch: u64, bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::corrupt(format!("the log's view of epoch {epoch} is damaged"));
        if bytes.len() < HEAD || &bytes[..MAGIC.len()] != MAGIC {
            return Err(damaged());
        }
        if bytes[MAGIC.len()] > VERSION {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "the log was written by a later version of tyr: use that, or a newer one",
            ));
        }
        let numbers: Vec<u64> =
            bytes[8..].as_chunks().0.iter().map(|it| u64::from_le_bytes(*it)).collect();
        let ([term, start, begin, count], runs) =
            numbers.split_first_chunk().ok_or_else(damaged)?;
        let runs: Vec<Run> = runs
            .as_chunks()
            .0
            .iter()
            .map(|[first, stripe, stripes, width, slots]| Run {
                first: *first,
                stripe: *stripe,
                stripes: *stripes,
                width: *width,
                slots: *slots,
            })
            .collect();
        let is_sound = |run: &Run| run.stripes > 0 && run.width > 0 && run.slots > 0;
        let is_joined = runs.windows(2).all(|two| two[0].end() == two[1].first);
        if runs.is_empty()
            || runs.len() as u64 != *count
            || bytes.len() != HEAD + RUN_LEN * runs.len()
            || !runs.iter().all(is_sound)
            || !is_joined
        {
            return Err(damaged());
        }
        Ok(Self { epoch, term: *term, start: *start, begin: *begin, runs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(stripes: u64) -> View {
        let mut view = View::first(2, 3);
        for _ in 1..stripes {
            view = view.extended().0;
        }
        view
    }

    #[test]
    fn positions_go_round_the_objects_of_a_stripe() {
        let view = view(3);
        assert_eq!((view.epoch, view.end()), (2, 18));
        let at = |position| {
            let stripe = view.stripe_of(position).unwrap();
            (stripe.number, stripe.column_of(position))
        };
        assert_eq!([0, 1, 5, 6, 17].map(at), [(0, 0), (0, 1), (0, 1), (1, 0), (2, 1)]);
        assert_eq!(view.stripe_of(18), None);
        let numbers: Vec<u64> = view.stripes_backwards().map(|it| it.number).collect();
        assert_eq!(numbers, [2, 1, 0]);
    }

    #[test]
    fn what_is_trimmed_as_a_whole_goes_and_numbers_are_never_used_again() {
        let trimmed = view(3).trimmed(13);
        assert_eq!(trimmed.gone().map(|it| it.number).collect::<Vec<_>>(), [0, 1]);
        let left = trimmed.without_before(12);
        assert_eq!(left.runs, [Run { first: 12, stripe: 2, stripes: 1, width: 2, slots: 3 }]);
        assert_eq!(left.extended().1.number, 3);
        // The last one stays: what comes next is counted from it.
        let all = view(3).trimmed(18);
        assert_eq!(all.gone().count(), 2);
        assert_eq!(all.without_before(18).runs, left.runs);
    }

    #[test]
    fn a_view_is_read_as_it_was_written_and_damage_is_told() {
        let view = view(2).restarted(7).trimmed(5);
        assert_eq!((view.term, view.start, view.begin), (2, 7, 5));
        let bytes = view.encode().unwrap();
        assert_eq!(View::decode(view.epoch, &bytes).unwrap(), view);
        for len in 0..bytes.len() {
            assert_eq!(View::decode(1, &bytes[..len]).unwrap_err().kind(), ErrorKind::Corrupt);
        }
        let mut later = bytes;
        later[7] = 2;
        assert_eq!(View::decode(1, &later).unwrap_err().kind(), ErrorKind::Unavailable);
    }
}
