//! What the operations of a committed transaction answered, as it is passed on and remembered.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tyr_types::Outcome;

/// What one operation of a committed transaction answers its client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answered {
    /// The blob, by its place in [`Transaction::blobs`](tyr_types::Transaction::blobs).
    pub blob: u32,
    /// The operation, by its place among those on the blob.
    pub operation: u32,
    /// The answer. [`Outcome::Done`] is left out.
    pub outcome: Outcome,
}

impl Answered {
    /// What an operation on chunk `chunk` of a blob answered there, if that is for the client:
    /// where an append went and whether the blob existed is known at its first chunk alone.
    ///
    /// # Panics
    /// When the operation's place is no `u32`: a transaction has few.
    pub fn at_chunk(blob: u32, chunk: u64, operation: usize, outcome: Outcome) -> Option<Self> {
        let is_told = match outcome {
            Outcome::Value(_) => true,
            Outcome::Offset(_) | Outcome::Existed(_) => chunk == 0,
            Outcome::Done => false,
        };
        let operation = u32::try_from(operation).expect("operations are few");
        is_told.then_some(Self { blob, operation, outcome })
    }

    fn place(&self) -> (u32, u32) {
        (self.blob, self.operation)
    }
}

/// The answers of a transaction, as far as they are known. Copies share their memory: a node tells
/// them to its log, its neighbour and its client, and remembers them for long.
#[derive(Clone, Default, PartialEq)]
pub struct Outcomes(Arc<[Answered]>);

impl Outcomes {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts what others know among them, in place of what the same operations answered before.
    pub(crate) fn put(&mut self, others: &Self) {
        let is_same_place = |(own, other): (&Answered, &Answered)| own.place() == other.place();
        let is_instead =
            self.len() == others.len() && self.iter().zip(&*others.0).all(is_same_place);
        if self.is_empty() || is_instead {
            *self = others.clone();
        } else if !others.is_empty() {
            let all = self.iter().chain(&*others.0).map(|answered| (answered.place(), *answered));
            *self = all.collect::<BTreeMap<_, _>>().into_values().collect();
        }
    }
}

impl Deref for Outcomes {
    type Target = [Answered];

    fn deref(&self) -> &[Answered] {
        &self.0
    }
}

impl fmt::Debug for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Vec<Answered>> for Outcomes {
    fn from(answers: Vec<Answered>) -> Self {
        match answers.is_empty() {
            true => Self::default(),
            false => Self(answers.into()),
        }
    }
}

impl FromIterator<Answered> for Outcomes {
    fn from_iter<I: IntoIterator<Item = Answered>>(answers: I) -> Self {
        Vec::from_iter(answers).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(all: &[(u32, u32, u64)]) -> Outcomes {
        let answered = |&(blob, operation, offset)| {
            let outcome = Outcome::Offset(offset);
            Answered { blob, operation, outcome }
        };
        all.iter().map(answered).collect()
    }

    #[test]
    fn what_others_know_counts_and_what_they_do_not_know_stays() {
        let mut known = outcomes(&[(0, 1, 5), (2, 0, 6)]);
        known.put(&outcomes(&[]));
        assert_eq!(known, outcomes(&[(0, 1, 5), (2, 0, 6)]));
        known.put(&outcomes(&[(2, 0, 7), (1, 3, 8)]));
        assert_eq!(known, outcomes(&[(0, 1, 5), (1, 3, 8), (2, 0, 7)]));
    }

    #[test]
    fn answers_of_the_same_operations_are_shared() {
        let (mut known, mut nothing) = (outcomes(&[(0, 1, 5), (2, 0, 6)]), Outcomes::new());
        let others = outcomes(&[(0, 1, 5), (2, 0, 9)]);
        known.put(&others);
        nothing.put(&others);
        assert!(Arc::ptr_eq(&known.0, &others.0) && Arc::ptr_eq(&nothing.0, &others.0));
    }
}
