//! `tyr lock`: runs a command while this process holds a lock.

use std::pin::pin;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tyr::blocking::Keyspace;
use tyr::{ErrorKind, Key, LeaseOptions, Lock};
use tyr_runtime::waiting::{block_on, block_on_within};

use super::held::{self, LOOK};
use crate::commands::blob::BlobArguments;
use crate::data::with_key;
use crate::failure::Outcome;
use crate::process;
use crate::session::{Access, Session};

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
    let mut command = Command::new(program);
    command.args(rest).env(TOKEN_VARIABLE, lock.token().to_string());
    let is_lost =
        |wait| block_on_within(lock.lease().lost(), wait).is_some() || !lock.lease().is_held();
    let lost = "the lock was lost, since no node renewed it in time";
    let ended = held::run(session, command, is_lost, lost);
    match block_on(lock.unlock()) {
        // One that was over by then is nobody's loss: the command has ended.
        Err(error) if error.kind() != ErrorKind::Conflict => {
            eprintln!("tyr: the lock ends by itself: {error}");
        }
        Ok(()) | Err(_) => {}
    }
    held::outcome(ended?)
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
