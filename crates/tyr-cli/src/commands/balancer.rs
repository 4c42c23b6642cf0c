//! `tyr balancer`: the policy that says which node has which seat.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::json;
use tyr_mantle::Policy;
use tyr_mantle::builtin::{self, BUILT_IN};

use super::events;
use super::source::SourceArguments;
use crate::balancer::LOG_MARK;
use crate::balancer::installed::{self, Version};
use crate::failure::{Failure, Outcome};
use crate::output::table;
use crate::session::{Access, Session};

/// Bytes that are read of a script at most.
const SCRIPT_LEN_MAX: u64 = 1 << 20;

/// How long a run may take where a policy is tried.
const TRIED: Duration = Duration::from_secs(1);

/// What to do with the balancer.
#[derive(Debug, Subcommand)]
pub enum BalancerCommand {
    /// Make a policy the one that runs from now on
    Install(InstallArguments),
    /// Show which policy runs, and which did before, or a script
    Show(ShowArguments),
    /// Show what the balancer has said in the cluster log
    #[command(after_help = "Example:\n  tyr balancer log --json")]
    Log,
    /// Balance nothing any more; seats stay where they are
    #[command(after_help = "Example:\n  tyr balancer stop")]
    Stop,
}

/// `tyr balancer install`
#[derive(Args, Debug)]
#[command(after_help = "\
A policy is a script in Luau with the functions where() and, if it wants, load(n), when(), \
howmuch(seats, amount) and mode(). Those that come with the program: greedy_spill, \
greedy_spill_even, fill_and_spill, adaptable, sequencer, hard.

Examples:
  tyr balancer install --built-in sequencer
  tyr balancer install mine.luau --tick 1")]
pub struct InstallArguments {
    /// The file with the policy; `-` for standard input
    #[arg(required_unless_present = "built_in")]
    file: Option<PathBuf>,
    /// A policy that comes with the program
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    built_in: Option<String>,
    /// Seconds from one run of the policy to the next
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    tick: f64,
}

/// `tyr balancer show`
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  tyr balancer show\n  tyr balancer show --script")]
pub struct ShowArguments {
    /// Write the script that runs, or of --number, to standard output
    #[arg(long)]
    script: bool,
    /// Of this version
    #[arg(long, value_name = "NUMBER", requires = "script")]
    number: Option<u32>,
}

/// Does what the command line says.
pub fn run(session: &mut Session, command: BalancerCommand) -> Outcome {
    if !session.is_cluster()? {
        return Err(Failure::Usage(
            "nodes have seats to balance, and --data names a directory: say --data \
             tyr://HOST:PORT"
                .to_owned(),
        ));
    }
    match command {
        BalancerCommand::Install(arguments) => install(session, arguments),
        BalancerCommand::Show(arguments) => show(session, &arguments),
        BalancerCommand::Log => events::print_of(session, LOG_MARK),
        BalancerCommand::Stop => stop(session),
    }
}

fn install(session: &mut Session, arguments: InstallArguments) -> Outcome {
    let (name, script) = match (arguments.file, arguments.built_in) {
        (_, Some(name)) => {
            let script = builtin::script(&name).ok_or_else(|| {
                let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
                Failure::Usage(format!("there are {}, and no \"{name}\"", names.join(", ")))
            })?;
            (name, script.to_owned())
        }
        (Some(file), None) => {
            let name = file.display().to_string();
            let source = SourceArguments::of_file(file);
            let script = source.read_all(session, SCRIPT_LEN_MAX, &name)?;
            let script = String::from_utf8(script)
                .map_err(|_| Failure::Usage(format!("{name} is no text")))?;
            (name, script)
        }
        (None, None) => return Err(Failure::Usage("name a file, or --built-in".to_owned())),
    };
    let begun = Instant::now();
    Policy::compile(&script, TRIED, Arc::new(move || begun.elapsed()))?;
    let tick_ms = (arguments.tick * 1000.0).round().clamp(0.0, 1e15) as u64;
    let metadata = session.open(Access::Write)?.metadata();
    let number = installed::install(&metadata, &name, &script, tick_ms)?;
    let fields = json!({ "policy": name, "version": number, "tick_ms": tick_ms });
    session.output.record(&fields, &format!("{name} {number}"))
}

fn show(session: &mut Session, arguments: &ShowArguments) -> Outcome {
    let metadata = session.open(Access::Read)?.metadata();
    let (record, _) = installed::find(&metadata)?;
    if arguments.script {
        let number = arguments.number.or(record.current);
        let number = number.ok_or_else(|| tyr::Error::not_found("no policy runs"))?;
        return session.output.bytes(installed::script(&metadata, number)?.as_bytes());
    }
    if session.output.is_json() {
        return session.output.json(&json!(record));
    }
    let rows = record.versions.iter().rev().map(|Version { number, name, bytes }| {
        let state = if Some(*number) == record.current { "runs" } else { "" };
        vec![number.to_string(), name.clone(), bytes.to_string(), state.to_owned()]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let tick = record.tick_ms as f64 / 1000.0;
    let text = match record.running() {
        Some(version) => format!("{} runs every {tick} s\n", version.name),
        None => "nothing is balanced\n".to_owned(),
    };
    session.output.line(&text)?;
    session.output.line(&table(&["version", "policy", "bytes", ""], &rows, &[0, 2]))
}

fn stop(session: &mut Session) -> Outcome {
    let metadata = session.open(Access::Write)?.metadata();
    let was_running = installed::stop(&metadata)?;
    let text = if was_running { "" } else { "nothing was balanced" };
    session.output.record(&json!({ "stopped": was_running }), text)
}
