//! A node that was killed and comes back: how long until it serves again, and what that takes of
//! it and of those who write meanwhile.
//!
//! ```text
//! fill ─► pause ─► kill node 0 ─► change some blobs, 8 s long ─► start it ─► it is ready ─► verify
//!          └──────────────── another client writes on ────────────────────────┘
//! ```
//!
//! Three nodes on this machine hold everything. Node 0 is the authority of all of it (the first of
//! a chunk's holders in node order is), so that others take over from it, and it from them.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tyr::blocking::{Keyspace, Tyr};
use tyr::{Error, KeyspaceConfig, Result};
use tyr_server::NodeReport;

use super::cluster::{NODES, Processes, READY_MAX};
use super::filling::{Filling, content, key};
use super::meter::{self, Figures, Moment};
use crate::dev::{Children, Layout, Ports};
use crate::failure::Outcome;

/// The node that is killed.
const NODE: u16 = 0;
/// How long nothing but one client writes before it is: what came at the last moment may not be
/// known to all, and is copied (D5).
const QUIET: Duration = Duration::from_secs(3);
/// How long it is away: others have declared it down by then, and gone on without it.
const AWAY: Duration = Duration::from_secs(8);
/// How long it may take to return.
const RETURN_MAX: Duration = Duration::from_secs(600);
/// From one write of the other client to its next.
const PAUSE: Duration = Duration::from_millis(5);
/// How long it goes on when the node is ready.
const AFTER: Duration = Duration::from_secs(2);
/// How long a node has to say how it stands.
const STATUS_MAX: Duration = Duration::from_secs(10);

/// What the cluster holds, and what changes while the node is away.
#[derive(Clone, Copy, Debug)]
pub struct Absence {
    /// What it holds.
    pub filling: Filling,
    /// How many of them change.
    pub changed: u64,
}

/// Fills a cluster in `dir`, kills a node, changes something, and starts the node again.
pub fn run(dir: &Path, absence: Absence) -> Outcome<Figures> {
    let folder = |error| Error::io(format!("cannot make {}", dir.display()), error);
    fs::create_dir_all(dir).map_err(folder)?;
    let layout = Layout::find_or_make(dir, NODES, Ports::Any)?;
    let mut children = Children::start(&layout, dir)?;
    let figures = children
        .wait_until_ready(READY_MAX)
        .and_then(|()| measure(&layout, &mut children, absence));
    children.stop();
    figures
}

fn measure(layout: &Layout, children: &mut Children, absence: Absence) -> Outcome<Figures> {
    let mut figures = Figures::default();
    let store = Tyr::connect(layout.address())?;
    let keyspace = store.create_keyspace("returning", KeyspaceConfig::default())?;
    let blobs = Blobs { keyspace: &keyspace, absence };
    let begin = Instant::now();
    absence.filling.write(&store, &keyspace)?;
    figures.set("fill_s", begin.elapsed().as_secs_f64());

    let writing = Writing::default();
    let (away, waits) = thread::scope(|scope| {
        let writer = scope.spawn(|| writing.run(&keyspace));
        let away = be_away(layout, children, &blobs, &writing, &mut figures);
        writing.is_over.store(true, Ordering::Relaxed);
        (away, writer.join().expect("a benchmark thread does not panic"))
    });
    away?;
    waits?;
    let longest_ms = |wait: &AtomicU64| wait.load(Ordering::Relaxed) as f64 / 1e6;
    figures.set("wait_ms_max", longest_ms(&writing.longest));
    figures.set("wait_returning_ms_max", longest_ms(&writing.longest_returning));
    blobs.verify()?;
    drop(keyspace);
    store.close()?;
    Ok(figures)
}

/// The node goes, something changes, the node comes back.
fn be_away(
    layout: &Layout,
    children: &mut Children,
    blobs: &Blobs<'_>,
    writing: &Writing,
    figures: &mut Figures,
) -> Outcome {
    thread::sleep(QUIET);
    let begin = Instant::now();
    if !children.kill(NODE) {
        return Err(Error::unavailable("the node that was to be killed had ended").into());
    }
    let others = Processes::new(children.ids());
    blobs.change(begin)?;
    thread::sleep(AWAY.saturating_sub(begin.elapsed()));

    let (moment, others_cpu) = (Moment::now(), others.nodes_cpu());
    writing.is_returning.store(true, Ordering::Relaxed);
    children.begin(NODE)?;
    let process = *children.ids().last().expect("one was just started");
    children.wait_for_ready(1, RETURN_MAX)?;
    let cost = moment.cost();
    figures.set("ready_s", cost.wall.as_secs_f64());
    figures.set("node_cpu_s", Processes::new(vec![process]).nodes_cpu().as_secs_f64());
    let others_cpu = others.nodes_cpu().saturating_sub(others_cpu);
    figures.set("others_cpu_s", others_cpu.as_secs_f64());
    figures.set("node_resident_mib", meter::memory_mib_of(process, "VmRSS"));
    figures.set("node_peak_mib", meter::memory_mib_of(process, "VmHWM"));

    let movement = status(layout.nodes[usize::from(NODE)].http)?.movement;
    figures.set("compared", movement.compared as f64);
    figures.set("copied", movement.copied as f64);
    figures.set("copied_mib", movement.bytes as f64 / f64::from(1 << 20));
    let absence = blobs.absence;
    let changed = absence.changed * absence.filling.len;
    figures.set("copied_per_changed", movement.bytes as f64 / changed as f64);
    thread::sleep(AFTER);
    Ok(())
}

/// How a node stands, as it says itself.
fn status(http: SocketAddr) -> Result<NodeReport> {
    let place = || format!("node {NODE} does not say at {http} how it stands");
    let ask = || {
        let mut stream = TcpStream::connect_timeout(&http, STATUS_MAX)?;
        stream.set_read_timeout(Some(STATUS_MAX))?;
        stream.write_all(b"GET /status HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().map_err(|error| Error::io(place(), error))?;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    serde_json::from_str(body).map_err(|error| Error::unavailable(place()).with_source(error))
}

/// What the cluster is filled with.
struct Blobs<'a> {
    keyspace: &'a Keyspace,
    absence: Absence,
}

impl Blobs<'_> {
    /// Changes some, at equal times while the node is away, since `begin`.
    fn change(&self, begin: Instant) -> Result<()> {
        let Absence { filling, changed } = self.absence;
        for (count, number) in (0..).zip(self.changed()) {
            let due = AWAY.mul_f64(f64::from(count) / changed as f64);
            thread::sleep(due.saturating_sub(begin.elapsed()));
            self.keyspace.put(key(number), content(number, 1, filling.len))?;
        }
        Ok(())
    }

    /// Which: some of everywhere.
    fn changed(&self) -> impl Iterator<Item = u64> {
        let Absence { filling, changed } = self.absence;
        (0..changed).map(move |count| count * filling.blobs / changed)
    }

    /// What was changed reads so.
    fn verify(&self) -> Result<()> {
        for number in self.changed() {
            if self.keyspace.get(key(number))? != content(number, 1, self.absence.filling.len) {
                return Err(Error::corrupt(format!("blob {number} is not what was written")));
            }
        }
        Ok(())
    }
}

/// A client that writes a few bytes again and again, all the time.
#[derive(Default)]
struct Writing {
    is_over: AtomicBool,
    is_returning: AtomicBool,
    /// The longest wait for an answer, in nanoseconds.
    longest: AtomicU64,
    /// The same of what began when the node was started again.
    longest_returning: AtomicU64,
}

impl Writing {
    fn run(&self, keyspace: &Keyspace) -> Result<()> {
        for number in 0_u64.. {
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
            let is_returning = self.is_returning.load(Ordering::Relaxed);
            let begin = Instant::now();
            keyspace.put(format!("beside/{}", number % 16), number.to_le_bytes().to_vec())?;
            let waited = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.longest.fetch_max(waited, Ordering::Relaxed);
            if is_returning {
                self.longest_returning.fetch_max(waited, Ordering::Relaxed);
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}
