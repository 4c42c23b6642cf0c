//! Classes are replaced again and again while they are called and nodes are killed: each call ran
//! on the version that its record in the object says, none on one that was replaced before it
//! began, and a node that comes back runs the current one.
//!
//! ```text
//!   installer (a class each)   install 1, install 2, ...    begun, done: which may run when
//!   callers (a class each)     note(id) at an object ──► the version; so it stands in the object
//!   watchers                   hear of each, and when
//!   killer                     kill, start, call at the node that came back
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr::blocking::{Keyspace, Tyr};
use tyr_object::blocking::Classes;
use tyr_object::{Call, ClassRecord, keyspace_config};
use tyr_types::{BlobName, Error, Key, KeyspaceConfig, NodeId, Result};

use super::{Extent, Ground, Times, again, is_passing};
use crate::client::connection::TIMEOUT;
use crate::cluster::{Cluster, PATIENCE};
use crate::random::Random;

/// The keyspace of the objects, and one of which each node has a part to itself, where nodes that
/// come back are asked.
const KEYSPACE: &str = "replaced";
const PROBES: &str = "probes";

/// Bytes of what a call notes: its number, and the version that ran it.
const RECORD: usize = 16;

/// Who calls waits so long after each.
const PACE: Duration = Duration::from_millis(15);

/// How much is done.
struct Plan {
    classes: u64,
    /// Versions of each.
    versions: u32,
    watchers: usize,
    callers: u64,
    kills: bool,
}

pub(super) fn run(_ground: &Ground, cluster: &mut Cluster, extent: Extent) -> Result<String> {
    let plan = match extent {
        Extent::Full => Plan { classes: 10, versions: 100, watchers: 120, callers: 2, kills: true },
        Extent::Brief => Plan { classes: 3, versions: 3, watchers: 6, callers: 1, kills: false },
    };
    let address = cluster.control.addresses().join(",");
    let store = Tyr::connect_options().timeout(TIMEOUT).connect_blocking(&address)?;
    let objects = store.create_keyspace(KEYSPACE, keyspace_config())?;
    let probes = KeyspaceConfig { replication: 1, ..keyspace_config() };
    let probes = store.create_keyspace(PROBES, probes)?;
    let classes = Classes::of(&store);
    let lines = (0..plan.classes).map(|number| Line::new(&classes, [&objects, &probes], number));
    let lines = lines.collect::<Result<Vec<_>>>()?;
    let watched = Watched::new(&lines);
    let is_over = AtomicBool::new(false);
    let connect = || Tyr::connect_options().timeout(TIMEOUT).connect_blocking(&address);
    let stores = (0..plan.watchers.div_ceil(10)).map(|_| connect()).collect::<Result<Vec<_>>>()?;
    let kills = std::thread::scope(|scope| {
        let watchers: Vec<_> = (0..plan.watchers)
            .map(|number| {
                scope.spawn({
                    let (store, watched, is_over) = (&stores[number / 10], &watched, &is_over);
                    move || watched.follow(store, is_over)
                })
            })
            .collect();
        let versions = plan.versions;
        let installers: Vec<_> =
            lines.iter().map(|line| scope.spawn(move || line.install(versions))).collect();
        let callers: Vec<_> = (0..plan.classes * plan.callers)
            .map(|number| {
                scope.spawn({
                    let (line, is_over) = (&lines[(number % plan.classes) as usize], &is_over);
                    move || line.call_until(number, is_over)
                })
            })
            .collect();
        let is_installed = || installers.iter().all(|it| it.is_finished());
        let kills = match plan.kills {
            true => kill_until(cluster, &lines, &is_installed),
            false => Ok(0),
        };
        let broke = || Error::unavailable("a thread panicked");
        let installed: Result<()> =
            installers.into_iter().try_for_each(|it| it.join().map_err(|_| broke())?);
        is_over.store(true, Ordering::Release);
        for thread in watchers.into_iter().chain(callers) {
            thread.join().map_err(|_| broke())??;
        }
        installed.and(kills)
    })?;
    let mut calls = 0;
    for line in &lines {
        line.look(plan.versions)?;
        calls += line.judge()?;
    }
    let (first, rest) = (watched.first.into_inner(), watched.rest.into_inner());
    Ok(format!(
        "{} replacements of {} classes, {calls} calls, {kills} nodes killed and back: each call \
         ran on the version that its object says\nan installation was told to the first of {} \
         watchers {first} after it began, to the others {rest} later",
        plan.classes * u64::from(plan.versions),
        plan.classes,
        plan.watchers,
    ))
}

/// A class, its installer, and who calls it.
struct Line {
    classes: Classes,
    objects: Keyspace,
    probes: Keyspace,
    class: String,
    /// The version whose installation began last, and the one whose installation ended last.
    begun: AtomicU32,
    done: AtomicU32,
    /// When the installation of each began.
    begun_at: Mutex<BTreeMap<u32, Instant>>,
    next: AtomicU64,
    /// What calls answered, by object and by the number of the call.
    told: Mutex<BTreeMap<(String, u64), u64>>,
}

impl Line {
    fn new(classes: &Classes, [objects, probes]: [&Keyspace; 2], number: u64) -> Result<Self> {
        let line = Self {
            classes: classes.clone(),
            objects: objects.clone(),
            probes: probes.clone(),
            class: format!("line_{number}"),
            begun: AtomicU32::new(1),
            done: AtomicU32::new(1),
            begun_at: Mutex::default(),
            next: AtomicU64::new(1),
            told: Mutex::default(),
        };
        line.classes.install(None, line.script(1).as_bytes())?;
        line.classes.enable(&line.class, KEYSPACE)?;
        line.classes.enable(&line.class, PROBES)?;
        Ok(line)
    }

    fn script(&self, version: u32) -> String {
        format!(
            r#"return {{ name = "{}", methods = {{
                note = {{ kind = "call", run = function(cx, blob, input)
                    local record = buffer.create({RECORD})
                    buffer.copy(record, 0, input, 0, 8)
                    buffer.writeu32(record, 8, {version})
                    blob:append(record)
                    return "{version}"
                end }},
                say = {{ kind = "query", run = function() return "{version}" end }} }} }}"#,
            self.class
        )
    }

    /// One version after the other. Each has the number that its script says.
    fn install(&self, versions: u32) -> Result<()> {
        for version in 2..=versions + 1 {
            self.begun_at.lock().insert(version, Instant::now());
            self.begun.store(version, Ordering::Release);
            let script = self.script(version);
            // Who asks again after an outcome that nobody knows finds that it is there.
            let done = again(|| self.classes.install(None, script.as_bytes()))?;
            if done.version != version {
                let text = format!("version {version} of {} got {}", self.class, done.version);
                return Err(Error::corrupt(text));
            }
            self.done.store(version, Ordering::Release);
        }
        Ok(())
    }

    fn call_until(&self, caller: u64, is_over: &AtomicBool) -> Result<()> {
        let mut random = Random::of(1, "replaced", caller);
        while !is_over.load(Ordering::Acquire) {
            let key = format!("{}-object-{}", self.class, random.below(4));
            match self.note(&key) {
                Err(error) if !is_passing(&error) => return Err(error),
                _ => std::thread::sleep(PACE),
            }
        }
        Ok(())
    }

    /// A call, which ran on a version that was current while it was under way.
    fn note(&self, key: &str) -> Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let told = self.current(|| {
            let call = Call::new(self.class.clone(), "note", number.to_le_bytes().to_vec());
            self.classes.call(&self.objects, key, &call)
        })?;
        self.told.lock().insert((key.to_owned(), number), told.into());
        Ok(())
    }

    /// What a call answers, which is to be a version that was current while it was under way.
    fn current(
        &self,
        call: impl FnOnce() -> std::result::Result<tyr::Bytes, tyr_object::Failure>,
    ) -> Result<u32> {
        let from = self.done.load(Ordering::Acquire);
        let answer = call()?;
        let to = self.begun.load(Ordering::Acquire);
        let version = std::str::from_utf8(&answer).ok().and_then(|text| text.parse().ok());
        match version {
            Some(version) if (from..=to).contains(&version) => Ok(version),
            _ => Err(Error::corrupt(format!(
                "a call of {} ran on {version:?}, and current were {from} to {to}",
                self.class
            ))),
        }
    }

    /// Asks at a node which version it runs.
    fn ask_at(&self, cluster: &Cluster, node: NodeId) -> Result<()> {
        let map = cluster.control.map()?;
        let is_there = |key: &String| {
            let name =
                Key::new(key.as_bytes()).map(|key| BlobName { keyspace: self.probes.id(), key });
            name.is_ok_and(|name| map.holders(&name, 0).first() == Some(&node))
        };
        let key = (0..1_000).map(|number| format!("probe-{number}")).find(is_there);
        let key = key.ok_or_else(|| Error::unavailable("a node is the authority of nothing"))?;
        again(|| {
            self.current(|| {
                let call = Call::new(self.class.clone(), "say", "");
                self.classes.call(&self.probes, &*key, &call)
            })
        })
        .map(drop)
    }

    /// What is current in the end is the last one.
    fn look(&self, versions: u32) -> Result<()> {
        let record = self.classes.get(&self.class)?;
        match record.current == Some(versions + 1) {
            true => Ok(()),
            false => {
                Err(Error::corrupt(format!("{}: current is {:?}", self.class, record.current)))
            }
        }
    }

    /// What stands in the objects is what calls were answered; how many calls there were.
    fn judge(&self) -> Result<usize> {
        let mut told = std::mem::take(&mut *self.told.lock());
        let calls = told.len();
        for object in 0..4 {
            let key = format!("{}-object-{object}", self.class);
            let found = match self.objects.get(&*key) {
                Err(error) if error.kind() == tyr_types::ErrorKind::NotFound => continue,
                found => found?,
            };
            let (records, rest) = found.as_chunks::<RECORD>();
            if !rest.is_empty() {
                return Err(Error::corrupt(format!("{key} has {} bytes", found.len())));
            }
            for record in records {
                let (words, _) = record.as_chunks::<8>();
                let (number, version) =
                    (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]));
                // One whose outcome nobody knew was answered nothing.
                if let Some(answered) = told.remove(&(key.clone(), number))
                    && answered != version
                {
                    let text = format!("call {number} answered {answered} and noted {version}");
                    return Err(Error::corrupt(text));
                }
            }
        }
        match told.first_key_value() {
            None => Ok(calls),
            Some(((key, number), _)) => {
                Err(Error::corrupt(format!("call {number} was answered and is not in {key}")))
            }
        }
    }
}

/// When watchers hear of versions.
struct Watched<'a> {
    lines: &'a [Line],
    /// When the first heard of a version of a class.
    heard: Mutex<BTreeMap<(String, u32), Instant>>,
    first: Mutex<Times>,
    rest: Mutex<Times>,
}

impl<'a> Watched<'a> {
    fn new(lines: &'a [Line]) -> Self {
        let (first, rest) = (Mutex::default(), Mutex::default());
        Self { lines, heard: Mutex::default(), first, rest }
    }

    fn follow(&self, store: &Tyr, is_over: &AtomicBool) -> Result<()> {
        let begin = || {
            let page = again(|| store.metadata().list("classes/", None, 1))?;
            Ok::<_, Error>(store.metadata().watch("classes/", page.revision))
        };
        let mut watch = begin()?;
        while !is_over.load(Ordering::Acquire) {
            let told = match watch.next_within(Duration::from_millis(200)) {
                Ok(told) => told,
                Err(error) if is_passing(&error) => {
                    watch = begin()?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let now = Instant::now();
            for change in told.into_iter().flat_map(|told| told.changes) {
                let name = change.path.as_str().trim_start_matches("classes/");
                let line = self.lines.iter().find(|line| line.class == name);
                let (Some(line), Some(value)) = (line, change.value) else { continue };
                let record = serde_json::from_slice::<ClassRecord>(&value)
                    .map_err(|error| Error::corrupt(format!("the record of {name}: {error}")))?;
                self.note(line, record.current.unwrap_or_default(), now);
            }
        }
        Ok(())
    }

    fn note(&self, line: &Line, version: u32, now: Instant) {
        let Some(begun) = line.begun_at.lock().get(&version).copied() else { return };
        let mut heard = self.heard.lock();
        match heard.get(&(line.class.clone(), version)) {
            Some(first) => self.rest.lock().extend([now.saturating_duration_since(*first)]),
            None => {
                heard.insert((line.class.clone(), version), now);
                self.first.lock().extend([now.saturating_duration_since(begun)]);
            }
        }
    }
}

/// Kills a node, starts it again, and asks it which versions it runs, until all is installed.
fn kill_until(
    cluster: &mut Cluster,
    lines: &[Line],
    is_installed: &dyn Fn() -> bool,
) -> Result<u64> {
    let (mut random, mut kills) = (Random::of(1, "replaced", u64::MAX), 0);
    while !is_installed() {
        let node = random.pick(&cluster.numbers());
        cluster.process(node).kill();
        std::thread::sleep(Duration::from_millis(random.below(1_500)));
        cluster.start(node)?;
        cluster.wait_until_whole(PATIENCE)?;
        lines.iter().try_for_each(|line| line.ask_at(cluster, NodeId(node)))?;
        kills += 1;
        std::thread::sleep(Duration::from_millis(random.below(2_000)));
    }
    Ok(kills)
}
