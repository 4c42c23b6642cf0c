//! A transaction and its model: what it did so far, and what that comes to on another state.

use std::collections::BTreeSet;

use tyr::blocking::{Keyspace, Transaction};
use tyr::{ErrorKind, OperationId};

use super::compare::{assert_found, kind};
use super::reference::{Answer, Change, Model};
use super::words::add;

/// What a transaction did so far, and the model as the transaction sees it.
pub struct Script {
    pub view: Model,
    pub steps: Vec<Step>,
}

pub enum Step {
    Change { space: String, key: Vec<u8>, change: Change, id: OperationId },
    Read { space: String, key: Vec<u8>, offset: u64, len: u64, seen: Option<Vec<u8>> },
    Stat { space: String, key: Vec<u8>, seen: Option<u64> },
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (space, key) = self.blob();
        write!(f, "{space}/{} ", key.escape_ascii())?;
        match self {
            Self::Change { change, .. } => write!(f, "{change:?}"),
            Self::Read { offset, len, .. } => write!(f, "read {offset}+{len}"),
            Self::Stat { seen, .. } => write!(f, "stat {seen:?}"),
        }
    }
}

impl Step {
    fn blob(&self) -> (&String, &Vec<u8>) {
        match self {
            Self::Change { space, key, .. }
            | Self::Read { space, key, .. }
            | Self::Stat { space, key, .. } => (space, key),
        }
    }
}

/// What a script comes to on the state that its commit meets.
pub struct Replayed {
    pub model: Model,
    /// Why it cannot commit.
    pub refusals: BTreeSet<ErrorKindOrder>,
    /// Whether everything that it read is still so.
    pub holds: bool,
    pub answers: Vec<(OperationId, Change, Answer)>,
}

/// Kinds in a set; they have no order of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorKindOrder(pub ErrorKind);

impl Ord for ErrorKindOrder {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.name().cmp(other.0.name())
    }
}

impl PartialOrd for ErrorKindOrder {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Script {
    pub fn new(model: &Model) -> Self {
        Self { view: model.clone(), steps: Vec::new() }
    }

    pub fn change(
        &mut self,
        transaction: &mut Transaction,
        keyspace: &Keyspace,
        space: &str,
        key: &[u8],
        change: Change,
    ) {
        let added = add(transaction, keyspace, key, &change);
        if change.is_invalid() {
            assert_eq!(kind(added).map(drop), Err(ErrorKind::InvalidArgument), "{change:?}");
            return;
        }
        self.view.force(space, key, &change);
        let (space, key) = (space.to_owned(), key.to_vec());
        self.steps.push(Step::Change { space, key, change, id: added.unwrap() });
    }

    /// Reads and compares; answers whether the version was still there.
    pub fn read(
        &mut self,
        transaction: &mut Transaction,
        keyspace: &Keyspace,
        space: &str,
        key: &[u8],
        (offset, len): (u64, u64),
    ) -> bool {
        let blob = self.view.blob(space, key);
        let context = format!("{space}/{} {offset}+{len}: {:?}", key.escape_ascii(), self.steps);
        let (space, key) = (space.to_owned(), key.to_vec());
        if len % 5 == 0 {
            let got = kind(transaction.stat(keyspace, &key)).map(|stat| stat.size);
            if got == Err(ErrorKind::SnapshotTooOld) {
                return false;
            }
            let seen = blob.map(|blob| blob.size);
            assert_eq!(got, seen.ok_or(ErrorKind::NotFound), "{context}");
            self.steps.push(Step::Stat { space, key, seen });
            return true;
        }
        let got = kind(transaction.read(keyspace, &key, offset, len));
        if got == Err(ErrorKind::SnapshotTooOld) {
            return false;
        }
        let seen = blob.map(|blob| blob.read(offset, len));
        assert_found(got, seen.clone(), &context);
        self.steps.push(Step::Read { space, key, offset, len, seen });
        true
    }

    /// Until its first read a transaction has no version yet: it sees what others did meanwhile.
    pub fn rebase(&mut self, model: &Model) {
        if self.steps.iter().all(|step| matches!(step, Step::Change { .. })) {
            self.view = self.replay(model).model;
        }
    }

    /// In a cluster each blob has a version of its own, from its first read on.
    pub fn rebase_unread(&mut self, model: &Model) {
        let read: BTreeSet<_> = self
            .steps
            .iter()
            .filter(|step| !matches!(step, Step::Change { .. }))
            .map(|step| step.blob())
            .collect();
        let mut now = self.replay(model).model;
        for (space, key) in read {
            now.put_back(space, key, &self.view);
        }
        self.view = now;
    }

    /// Plays it again on `model`.
    pub fn replay(&self, model: &Model) -> Replayed {
        let mut now = model.clone();
        let mut refusals = BTreeSet::new();
        let (mut holds, mut answers) = (true, Vec::new());
        for step in &self.steps {
            let (space, key) = step.blob();
            match step {
                Step::Change { change, id, .. } => {
                    let refusal = change.refusal(model.blob(space, key), now.blob(space, key));
                    refusals.extend(refusal.map(ErrorKindOrder));
                    answers.push((*id, change.clone(), now.force(space, key, change)));
                }
                Step::Read { offset, len, seen, .. } => {
                    let read = now.blob(space, key).map(|blob| blob.read(*offset, *len));
                    holds &= read == *seen;
                }
                Step::Stat { seen, .. } => {
                    holds &= now.blob(space, key).map(|blob| blob.size) == *seen;
                }
            }
        }
        Replayed { model: now, refusals, holds, answers }
    }

    pub fn has_read(&self, (space, key): &(String, Vec<u8>)) -> bool {
        let reads = self.steps.iter().filter(|step| !matches!(step, Step::Change { .. }));
        reads.map(Step::blob).any(|blob| blob == (space, key)) || self.has_condition(space, key)
    }

    fn has_condition(&self, space: &str, key: &[u8]) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Change { change, .. } => {
                change.is_condition() && step.blob().0 == space && step.blob().1 == key
            }
            Step::Read { .. } | Step::Stat { .. } => false,
        })
    }

    pub fn blobs(&self) -> BTreeSet<(String, Vec<u8>)> {
        let blobs = self.steps.iter().map(Step::blob);
        blobs.map(|(space, key)| (space.clone(), key.clone())).collect()
    }
}
