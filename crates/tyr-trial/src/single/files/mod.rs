//! Programs that change a file system are killed at any moment of what they do, and so are nodes:
//! what a program was told is there, the last thing it did is there as a whole or not at all, the
//! file system fits together throughout, and files that only the dead had open go.
//!
//! ```text
//!   8 programs, each ─► life after life, a process each: some changes, and one in which it dies
//!                        │ in a directory of its own, under names beside those of all others, and
//!                        └ at the end of one file that all append to
//!   a node after the other is killed and comes back; `check` runs all the time
//!   in the end ─► each life's names and contents are those it was told of, or one change further
//! ```
//!
//! A life's directory is looked at when all is over: a change whose program died may take effect a
//! while later.

mod crowd;
mod moved;
mod seen;
mod tree;
mod walked;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tyr::blocking::Tyr;
use tyr_fs::blocking::FileSystem;
use tyr_fs::{Access, Options, Report};
use tyr_types::{Error, Result};

pub(super) use self::crowd::run as run_crowd;
pub(super) use self::moved::run as run_moved;
use self::seen::Seen;
use self::tree::Tree;
use super::{Extent, Ground, again, is_passing};
use crate::client::connection::TIMEOUT;
use crate::cluster::{Cluster, PATIENCE};
use crate::puppet::{self, FileOrder, Puppet, told};
use crate::random::Random;

/// Programs at once.
const PROGRAMS: u64 = 8;

/// Changes of a life before the one that it dies in.
const CHANGES: (u64, u64) = (2, 12);

/// It dies within so many microseconds of that: most take some milliseconds.
const DIES_WITHIN_US: u64 = 12_000;

/// One change in so many is an entry in the file that all append to.
const NOTES: u64 = 5;

/// A node is killed so long after the one before is back, and started so long after that, at most.
const NODE_PAUSE_US: u64 = 1_500_000;

/// Files that only dead programs had open are gone after this.
const ORPHANED_FOR: Duration = Duration::from_secs(120);

/// What programs that died had sent has taken effect after this, or never will.
const SETTLED: Duration = Duration::from_secs(10);

/// How often the whole is checked.
const CHECKED_EVERY: Duration = Duration::from_millis(500);

/// The file system, the directory and the file that all share.
const NAME: &str = "files";
const SHARED: &str = "/shared";
const NOTED: &str = "/shared/noted";

/// Whose that is.
const ROOT: Access = Access { mode: 0o755, owner: 0, group: 0 };

pub(super) fn run(ground: &Ground, cluster: &mut Cluster, extent: Extent) -> Result<String> {
    let (lives, nodes) = match extent {
        Extent::Full => (ground.times(1_000), ground.times(1_000).div_ceil(2)),
        Extent::Brief => (PROGRAMS, 0),
    };
    let stage = Stage::new(cluster)?;
    let (played, checks) = stage.play(cluster, lives, nodes)?;
    let gone = match extent {
        Extent::Full => stage.wait_for_orphans()?,
        // They go within half a minute, which is longer than all else.
        Extent::Brief => String::new(),
    };
    let (mut seen, mut wrong) = stage.look(&played)?;
    if !wrong.is_empty() {
        // The last change of who died may have taken effect while it was looked.
        std::thread::sleep(SETTLED);
        (seen, wrong) = stage.look(&played)?;
    }
    let (lives, names) = (played.lives.len(), seen.names());
    let text = format!(
        "{lives} programs were killed in the middle of a change, {} of them after all changes \
         that they were told of, and {nodes} nodes; {names} names, {} entries of all, {checks} \
         checks meanwhile{gone}",
        played.unfinished,
        played.notes.told.len(),
    );
    match wrong.is_empty() {
        true => Ok(text),
        false => Err(Error::corrupt(format!("{text}; {}", wrong.join("; ")))),
    }
}

/// What a program did until it died.
pub(super) struct Life {
    /// What there may be of it: before the change in which it died, in the middle, and after.
    possible: Vec<Tree>,
}

/// Entries of the file that all append to, by value.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Those of which it was told where they are, in words.
    told: Vec<(u64, u64)>,
    /// Those of which nobody knows.
    unknown: Vec<u64>,
}

/// What programs did.
#[derive(Default)]
struct Played {
    lives: Vec<Life>,
    notes: Notes,
    /// Lives that ended since the store did not say in time what became of a change.
    unfinished: u64,
}

impl Played {
    /// A program was told that it is done, and where, of an entry that all see.
    fn note(&mut self, drawn: &Drawn, at: u64, tree: &mut Tree) {
        match drawn.is_note {
            true => self.notes.told.push((drawn.value, at)),
            false => *tree = tree.states(&drawn.order).pop().expect("the last is what it comes to"),
        }
    }

    fn add(&mut self, other: Self) {
        self.lives.extend(other.lives);
        self.notes.told.extend(other.notes.told);
        self.notes.unknown.extend(other.notes.unknown);
        self.unfinished += other.unfinished;
    }
}

/// What a program does next.
struct Drawn {
    /// By which it is known.
    value: u64,
    order: FileOrder,
    /// Whether it is an entry in the file that all append to.
    is_note: bool,
}

/// The names of a life: nothing yet.
fn tree_of(name: &str) -> Tree {
    let shared = format!("{SHARED}/{}-", name.replace('/', "-"));
    Tree::new(format!("/{name}"), shared)
}

/// What all programs share.
struct Stage {
    plan: puppet::Plan,
    files: FileSystem,
    values: AtomicU64,
    lives: AtomicU64,
    is_over: AtomicBool,
    all_died: AtomicBool,
}

impl Stage {
    /// A file system with what all share, and a directory for each program.
    fn new(cluster: &Cluster) -> Result<Self> {
        let addresses = cluster.control.addresses().to_vec();
        let store =
            Tyr::connect_options().timeout(TIMEOUT).connect_blocking(addresses.join(","))?;
        // Several segments are a few hundred kilobytes then.
        Self::on(&store, &Options { segment_bits: 16, ..Options::default() }, addresses)
    }

    fn on(store: &Tyr, options: &Options, addresses: Vec<String>) -> Result<Self> {
        let files = FileSystem::create(store, NAME, options).map_err(|error| told(&error))?;
        let stage = Self {
            plan: puppet::Plan { addresses, ..Default::default() },
            files,
            values: AtomicU64::new(1),
            lives: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            all_died: AtomicBool::new(false),
        };
        stage.set_up().map_err(|error| told(&error))?;
        Ok(stage)
    }

    fn set_up(&self) -> tyr_fs::Result<()> {
        self.files.make_directory_at(SHARED, ROOT)?;
        self.files.make_file_at(NOTED, ROOT)?;
        for program in 0..PROGRAMS {
            self.files.make_directory_at(format!("/{program}"), ROOT)?;
        }
        Ok(())
    }

    /// Programs, until there were so many lives and nodes were killed so often. Answers how often
    /// the file system was checked meanwhile, too.
    fn play(&self, cluster: &mut Cluster, lives: u64, nodes: u64) -> Result<(Played, u64)> {
        std::thread::scope(|scope| {
            let programs: Vec<_> =
                (0..PROGRAMS).map(|it| scope.spawn(move || self.live_on(it, lives))).collect();
            let checks = scope.spawn(|| self.check_on());
            let killed = self.kill_nodes(cluster, nodes);
            let broke = || Error::unavailable("a thread panicked");
            // Programs go on until nodes were killed often enough, and then until they were.
            self.is_over.store(true, Ordering::Release);
            let mut played = Played::default();
            let mut result = killed;
            for program in programs {
                match program.join().map_err(|_| broke())? {
                    Ok(other) => played.add(other),
                    Err(error) => result = result.and(Err(error)),
                }
            }
            self.all_died.store(true, Ordering::Release);
            let checks = checks.join().map_err(|_| broke())??;
            result.map(|()| (played, checks))
        })
    }

    fn kill_nodes(&self, cluster: &mut Cluster, times: u64) -> Result<()> {
        let mut random = Random::of(1, "files", PROGRAMS);
        let mut pause = || std::thread::sleep(Duration::from_micros(random.below(NODE_PAUSE_US)));
        let numbers = cluster.numbers();
        for number in numbers.iter().cycle().take(times as usize) {
            pause();
            cluster.process(*number).kill();
            pause();
            cluster.start(*number)?;
            cluster.wait_until_whole(PATIENCE)?;
        }
        Ok(())
    }

    /// Checks it again and again; answers how often.
    fn check_on(&self) -> Result<u64> {
        let mut checks = 0;
        while !self.all_died.load(Ordering::Acquire) {
            match check(&self.files) {
                Ok(_) => checks += 1,
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
            std::thread::sleep(CHECKED_EVERY);
        }
        Ok(checks)
    }

    fn live_on(&self, program: u64, lives: u64) -> Result<Played> {
        let mut random = Random::of(1, "files", program);
        let mut played = Played::default();
        let mut number = 0;
        while !self.is_over.load(Ordering::Acquire)
            || self.lives.fetch_add(1, Ordering::AcqRel) < lives
        {
            self.live(&format!("{program}/{number}"), &mut random, &mut played)?;
            number += 1;
        }
        Ok(played)
    }

    /// One process, until it is killed.
    fn live(&self, name: &str, random: &mut Random, played: &mut Played) -> Result<()> {
        let (mut tree, mut program) = (tree_of(name), self.program()?);
        let mut left = random.between(CHANGES.0, CHANGES.1);
        loop {
            let drawn = self.draw(&tree, random);
            program.send(&drawn.order.clone().into())?;
            if left == 0 {
                std::thread::sleep(Duration::from_micros(random.below(DIES_WITHIN_US)));
            }
            let answer = match left {
                0 => Err(Error::new(tyr_types::ErrorKind::TimedOut, "its program was killed")),
                _ => program.hear(),
            };
            match answer {
                Ok(at) => played.note(&drawn, at, &mut tree),
                Err(error) if !is_passing(&error) => {
                    return Err(error.context(format!("{:?} of {name}", drawn.order)));
                }
                Err(_) => {
                    let Drawn { value, order, is_note } = drawn;
                    program.kill();
                    played.unfinished += u64::from(left > 0);
                    let possible = match is_note {
                        true => vec![tree],
                        false => [vec![tree.clone()], tree.states(&order)].concat(),
                    };
                    played.notes.unknown.extend(is_note.then_some(value));
                    played.lives.push(Life { possible });
                    return Ok(());
                }
            }
            left -= 1;
        }
    }

    /// A change of what is there, or an entry in the file that all append to.
    fn draw(&self, tree: &Tree, random: &mut Random) -> Drawn {
        let value = self.values.fetch_add(Tree::VALUES, Ordering::Relaxed);
        let order = match random.below(NOTES) {
            0 => FileOrder::Append { path: NOTED.to_owned(), value, len: 1 },
            _ => tree.draw(random, value),
        };
        let is_note = matches!(&order, FileOrder::Append { path, .. } if path == NOTED);
        Drawn { value, order, is_note }
    }

    /// A process that has the file system open.
    fn program(&self) -> Result<Puppet> {
        let order = FileOrder::Open { name: NAME.to_owned() };
        let begun = Instant::now();
        loop {
            let mut program = Puppet::start(&self.plan)?;
            match program.ask(&order.clone().into()) {
                Ok(_) => return Ok(program),
                // It may be half open: another process knows nothing of that.
                Err(error) if is_passing(&error) && begun.elapsed() < PATIENCE => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// What there is, and what of it is wrong.
    fn look(&self, played: &Played) -> Result<(Seen, Vec<String>)> {
        let seen = Seen::of(&self.files).map_err(|error| told(&error))?;
        let mut wrong: Vec<String> =
            played.lives.iter().filter_map(|life| seen.differs(life)).collect();
        wrong.extend(seen.notes_differ(&played.notes));
        Ok((seen, wrong))
    }

    /// Waits until files without a name are gone; says how many there were, and how long it took.
    fn wait_for_orphans(&self) -> Result<String> {
        let (begun, mut most) = (Instant::now(), 0);
        loop {
            let report = again(|| check(&self.files))?;
            most = most.max(report.orphans);
            if report.orphans == 0 {
                let took = begun.elapsed().as_secs_f64();
                return Ok(format!(
                    "; {most} files that only the dead had open were gone after {took:.0} s"
                ));
            }
            if begun.elapsed() > ORPHANED_FOR {
                let text = format!("{} files that nobody has open are still there", report.orphans);
                return Err(Error::corrupt(text));
            }
            std::thread::sleep(CHECKED_EVERY);
        }
    }
}

/// Checks a file system; what is found is an error.
fn check(files: &FileSystem) -> Result<Report> {
    let report = files.check(&mut |_| true).map_err(|error| told(&error))?;
    match report.is_clean() {
        true => Ok(report),
        false => Err(Error::corrupt(format!("check: {:?}", report.findings))),
    }
}

#[cfg(test)]
mod tests {
    use tyr_types::{Durability, KeyspaceConfig};

    use super::*;
    use crate::puppet::Files;

    #[test]
    fn nothing_is_in_the_way_of_who_is_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = Tyr::open(folder.path()).unwrap();
        let keyspace_config =
            KeyspaceConfig { durability: Durability::Buffered, ..KeyspaceConfig::default() };
        let options = Options { segment_bits: 16, keyspace_config, ..Options::default() };
        let stage = Stage::on(&store, &options, Vec::new()).unwrap();
        let mut played = Played::default();
        for program in 0..PROGRAMS {
            let (mut random, name) = (Random::of(1, "moved", program), format!("{program}/0"));
            let (mut tree, mut files) = (tree_of(&name), Files::default());
            files.follow(&store, FileOrder::Open { name: NAME.to_owned() }).unwrap();
            for number in 0..200 {
                let drawn = stage.draw(&tree, &mut random);
                let answer = files.follow(&store, drawn.order.clone());
                let at = answer.unwrap_or_else(|it| panic!("{number}: {:?}: {it}", drawn.order));
                played.note(&drawn, at, &mut tree);
            }
            played.lives.push(Life { possible: vec![tree] });
        }
        assert_eq!(stage.look(&played).unwrap().1, Vec::<String>::new());
    }
}
