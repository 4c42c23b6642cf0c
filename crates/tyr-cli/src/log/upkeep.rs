//! Making logs and looking after them: `tyr log create`, `status`, `trim`, `retention`, `seal`,
//! `delete`.

use std::time::Duration;

use clap::{ArgGroup, Args};
use serde_json::{Value, json};
use tyr::{KeyspaceConfig, Result};
use tyr_log::{Log, Options, Retention, Start, Status, Trimmed};

use super::words::{duration_text, parse_duration, parse_start};
use super::{NameArguments, PlaceArguments};
use crate::commands::keyspace::DurabilityArgument;
use crate::data::{parse_size, size_text, time_text};
use crate::failure::{Failure, Outcome};
use crate::output::table;
use crate::progress::{self, Unit};
use crate::session::{Access, Session};
use crate::telemetry::runtime;

/// `tyr log create`
#[derive(Args, Debug)]
#[command(after_help = "\
The keyspace is made if it is missing, and the store if its directory is. What is said here stays \
so for the log's life, but for what may go by itself (tyr log retention). A log with one partition \
has one strict order; one with several takes more writers at a time, and with --strict they have \
one strict order, too, and numbers.

Examples:
  tyr log create orders
  tyr log create clicks --partitions 8 --retain-for 7d --retain 100GiB
  tyr log create ledger --partitions 4 --strict")]
pub struct CreateArguments {
    #[command(flatten)]
    name: NameArguments,
    /// Rows of segments that take entries side by side, 1 to 1024
    #[arg(long, value_name = "N", default_value = "1")]
    partitions: u16,
    /// Bytes after which a partition goes on in another segment; default 32 MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    segment_size: Option<u64>,
    /// Entries older than this may go by themselves, like 90s, 15m, 6h, 7d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    retain_for: Option<Duration>,
    /// All but the newest so many bytes may go by themselves
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    retain: Option<u64>,
    /// One strict order over all partitions, and a number for each entry
    #[arg(long = "strict")]
    is_strict: bool,
    /// When an append is acknowledged; counts when the keyspace is made
    #[arg(long, value_enum, default_value = "sync")]
    durability: DurabilityArgument,
}

/// `tyr log trim`
#[derive(Args, Debug)]
#[command(after_help = "\
What is before the place is forgotten, for readers and groups, and its space is given back. The \
place is as --from of `tyr log read` takes it. Without --before what the log's retention lets go \
goes now. Interrupted, it goes on when it is run again.

Examples:
  tyr log trim orders --before time:-7d
  tyr log trim orders --before 0:3:64
  tyr log trim orders")]
pub struct TrimArguments {
    #[command(flatten)]
    name: NameArguments,
    /// Where what is kept begins
    #[arg(long, value_name = "PLACE", value_parser = parse_start)]
    before: Option<Start>,
}

/// `tyr log retention`
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
#[command(after_help = "\
What is too old or too much goes whenever the log goes on in another segment, and with `tyr log \
trim` without --before. What is not said here stays as it was; `off` lets nothing go for that.

Examples:
  tyr log retention orders --retain-for 30d
  tyr log retention orders --retain 100GiB --retain-for off")]
pub struct RetentionArguments {
    #[command(flatten)]
    name: NameArguments,
    /// Entries older than this may go by themselves, like 90s, 15m, 6h, 7d; or off
    #[arg(long, group = "what", value_name = "DURATION", value_parser = or_off(parse_duration))]
    retain_for: Option<Bound<Duration>>,
    /// All but the newest so many bytes may go by themselves; or off
    #[arg(long, group = "what", value_name = "SIZE", value_parser = or_off(parse_size))]
    retain: Option<Bound<u64>>,
}

/// A bound of what is kept, or none.
#[derive(Clone, Copy, Debug)]
struct Bound<T>(Option<T>);

/// Takes what the parser takes, or `off`.
fn or_off<T>(
    parse: impl Fn(&str) -> std::result::Result<T, String> + Clone,
) -> impl Fn(&str) -> std::result::Result<Bound<T>, String> + Clone {
    move |text| match text {
        "off" => Ok(Bound(None)),
        _ => parse(text).map(|bound| Bound(Some(bound))),
    }
}

/// `tyr log status`
#[derive(Args, Debug)]
#[command(after_help = "\
Each partition with where it begins and ends, its segments and bytes. Without a name, the names of \
all logs of the keyspace.

Examples:
  tyr log status
  tyr log status orders --json")]
pub struct StatusArguments {
    /// The log's name; all if missing
    log: Option<String>,
    #[command(flatten)]
    place: PlaceArguments,
}

/// `tyr log seal`
#[derive(Args, Debug)]
#[command(after_help = "\
From one moment on nobody appends to it, in any partition. It can be read, trimmed and deleted. It \
stays sealed.

Example:
  tyr log seal orders")]
pub struct SealArguments {
    #[command(flatten)]
    name: NameArguments,
}

/// `tyr log delete`
#[derive(Args, Debug)]
#[command(after_help = "\
Entries, groups and all. There is no way back.

Example:
  tyr log delete orders")]
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
        partitions: arguments.partitions,
        segment_bytes: arguments.segment_size,
        retention: Retention { age: arguments.retain_for, bytes: arguments.retain },
        is_strict: arguments.is_strict,
    };
    runtime()?.block_on(Log::create(&store, &arguments.name.log, &options))?;
    Ok(())
}

/// Forgets entries.
pub fn trim(session: &mut Session, arguments: &TrimArguments) -> Outcome {
    let (runtime, log) = arguments.name.open(session, Access::Write)?;
    let bar = progress::bar(Some(0), Unit::Things("segments"), session.output.is_json());
    let interrupt = session.interrupt.clone();
    let progress = |trimmed: Trimmed| -> Result<()> {
        bar.set_length(trimmed.segments + trimmed.left);
        bar.set_position(trimmed.segments);
        interrupt.check_io().map_err(|error| tyr::Error::io("trimming is not over", error))
    };
    let trimmed = match &arguments.before {
        Some(before) => runtime.block_on(async {
            let cut = log.reader(before).await?.cut();
            log.trim(&cut, progress).await
        }),
        None => runtime.block_on(log.apply_retention(progress)),
    };
    bar.finish_and_clear();
    session.interrupt.check()?;
    let trimmed = trimmed?;
    let begin = runtime.block_on(log.status())?.partitions;
    let begin: Vec<String> = begin.iter().map(|it| it.begin.to_string()).collect();
    session.output.record(
        &json!({ "segments": trimmed.segments, "begin": begin }),
        &format!("{} segments gone, the log begins at {}", trimmed.segments, begin.join(",")),
    )
}

/// Changes what may go by itself.
pub fn retention(session: &mut Session, arguments: &RetentionArguments) -> Outcome {
    let (runtime, log) = arguments.name.open(session, Access::Write)?;
    let retention = runtime.block_on(async {
        let mut retention = log.status().await?.retention;
        if let Some(Bound(age)) = arguments.retain_for {
            retention.age = age;
        }
        if let Some(Bound(bytes)) = arguments.retain {
            retention.bytes = bytes;
        }
        log.set_retention(retention).await.map(|()| retention)
    })?;
    let words = retention_words(&retention);
    session.output.record(
        &json!({
            "retain_seconds": retention.age.map(|age| age.as_secs_f64()),
            "retain_bytes": retention.bytes,
        }),
        &if words.is_empty() { "nothing goes by itself".to_owned() } else { words.join("; ") },
    )
}

fn retention_words(retention: &Retention) -> Vec<String> {
    let age = retention.age.map(|age| format!("kept for {}", duration_text(age)));
    let bytes = retention.bytes.map(|bytes| format!("kept: the newest {}", size_text(bytes)));
    age.into_iter().chain(bytes).collect()
}

/// Shows what there is.
pub fn status(session: &mut Session, arguments: &StatusArguments) -> Outcome {
    let keyspace = &arguments.place.keyspace;
    let Some(log) = &arguments.log else {
        let store = session.open(Access::Read)?.into_async();
        for name in runtime()?.block_on(Log::list_in(&store, keyspace))? {
            session.output.record(&json!({ "log": name }), &name)?;
        }
        return Ok(());
    };
    let store = session.open(Access::Read)?.into_async();
    let status = runtime()?.block_on(async {
        let log = Log::open_in(&store, keyspace, log).await?;
        log.status().await
    })?;
    let text = [heading(log, &status), partitions(&status)].join("\n");
    session.output.record(&as_json(log, &status), &text)
}

fn heading(log: &str, status: &Status) -> String {
    let mut words = vec![format!("log {log}, made {}", time_text(status.created.clock))];
    words.push(match status.is_sealed {
        true => "sealed".to_owned(),
        false => "takes entries".to_owned(),
    });
    if let Some((first, next)) = status.numbers {
        words.push(format!("strict, numbers {first} to before {next}"));
    }
    words.push(format!("segments of {}", size_text(status.segment_bytes)));
    words.extend(retention_words(&status.retention));
    words.join("; ")
}

fn partitions(status: &Status) -> String {
    let rows: Vec<Vec<String>> = status
        .partitions
        .iter()
        .map(|it| {
            let (begin, end) = (it.begin.to_string(), it.end.to_string());
            vec![begin, end, it.segments.to_string(), size_text(it.bytes)]
        })
        .collect();
    table(&["begin", "end", "segments", "bytes"], &rows, &[2, 3])
}

fn as_json(log: &str, status: &Status) -> Value {
    let partitions: Vec<Value> = status
        .partitions
        .iter()
        .map(|it| {
            let (begin, end) = (it.begin.to_string(), it.end.to_string());
            json!({ "begin": begin, "end": end, "segments": it.segments, "bytes": it.bytes })
        })
        .collect();
    json!({
        "log": log,
        "created": time_text(status.created.clock),
        "sealed": status.is_sealed,
        "strict": status.is_strict,
        "segment_bytes": status.segment_bytes,
        "retain_seconds": status.retention.age.map(|age| age.as_secs_f64()),
        "retain_bytes": status.retention.bytes,
        "first_number": status.numbers.map(|(first, _)| first),
        "next_number": status.numbers.map(|(_, next)| next),
        "partitions": partitions,
    })
}

/// Seals a log.
pub fn seal(session: &mut Session, arguments: &SealArguments) -> Outcome {
    let (runtime, log) = arguments.name.open(session, Access::Write)?;
    runtime.block_on(log.seal()).map_err(Failure::Store)
}

/// Deletes a log.
pub fn delete(session: &mut Session, arguments: &DeleteArguments) -> Outcome {
    let store = session.open(Access::Write)?.into_async();
    let NameArguments { log, place } = &arguments.name;
    runtime()?.block_on(Log::delete(&store, &place.keyspace, log)).map_err(Failure::Store)
}
