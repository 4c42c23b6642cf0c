//! Several calls of one object as one transaction: one after the other, each sees what those before
//! it wrote (O4), and one that fails leaves nothing (O3).
//!
//! Whatever keeps the transaction from being committed and may be the fault of one call parts the
//! batch, until that call is alone: it harms no other (O5).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tyr::blocking::{Transaction, Tyr};
use tyr::{Bytes, Error, ErrorKind, Result};
use tyr_class::{Access, Batch, Class, Failure};

use super::pool::Permits;
use super::queue::Waiting;
use crate::access::{Object, Within, occasion};
use crate::library::Library;
use crate::rule::{Rule, Rules};

/// A batch that has taken so long is committed, and what is left of it is the next.
const TIME_MAX: Duration = Duration::from_millis(100);

/// And so is one that writes so much: with the call that reaches it that is less than what a
/// transaction carries.
const WRITTEN_MAX: usize = 4 << 20;

/// How often a method may say that it is to run again.
const TRIES_MAX: u32 = 64;

/// How long is waited before it does, at first and at last.
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_millis(10);

/// What batches of an object are run on.
pub(super) struct Batches<'a> {
    pub store: &'a Tyr,
    pub library: &'a Library,
    pub object: &'a Object,
    /// What is needed to run methods, if anything is.
    pub permits: Option<&'a Permits>,
    pub rules: Rules,
}

/// What became of the first calls of a batch, in their order.
type Answers = Vec<Result<Bytes, Failure>>;

/// The classes of a batch, by name.
type Classes = HashMap<String, Result<Arc<dyn Class>>>;

impl Batches<'_> {
    /// Runs them and answers them; answers those that are to be run again.
    pub fn run(&self, calls: Vec<Waiting>) -> Vec<Waiting> {
        let now = Instant::now();
        let (calls, late): (Vec<_>, Vec<_>) = calls.into_iter().partition(|it| it.until > now);
        late.into_iter().for_each(|waiting| waiting.answer(Err(too_late().into())));
        // All that wait had been called before: nobody runs what was replaced before that.
        let mut classes = Classes::new();
        for Waiting { wanted, .. } in &calls {
            if !classes.contains_key(&wanted.class) {
                let class = self.library.class(self.object.keyspace(), &wanted.class);
                classes.insert(wanted.class.clone(), class);
            }
        }
        self.run_some(calls, &classes)
    }

    fn run_some(&self, mut calls: Vec<Waiting>, classes: &Classes) -> Vec<Waiting> {
        if calls.is_empty() {
            return calls;
        }
        let mut run = 0;
        let committed = self.store.transact(|transaction| {
            let answers = self.attempt(transaction, &calls, classes);
            run = answers.as_ref().map_or(calls.len(), Vec::len);
            answers
        });
        let mut left = calls.split_off(run);
        match committed {
            Ok(answers) => {
                let mut again = answer(calls, answers);
                again.append(&mut left);
                again
            }
            Err(error) if calls.len() > 1 && may_be_of_one(&error) => {
                let mut later = calls.split_off(calls.len() / 2);
                later.append(&mut left);
                let mut again = self.run_some(calls, classes);
                again.append(&mut later);
                again
            }
            Err(error) => {
                let answer = || Err(Failure::Context(error.duplicate()));
                calls.into_iter().for_each(|waiting| waiting.answer(answer()));
                left
            }
        }
    }

    /// Runs as many of them as one transaction is to have.
    fn attempt(
        &self,
        transaction: &mut Transaction,
        calls: &[Waiting],
        classes: &Classes,
    ) -> Result<Answers> {
        let permit = self.permits.map(Permits::take);
        let begun = Instant::now();
        let (keyspace, rules) = (self.object.keyspace(), self.rules);
        let mut within = Within { transaction, keyspace, rules };
        let occasion = occasion(&calls[0].caller)?;
        let mut access = Access { blobs: &mut within, object: self.object.parts(), occasion };
        let mut all = Batch::new(&mut access);
        let mut answers = Answers::new();
        for waiting in calls {
            let Some(answer) = run_one(&mut all, waiting, classes)? else { break };
            answers.push(answer);
            let is_full = begun.elapsed() > TIME_MAX || all.written() > WRITTEN_MAX;
            if is_full || !rules.hold(Rule::O4) {
                break;
            }
        }
        all.hand_on()?;
        drop(permit);
        Ok(answers)
    }
}

/// Runs a call on what those before it did; `None` when it has to be the first.
fn run_one(
    all: &mut Batch<'_>,
    waiting: &Waiting,
    classes: &Classes,
) -> Result<Option<Result<Bytes, Failure>>> {
    let wanted = &waiting.wanted;
    let class = match &classes[&wanted.class] {
        Ok(class) => class,
        Err(error) => return Ok(Some(Err(Failure::Context(error.duplicate())))),
    };
    let occasion = occasion(&waiting.caller)?;
    all.call(occasion, &**class, &wanted.method, &wanted.input)
}

/// Answers calls; answers those that want to be run again.
fn answer(calls: Vec<Waiting>, answers: Answers) -> Vec<Waiting> {
    let (count, mut again) = (calls.len(), Vec::new());
    for (mut waiting, answer) in calls.into_iter().zip(answers) {
        let is_again = matches!(&answer, Err(failure) if failure.kind() == ErrorKind::Conflict);
        if is_again && waiting.tries < TRIES_MAX {
            waiting.tries += 1;
            again.push(waiting);
        } else {
            waiting.answer(answer);
        }
    }
    if again.len() == count {
        // Nothing else is to be done meanwhile.
        let tries = again.iter().map(|waiting| waiting.tries).min().unwrap_or(0);
        std::thread::sleep(PAUSE_MAX.min(PAUSE_MIN.saturating_mul(2_u32.saturating_pow(tries))));
    }
    again
}

/// Whether what the transaction failed with may be due to one of its calls.
fn may_be_of_one(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::InvalidArgument
        | ErrorKind::QuotaExceeded
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::SnapshotTooOld
        | ErrorKind::Corrupt => true,
        ErrorKind::Conflict
        | ErrorKind::Unavailable
        | ErrorKind::TimedOut
        | ErrorKind::PermissionDenied => false,
    }
}

fn too_late() -> Error {
    Error::unavailable(
        "the call has waited for others of its object for longer than anybody waits for it; it \
         was not run",
    )
}
