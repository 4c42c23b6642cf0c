//! A command that runs while this process holds something, and is stopped when that is lost.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tyr::Error;

use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// How often the command and what is held are looked at.
pub const LOOK: Duration = Duration::from_millis(50);

/// How long a command may take to end that was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// Runs the command until it ends, or what is held is lost: `is_lost` waits so long for that, and
/// `lost` says what happened then.
pub fn run(
    session: &Session,
    mut command: Command,
    is_lost: impl Fn(Duration) -> bool,
    lost: &str,
) -> Outcome<ExitStatus> {
    session.interrupt.expect();
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|error| cannot_run(&program, error))?;
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| cannot_run(&program, error))? {
            return Ok(status);
        }
        // The terminal tells the command of Ctrl-C by itself.
        if let (Err(Failure::Interrupted(signal)), false) = (session.interrupt.check(), is_told)
            && signal == signal_hook::consts::SIGTERM
        {
            is_told = true;
            tell(&child, Signal::TERM);
        }
        if is_lost(LOOK) {
            stop(&mut child);
            return Err(Error::unavailable(format!("{lost}; {program} was stopped")).into());
        }
    }
}

/// What the command's end is for this process: its exit code.
pub fn outcome(status: ExitStatus) -> Outcome {
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Command(exit_code(status))),
    }
}

/// Tells the command to stop, and sees to it that it does.
fn stop(child: &mut Child) {
    tell(child, Signal::TERM);
    let until = Instant::now() + GRACE;
    while Instant::now() < until {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        std::thread::sleep(LOOK);
    }
    let _ = child.kill(); // It has ended by itself, else.
    let _ = child.wait();
}

fn tell(child: &Child, signal: Signal) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal); // It may have ended.
    }
}

/// A shell's exit code for how the command ended.
fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn cannot_run(program: &str, error: io::Error) -> Error {
    Error::invalid(format!("cannot run {program}: {error}")).with_source(error)
}
