//! The `tyr` command: everything that Týr does, from a shell.
//!
//! [`arguments`] is the command line as types, on top of all commands: `commands/` has those on
//! blobs and keyspaces, one file a family; `bench/`, `demo/`, `telemetry/` and `log/` are the large
//! ones. `serve/` is a node of a cluster, with its `configuration/` and `logging/`, and `dev/` a
//! small cluster for trying things. [`metrics`] is what Prometheus reads of services. [`session`]
//! opens and closes the store, [`output`] prints text or JSON, [`failure`] holds the exit codes,
//! [`interrupt`] is Ctrl-C, [`process`] what the system says of this process. `cluster/` asks
//! monitors and nodes; [`mount_helper`] is this program as mount(8) calls it. Nothing here knows
//! how a store works: commands on data use the public crates only, and `serve/` starts a node
//! without looking into it.

/// What nodes and clients do is many small allocations on one thread that are freed on another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod arguments;
mod balancer;
mod bench;
mod cluster;
mod commands;
mod configuration;
mod data;
mod demo;
mod dev;
mod failure;
mod interrupt;
mod log;
mod logging;
mod metrics;
mod mount_helper;
mod output;
mod process;
mod progress;
mod random;
mod script;
mod serve;
mod session;
mod telemetry;
mod zlog;

use std::process::ExitCode;

use serde_json::json;

use arguments::Arguments;
use failure::{Outcome, USAGE_CODE};
use interrupt::{Interrupt, supervise};
use session::Session;

fn main() -> ExitCode {
    if let Some(code) = mount_helper::run_if_called() {
        return code;
    }
    let arguments = match Arguments::of_process() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    let is_json = arguments.session.is_json;
    let interrupt = Interrupt::default();
    let session = Session::new(arguments.session, interrupt.clone());
    let opened = session.opened();
    let outcome = supervise(
        &interrupt,
        move || run(session, arguments.command),
        move || opened.close_unseen(),
    );
    match outcome {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            failure.report(is_json);
            ExitCode::from(failure.exit_code())
        }
        Err(code) => ExitCode::from(code),
    }
}

/// Runs the command, then closes what it opened, whether it failed or not.
fn run(mut session: Session, command: arguments::Command) -> Outcome {
    let outcome = command.run(&mut session);
    let printed = session.output.flush();
    let closed = session.opened().close();
    outcome.and(printed).and(closed)
}

/// Help, the version, or a command line that makes no sense.
fn refuse(error: &clap::Error) -> ExitCode {
    let is_json = std::env::args_os().any(|argument| argument == "--json");
    if is_json && error.use_stderr() {
        let message = error.render().to_string();
        eprintln!("{}", json!({"error": {"kind": "Usage", "message": message.trim_end()}}));
    } else if error.print().is_err() {
        return ExitCode::FAILURE;
    }
    ExitCode::from(if error.use_stderr() { USAGE_CODE } else { 0 })
}
