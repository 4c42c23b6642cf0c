//! The simulator's command line: run a seed, sweep many, make a failing one smaller.
//!
//! Exit codes: 0 nothing was wrong, 1 something was, 2 usage, 130 Ctrl-C.

mod arguments;

use std::io::{IsTerminal, Read};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Parser;
use signal_hook::consts::{SIGINT, SIGTERM};
use tyr_sim::Report;
use tyr_sim::explore;
use tyr_sim::scenario::library::{self, Choice};
use tyr_sim::scenario::{Scenario, draw, parse};
use tyr_sim::shrink::{self, Case, Effort};
use tyr_sim::sweep::{self, News, Plan, Summary};
use tyr_sim::trial::{self, likeness};
use tyr_types::{Error, Result};

use arguments::{
    Arguments, Chosen, Command, ExploreArguments, RunArguments, ScaleArguments, ShrinkArguments,
    SweepArguments,
};

/// Where nobody watches, progress is told this many times less often.
const UNWATCHED_EVERY: u32 = 12;

/// The exit code of a run that Ctrl-C ended.
const INTERRUPTED_CODE: u8 = 130;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run(arguments) => run(&arguments),
        Command::Sweep(arguments) => sweep(&arguments),
        Command::Shrink(arguments) => shrink(&arguments),
        Command::Show(chosen) => show(&chosen),
        Command::Explore(arguments) => explore(&arguments),
        Command::List => {
            list();
            Ok(ExitCode::SUCCESS)
        }
        Command::Scale(arguments) => scale(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("tyr-sim: {error}");
        ExitCode::from(2)
    })
}

/// The scenario that the arguments name: of the library, of a file, of standard input (`-`).
fn choice(scenario: Option<&str>) -> Result<Choice> {
    let Some(name) = scenario else { return Ok(Choice::BySeed) };
    let text = if name == "-" {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|error| Error::io("standard input", error))?;
        text
    } else if name.ends_with(".txt") || name.contains('/') {
        std::fs::read_to_string(name).map_err(|error| Error::io(name, error))?
    } else {
        let named = library::named(name)?;
        return Ok(Choice::Always(Box::new((name.to_owned(), named.scenario.clone()))));
    };
    let scenario = parse::parse(&text).map_err(|error| error.context(name))?;
    Ok(Choice::Always(Box::new((name.to_owned(), scenario))))
}

fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let choice = choice(arguments.chosen.scenario.as_deref())?;
    let seed = arguments.chosen.seed;
    let (name, scenario) = choice.of(seed);
    println!("seed {seed}, scenario {name}");
    let report = trial::run(scenario, seed, arguments.manner()?)?;
    for line in &report.trace {
        println!("{line}");
    }
    print_report(&report);
    if report.is_clean() {
        println!("nothing was wrong");
        return Ok(ExitCode::SUCCESS);
    }
    print_violations(&report.violations);
    println!("again: {}", arguments.manner.command("run", seed, &arguments.chosen));
    println!("smaller: {}", arguments.manner.command("shrink", seed, &arguments.chosen));
    Ok(ExitCode::FAILURE)
}

fn print_report(report: &Report) {
    let counters = &report.counters;
    println!(
        "{} steps, {:.1} s, settled after {:.1} s, trace {:016x}",
        report.steps,
        report.simulated_us as f64 / 1e6,
        report.settled_us as f64 / 1e6,
        report.trace_hash
    );
    println!("{counters:?}");
    if let Some(id) = report.unjudged {
        println!("ended and not judged: all who knew the decision on {:x} were lost (F7)", id.0);
    }
}

fn print_violations(violations: &[String]) {
    for violation in violations {
        println!("VIOLATION: {violation}");
    }
}

fn sweep(arguments: &SweepArguments) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let watched =
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)));
        watched.map_err(|error| Error::io("watching for Ctrl-C", error))?;
    }
    let plan = Plan {
        seeds: arguments.seeds(),
        lasts: arguments.minutes,
        choice: choice(arguments.scenario.as_deref())?,
        manner: arguments.manner.manner()?,
        threads: arguments.threads,
        is_first_enough: arguments.is_first_enough,
    };
    println!("seeds from {} on", plan.seeds.start);
    let (is_watched, mut told) = (std::io::stderr().is_terminal(), 0_u32);
    let summary = sweep::sweep(&plan, &stop, |news| match news {
        News::Failed(failure) => {
            println!("seed {}, scenario {}:", failure.seed, failure.scenario);
            print_violations(&failure.violations);
            let chosen = Chosen { seed: failure.seed, scenario: arguments.scenario.clone() };
            println!("again: {}", arguments.manner.command("run", failure.seed, &chosen));
            println!("smaller: {}", arguments.manner.command("shrink", failure.seed, &chosen));
        }
        News::Progress(summary) => {
            told += 1;
            if is_watched || told.is_multiple_of(UNWATCHED_EVERY) {
                eprintln!("{}", progress(summary));
            }
        }
    })?;
    print_summary(&summary);
    let hardly_judged = summary.hardly_judged(&plan.choice);
    print_violations(&hardly_judged);
    let is_clean = summary.failures.is_empty() && hardly_judged.is_empty();
    Ok(match (is_clean, stop.load(Ordering::Relaxed)) {
        (false, _) => ExitCode::FAILURE,
        (true, true) => ExitCode::from(INTERRUPTED_CODE),
        (true, false) => ExitCode::SUCCESS,
    })
}

fn progress(summary: &Summary) -> String {
    format!(
        "{} seeds, {} failed, {:.0} a minute and core",
        summary.runs_made(),
        summary.failures.len(),
        summary.seeds_per_minute()
    )
}

fn print_summary(summary: &Summary) {
    for (name, runs) in &summary.runs {
        let failed = summary.failures.iter().filter(|failure| failure.scenario == *name).count();
        let unjudged = summary.unjudged.get(name).copied().unwrap_or(0);
        let share = unjudged as f64 * 100.0 / (*runs).max(1) as f64;
        println!(
            "{name:20} {runs:8} seeds {failed:6} failed {unjudged:6} not judged, {share:.1} %"
        );
    }
    let hours = summary.simulated_us as f64 / 3.6e9;
    println!(
        "{hours:.1} simulated hours, {} faults, {} logs cut, {} messages, {} calls, {} committed",
        summary.faults, summary.cuts, summary.messages, summary.calls, summary.committed
    );
    let unjudged: u64 = summary.unjudged.values().sum();
    if unjudged > 0 {
        println!("{unjudged} ended and not judged: all who knew a decision were lost (F7)");
    }
    let mut kinds = std::collections::BTreeMap::<String, (u64, u64)>::new();
    for failure in &summary.failures {
        let kind = failure.violations.first().map(|first| likeness(first)).unwrap_or_default();
        kinds.entry(kind).or_insert((failure.seed, 0)).1 += 1;
    }
    for (kind, (seed, count)) in kinds {
        println!("{count} failed like seed {seed}: {kind}");
    }
    println!("{}", progress(summary));
}

fn shrink(arguments: &ShrinkArguments) -> Result<ExitCode> {
    let choice = choice(arguments.chosen.scenario.as_deref())?;
    let seed = arguments.chosen.seed;
    let (name, scenario) = choice.of(seed);
    let manner = arguments.manner.manner()?;
    let report = trial::run(scenario, seed, manner)?;
    let Some(first) = report.violations.first() else {
        println!("seed {seed}, scenario {name}: nothing was wrong");
        return Ok(ExitCode::SUCCESS);
    };
    let wanted = likeness(first);
    eprintln!("looking for: {wanted}");
    let fails = |smaller: &Scenario, seed| {
        let report = trial::run(smaller, seed, manner);
        report.is_ok_and(|report| report.violations.iter().any(|each| likeness(each) == wanted))
    };
    let effort = Effort { runs_max: arguments.runs, seeds: arguments.seeds };
    let (small, runs) = shrink::shrink(Case { scenario: scenario.clone(), seed }, effort, fails);
    let mut shown = small.scenario;
    shown.about = vec![format!("Seed {}: {wanted}", small.seed)];
    print!("{shown}");
    eprintln!("after {runs} runs; run it: save it as small.txt, then");
    let chosen = Chosen { seed: small.seed, scenario: Some("small.txt".to_owned()) };
    eprintln!("{}", arguments.manner.command("run", small.seed, &chosen));
    Ok(ExitCode::FAILURE)
}

fn explore(arguments: &ExploreArguments) -> Result<ExitCode> {
    let bounds = arguments.bounds()?;
    let cases = arguments.cases();
    if cases.is_empty() {
        return Err(Error::invalid("no case is so: see docs/internals/explore.md for their names"));
    }
    println!("| case | blobs at | clocks ahead by | states | steps | ends | | s |");
    println!("|---|---|---|---|---|---|---|---|");
    for case in cases {
        let start = Instant::now();
        let findings = explore::explore(case.clone(), bounds);
        println!(
            "| {} | {:?} {:?} | {:?} | {} | {} | {} | {} | {:.1} |",
            case.name,
            case.replicas[0],
            case.replicas[1],
            case.ahead_us,
            findings.states,
            findings.transitions,
            findings.ends,
            if findings.is_complete { "all" } else { "bounded" },
            start.elapsed().as_secs_f64(),
        );
        if let Some(explore::Violation { what, run }) = findings.violation {
            print_violations(&[what]);
            println!("{}", run.join("\n"));
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(chosen: &Chosen) -> Result<ExitCode> {
    let choice = choice(chosen.scenario.as_deref())?;
    let (_, scenario) = choice.of(chosen.seed);
    print!("{}", draw::draw(scenario, chosen.seed));
    Ok(ExitCode::SUCCESS)
}

fn list() {
    for named in library::all() {
        let about = named.scenario.about.first().map(String::as_str).unwrap_or_default();
        println!("{:20} {about}", named.name);
    }
}

fn scale(arguments: &ScaleArguments) -> Result<ExitCode> {
    let rows = tyr_sim::scale::measure(&arguments.nodes, arguments.seed)?;
    print!("{}", tyr_sim::scale::print::tables(&rows));
    Ok(ExitCode::SUCCESS)
}
