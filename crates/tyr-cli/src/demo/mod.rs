//! `tyr demo`: a monitoring store at work, watched, and checked while it works.
//!
//! [`work`] records and audits on many threads, [`frame`] is what can be seen of it at a moment,
//! [`screen`] draws that on a terminal, and [`summary`] verifies everything at the end.
//!
//! ```text
//!   this machine ─┐                       ┌─ auditors: one aggregate against its measurements,
//!   many writers ─┴► transactions ► store ┤  at one snapshot
//!                                         └─ frames: rates, latencies, top series, versions held
//! ```

mod frame;
mod nodes;
mod screen;
mod summary;
mod work;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use tempfile::TempDir;
use tyr::{Error, ErrorKind, Tyr};
use tyr_telemetry::{Config, Telemetry};

use crate::failure::{Failure, Outcome};
use crate::session::{Access, Session};
use crate::telemetry;
use frame::Watcher;
use nodes::{Nodes, Trouble};
use screen::Screen;
use work::Work;

/// `tyr demo`
#[derive(Args, Debug)]
#[command(after_help = "\
Records this machine's live metrics and a generated load from many writers, one transaction a \
measurement, while auditors take snapshots and compare aggregates with the measurements under \
them. Any key, or Ctrl-C, ends it early. At the end every aggregate is recomputed and every \
checksum verified; the exit code is 1 if anything differs. It works in a new folder that is \
removed afterwards, whatever TYR_DATA names; with --data in that store, in a keyspace `demo` that \
it makes and leaves there. With --cluster it works on nodes of its own; one of them is killed on \
the way, and started again.

Examples:
  tyr demo --seconds 5
  tyr demo --cluster 3")]
pub struct DemoArguments {
    /// How long it works
    #[arg(long, default_value = "20", value_parser = parse_seconds)]
    seconds: f64,
    /// Writers of the generated load
    #[arg(long, default_value = "32", value_name = "N")]
    writers: usize,
    /// Auditors
    #[arg(long, default_value = "2", value_name = "N")]
    auditors: usize,
    /// Generated measurements a second, at most; default: as many as go
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// What the generated load begins from; the same gives the same
    #[arg(long, default_value = "1", value_name = "N")]
    seed: u64,
    /// Work on a cluster of so many nodes on this machine, and kill one meanwhile
    #[arg(
        long,
        value_name = "NODES",
        value_parser = clap::value_parser!(u16).range(3..=9)
    )]
    cluster: Option<u16>,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=1e6).contains(&seconds) => Ok(seconds),
        Ok(_) | Err(_) => Err("give a number of seconds from 0.1 on".to_owned()),
    }
}

/// The keyspace that it works in.
const KEYSPACE: &str = "demo";

/// Time between two frames on a screen.
const FRAME_TIME: Duration = Duration::from_millis(250);
/// Time between two lines without one.
const LINE_TIME: Duration = Duration::from_secs(1);

/// Works, shows it, verifies, sums up.
pub fn run(session: &mut Session, arguments: &DemoArguments) -> Outcome {
    // Ctrl-C is a fine end of a demo: it still verifies, and its outcome counts.
    session.interrupt.expect();
    let folder = Folder::choose(session, arguments)?;
    let nodes = arguments.cluster.map(|count| Nodes::start(folder.path(), count)).transpose()?;
    let place = nodes.as_ref().map_or_else(|| folder.path().to_owned(), Nodes::address);
    let runtime = telemetry::runtime()?;
    let store = session.open_at(&place, Access::Create)?.into_async();
    let telemetry = runtime.block_on(open(&store))?;
    let mut work = Work::start(&runtime, &telemetry, arguments);
    let mut watcher = Watcher::new(runtime.handle().clone(), telemetry.clone());
    let trouble = nodes.map(|nodes| nodes.trouble(arguments.seconds));
    let watched = watch(session, &work, &mut watcher, arguments.seconds);
    let worked = work.stop(&runtime);
    let nodes = trouble.map(Trouble::end).transpose()?;
    let last = watcher.frame(&work);
    watched?;
    worked?;
    let verified = summary::verify(session, &runtime, &telemetry)?;
    // Every handle to the store goes, so that the check is that of a closed one.
    drop((work, watcher, telemetry, store));
    let checked = summary::check(session, &place)?;
    summary::report(session, &last, &verified, checked.as_ref())?;
    match nodes {
        Some(nodes) => nodes.report(session),
        None => Ok(()),
    }
}

/// A keyspace of its own in the store: what others keep there stays as it is.
async fn open(store: &Tyr) -> Outcome<Telemetry> {
    let config = Config { keyspace: KEYSPACE.to_owned(), ..Config::default() };
    match store.create_keyspace(KEYSPACE, config.keyspace_config.clone()).await {
        Ok(_) => Ok(Telemetry::open(store, config).await?),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Failure::Usage(format!(
            "the store has a keyspace \"{KEYSPACE}\" already, and the demo writes only into one \
             that it has made. Leave --data away to have it in a folder of its own, or, if that is \
             of an earlier demo, drop it first: tyr keyspace drop {KEYSPACE}"
        ))),
        Err(error) => Err(error.into()),
    }
}

/// Shows frames until time is over, a key is pressed, or a signal comes.
fn watch(session: &mut Session, work: &Work, watcher: &mut Watcher, seconds: f64) -> Outcome {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let has_screen = io::stdout().is_terminal() && !session.output.is_json();
    let mut screen = if has_screen { Screen::open() } else { None };
    let pause = if screen.is_some() { FRAME_TIME } else { LINE_TIME };
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || session.interrupt.is_raised() || work.has_failed() {
            return Ok(());
        }
        match &mut screen {
            Some(screen) => {
                if screen.wait_for_key(pause.min(left)) {
                    return Ok(());
                }
                screen.draw(&watcher.frame(work), left);
            }
            None => {
                nap(session, pause.min(left));
                let frame = watcher.frame(work);
                session.output.record(&frame.as_json(), &frame.as_line())?;
                session.output.flush()?;
            }
        }
    }
}

/// Sleeps, but not through a signal.
fn nap(session: &Session, time: Duration) {
    const STEP: Duration = Duration::from_millis(50);
    let end = Instant::now() + time;
    while !session.interrupt.is_raised() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(STEP));
    }
}

/// Where the demo works.
enum Folder {
    /// Where the user said.
    Given(PathBuf),
    /// In a folder of its own, removed at the end.
    Temporary(TempDir),
}

impl Folder {
    fn choose(session: &Session, arguments: &DemoArguments) -> Outcome<Self> {
        if arguments.cluster.is_none() {
            if let Some(data) = session.data_if_said() {
                return Ok(Self::Given(data));
            }
            if let Some(data) = session.data_if_given() {
                eprintln!(
                    "tyr: the demo works in a folder of its own, not in {}; --data would have it \
                     there",
                    data.display()
                );
            }
        } else if session.data_if_said().is_some() {
            return Err(Failure::Usage(
                "--cluster makes nodes of its own, in a new folder: leave --data away, or \
                 --cluster, to work on that store"
                    .to_owned(),
            ));
        }
        let folder = tempfile::Builder::new()
            .prefix("tyr-demo-")
            .tempdir()
            .map_err(|error| Error::io("cannot make a folder for temporary files", error))?;
        Ok(Self::Temporary(folder))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}
