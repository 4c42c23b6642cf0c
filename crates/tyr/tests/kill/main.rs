//! A process that is killed in the middle of its work loses nothing that it had acknowledged.
//!
//! The test runs itself again as a child: threads of the child commit transactions and report each
//! acknowledgement through a pipe, until the parent kills it with SIGKILL. The parent then opens
//! the store and compares every byte with what the acknowledged transactions must have left. Which
//! line of the pipe the parent kills at comes from a seed; what the child is doing right then does
//! not, so a failing seed may need a few runs to fail again.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod ledger;
mod lost_log;
mod setup;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use tyr::Durability;
use tyr_chance::{Chance, part, usual_seed};

use ledger::THREADS;
use setup::Setup;

/// Where the child finds its store; without it the child's test does nothing.
const CHILD: &str = "TYR_KILL_TEST_STORE";

#[test]
fn acknowledged_transactions_survive_kills() {
    let sync = Setup {
        durability: Durability::Sync,
        is_compressed: false,
        is_versioned: true,
        is_folding: true,
    };
    Run::new(sync, 1).kills(part(300), 25, 250);
}

#[test]
fn buffered_transactions_survive_the_death_of_the_process() {
    let buffered = Setup {
        durability: Durability::Buffered,
        is_compressed: true,
        is_versioned: false,
        is_folding: true,
    };
    Run::new(buffered, 2).kills(part(36), 6, 4000);
}

/// The child: writes until it is killed.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let setup = Setup::from_environment();
    println!("opening");
    let tyr = setup.open(path.as_ref()).unwrap();
    println!("open");
    ledger::write_for_ever(&tyr, &setup.keyspace(&tyr).unwrap());
}

/// A series of kills over stores that grow, with a new one now and then.
struct Run {
    setup: Setup,
    chance: Chance,
    folder: tempfile::TempDir,
    /// Transactions of each thread that are known to be there.
    known: [u64; THREADS],
    folds: u64,
}

impl Run {
    fn new(setup: Setup, salt: u64) -> Self {
        let chance = Chance::new(usual_seed().wrapping_add(salt));
        let folder = tempfile::tempdir().unwrap();
        Self { setup, chance, folder, known: [0; THREADS], folds: 0 }
    }

    /// So many kills, each in the first so many lines of a child; so many of a store.
    fn kills(mut self, count: usize, lives: usize, lines: u64) {
        let mut total = 0;
        for round in 0..count {
            if round % lives == 0 {
                self.folder = tempfile::tempdir().unwrap();
                total += self.known.iter().sum::<u64>();
                self.known = [0; THREADS];
            }
            self.kill_once(round, lines);
        }
        total += self.known.iter().sum::<u64>();
        println!("{total} transactions, {} folds", self.folds);
        assert!(total >= count as u64 * 10, "only {total} transactions were ever acknowledged");
        assert!(self.folds > 0, "no fold was ever seen");
    }

    fn kill_once(&mut self, round: usize, lines: u64) {
        // Now and then while it is still opening; else anywhere.
        let lines = match self.chance.below(8) {
            0 => self.chance.below(2),
            1 => 2,
            _ => 2 + self.chance.below(lines),
        };
        let spins = self.chance.below(1 << 21);
        let acknowledged = self.run_child(|seen| seen >= lines, spins);
        let context = format!("round {round}, killed at line {lines} after {spins} spins");
        let path = self.folder.path();
        if path.join("index").exists() {
            let report = tyr::check(path, &mut |_| {}).unwrap();
            assert!(report.is_sound(), "{context}: {:?}", report.findings);
        }
        // Read-only leaves what the kill left to the next child.
        let is_read_only = self.chance.below(3) > 0 && path.join("index").exists();
        let tyr = setup::options().is_read_only(is_read_only).open_blocking(path).unwrap();
        match tyr.keyspace(setup::KEYSPACE) {
            Ok(keyspace) => {
                let found = ledger::verify(&keyspace, &context);
                for thread in 0..THREADS {
                    let least = acknowledged[thread].max(self.known[thread]);
                    let most = least + 1;
                    assert!(
                        (least..=most).contains(&found[thread]),
                        "{context}: thread {thread} has {} transactions, not {least} to {most}",
                        found[thread]
                    );
                }
                self.known = found;
            }
            Err(error) => {
                let is_new = self.known == [0; THREADS] && acknowledged == [0; THREADS];
                assert!(is_new, "{context}: {error}");
            }
        }
        if !is_read_only && self.chance.below(4) == 0 {
            let report = tyr.check(&mut |_| {}).unwrap();
            assert!(report.is_sound(), "{context}, folded: {:?}", report.findings);
        }
        tyr.close().unwrap();
    }

    /// Runs a child until it has put out enough lines; answers what it acknowledged, kill included.
    fn run_child(&mut self, is_enough: impl Fn(u64) -> bool, spins: u64) -> [u64; THREADS] {
        let mut child = self.spawn();
        let mut acknowledged = [0; THREADS];
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        let mut seen = 0;
        let mut is_killed = false;
        loop {
            if !is_killed && is_enough(seen) {
                (0..spins).for_each(|_| std::hint::spin_loop());
                child.kill().unwrap();
                is_killed = true;
            }
            line.clear();
            if output.read_line(&mut line).unwrap() == 0 {
                break;
            }
            let mut words = line.split_whitespace();
            match (words.next(), words.next(), words.next()) {
                (Some("opening" | "open"), None, None) => seen += 1,
                (Some("done"), Some(thread), Some(number)) if line.ends_with('\n') => {
                    seen += 1;
                    let thread: usize = thread.parse().unwrap();
                    acknowledged[thread] = number.parse().unwrap();
                }
                (Some("folds"), Some(_), None) => self.folds += 1,
                _ => {}
            }
        }
        child.wait().unwrap();
        assert!(is_killed, "the child ended by itself: run it alone to see why");
        acknowledged
    }

    fn spawn(&self) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "child_that_writes_until_it_is_killed", "--nocapture"])
            .env(CHILD, self.folder.path())
            .stdout(Stdio::piped());
        self.setup.tell(&mut command);
        command.spawn().unwrap()
    }
}
