//! `tyr serve`: a node of a cluster, in the foreground.
//!
//! ```text
//!   settings ─► plan ─► node ─► listening ─► ready ─► a signal ─► stopped
//!                         ├─► http: metrics, health, status
//!                         └─► its disk fails ─► waits for room ─► the node again
//! ```
//!
//! [`plan`] makes from settings what a node is started with, [`http`] answers over HTTP what
//! [`crate::metrics`] counts, [`hosting`] runs methods of objects, [`supervisor`]
//! tells whoever started the process how it stands.

mod hosting;
mod http;
mod plan;
mod supervisor;

use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use signal_hook::consts::SIGHUP;
use tyr::{Error, ErrorKind};
use tyr_server::{Observer, ROOM_MIN, Server, ServerOptions};

use self::http::Http;
use self::plan::Plan;
use self::supervisor::Supervisor;
use crate::balancer::host::BalancerHost;
use crate::configuration::{Configuration, Layers, Reviewed, SettingFlags};
use crate::failure::{Failure, Outcome};
use crate::logging::{self, AuditFile};
use crate::process;
use crate::session::Session;

/// How soon a signal is noticed, and that the node became ready.
const NAP: Duration = Duration::from_millis(50);

/// A node whose disk failed begins anew after so long at first, and at last.
const PATIENCE_MIN: Duration = Duration::from_secs(1);
const PATIENCE_MAX: Duration = Duration::from_secs(30);

/// `tyr serve`
#[derive(Args, Debug)]
#[command(after_help = "\
Settings come from flags, then TYR_... variables, then the file, then their defaults; \
docs/reference/configuration.md has them all. One line on standard output says where the node \
listens, another when it is ready to serve. SIGTERM and Ctrl-C end it well, a second one ends it \
at once; SIGHUP opens the audit file anew.

Examples:
  tyr serve --config /etc/tyr/tyr.toml
  tyr serve --config /etc/tyr/tyr.toml --check
  tyr serve --node 0 --folder /tmp/n0 --listen 127.0.0.1:7070 --nodes 0=127.0.0.1:7070 --insecure")]
pub struct ServeArguments {
    /// A file with settings
    #[arg(long, env = "TYR_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Say what is wrong with the settings, and end
    #[arg(long = "check")]
    is_check: bool,
    /// Print all settings, each with where it comes from, and end
    #[arg(long = "print-config")]
    is_printing: bool,
    /// End as by a signal when standard input ends
    #[arg(long = "until-input-ends", hide = true)]
    is_until_input_ends: bool,
    #[command(flatten)]
    settings: SettingFlags,
}

/// Runs a node until a signal comes.
pub fn run(session: &mut Session, arguments: &ServeArguments) -> Outcome {
    let variable = |name: &str| std::env::var(name).ok();
    let layers = Layers {
        file: arguments.config.as_deref(),
        variable: Some(&variable),
        flags: arguments.settings.clone(),
    };
    if arguments.is_printing {
        let settings = layers.resolve().map_err(refuse)?;
        return session.output.record(&settings.json(), &settings.text());
    }
    let (settings, plan) = plan(&layers).map_err(refuse)?;
    if arguments.is_check {
        return check(session, &settings, &plan);
    }
    session.interrupt.expect();
    process::refuse_huge_pages();
    let audit = logging::begin(&plan.log)?;
    for warning in &plan.warnings {
        tracing::warn!("{warning}");
    }
    let ending = Arc::new(AtomicBool::new(false));
    if arguments.is_until_input_ends {
        watch_input(Arc::clone(&ending))?;
    }
    let watch = Watch { audit, ending, moved_away: Arc::default() };
    serve(session, plan, &watch)
}

/// The settings in effect, and what a node is started with by them.
///
/// # Errors
/// Everything that is wrong with them, by themselves and with each other. Where the file cannot be
/// read only the former: what is missing may stand in it.
fn plan(layers: &Layers<'_>) -> Result<(Configuration, Plan), Vec<String>> {
    let Reviewed { configuration, mut errors, is_file_unreadable } = layers.review();
    if is_file_unreadable {
        return Err(errors);
    }
    match Plan::of(&configuration) {
        Ok(plan) if errors.is_empty() => Ok((configuration, plan)),
        Ok(_) => Err(errors),
        Err(more) => {
            errors.extend(more);
            Err(errors)
        }
    }
}

/// Everything that is wrong, as one failure.
fn refuse(errors: Vec<String>) -> Failure {
    Failure::Usage(match errors.as_slice() {
        [one] => one.clone(),
        _ => format!("{} settings are wrong:\n  {}", errors.len(), errors.join("\n  ")),
    })
}

fn check(session: &mut Session, settings: &Configuration, plan: &Plan) -> Outcome {
    let warnings: String =
        plan.warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
    let fields = json!({"ok": true, "warnings": plan.warnings, "settings": settings.json()});
    session.output.record(&fields, &format!("{warnings}the settings are sound"))
}

/// What a node that runs is watched for.
struct Watch {
    audit: Option<AuditFile>,
    /// Standard input ended, and that is to end the node.
    ending: Arc<AtomicBool>,
    /// Somebody moved the audit file away.
    moved_away: Arc<AtomicBool>,
}

impl Watch {
    fn is_over(&self, session: &Session) -> bool {
        session.interrupt.is_raised() || self.ending.load(Ordering::Relaxed)
    }
}

/// Why a node does not run any more.
enum Ended {
    /// Somebody wanted it to end.
    Told,
    /// Its disk took no more, or gave something wrong.
    Failed(Vec<String>),
}

/// Runs the node until it is told to end. One whose disk fails, most often because it is full,
/// begins anew from what is on disk once there is room.
fn serve(session: &mut Session, plan: Plan, watch: &Watch) -> Outcome {
    let mut supervisor = Supervisor::find();
    signal_hook::flag::register(SIGHUP, Arc::clone(&watch.moved_away))
        .map_err(|error| Error::io("cannot watch for SIGHUP", error))?;
    let Plan { mut options, http, .. } = plan;
    let mut server = Server::start(options.clone())?;
    let node = server.node().0;
    // It is the same place and the same node the next time.
    (options.listen, options.node) = (server.listen(), Some(server.node()));
    let mut patience = PATIENCE_MIN;
    loop {
        let begun = Instant::now();
        let balancing = hosting::begin(&server, &options);
        match live(session, server, balancing, http, &mut supervisor, watch)? {
            Ended::Told => break,
            Ended::Failed(reasons) => {
                let reasons = reasons.join("; ");
                tracing::error!(node, reasons, "the node begins anew as soon as it can");
                supervisor.tell("STATUS=The disk failed; the node waits for room on it");
            }
        }
        if begun.elapsed() > PATIENCE_MAX {
            patience = PATIENCE_MIN;
        }
        match again(session, &options, watch, &mut patience)? {
            Some(started) => server = started,
            None => break,
        }
    }
    tracing::info!(node, "stopped");
    session
        .output
        .record(&json!({"event": "stopped", "node": node}), &format!("node {node} has stopped"))
}

/// Starts the node again once there is room for it; `None` when it is told to end meanwhile.
fn again(
    session: &Session,
    options: &ServerOptions,
    watch: &Watch,
    patience: &mut Duration,
) -> Result<Option<Server>, Failure> {
    loop {
        let until = Instant::now() + *patience;
        while Instant::now() < until {
            if watch.is_over(session) {
                return Ok(None);
            }
            thread::sleep(NAP);
        }
        *patience = (*patience * 2).min(PATIENCE_MAX);
        let room = tyr_server::room(&options.folder)?;
        if room < ROOM_MIN {
            tracing::warn!(
                room,
                needed = ROOM_MIN,
                folder = %options.folder.display(),
                "the node waits for room on its disk; delete something there, or make it larger"
            );
            continue;
        }
        match Server::start(options.clone()) {
            Ok(server) => return Ok(Some(server)),
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                tracing::warn!(%error, "the node does not start; it is tried again");
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// From where a node listens to where it does not any more.
fn live(
    session: &mut Session,
    server: Server,
    balancing: BalancerHost,
    http: Option<SocketAddr>,
    supervisor: &mut Supervisor,
    watch: &Watch,
) -> Result<Ended, Failure> {
    let observer = Observer::of(&server);
    let http = http.map(|address| Http::start(address, observer.clone())).transpose()?;
    let place = http.as_ref().map(|http| http.address().to_string());
    let (node, listen) = (server.node().0, server.listen().to_string());
    tracing::info!(node, listen, http = place, "listening");
    let http_text = place.as_ref().map(|place| format!(", http://{place}")).unwrap_or_default();
    session.output.record(
        &json!({"event": "listening", "node": node, "listen": listen, "http": place}),
        &format!("node {node} listens on {listen}{http_text}"),
    )?;
    session.output.flush()?;
    let mut is_announced = false;
    while !watch.is_over(session) {
        let health = observer.live();
        if !health.is_well() {
            drop((http, balancing));
            if let Err(error) = server.stop() {
                tracing::warn!(%error, "the node did not stop well");
            }
            return Ok(Ended::Failed(health.reasons));
        }
        if !is_announced && observer.ready().is_well() {
            is_announced = true;
            announce(session, &observer, supervisor)?;
        }
        if watch.moved_away.swap(false, Ordering::Relaxed)
            && let Some(audit) = &watch.audit
        {
            audit.reopen();
        }
        thread::sleep(NAP);
    }
    supervisor.tell("STOPPING=1");
    tracing::info!(node, "stopping");
    drop((http, balancing));
    server.stop()?;
    Ok(Ended::Told)
}

/// Says that the node serves.
fn announce(session: &mut Session, observer: &Observer, supervisor: &mut Supervisor) -> Outcome {
    let report = observer.report();
    let (node, epoch) = (report.node, report.map.map_or(0, |map| map.epoch));
    supervisor.tell("READY=1");
    tracing::info!(node, epoch, "ready");
    session.output.record(
        &json!({"event": "ready", "node": node, "epoch": epoch}),
        &format!("node {node} is ready, in epoch {epoch}"),
    )?;
    session.output.flush()
}

/// Notices the end of standard input: whoever started the process is gone, or wants it to end.
fn watch_input(ending: Arc<AtomicBool>) -> Outcome {
    let watch = move || {
        let mut some = [0; 64];
        let mut input = std::io::stdin().lock();
        while matches!(input.read(&mut some), Ok(1..)) {}
        ending.store(true, Ordering::Relaxed);
    };
    let started = thread::Builder::new().name("tyr-input".to_owned()).spawn(watch);
    started.map(drop).map_err(|error| Error::io("cannot start a thread", error).into())
}
