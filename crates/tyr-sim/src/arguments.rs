//! The command line as types.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Parser, Subcommand};
use tyr_protocol::Rule;
use tyr_sim::explore::case::CLOCKS;
use tyr_sim::explore::{Bounds, Case, Mishaps};
use tyr_sim::setup::{Stores, Trace};
use tyr_sim::trial::Manner;
use tyr_types::{Error, Result, TransactionId};

const AFTER_HELP: &str = "\
A seed without a scenario runs the one that the seed itself chooses of the library.
Exit codes: 0 nothing was wrong, 1 something was, 2 usage, 130 Ctrl-C.

Example:
  tyr-sim sweep --seeds 0..1000
  tyr-sim run --seed 7 --trace 1f00000003
  tyr-sim shrink --seed 7 > small.txt";

/// Seeds between those of sweeps that begin a second apart; more than a machine runs meanwhile.
const SEEDS_A_SECOND: u64 = 1_000;

/// Whole clusters in one thread from one seed, under every fault.
#[derive(Debug, Parser)]
#[command(name = "tyr-sim", version, after_help = AFTER_HELP, disable_help_subcommand = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one seed
    Run(RunArguments),
    /// Run many seeds, until they are done, time is over or Ctrl-C
    Sweep(SweepArguments),
    /// Find a smaller scenario that fails in the same way, and print it
    Shrink(ShrinkArguments),
    /// Print a scenario as a seed draws it: every choice closed
    Show(Chosen),
    /// Go through all orders of what can happen to three nodes and three transactions
    Explore(ExploreArguments),
    /// List the scenarios of the library
    List,
    /// Count what clusters of several sizes cost: messages, bytes, how evenly they fall on nodes
    Scale(ScaleArguments),
}

/// A seed and its scenario.
#[derive(Args, Clone, Debug)]
pub struct Chosen {
    /// The seed
    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    /// A scenario of the library, a file (.txt), or - for standard input
    #[arg(long, visible_alias = "file", value_name = "NAME|FILE")]
    pub scenario: Option<String>,
}

/// How runs are made.
#[derive(Args, Clone, Debug)]
pub struct MannerArguments {
    /// Take a rule away, to see that it is missed: C1, R2, ..
    #[arg(long = "break", value_name = "RULE")]
    pub broken: Option<String>,

    /// What nodes keep their chunks in, whatever the scenario says: model or real
    #[arg(long, value_name = "STORE", value_parser = stores)]
    pub store: Option<Stores>,

    /// Check the machines' invariants after every so many steps
    #[arg(long, default_value_t = 64, value_name = "STEPS")]
    pub check_every: u32,
}

impl MannerArguments {
    /// The same as the library has it.
    pub fn manner(&self) -> Result<Manner> {
        let broken = self.broken.as_deref().map(rule).transpose()?;
        let check_every = self.check_every.max(1);
        Ok(Manner { broken, stores: self.store, check_every, trace: Trace::Off })
    }

    /// The command that does `verb` with this seed and scenario.
    pub fn command(&self, verb: &str, seed: u64, chosen: &Chosen) -> String {
        let mut command = format!("cargo run --profile sim -p tyr-sim -- {verb} --seed {seed}");
        if let Some(scenario) = &chosen.scenario {
            command.push_str(&format!(" --scenario {scenario}"));
        }
        if let Some(rule) = &self.broken {
            command.push_str(&format!(" --break {rule}"));
        }
        match self.store {
            Some(Stores::Model) => command.push_str(" --store model"),
            Some(Stores::Real) => command.push_str(" --store real"),
            None => {}
        }
        if self.check_every != 64 {
            command.push_str(&format!(" --check-every {}", self.check_every));
        }
        command
    }
}

/// Arguments of `run`.
#[derive(Args, Debug)]
pub struct RunArguments {
    #[command(flatten)]
    pub chosen: Chosen,

    #[command(flatten)]
    pub manner: MannerArguments,

    /// Print the story of this transaction: its id in hexadecimal, as violations name it
    #[arg(long, value_name = "TXN", value_parser = transaction)]
    pub trace: Option<TransactionId>,

    /// Print everything that happens
    #[arg(long = "trace-all", conflicts_with = "trace")]
    pub is_all_traced: bool,
}

impl RunArguments {
    /// How the run is made.
    pub fn manner(&self) -> Result<Manner> {
        let trace = match (self.trace, self.is_all_traced) {
            (Some(id), _) => Trace::Transaction(id),
            (None, true) => Trace::All,
            (None, false) => Trace::Off,
        };
        Ok(Manner { trace, ..self.manner.manner()? })
    }
}

/// Arguments of `sweep`.
#[derive(Args, Debug)]
pub struct SweepArguments {
    /// The seeds, the last one excluded; without, seeds that the time of day chooses
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    pub seeds: Option<Range<u64>>,

    /// So many seeds that the time of day chooses
    #[arg(long, conflicts_with = "seeds", value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: Option<u64>,

    /// End after so many minutes
    #[arg(long, required_unless_present_any = ["seeds", "runs"], value_parser = minutes)]
    pub minutes: Option<Duration>,

    /// A scenario of the library or a file (.txt), for all seeds
    #[arg(long, visible_alias = "file", value_name = "NAME|FILE")]
    pub scenario: Option<String>,

    /// Threads that run
    #[arg(long, default_value_t = 2)]
    pub threads: usize,

    /// End at the first failure
    #[arg(long = "first")]
    pub is_first_enough: bool,

    #[command(flatten)]
    pub manner: MannerArguments,
}

impl SweepArguments {
    /// The seeds to run: those that were named, else others every second.
    pub fn seeds(&self) -> Range<u64> {
        self.seeds.clone().unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let first = since.as_secs() * SEEDS_A_SECOND;
            first..self.runs.map_or(u64::MAX, |runs| first.saturating_add(runs))
        })
    }
}

/// Arguments of `shrink`.
#[derive(Args, Debug)]
pub struct ShrinkArguments {
    #[command(flatten)]
    pub chosen: Chosen,

    #[command(flatten)]
    pub manner: MannerArguments,

    /// Most runs to make
    #[arg(long, default_value_t = 2_000)]
    pub runs: usize,

    /// Seeds to try for each smaller scenario
    #[arg(long, default_value_t = 3)]
    pub seeds: u64,
}

/// Arguments of `scale`.
#[derive(Args, Debug)]
pub struct ScaleArguments {
    /// Sizes of clusters, from 4 to 256 nodes
    #[arg(long, value_name = "NODES", value_delimiter = ',', default_values_t = [4, 16, 64, 256])]
    pub nodes: Vec<u16>,

    /// Where all chance comes from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Arguments of `explore`.
#[derive(Args, Debug)]
pub struct ExploreArguments {
    /// Only the case of this name, on all layouts
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,

    /// Only its first transactions
    #[arg(long, default_value_t = 3)]
    pub transactions: usize,

    /// Nodes that go down; layouts without a second replica are left out then
    #[arg(long, default_value_t = 0)]
    pub crashes: u8,

    /// Messages that are lost
    #[arg(long, default_value_t = 0)]
    pub losses: u8,

    /// How often a node or a client asks before it has waited long
    #[arg(long, default_value_t = 0)]
    pub impatience: u8,

    /// How often a long time passes, and all forget what everyone is done with
    #[arg(long, default_value_t = 0)]
    pub forgettings: u8,

    /// The first node was down before: it gets what is written, and is no authority
    #[arg(long = "returning")]
    pub is_first_returning: bool,

    /// Give a case up after so many states, of some 50 bytes each
    #[arg(long, default_value_t = 10_000_000, value_name = "STATES")]
    pub states_max: usize,

    /// Only clocks that agree, instead of three kinds
    #[arg(long = "one-clock")]
    pub has_one_clock: bool,

    /// Take a rule away, to see that it is missed: C1, F2, ..
    #[arg(long = "break", value_name = "RULE")]
    pub broken: Option<String>,
}

impl ExploreArguments {
    /// The cases to go through.
    pub fn cases(&self) -> Vec<Case> {
        let is_meant = |case: &Case| {
            self.case.as_ref().is_none_or(|name| name == case.name)
                && (self.crashes == 0 && !self.is_first_returning || case.replication() > 1)
                && (!self.has_one_clock || case.ahead_us == CLOCKS[0])
        };
        let meant = Case::all().into_iter().filter(is_meant);
        let first = meant.map(|case| case.first(self.transactions));
        first.map(|case| if self.is_first_returning { case.returning() } else { case }).collect()
    }

    /// How far each is gone through.
    pub fn bounds(&self) -> Result<Bounds> {
        let Self { crashes, losses, impatience, forgettings, states_max, .. } = *self;
        let mishaps = Mishaps { crashes, losses, impatience, forgettings };
        let broken = self.broken.as_deref().map(rule).transpose()?;
        Ok(Bounds { mishaps, states_max, broken, ..Bounds::default() })
    }
}

fn seeds(text: &str) -> Result<Range<u64>> {
    let ends = text
        .split_once("..")
        .and_then(|(first, last)| Some(first.parse::<u64>().ok()?..last.parse::<u64>().ok()?));
    ends.filter(|ends| !ends.is_empty())
        .ok_or_else(|| Error::invalid(format!("seeds are two numbers as 0..1000, not {text}")))
}

fn minutes(text: &str) -> Result<Duration> {
    let minutes = text.parse::<f64>().ok().filter(|minutes| *minutes > 0.0);
    let lasts = minutes.and_then(|minutes| Duration::try_from_secs_f64(minutes * 60.0).ok());
    lasts.ok_or_else(|| Error::invalid(format!("minutes are a number above 0, not {text}")))
}

fn transaction(text: &str) -> Result<TransactionId> {
    let digits = text.trim_start_matches("0x");
    let id = u128::from_str_radix(digits, 16);
    id.map(TransactionId)
        .map_err(|_| Error::invalid(format!("a transaction is a hexadecimal number, not {text}")))
}

fn stores(name: &str) -> Result<Stores> {
    match name {
        "model" => Ok(Stores::Model),
        "real" => Ok(Stores::Real),
        _ => Err(Error::invalid(format!("a store is model or real, not {name}"))),
    }
}

fn rule(name: &str) -> Result<Rule> {
    let found =
        Rule::ALL.iter().copied().find(|rule| format!("{rule:?}").eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let names: Vec<String> = Rule::ALL.iter().map(|rule| format!("{rule:?}")).collect();
        Error::invalid(format!("no rule \"{name}\"; there are {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn seeds_times_and_transactions_are_read_or_refused() {
        assert_eq!(seeds("3..9").unwrap(), 3..9);
        assert!(seeds("9..3").is_err());
        assert_eq!(minutes("0.5").unwrap(), Duration::from_secs(30));
        assert!(["-1", "NaN", "inf", "x"].iter().all(|text| minutes(text).is_err()));
        assert_eq!(transaction("0x1f").unwrap(), TransactionId(31));
        assert!(transaction("zebra").is_err());
    }

    #[test]
    fn rules_are_known_by_name() {
        assert_eq!(rule("c1").unwrap(), Rule::C1);
        assert!(rule("X9").unwrap_err().message().contains("C1"));
        assert_eq!(stores("real").unwrap(), Stores::Real);
        assert!(stores("other").is_err());
    }
}
