//! What a client does with a lease: waits for it, does something under it a few times, and gives it
//! back (K1, K2, K4).
//!
//! ```text
//!   Lease ─► token: add 1 to the lock's number ─► read, then write if the number is the token ─►…
//!       │                                                                          ─► GiveBack
//!       └──► read ─► go by what was read, as long as the lease is held ─►…         ─► GiveBack
//! ```
//!
//! With a token it goes on though its lease may be over, as a program does that does not look: what
//! it writes then is refused, since whoever came after it has taken a token.

use tyr_protocol::session::{Call, LeaseCall, Want};
use tyr_types::{
    BlobName, BlobOperations, Expected, LeaseMode, Leased, Number, Operation, Outcome, Relation,
    Scan, Transform,
};

use super::{Work, on};
use crate::checker::{Attempted, Deed, Entry, Seen};

/// What is written by who has read these bytes.
pub type Write = Box<dyn Fn(&[u8]) -> Vec<BlobOperations>>;

/// What is done while a lease is held.
pub enum Under {
    /// It takes a token, and so often reads and writes.
    Token {
        /// So often.
        times: u32,
        /// What it writes then.
        write: Write,
        /// Whether it writes only if nobody has taken a token since.
        is_fenced: bool,
    },
    /// It reads once, and so often goes by that while it holds the lease (K2).
    Cache {
        /// So often.
        times: u32,
    },
}

/// What is done under a lease.
pub struct Locked {
    /// Of what; with tokens the number of that key is the token of who holds the lease.
    pub lock: Leased,
    /// How it is held.
    pub mode: LeaseMode,
    /// How long the lease lasts, in microseconds.
    pub duration_us: u64,
    /// How long it is waited for; not at all if that is `None`.
    pub wait_us: Option<u64>,
    /// What it reads.
    pub want: Want,
    /// What it lists after that, in one transaction, and the blobs that there may be.
    pub listed: Option<Box<(Scan, Vec<BlobName>)>>,
    /// What it does with it.
    pub under: Under,
    /// The pause before each thing that it does, in microseconds.
    pub pause_us: u64,
}

/// What is done next.
#[derive(Clone, Debug, PartialEq)]
enum Phase {
    Ask,
    Asked,
    Token,
    Read(u64),
    Write(u64, Vec<u8>),
    Look(Vec<Seen>),
    GiveBack,
    Over,
}

/// A client that has a lock, or wants it.
pub struct Locking {
    what: Locked,
    phase: Phase,
    lease: Option<u64>,
    left: u32,
}

/// What a client with a lock does next.
pub enum LockStep {
    /// This call, which belongs to no deed.
    Call(Call),
    /// This deed.
    Work(Work),
    /// Reads that are answered by what it has read before, if it holds the lease.
    Look(Vec<Seen>),
    /// Nothing any more.
    Over,
}

impl Locking {
    /// A client that wants the lock.
    pub fn new(what: Locked) -> Self {
        let (Under::Token { times, .. } | Under::Cache { times }) = &what.under;
        let left = *times;
        Self { what, phase: Phase::Ask, lease: None, left }
    }

    /// The pause before the next thing.
    pub fn pause_us(&self) -> u64 {
        self.what.pause_us
    }

    /// What the lease is of.
    pub fn lock(&self) -> &Leased {
        &self.what.lock
    }

    /// How it is held.
    pub fn mode(&self) -> LeaseMode {
        self.what.mode
    }

    /// The lease that it holds, as far as it knows.
    pub fn lease(&self) -> Option<u64> {
        self.lease
    }

    /// Somebody waits for the lease.
    pub fn recalled(&mut self, lease: u64) {
        if self.lease == Some(lease) && matches!(self.what.under, Under::Cache { .. }) {
            self.left = 0;
        }
    }

    /// What is done next.
    pub fn step(&mut self) -> LockStep {
        let Locked { lock, mode, duration_us, wait_us, want, listed, under, .. } = &self.what;
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Ask => {
                self.phase = Phase::Asked;
                let (of, mode) = (lock.clone(), *mode);
                let (duration_us, wait_us) = (*duration_us, *wait_us);
                LockStep::Call(Call::Lease(LeaseCall { of, mode, duration_us, wait_us }))
            }
            Phase::Token => {
                self.phase = Phase::Token;
                let add = Transform::add(Number::U64(1));
                let take = Operation::Apply { offset: 0, transform: add };
                LockStep::Work(Work::Commit(vec![on(lock.name(), [take])]))
            }
            Phase::Read(token) => {
                self.phase = Phase::Read(token);
                LockStep::Work(match listed.as_deref().cloned() {
                    None => Work::Read(want.clone()),
                    Some((scan, among)) => {
                        let (first, scans) = (want.clone(), vec![scan]);
                        let then = Box::new(|_: &[Seen]| Vec::new());
                        Work::TransactListing { first, scans, among, then }
                    }
                })
            }
            Phase::Write(token, seen) => {
                let Under::Token { write, is_fenced, .. } = under else {
                    unreachable!("who caches writes nothing")
                };
                let mut blobs = write(&seen);
                if *is_fenced {
                    let expected =
                        Expected::Number { relation: Relation::Equal, value: Number::U64(token) };
                    blobs.push(on(lock.name(), [Operation::Compare { offset: 0, expected }]));
                }
                self.phase = Phase::Write(token, seen);
                LockStep::Work(Work::Commit(blobs))
            }
            Phase::Look(seen) if self.left > 0 => {
                self.left -= 1;
                self.phase = Phase::Look(seen.clone());
                LockStep::Look(seen)
            }
            Phase::Look(_) | Phase::GiveBack => {
                let lease = self.lease.take().expect("it was given");
                LockStep::Call(Call::GiveBack { lease })
            }
            Phase::Asked | Phase::Over => LockStep::Over,
        }
    }

    /// The lease is given, or not.
    pub fn leased(&mut self, lease: Option<u64>) {
        self.lease = lease;
        self.phase = match (lease, &self.what.under) {
            (None, _) => Phase::Over,
            (Some(_), Under::Token { .. }) => Phase::Token,
            (Some(_), Under::Cache { .. }) => Phase::Read(0),
        };
    }

    /// A deed under the lock has ended.
    pub fn heard(&mut self, entry: &Entry) {
        let is_caching = matches!(self.what.under, Under::Cache { .. });
        self.phase = match (&self.phase, &entry.deed) {
            (Phase::Read(_), Deed::Read(seen)) if is_caching && seen.is_answered() => {
                Phase::Look(vec![seen.clone()])
            }
            (Phase::Read(_), Deed::Transaction(attempted))
                if is_caching && attempted.is_committed() =>
            {
                let seen = attempted.reads.iter().filter(|seen| seen.is_answered());
                Phase::Look(seen.cloned().collect())
            }
            (Phase::Token, Deed::Transaction(attempted)) => match token(attempted) {
                Some(token) => Phase::Read(token),
                None => Phase::GiveBack,
            },
            (Phase::Read(token), Deed::Read(seen)) if seen.is_answered() => {
                Phase::Write(*token, seen.bytes().to_vec())
            }
            (Phase::Write(token, _), Deed::Transaction(attempted)) => {
                self.left = self.left.saturating_sub(1);
                match attempted.is_committed() && self.left > 0 {
                    true => Phase::Read(*token),
                    false => Phase::GiveBack,
                }
            }
            _ => Phase::GiveBack,
        };
    }
}

/// The lock's number after one was added.
fn token(attempted: &Attempted) -> Option<u64> {
    let answer = attempted.answers.first().filter(|_| attempted.is_committed())?;
    match answer.outcome {
        Outcome::Value(Number::U64(token)) => Some(token),
        _ => None,
    }
}
