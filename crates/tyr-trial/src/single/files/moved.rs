//! A node comes and another is drained while programs change a file system: no change fails, none
//! takes 5 s, and what is there then is what was done.
//!
//! ```text
//!   8 programs ─► changes, one after the other, each with its time
//!   a while ─► a node joins, and gets its share ─► another is drained, and stops ─► a while
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tyr_protocol::map::{Change, Membership};
use tyr_types::{Error, NodeId, Result};

use super::{Life, PROGRAMS, Played, ROOT, Stage, told, tree_of};
use crate::cluster::{Cluster, PATIENCE};
use crate::random::Random;
use crate::single::times::Times;
use crate::single::{Extent, Ground};

/// What moves beside what programs do: so many files, of so many bytes.
const BALLAST: u64 = 128;
const BALLAST_LEN: usize = 1 << 20;

/// How long programs go on before the first node comes, and after the other has gone.
const CALM: Duration = Duration::from_secs(10);

/// The longest that a change may take.
const TAKES_MAX: Duration = Duration::from_secs(5);

/// The node that comes, and the one that goes: one that has been there from the beginning.
const COMES: u16 = 3;
const GOES: u16 = 2;

/// What happens to the cluster, one after the other.
const PHASES: [&str; 4] = ["before", "while a node joined", "while one was drained", "after"];

pub(in crate::single) fn run(_: &Ground, cluster: &mut Cluster, _: Extent) -> Result<String> {
    let stage = Stage::new(cluster)?;
    stage.fill()?;
    let phase = AtomicUsize::new(0);
    let (worked, [joined, drained]) = std::thread::scope(|scope| {
        let (stage, phase) = (&stage, &phase);
        let programs: Vec<_> =
            (0..PROGRAMS).map(|program| scope.spawn(move || stage.work(program, phase))).collect();
        let moved = move_nodes(cluster, phase);
        phase.store(PHASES.len(), Ordering::Release);
        let mut worked = Worked::default();
        for program in programs {
            let one = program.join().map_err(|_| Error::unavailable("a thread panicked"))?;
            worked.add(one?);
        }
        moved.map(|took| (worked, took))
    })?;
    let (seen, wrong) = stage.look(&worked.played)?;
    let times: Vec<String> =
        PHASES.iter().zip(&worked.times).map(|(phase, times)| format!("{phase} {times}")).collect();
    let text = format!(
        "a node had its share after {:.1} s, another was drained after {:.1} s; changes by \
         {PROGRAMS} programs took {}; {} names, {} entries of all",
        joined.as_secs_f64(),
        drained.as_secs_f64(),
        times.join(", "),
        seen.names(),
        worked.played.notes.told.len(),
    );
    let is_slow = |times: &Times| times.at(1.0).is_some_and(|longest| longest > TAKES_MAX);
    match (wrong.is_empty(), worked.times.iter().any(is_slow)) {
        (true, false) => Ok(text),
        (true, true) => Err(Error::unavailable(format!("{text}; one took more than 5 s"))),
        (false, _) => Err(Error::corrupt(format!("{text}; {}", wrong.join("; ")))),
    }
}

/// Adds a node and takes one away; answers how long each took.
fn move_nodes(cluster: &mut Cluster, phase: &AtomicUsize) -> Result<[Duration; 2]> {
    let next = || phase.fetch_add(1, Ordering::AcqRel);
    std::thread::sleep(CALM);
    next();
    cluster.add(COMES, true)?;
    cluster.start(COMES)?;
    cluster.control.let_in(NodeId(COMES))?;
    let joined = cluster.wait_until(COMES, Membership::In, PATIENCE)?;
    next();
    cluster.control.propose(Change::Drain(NodeId(GOES)))?;
    let drained = cluster.wait_until(GOES, Membership::Out, PATIENCE)?;
    cluster.remove(GOES)?;
    next();
    std::thread::sleep(CALM);
    Ok([joined, drained])
}

/// What programs did, and how long each change took, by what happened to the cluster when it began.
#[derive(Default)]
struct Worked {
    played: Played,
    times: [Times; PHASES.len()],
}

impl Worked {
    fn add(&mut self, other: Self) {
        self.played.add(other.played);
        self.times.iter_mut().zip(other.times).for_each(|(times, other)| times.extend(other));
    }
}

impl Stage {
    /// Writes what is to be moved.
    fn fill(&self) -> Result<()> {
        let fill = || {
            self.files.make_directory_at("/ballast", ROOT)?;
            (0..BALLAST).try_for_each(|number| {
                let bytes = vec![number as u8; BALLAST_LEN];
                self.files.store_at(format!("/ballast/{number}"), &bytes, ROOT)
            })
        };
        fill().map_err(|error| told(&error))
    }

    /// One program, until all is over.
    fn work(&self, program: u64, phase: &AtomicUsize) -> Result<Worked> {
        let (mut random, name) = (Random::of(1, "moved", program), format!("{program}/0"));
        let (mut tree, mut worked) = (tree_of(&name), Worked::default());
        let mut puppet = self.program()?;
        loop {
            let at = phase.load(Ordering::Acquire);
            if at >= PHASES.len() {
                worked.played.lives.push(Life { possible: vec![tree] });
                return Ok(worked);
            }
            let drawn = self.draw(&tree, &mut random);
            let begun = Instant::now();
            let answer = puppet.ask(&drawn.order.clone().into());
            let took = begun.elapsed();
            let answer = answer.map_err(|error| {
                let (order, when) = (&drawn.order, PHASES[at]);
                error.context(format!("{order:?} of {name} {when}, after {took:?}"))
            })?;
            worked.times[at].extend([took]);
            worked.played.note(&drawn, answer, &mut tree);
        }
    }
}
