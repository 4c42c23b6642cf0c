//! `tyr lock`: runs a command while this process holds a lock.

use std::io;
use std::pin::pin;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tyr::blocking::Keyspace;
use tyr::{Error, ErrorKind, Key, LeaseOptions, Lock};
use tyr_runtime::waiting::{block_on, block_on_within};

use crate::commands::blob::BlobArguments;
use crate::data::with_key;
use crate::failure::{Failure, Outcome};
use crate::process;
use crate::session::{Access, Session};

/// How often the command and the lock are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How long a command may take to end that was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// The variable that tells the command its token.
const TOKEN_VARIABLE: &str = "TYR_LOCK_TOKEN";

/// `tyr lock`
#[derive(Args, Debug)]
#[command(after_help = "\
Runs COMMAND while this process holds the lock KEY, and ends with its exit code. Whoever wants \
the same lock waits; if this process dies or reaches no node, others get it after --duration and \
a tenth. COMMAND is then told to stop (SIGTERM, and SIGKILL 5 s later), and the exit code is 6.

The lock's number, which is higher than that of all who had it before, is in TYR_LOCK_TOKEN: what \
COMMAND commits under `compare-number KEYSPACE KEY 8 = u64 $TYR_LOCK_TOKEN` is refused when \
somebody else has got the lock since. Without COMMAND the number is shown, and who has the lock.

A directory is open in one process: there COMMAND can not use the same store.

Example:
  tyr --data tyr://node-1:7070 lock jobs nightly -- ./backup.sh
  tyr --data tyr://node-1:7070 lock jobs nightly")]
pub struct LockArguments {
    #[command(flatten)]
    blob: BlobArguments,
    /// Wait for so many seconds at most; without it, as long as it takes
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    wait: Option<u64>,
    /// Do not wait: end with exit code 5 if somebody has the lock
    #[arg(long = "no-wait", conflicts_with = "wait")]
    is_impatient: bool,
    /// Seconds after which others may get the lock when this process is gone
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=10))]
    duration: u64,
    /// The command to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command under the lock, or shows the lock.
pub fn run(session: &mut Session, arguments: &LockArguments) -> Outcome {
    let key = arguments.blob.key()?;
    let Some((program, rest)) = arguments.command.split_first() else {
        return show(session, arguments, &key);
    };
    let (_, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    let lock = acquire(session, arguments, &keyspace, &key)?;
    session.interrupt.expect();
    let mut command = Command::new(program);
    command.args(rest).env(TOKEN_VARIABLE, lock.token().to_string());
    let ended = match command.spawn() {
        Ok(child) => watch(session, child, &lock, program),
        Err(error) => Err(cannot_run(program, error).into()),
    };
    match block_on(lock.unlock()) {
        // One that was over by then is nobody's loss: the command has ended.
        Err(error) if error.kind() != ErrorKind::Conflict => {
            eprintln!("tyr: the lock ends by itself: {error}");
        }
        Ok(()) | Err(_) => {}
    }
    let status = ended?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Command(exit_code(status))),
    }
}

/// Waits for the lock, in line; Ctrl-C ends it.
fn acquire(
    session: &Session,
    arguments: &LockArguments,
    keyspace: &Keyspace,
    key: &Key,
) -> Outcome<Lock> {
    let host = process::host_name();
    let options = LeaseOptions::exclusive()
        .duration(Duration::from_secs(arguments.duration))
        .holder(format!("process {} on {host}", std::process::id()));
    let options = match (arguments.is_impatient, arguments.wait) {
        (true, _) => options.no_wait(),
        (false, Some(wait)) => options.wait(Duration::from_secs(wait)),
        (false, None) => options,
    };
    let keyspace = keyspace.clone().into_async();
    let mut taken = pin!(keyspace.lock(key, &options));
    loop {
        if let Some(taken) = block_on_within(taken.as_mut(), LOOK) {
            return Ok(taken?);
        }
        session.interrupt.check()?;
    }
}

/// Waits for the command to end, or for the lock to be lost.
fn watch(session: &Session, mut child: Child, lock: &Lock, program: &str) -> Outcome<ExitStatus> {
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| cannot_run(program, error))? {
            return Ok(status);
        }
        // The terminal tells the command of Ctrl-C by itself.
        if let (Err(Failure::Interrupted(signal)), false) = (session.interrupt.check(), is_told)
            && signal == signal_hook::consts::SIGTERM
        {
            is_told = true;
            tell(&child, Signal::TERM);
        }
        let lost = block_on_within(lock.lease().lost(), LOOK);
        if lost.is_some() || !lock.lease().is_held() {
            stop(&mut child);
            return Err(Error::unavailable(format!(
                "the lock was lost, since no node renewed it in time; {program} was stopped"
            ))
            .into());
        }
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

/// Shows the lock's number, and who has it.
fn show(session: &mut Session, arguments: &LockArguments, key: &Key) -> Outcome {
    let (_, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Read)?;
    let lock = keyspace.inspect_lock(key)?;
    let text = match &lock.holder {
        Some(holder) => format!("{}\t{holder}", lock.token),
        None => format!("{}\tfree", lock.token),
    };
    let fields = json!({
        "keyspace": keyspace.name(),
        "token": lock.token,
        "holder": lock.holder,
    });
    session.output.record(&with_key(key, fields), &text)
}
