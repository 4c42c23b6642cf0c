//! Making logs and looking after them: `tyr zlog create`, `status`, `trim`, `delete`.

use clap::Args;
use serde_json::{Value, json};
use tyr::{KeyspaceConfig, Result};
use tyr_zlog::{Log, Options, Status, Trimmed};

use super::{NameArguments, PlaceArguments};
use crate::commands::keyspace::DurabilityArgument;
use crate::failure::{Failure, Outcome};
use crate::progress::{self, Unit};
use crate::session::{Access, Session};
use crate::telemetry::runtime;

/// `tyr zlog create`
#[derive(Args, Debug)]
#[command(after_help = "\
The keyspace is made if it is missing, the store if its directory is, and the classes `zlog` and \
`zlog_view` are installed and enabled. Positions go round --width objects, each of which takes \
--slots of them; then the log goes on in as many new ones.

Examples:
  tyr zlog create orders
  tyr zlog create clicks --width 16 --slots 4096")]
pub struct CreateArguments {
    #[command(flatten)]
    name: NameArguments,
    /// Objects that take appends side by side, 1 to 64
    #[arg(long, value_name = "N", default_value = "8")]
    width: u32,
    /// Positions of an object, 1 to 65536
    #[arg(long, value_name = "N", default_value = "1024")]
    slots: u32,
    /// When an append is acknowledged; counts when the keyspace is made
    #[arg(long, value_enum, default_value = "sync")]
    durability: DurabilityArgument,
}

/// `tyr zlog trim`
#[derive(Args, Debug)]
#[command(after_help = "\
What is before a position is forgotten, and objects all of whose positions are give their space \
back; or one position, whether it is written or not. Interrupted, it goes on when it is run again.

Examples:
  tyr zlog trim orders --before 8192
  tyr zlog trim orders --position 17")]
pub struct TrimArguments {
    #[command(flatten)]
    name: NameArguments,
    /// The position that what is kept begins with
    #[arg(long, value_name = "POSITION", required_unless_present = "position")]
    before: Option<u64>,
    /// The one position to forget
    #[arg(long, value_name = "POSITION", conflicts_with = "before")]
    position: Option<u64>,
}

/// `tyr zlog status`
#[derive(Args, Debug)]
#[command(after_help = "\
Where the log begins and ends, its objects, its view's epoch, the epoch in which the counter of \
positions began, and who has the sequencer, or had it last. Without a name, the names of all logs \
of the keyspace.

Examples:
  tyr zlog status
  tyr zlog status orders --json")]
pub struct StatusArguments {
    /// The log's name; all if missing
    log: Option<String>,
    #[command(flatten)]
    place: PlaceArguments,
}

/// `tyr zlog delete`
#[derive(Args, Debug)]
#[command(after_help = "\
There is no way back.

Example:
  tyr zlog delete orders")]
pub struct DeleteArguments {
    #[command(flatten)]
    name: NameArguments,
}

/// Makes a log.
pub fn create(session: &mut Session, arguments: &CreateArguments) -> Outcome {
    let store = session.open(Access::Create)?.into_async();
    let defaults = Options::default();
    let options = Options {
        keyspace: arguments.name.place.keyspace.clone(),
        keyspace_config: KeyspaceConfig {
            durability: arguments.durability.into(),
            ..defaults.keyspace_config
        },
        width: arguments.width,
        slots: arguments.slots,
    };
    runtime()?.block_on(Log::create(&store, &arguments.name.log, &options))?;
    Ok(())
}

/// Forgets entries.
pub fn trim(session: &mut Session, arguments: &TrimArguments) -> Outcome {
    let (runtime, log) = arguments.name.open(session)?;
    let before = match (arguments.before, arguments.position) {
        (_, Some(position)) => {
            return runtime.block_on(log.trim_one(position)).map_err(Failure::Store);
        }
        (before, None) => before.unwrap_or_default(),
    };
    let bar = progress::bar(Some(0), Unit::Things("stripes"), session.output.is_json());
    let interrupt = session.interrupt.clone();
    let progress = |trimmed: Trimmed| -> Result<()> {
        bar.set_length(trimmed.stripes + trimmed.left);
        bar.set_position(trimmed.stripes);
        interrupt.check_io().map_err(|error| tyr::Error::io("trimming is not over", error))
    };
    let trimmed = runtime.block_on(log.trim(before, progress));
    bar.finish_and_clear();
    session.interrupt.check()?;
    let trimmed = trimmed?;
    let begin = runtime.block_on(log.status())?.begin;
    session.output.record(
        &json!({ "stripes": trimmed.stripes, "begin": begin }),
        &format!("{} stripes gone, the log begins at {begin}", trimmed.stripes),
    )
}

/// Shows what there is.
pub fn status(session: &mut Session, arguments: &StatusArguments) -> Outcome {
    let keyspace = &arguments.place.keyspace;
    let store = session.open(Access::Read)?.into_async();
    let Some(log) = &arguments.log else {
        for name in runtime()?.block_on(Log::list_in(&store, keyspace))? {
            session.output.record(&json!({ "log": name }), &name)?;
        }
        return Ok(());
    };
    let status = runtime()?.block_on(async {
        let log = Log::open_in(&store, keyspace, log).await?;
        log.status().await
    })?;
    session.output.record(&as_json(log, &status), &as_text(log, &status))
}

fn as_text(log: &str, status: &Status) -> String {
    let Status { begin, tail, epoch, term, stripes, width, slots, token, .. } = status;
    let holder = status.holder.as_deref().unwrap_or("nobody");
    format!(
        "log {log}: positions {begin} to before {tail}\n\
         objects: {stripes} stripes, the last of {width} with {slots} positions each\n\
         view: epoch {epoch}, counter since epoch {term}\n\
         sequencer: got {token} times, last by {holder}"
    )
}

fn as_json(log: &str, status: &Status) -> Value {
    json!({
        "log": log,
        "begin": status.begin,
        "tail": status.tail,
        "epoch": status.epoch,
        "term": status.term,
        "stripes": status.stripes,
        "width": status.width,
        "slots": status.slots,
        "token": status.token,
        "holder": status.holder,
    })
}

/// Deletes a log.
pub fn delete(session: &mut Session, arguments: &DeleteArguments) -> Outcome {
    let store = session.open(Access::Write)?.into_async();
    let NameArguments { log, place } = &arguments.name;
    runtime()?.block_on(Log::delete(&store, &place.keyspace, log)).map_err(Failure::Store)
}
