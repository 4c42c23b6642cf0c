//! Thousands of classes that mean no good are installed past every check that a client makes, and
//! called: each ends in a failure, and the nodes go on with everything else.
//!
//! ```text
//!   classes ──► the service metadata, written as it is, not by `Classes::install`
//!   callers ──► calls of them, each of which must fail ──┐
//!   others  ──► plain transactions, whose times are taken ├──► nodes: all there in the end,
//!   watcher ──► the memory of the nodes ──────────────────┘    within their memory
//! ```
//!
//! Stretches with calls and without take turns, and what others need is compared by the medians of
//! the stretches of each kind ([`calm`]): else the machine's other work would decide.

mod calm;
mod scripts;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use tyr::blocking::{Keyspace, Tyr};
use tyr::metadata::{Path, Transaction};
use tyr_object::blocking::Classes;
use tyr_object::{Call, ClassRecord, VersionRecord, keyspace_config};
use tyr_types::{Error, ErrorKind, KeyspaceConfig, Number, Result, Transform};

use self::calm::Stretches;
use self::scripts::Script;
use super::{Extent, Ground, is_passing};
use crate::client::connection::TIMEOUT;
use crate::cluster::Cluster;
use crate::cluster::process::resident_len;
use crate::random::Random;

/// Who calls, at once.
const CALLERS: u64 = 8;

/// Who does plain transactions meanwhile.
const OTHERS: u64 = 4;

/// They wait so long after each.
const PACE: Duration = Duration::from_millis(4);

/// So long after the calls of a stretch nothing of them runs any more.
const AFTER: Duration = Duration::from_millis(500);

/// Bytes of scripts that are written to the metadata at once, and how many.
const WRITTEN_MAX: usize = 512 << 10;
const TOGETHER: usize = 40;

/// Bytes that a node may have more than before: machines that are kept (256 MiB) and that run
/// (16 MiB for each core, and one for each read under way), compiled scripts (64 MiB), what 64
/// batches write, and what the node remembers of all these calls.
const RISE_MAX: u64 = 768 << 20;

/// Objects that are called at, so that each node has some.
const OBJECTS: u64 = 16;

/// The keyspaces of objects, and of plain transactions.
const KEYSPACE: &str = "hostile";
const PLAIN: &str = "plain";

const GOOD: &str = r#"return { name = "good", methods = {
    run = { kind = "call", run = function(cx, blob, input)
        return tostring(blob:transform(0, "add", "u64", 1))
    end } } }"#;

/// How much is done.
struct Plan {
    /// Stretches of each kind.
    stretches: u64,
    /// Classes that are called in one.
    classes: u64,
    /// How long one without calls lasts.
    rest: Duration,
}

impl Plan {
    fn of(ground: &Ground, extent: Extent) -> Self {
        let (stretches, classes, rest) = match extent {
            Extent::Full => (8, ground.times(10_000).div_ceil(8), Duration::from_secs(6)),
            Extent::Brief => (1, 48, Duration::from_millis(700)),
        };
        Self { stretches, classes, rest }
    }
}

pub(super) fn run(ground: &Ground, cluster: &mut Cluster, extent: Extent) -> Result<String> {
    let address = cluster.control.addresses().join(",");
    let store = Tyr::connect_options().timeout(TIMEOUT).connect_blocking(address)?;
    let objects = store.create_keyspace(KEYSPACE, keyspace_config())?;
    store.create_keyspace(PLAIN, KeyspaceConfig::default())?;
    let classes = Classes::of(&store);
    classes.install(None, GOOD.as_bytes())?;
    classes.enable("good", KEYSPACE)?;
    let nodes = cluster.numbers();
    let pids: Vec<u32> = nodes.iter().map(|node| cluster.process(*node).pid()).collect();
    let yard = Yard { store, objects, classes, is_over: AtomicBool::new(false), pids };
    let (told, stretches) = yard.play(&Plan::of(ground, extent))?;
    for object in 0..OBJECTS {
        yard.call(object, "good").map_err(|failure| {
            Error::corrupt(format!("after all that a good class fails: {failure}"))
        })?;
    }
    match (&cluster.dead()[..], extent) {
        ([], Extent::Full) => stretches.judge(told),
        ([], Extent::Brief) => Ok(format!("{told}\n{stretches}")),
        (dead, _) => Err(Error::corrupt(format!("nodes {dead:?} ended by themselves; {told}"))),
    }
}

/// Everything that happens at once.
struct Yard {
    store: Tyr,
    objects: Keyspace,
    classes: Classes,
    is_over: AtomicBool,
    pids: Vec<u32>,
}

impl Yard {
    /// Calls as many classes; answers what came of them, and what others needed.
    fn play(&self, plan: &Plan) -> Result<(String, Stretches)> {
        let (stretches, failed) = (Stretches::new(plan.stretches), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..OTHERS)
                .map(|other| {
                    let (stretches, failed) = (&stretches, &failed);
                    scope.spawn(move || self.go_on(other, failed, stretches))
                })
                .collect();
            let watcher = scope.spawn(|| self.watch());
            let told = self.take_turns(plan, &stretches);
            self.is_over.store(true, Ordering::Release);
            let broke = || Error::unavailable("a thread panicked");
            for other in others {
                other.join().map_err(|_| broke())??;
            }
            let rise = watcher.join().map_err(|_| broke())?;
            let text = format!(
                "{}; {} other transactions failed for now; the nodes had up to {} MiB more than \
                 before",
                told?,
                failed.load(Ordering::Relaxed),
                rise >> 20
            );
            match rise <= RISE_MAX {
                true => Ok(text),
                false => Err(Error::corrupt(format!("{text}; {} MiB may be", RISE_MAX >> 20))),
            }
        })
        .map(|text| (text, stretches))
    }

    /// Stretches without calls and with calls; answers what came of these.
    fn take_turns(&self, plan: &Plan, stretches: &Stretches) -> Result<String> {
        let (mut told, mut took) = (BTreeMap::new(), Duration::ZERO);
        for stretch in 0..plan.stretches {
            stretches.begin(stretch, false);
            std::thread::sleep(plan.rest);
            stretches.begin(stretch, true);
            let begun = Instant::now();
            self.call_all(stretch, plan.classes, &mut told)?;
            took += begun.elapsed();
            // What a call leaves running belongs to no stretch.
            stretches.pause();
            std::thread::sleep(AFTER);
        }
        let kinds: Vec<String> =
            told.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        Ok(format!(
            "{} hostile classes called in {:.1} s, none did anything: {}",
            plan.stretches * plan.classes,
            took.as_secs_f64(),
            kinds.join(", ")
        ))
    }

    /// Installs and calls all of a stretch, and counts what came of them.
    fn call_all(&self, stretch: u64, count: u64, told: &mut BTreeMap<String, u64>) -> Result<()> {
        let told = Mutex::new(told);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..CALLERS)
                .map(|caller| {
                    let (told, numbers) = (&told, stretch * count..(stretch + 1) * count);
                    scope.spawn(move || self.call_some(caller, numbers, told))
                })
                .collect();
            let broke = || Error::unavailable("a caller's thread panicked");
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| broke())?)
        })
    }

    fn call_some(
        &self,
        caller: u64,
        numbers: Range<u64>,
        told: &Mutex<&mut BTreeMap<String, u64>>,
    ) -> Result<()> {
        let mut random = Random::of(1 + numbers.start, "hostile", caller);
        let mut numbers = numbers.filter(|it| it % CALLERS == caller).peekable();
        while numbers.peek().is_some() {
            let (mut some, mut bytes) = (Vec::new(), 0);
            while let Some(number) = numbers.peek()
                && some.len() < TOGETHER
                && bytes < WRITTEN_MAX
            {
                let script = scripts::draw(*number, &mut random);
                bytes += script.source.len();
                some.push(script);
                numbers.next();
            }
            self.install(&some)?;
            for script in &some {
                let object = random.below(OBJECTS);
                let kind = match self.call(object, &script.class) {
                    Ok(answer) => return Err(wrong(script, &format!("it answered {answer:?}"))),
                    Err(failure) => failure.kind(),
                };
                if ![ErrorKind::InvalidArgument, ErrorKind::Unavailable].contains(&kind) {
                    return Err(wrong(script, &format!("it failed with {}", kind.name())));
                }
                *told.lock().entry(format!("{} {}", script.kind, kind.name())).or_default() += 1;
            }
            self.call(random.below(OBJECTS), "good")
                .map_err(|failure| Error::corrupt(format!("a good class fails: {failure}")))?;
        }
        Ok(())
    }

    /// Writes classes to the metadata as somebody would who goes by no client of ours.
    fn install(&self, scripts: &[Script]) -> Result<()> {
        let mut transaction = Transaction::new();
        for Script { class, source, .. } in scripts {
            let sha256 = HEXLOWER.encode(digest(&SHA256, source).as_ref());
            let bytes = source.len() as u64;
            let record = ClassRecord {
                current: Some(1),
                versions: vec![VersionRecord { number: 1, sha256, bytes, is_retired: false }],
                keyspaces: [KEYSPACE.to_owned()].into(),
            };
            let record = serde_json::to_vec(&record)
                .map_err(|error| Error::invalid(format!("a record of {class}: {error}")))?;
            transaction = transaction
                .put(Path::new(format!("classes/{class}"))?, record)
                .put(Path::new(format!("classes/{class}/1"))?, source.clone());
        }
        self.store.metadata().transact(transaction).map(drop)
    }

    fn call(&self, object: u64, class: &str) -> std::result::Result<String, tyr_object::Failure> {
        let call = Call::new(class.to_owned(), "run", "input");
        let answer = self.classes.call(&self.objects, format!("object-{object}"), &call)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Plain transactions until it is over.
    fn go_on(&self, other: u64, failed: &AtomicU64, stretches: &Stretches) -> Result<()> {
        let keyspace = self.store.keyspace(PLAIN)?;
        let (mut count, key) = (0_u64, format!("plain-{other}"));
        while !self.is_over.load(Ordering::Acquire) {
            let (stretch, begun) = (stretches.now(), Instant::now());
            let mut transaction = self.store.begin();
            transaction.append(&keyspace, format!("{key}-log"), count.to_le_bytes().to_vec())?;
            transaction.apply(&keyspace, &*key, 0, Transform::add(Number::U64(1)))?;
            match transaction.commit() {
                Ok(_) => stretches.note(stretch, begun.elapsed()),
                Err(error) if is_passing(&error) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
            count += 1;
            std::thread::sleep(PACE);
        }
        Ok(())
    }

    /// How much more memory than at first a node had at most.
    fn watch(&self) -> u64 {
        let before: Vec<u64> = self.pids.iter().map(|pid| resident_len(*pid)).collect();
        let mut rise = 0;
        while !self.is_over.load(Ordering::Acquire) {
            for (pid, before) in self.pids.iter().zip(&before) {
                rise = rise.max(resident_len(*pid).saturating_sub(*before));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        rise
    }
}

fn wrong(script: &Script, what: &str) -> Error {
    let source = String::from_utf8_lossy(&script.source);
    let source: String = source.chars().take(600).collect();
    Error::corrupt(format!("{} ({}): {what}; it begins: {source}", script.class, script.kind))
}
