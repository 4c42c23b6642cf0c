//! A holder of a lock stands still past its lease; another gets the lock and writes; the first goes
//! on, and writes too (K4). The token that its transaction compares refuses it, each time.
//!
//! ```text
//!   holder (a process)  lock, append ── SIGSTOP ─────────────────────── SIGCONT, append: refused
//!   rival                                   lock, append ── unlock? ──┘
//! ```
//!
//! Without the compare the write takes effect, and the check of histories must say so of each lock:
//! else nobody would notice if the compare were lost.

use std::sync::Arc;
use std::time::Duration;

use tyr::LeaseOptions;
use tyr::blocking::{Keyspace, Tyr};
use tyr_types::{Error, ErrorKind, Result};

use super::{Extent, Ground, again, checked_again, is_passing};
use crate::check;
use crate::client::connection::TIMEOUT;
use crate::client::{Caller, connect};
use crate::cluster::Cluster;
use crate::history::{Book, Moment, Scribe, Step};
use crate::puppet::{self, Order, Puppet};
use crate::random::Random;
use crate::workload::{Stage, Workload, locks};

/// How long the rival waits for the lock.
const WAIT: Duration = Duration::from_secs(10);

/// How often a step is tried whose answer says nothing: a busy machine may lose a lease.
const TRIES: u32 = 20;

/// How many holders there are at once, and how often each stands still.
struct Rounds {
    holders: u64,
    each: u64,
}

impl Rounds {
    fn of(extent: Extent, is_fenced: bool) -> Self {
        match (extent, is_fenced) {
            (Extent::Full, true) => Self { holders: 25, each: 40 },
            (Extent::Full, false) => Self { holders: 20, each: 2 },
            (Extent::Brief, true) => Self { holders: 6, each: 1 },
            (Extent::Brief, false) => Self { holders: 2, each: 1 },
        }
    }
}

/// With the compare: refused, each time.
pub(super) fn fenced(ground: &Ground, cluster: &mut Cluster, extent: Extent) -> Result<String> {
    let rounds = Rounds::of(extent, true);
    let (wanted, ring) = (rounds.holders * rounds.each, Ring::new(ground, cluster, true)?);
    let refused = ring.play(&rounds)?;
    let wrong = ring.anomalies()?;
    let text = format!(
        "{refused} of {wanted} holders that stood still past their lease and wrote when they went \
         on were refused"
    );
    if refused != wanted || !wrong.is_empty() {
        return Err(Error::corrupt(format!("{text}; {}", wrong.join("; "))));
    }
    match extent {
        Extent::Brief => Ok(text),
        Extent::Full => checked_again(&ground.folder.join(name(true)), text),
    }
}

/// Without it: none is, and the check says so of each lock.
pub(super) fn unfenced(ground: &Ground, cluster: &mut Cluster, extent: Extent) -> Result<String> {
    let rounds = Rounds::of(extent, false);
    let (wanted, ring) = (rounds.holders * rounds.each, Ring::new(ground, cluster, false)?);
    let refused = ring.play(&rounds)?;
    let wrong = ring.anomalies()?;
    let is_named = |key: &String| wrong.iter().any(|it| it.contains(&format!("{key}: ")));
    let named = (0..rounds.holders)
        .flat_map(|holder| (0..rounds.each).map(move |round| ring_key(false, holder, round)))
        .filter(is_named)
        .count() as u64;
    let text = format!(
        "without the compare {} of {wanted} wrote under a lock that another had got, and the check \
         named {named} of them",
        wanted - refused
    );
    match (refused, named == wanted) {
        (0, true) => Ok(text),
        _ => Err(Error::corrupt(text)),
    }
}

/// The locks, those who hold them, and what they did.
struct Ring {
    stage: Stage,
    book: Arc<Book>,
    rival: Tyr,
    keyspace: Keyspace,
    is_fenced: bool,
}

impl Ring {
    fn new(ground: &Ground, cluster: &Cluster, is_fenced: bool) -> Result<Self> {
        let workload = Workload::Locks;
        let caller = Caller::new(&connect(&cluster.control)?, "fencing", &workload.config())?;
        let book = Arc::new(Book::create(&ground.folder.join(name(is_fenced)))?);
        let mut stage = Stage::new(workload, caller, &book, 1);
        let addresses = cluster.control.addresses().to_vec();
        let rival = Tyr::connect_options().timeout(TIMEOUT);
        let rival = rival.connect_blocking(addresses.join(","))?;
        let keyspace = rival.keyspace("fencing")?;
        stage.puppets =
            puppet::Plan { addresses, keyspaces: vec!["fencing".to_owned()], ..Default::default() };
        Ok(Self { stage, book, rival, keyspace, is_fenced })
    }

    /// All holders at once; answers how many writes were refused of those who went on.
    fn play(&self, rounds: &Rounds) -> Result<u64> {
        let refused = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..rounds.holders)
                .map(|holder| scope.spawn(move || self.hold(holder, rounds.each)))
                .collect();
            let broke = || Error::unavailable("a holder's thread panicked");
            threads.into_iter().map(|thread| thread.join().map_err(|_| broke())?).sum()
        });
        let mut scribe = Scribe::new(&self.book, self.stage.workload.name());
        for holder in 0..rounds.holders {
            for round in 0..rounds.each {
                let key = ring_key(self.is_fenced, holder, round);
                locks::look(&self.stage, &mut scribe, "final", &key)?;
            }
        }
        refused
    }

    fn anomalies(&self) -> Result<Vec<String>> {
        Ok(check::check(&self.book.events()?).anomalies)
    }

    fn hold(&self, holder: u64, rounds: u64) -> Result<u64> {
        let mut random = Random::of(self.stage.seed, "fencing", holder);
        let (mut puppet, mut refused) = (None, 0);
        for round in 0..rounds {
            let key = ring_key(self.is_fenced, holder, round);
            let client = Puppet::of(&mut puppet, &self.stage.puppets)?;
            refused += u64::from(self.round(client, &key, &mut random)?);
        }
        Ok(refused)
    }

    /// Whether the write of who stood still was refused.
    fn round(&self, client: &mut Puppet, key: &str, random: &mut Random) -> Result<bool> {
        let mut scribe = Scribe::new(&self.book, self.stage.workload.name());
        let token = again(|| locks::take(client, &mut scribe, key))?;
        self.write(client, &mut scribe, (key, token), None)?;
        client.pause();
        let other = self.take_and_write(key)?;
        let is_left = random.below(2) == 0;
        if is_left {
            let steps = vec![Step::Unlock { key: key.to_owned(), token: other.token() }];
            let mut scribe = Scribe::new(&self.book, self.stage.workload.name());
            passed(scribe.record("unlock", Moment::Strict, steps, |_| other.unlock()))?;
        }
        // What it is to do lies in its pipe when it goes on, or it is told so later.
        let going = if random.below(2) == 0 { Going::Told } else { Going::Asleep };
        let is_refused = self.write(client, &mut scribe, (key, token), Some(going))?;
        locks::ask_held(client, &mut scribe, key, token)?;
        Ok(is_refused)
    }

    /// Another gets the lock, and writes under it.
    fn take_and_write(&self, key: &str) -> Result<tyr::blocking::Lock> {
        let mut scribe = Scribe::new(&self.book, self.stage.workload.name());
        let lasts = Duration::from_millis(locks::LASTS_MS);
        let options = LeaseOptions::exclusive().duration(lasts).wait(WAIT);
        let lock = again(|| {
            let steps = vec![Step::Lock { key: key.to_owned(), token: None }];
            let mut got = None;
            scribe.record("lock", Moment::Strict, steps, |steps| {
                let lock = got.insert(self.keyspace.lock(key, &options)?);
                steps[0] = Step::Lock { key: key.to_owned(), token: Some(lock.token()) };
                Ok(())
            })?;
            got.ok_or_else(|| Error::unavailable("a lock that is none"))
        })?;
        let (token, value) = (lock.token(), self.stage.value());
        let step = |at| Step::Fenced { key: key.to_owned(), token, value, at };
        let done = scribe.record("fenced", Moment::Strict, vec![step(None)], |steps| {
            let mut transaction = self.rival.begin();
            transaction.fence(&lock)?;
            let record = [token.to_le_bytes(), value.to_le_bytes()].concat();
            let id = transaction.append(&self.keyspace, locks::guarded(key), record)?;
            let offset = transaction.commit()?.offset(id);
            steps[0] = step(offset.map(|offset| offset / locks::RECORD));
            Ok(())
        });
        passed(done).map(|()| lock)
    }

    /// The holder writes; whether that was refused. `going` is how one that stands still goes on.
    fn write(
        &self,
        client: &mut Puppet,
        scribe: &mut Scribe,
        (key, token): (&str, u64),
        going: Option<Going>,
    ) -> Result<bool> {
        let mut first = going;
        for _ in 0..TRIES {
            let (value, guarded) = (self.stage.value(), locks::guarded(key));
            let order = match going.is_none() || self.is_fenced {
                true => Order::Fenced { key: guarded, value },
                false => Order::Unfenced { key: guarded, value },
            };
            let step = |at| Step::Fenced { key: key.to_owned(), token, value, at };
            let going = first.take();
            let done = scribe.record("fenced", Moment::Strict, vec![step(None)], |steps| {
                let offset = match going {
                    None => client.ask(&order),
                    Some(Going::Told) => {
                        client.send(&order)?;
                        client.resume();
                        client.hear()
                    }
                    Some(Going::Asleep) => {
                        client.resume();
                        client.ask(&order)
                    }
                }?;
                steps[0] = step(Some(offset / locks::RECORD));
                Ok(())
            });
            match done {
                Ok(()) => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Conflict => return Ok(true),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::unavailable(format!("what becomes of a write under {key} is not told")))
    }
}

/// How a holder that stands still goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Going {
    /// What it is to do is told while it stands still: it is the first that it does.
    Told,
    /// It is told when it goes on.
    Asleep,
}

/// A machine that is too slow for what its lease was got for is no matter here: it was got.
fn passed(done: Result<()>) -> Result<()> {
    match done {
        Err(error) if is_passing(&error) => Ok(()),
        done => done,
    }
}

fn name(is_fenced: bool) -> &'static str {
    if is_fenced { "fenced.jsonl" } else { "unfenced.jsonl" }
}

fn ring_key(is_fenced: bool, holder: u64, round: u64) -> String {
    let kind = if is_fenced { "fenced" } else { "unfenced" };
    format!("{kind}-{holder}-{round}")
}
