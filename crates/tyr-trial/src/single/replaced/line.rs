//! A class that is replaced by one installer and called by many: what calls may answer, and what
//! stands in the objects then.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tyr::blocking::Keyspace;
use tyr_object::Call;
use tyr_object::blocking::Classes;
use tyr_types::{BlobName, Error, Key, NodeId, Result};

use super::{KEYSPACE, PROBES, now_us};
use crate::cluster::Cluster;
use crate::random::Random;
use crate::single::{again, is_passing};

/// Bytes of what a call notes: its number, and the version that ran it.
const RECORD: usize = 16;

/// Who calls waits so long after each.
const PACE: Duration = Duration::from_millis(15);

/// What the classes are called, but for their numbers.
const NAMED: &str = "line_";

/// The name of the class with this number.
fn class_name(number: u64) -> String {
    format!("{NAMED}{number}")
}

/// Which version of which class this key of the service metadata has the script of.
pub(super) fn version_at(path: &str) -> Option<(usize, u32)> {
    let (class, version) = path.strip_prefix("classes/")?.split_once('/')?;
    Some((class.strip_prefix(NAMED)?.parse().ok()?, version.parse().ok()?))
}

/// A class, its installer, and who calls it.
pub(super) struct Line {
    classes: Classes,
    objects: Keyspace,
    probes: Keyspace,
    class: String,
    /// The version whose installation began last, and the one whose installation ended last.
    begun: AtomicU32,
    done: AtomicU32,
    /// When the installation of each began, in microseconds since 1970.
    begun_at_us: Mutex<BTreeMap<u32, u64>>,
    next: AtomicU64,
    /// What calls answered, by object and by the number of the call.
    told: Mutex<BTreeMap<(String, u64), u64>>,
}

impl Line {
    pub fn new(classes: &Classes, [objects, probes]: [&Keyspace; 2], number: u64) -> Result<Self> {
        let line = Self {
            classes: classes.clone(),
            objects: objects.clone(),
            probes: probes.clone(),
            class: class_name(number),
            begun: AtomicU32::new(1),
            done: AtomicU32::new(1),
            begun_at_us: Mutex::default(),
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

    /// When the installation of a version began, in microseconds since 1970.
    pub fn begun_us(&self, version: u32) -> Option<u64> {
        self.begun_at_us.lock().get(&version).copied()
    }

    /// One version after the other. Each has the number that its script says.
    pub fn install(&self, versions: RangeInclusive<u32>) -> Result<()> {
        for version in versions {
            self.begun_at_us.lock().insert(version, now_us());
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

    pub fn call_until(&self, caller: u64, is_over: &AtomicBool) -> Result<()> {
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
    pub fn ask_at(&self, cluster: &Cluster, node: NodeId) -> Result<()> {
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
    pub fn look(&self, last: u32) -> Result<()> {
        let record = self.classes.get(&self.class)?;
        match record.current == Some(last) {
            true => Ok(()),
            false => {
                Err(Error::corrupt(format!("{}: current is {:?}", self.class, record.current)))
            }
        }
    }

    /// What stands in the objects is what calls were answered; how many calls there were.
    pub fn judge(&self) -> Result<usize> {
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
