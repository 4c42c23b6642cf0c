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
//!
//! First nobody is killed, and times are judged: who watches at a node that is killed hears of
//! nothing until it has found another. Then as many replacements come while nodes are killed.

mod line;
mod watched;

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tyr::blocking::Tyr;
use tyr_object::blocking::Classes;
use tyr_object::keyspace_config;
use tyr_types::{Error, KeyspaceConfig, NodeId, Result};

use self::line::Line;
use self::watched::{Commits, Watched};
use super::{Extent, Ground};
use crate::client::connection::TIMEOUT;
use crate::cluster::{Cluster, PATIENCE};
use crate::random::Random;

/// The keyspace of the objects, and one of which each node has a part to itself, where nodes that
/// come back are asked.
const KEYSPACE: &str = "replaced";
const PROBES: &str = "probes";

/// Watchers that share a connection.
const TOGETHER: usize = 10;

/// Before the first installation all watchers are to be there.
const BEFORE: Duration = Duration::from_secs(1);

/// How much is done.
struct Plan {
    classes: u64,
    /// Replacements of each class: while nobody is killed, and again while nodes are.
    each: u32,
    watchers: usize,
    callers: u64,
    /// Whether nodes are killed, and times judged.
    is_full: bool,
}

impl Plan {
    fn of(ground: &Ground, extent: Extent) -> Self {
        match extent {
            Extent::Full => {
                let each = u32::try_from(ground.times(1_000).div_ceil(10)).unwrap_or(u32::MAX);
                Self { classes: 10, each, watchers: 120, callers: 2, is_full: true }
            }
            Extent::Brief => Self { classes: 3, each: 3, watchers: 6, callers: 1, is_full: false },
        }
    }

    /// The versions that are installed while nobody is killed, and while nodes are.
    fn parts(&self) -> [RangeInclusive<u32>; 2] {
        [2..=self.each + 1, self.each + 2..=2 * self.each + 1]
    }
}

pub(super) fn run(ground: &Ground, cluster: &mut Cluster, extent: Extent) -> Result<String> {
    let (plan, begun_us) = (Plan::of(ground, extent), now_us());
    let address = cluster.control.addresses().join(",");
    let store = Tyr::connect_options().timeout(TIMEOUT).connect_blocking(&address)?;
    let objects = store.create_keyspace(KEYSPACE, keyspace_config())?;
    let probes = KeyspaceConfig { replication: 1, ..keyspace_config() };
    let probes = store.create_keyspace(PROBES, probes)?;
    let classes = Classes::of(&store);
    let lines = (0..plan.classes).map(|number| Line::new(&classes, [&objects, &probes], number));
    let lines = lines.collect::<Result<Vec<_>>>()?;
    let connect = || Tyr::connect_options().timeout(TIMEOUT).connect_blocking(&address);
    let stores = (0..plan.watchers.div_ceil(TOGETHER)).map(|_| connect());
    let stores = stores.collect::<Result<Vec<_>>>()?;
    let watched = Watched::by(plan.watchers);
    let [calm, troubled] = plan.parts();
    let kills = beside(&plan, &lines, (&stores, &watched), || {
        install(&lines, &calm, |_| Ok(0))?;
        watched.wait(lines.len(), &calm)?;
        match plan.is_full {
            true => install(&lines, &troubled, |is_done| kill_until(cluster, &lines, is_done)),
            false => Ok(0),
        }
    })?;
    let mut calls = 0;
    for line in &lines {
        line.look(if plan.is_full { *troubled.end() } else { *calm.end() })?;
        calls += line.judge()?;
    }
    let commits = Commits::of(cluster, begun_us)?;
    let quiet = watched.spread(&lines, &calm, &commits);
    let parts = u64::from(plan.is_full) + 1;
    let mut text = format!(
        "{} replacements of {} classes, {calls} calls, {kills} nodes killed and back: each call \
         ran on the version that its object says\n{} watchers were told {quiet}",
        parts * plan.classes * u64::from(plan.each),
        plan.classes,
        plan.watchers,
    );
    if !plan.is_full {
        return Ok(text);
    }
    let late = watched.spread(&lines, &troubled, &commits);
    text.push_str(&format!("\nwhile nodes were killed {late}"));
    quiet.judge(text)
}

/// Does something while all classes are called, and watched.
fn beside<T>(
    plan: &Plan,
    lines: &[Line],
    (stores, watched): (&[Tyr], &Watched),
    act: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watchers = (0..plan.watchers).map(|number| {
            let (store, is_over) = (&stores[number / TOGETHER], &is_over);
            scope.spawn(move || watched.follow(number, store, is_over))
        });
        let mut threads: Vec<_> = watchers.collect();
        threads.extend((0..plan.classes * plan.callers).map(|number| {
            let (line, is_over) = (&lines[(number % plan.classes) as usize], &is_over);
            scope.spawn(move || line.call_until(number, is_over))
        }));
        std::thread::sleep(BEFORE);
        let done = act();
        is_over.store(true, Ordering::Release);
        for thread in threads {
            thread.join().map_err(|_| Error::unavailable("a thread panicked"))??;
        }
        done
    })
}

/// Installs these versions of each class, and does something else meanwhile, which is told whether
/// that is done.
fn install(
    lines: &[Line],
    versions: &RangeInclusive<u32>,
    meanwhile: impl FnOnce(&dyn Fn() -> bool) -> Result<u64>,
) -> Result<u64> {
    std::thread::scope(|scope| {
        let installers = lines.iter().map(|line| scope.spawn(|| line.install(versions.clone())));
        let installers: Vec<_> = installers.collect();
        let is_done = || installers.iter().all(|it| it.is_finished());
        let done = meanwhile(&is_done);
        for installer in installers {
            installer.join().map_err(|_| Error::unavailable("an installer panicked"))??;
        }
        done
    })
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

/// Microseconds since 1970, which every process of this machine counts alike.
fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
