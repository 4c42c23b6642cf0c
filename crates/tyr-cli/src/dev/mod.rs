//! `tyr dev`: a cluster on this machine in one command, for trying things.
//!
//! Each node is a process of this program ([`children`]), on ports from 7001 on if they are free
//! ([`layout`]).
//! They are told to end by the end of their input, so that none is left behind, however this
//! process ends.

mod children;
mod layout;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use tempfile::TempDir;
use tyr::Error;

pub use self::children::{Children, News};
pub use self::layout::{Layout, Ports};
use crate::failure::Outcome;
use crate::session::Session;

/// How long the nodes have to form a cluster: on a busy machine with a slow disk some seconds.
const READY_MAX: Duration = Duration::from_secs(60);

/// `tyr dev`
#[derive(Args, Debug)]
#[command(after_help = "\
There is no access control: whoever can connect to this machine's loopback address may do \
everything. The nodes log into files in the folder, and node-N.pid there has the process of each.

Examples:
  tyr dev
  tyr dev 5 --folder /tmp/five
  kill -9 $(cat /tmp/five/node-2.pid)     # a node dies")]
pub struct DevArguments {
    /// How many nodes
    #[arg(default_value = "3", value_parser = clap::value_parser!(u16).range(1..=9))]
    nodes: u16,
    /// Where the nodes keep what they have; given again, the same cluster goes on. By default a
    /// temporary folder
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The port of the first node; the others have those that follow, and HTTP ports 100 higher.
    /// 0 for any that are free. By default 7001, or any where that or one of the others is taken
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Leave the temporary folder behind
    #[arg(long = "keep")]
    is_kept: bool,
}

/// Where the nodes keep what they have.
enum Folder {
    Given(PathBuf),
    Temporary(TempDir),
}

impl Folder {
    fn choose(given: Option<&Path>) -> Outcome<Self> {
        let Some(path) = given else {
            let made = tempfile::Builder::new().prefix("tyr-dev-").tempdir();
            let made = made.map_err(|error| Error::io("cannot make a temporary folder", error))?;
            return Ok(Self::Temporary(made));
        };
        std::fs::create_dir_all(path)
            .map_err(|error| Error::io(path.display().to_string(), error))?;
        Ok(Self::Given(path.to_owned()))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }

    /// What becomes of it, in words, and whether it stays.
    fn fate(&self, is_kept: bool) -> (&'static str, bool) {
        match self {
            Self::Given(_) => ("kept", true),
            Self::Temporary(_) if is_kept => ("kept", true),
            Self::Temporary(_) => ("removed at the end; --keep keeps it", false),
        }
    }
}

/// Runs a cluster until a signal comes.
pub fn run(session: &mut Session, arguments: &DevArguments) -> Outcome {
    session.interrupt.expect();
    let folder = Folder::choose(arguments.folder.as_deref())?;
    let ports = match arguments.port {
        None => Ports::Usual,
        Some(0) => Ports::Any,
        Some(first) => Ports::From(first),
    };
    let layout = Layout::find_or_make(folder.path(), arguments.nodes, ports)?;
    let mut children = Children::start(&layout, folder.path())?;
    let outcome = watch(session, &mut children, &layout, &folder, arguments.is_kept);
    // Also when something failed: nobody is left behind.
    let unwilling = children.stop();
    if unwilling > 0 {
        eprintln!("tyr: {unwilling} nodes did not end in time and were killed");
    }
    let (_, stays) = folder.fate(arguments.is_kept);
    let path = folder.path().display().to_string();
    if let (Folder::Temporary(folder), true) = (folder, stays) {
        // From now on it is not removed.
        let _ = folder.keep();
    }
    outcome?;
    let text = match stays {
        true => format!("stopped; the data is in {path}"),
        false => "stopped, and nothing is left".to_owned(),
    };
    session.output.record(&json!({"event": "stopped", "folder": path, "kept": stays}), &text)
}

fn watch(
    session: &mut Session,
    children: &mut Children,
    layout: &Layout,
    folder: &Folder,
    is_kept: bool,
) -> Outcome {
    let deadline = Instant::now() + READY_MAX;
    let mut ready = 0;
    while !session.interrupt.is_raised() {
        let news = children.next();
        if ready < layout.nodes.len() && Instant::now() > deadline {
            return Err(Error::unavailable(format!(
                "only {ready} of {} nodes are ready after {} s; {}",
                layout.nodes.len(),
                READY_MAX.as_secs(),
                children.last_words()
            ))
            .into());
        }
        match news {
            Some(News::Ready) => {
                ready += 1;
                if ready == layout.nodes.len() {
                    welcome(session, children, layout, folder, is_kept)?;
                }
            }
            Some(News::Ended { node, how, words }) => {
                if ready < layout.nodes.len() {
                    let text = format!("node {node} ended before it was ready ({how}); {words}");
                    return Err(Error::unavailable(text).into());
                }
                session.output.record(
                    &json!({"event": "ended", "node": node, "how": how, "log": words}),
                    &format!("node {node} ended ({how}); {words}"),
                )?;
                session.output.flush()?;
                if children.is_empty() {
                    return Err(Error::unavailable("all nodes have ended").into());
                }
            }
            None => {}
        }
    }
    Ok(())
}

/// Says how to reach the cluster, and what to try.
fn welcome(
    session: &mut Session,
    children: &Children,
    layout: &Layout,
    folder: &Folder,
    is_kept: bool,
) -> Outcome {
    let address = layout.address();
    let (path, (fate, _)) = (folder.path().display(), folder.fate(is_kept));
    let http = layout.nodes.first().map(|place| place.http).expect("there is at least one node");
    let count = layout.nodes.len();
    let nodes = if count == 1 { "1 node is".to_owned() } else { format!("{count} nodes are") };
    let text = format!(
        "{nodes} ready, at {address}\n\n{}\n\nTry, in another terminal:\n\n  \
         export TYR_DATA={address}\n  \
         tyr status\n  \
         tyr keyspace create notes\n  \
         echo hello | tyr put notes greeting\n  \
         tyr get notes greeting\n  \
         curl http://{http}/metrics\n\n\
         Data and logs are in {path} ({fate}).\nCtrl-C stops all of it.",
        children.list()
    );
    session.output.record(
        &json!({
            "event": "ready",
            "address": address,
            "folder": path.to_string(),
            "nodes": children.describe(layout),
        }),
        &text,
    )?;
    session.output.flush()
}
