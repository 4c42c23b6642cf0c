//! Thousands of classes that mean no good are installed past every check that a client makes, and
//! called: each ends in a failure, and the nodes go on with everything else.
//!
//! ```text
//!   classes ──► the service metadata, written as it is, not by `Classes::install`
//!   callers ──► calls of them, each of which must fail ──┐
//!   others  ──► plain transactions, whose times are taken ├──► nodes: all there in the end,
//!   watcher ──► the memory of the nodes ──────────────────┘    within their memory
//! ```

mod scripts;

use std::collections::BTreeMap;
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

use self::scripts::Script;
use super::{Extent, Ground, Times, is_passing};
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

pub(super) fn run(_ground: &Ground, cluster: &mut Cluster, extent: Extent) -> Result<String> {
    let (count, rest) = match extent {
        Extent::Full => (10_000, Duration::from_secs(10)),
        Extent::Brief => (48, Duration::from_millis(700)),
    };
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
    let (told, others) = yard.play(count, rest)?;
    for object in 0..OBJECTS {
        yard.call(object, "good").map_err(|failure| {
            Error::corrupt(format!("after all that a good class fails: {failure}"))
        })?;
    }
    match &cluster.dead()[..] {
        [] => Ok(format!("{told}\n{others}")),
        dead => Err(Error::corrupt(format!("nodes {dead:?} ended by themselves; {told}"))),
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
    /// Calls as many classes; answers what came of them, and of the others.
    fn play(&self, count: u64, rest: Duration) -> Result<(String, String)> {
        let (calm, during) = (Mutex::new(Times::default()), Mutex::new(Times::default()));
        let (is_calm, failed) = (AtomicBool::new(true), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..OTHERS)
                .map(|other| {
                    let (calm, during, is_calm, failed) = (&calm, &during, &is_calm, &failed);
                    scope.spawn(move || {
                        self.go_on(other, failed, |took| {
                            let times = if is_calm.load(Ordering::Acquire) { calm } else { during };
                            times.lock().extend([took]);
                        })
                    })
                })
                .collect();
            let watcher = scope.spawn(|| self.watch());
            std::thread::sleep(rest);
            is_calm.store(false, Ordering::Release);
            let told = self.call_all(count);
            self.is_over.store(true, Ordering::Release);
            let broke = || Error::unavailable("a thread panicked");
            for other in others {
                other.join().map_err(|_| broke())??;
            }
            let rise = watcher.join().map_err(|_| broke())?;
            let text = format!(
                "other transactions: before {}, meanwhile {}, {} failed for now; the nodes had up \
                 to {} MiB more than before",
                calm.lock(),
                during.lock(),
                failed.load(Ordering::Relaxed),
                rise >> 20
            );
            match rise <= RISE_MAX {
                true => Ok((told?, text)),
                false => Err(Error::corrupt(format!("{text}; {} MiB may be", RISE_MAX >> 20))),
            }
        })
    }

    /// Installs and calls all, and counts what came of them.
    fn call_all(&self, count: u64) -> Result<String> {
        let begun = Instant::now();
        let told = Mutex::new(BTreeMap::<String, u64>::new());
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..CALLERS)
                .map(|caller| {
                    let told = &told;
                    scope.spawn(move || self.call_some(caller, count, told))
                })
                .collect();
            let broke = || Error::unavailable("a caller's thread panicked");
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| broke())?)
        })?;
        let kinds: Vec<String> =
            told.into_inner().iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        Ok(format!(
            "{count} hostile classes called in {:.1} s, none did anything: {}",
            begun.elapsed().as_secs_f64(),
            kinds.join(", ")
        ))
    }

    fn call_some(
        &self,
        caller: u64,
        count: u64,
        told: &Mutex<BTreeMap<String, u64>>,
    ) -> Result<()> {
        let mut random = Random::of(1, "hostile", caller);
        let mut numbers = (0..count).filter(|it| it % CALLERS == caller).peekable();
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
    fn go_on(&self, other: u64, failed: &AtomicU64, took: impl Fn(Duration)) -> Result<()> {
        let keyspace = self.store.keyspace(PLAIN)?;
        let (mut count, key) = (0_u64, format!("plain-{other}"));
        while !self.is_over.load(Ordering::Acquire) {
            let begun = Instant::now();
            let mut transaction = self.store.begin();
            transaction.append(&keyspace, format!("{key}-log"), count.to_le_bytes().to_vec())?;
            transaction.apply(&keyspace, &*key, 0, Transform::add(Number::U64(1)))?;
            match transaction.commit() {
                Ok(_) => took(begun.elapsed()),
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
