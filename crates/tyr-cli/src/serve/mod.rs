//! `tyr serve`: a node of a cluster, in the foreground.
//!
//! ```text
//!   settings ─► plan ─► node ─► listening ─► ready ─► a signal ─► stopped
//!                         └─► http: metrics, health, status
//! ```
//!
//! [`plan`] makes from settings what a node is started with, [`http`] answers over HTTP what
//! [`metrics`] counts, [`supervisor`] tells whoever started the process how it stands.

mod http;
pub mod metrics;
mod plan;
mod process;
mod supervisor;

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use signal_hook::consts::SIGHUP;
use tyr::Error;
use tyr_node::server::{Observer, Server};

use self::http::Http;
use self::plan::Plan;
use self::supervisor::Supervisor;
use crate::configuration::{Configuration, Layers, SettingFlags};
use crate::failure::{Failure, Outcome};
use crate::logging::{self, AuditFile};
use crate::session::Session;

/// How soon a signal is noticed, and that the node became ready.
const NAP: Duration = Duration::from_millis(50);

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
    let settings = layers.resolve().map_err(refuse)?;
    if arguments.is_printing {
        return session.output.record(&settings.json(), &settings.text());
    }
    let plan = Plan::of(&settings).map_err(refuse)?;
    if arguments.is_check {
        return check(session, &settings, &plan);
    }
    session.interrupt.expect();
    let audit = logging::begin(&plan.log)?;
    for warning in &plan.warnings {
        tracing::warn!("{warning}");
    }
    let ending = Arc::new(AtomicBool::new(false));
    if arguments.is_until_input_ends {
        watch_input(Arc::clone(&ending))?;
    }
    serve(session, plan, audit, &ending)
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

fn serve(
    session: &mut Session,
    plan: Plan,
    audit: Option<AuditFile>,
    ending: &Arc<AtomicBool>,
) -> Outcome {
    let mut supervisor = Supervisor::find();
    let moved_away = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGHUP, Arc::clone(&moved_away))
        .map_err(|error| Error::io("cannot watch for SIGHUP", error))?;
    let address = plan.http;
    let server = Server::start(plan.options)?;
    let observer = Observer::of(&server);
    let http = address.map(|address| Http::start(address, observer.clone())).transpose()?;
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
    while !session.interrupt.is_raised() && !ending.load(Ordering::Relaxed) {
        if !is_announced && observer.ready().is_well() {
            is_announced = true;
            announce(session, &observer, &mut supervisor)?;
        }
        if moved_away.swap(false, Ordering::Relaxed)
            && let Some(audit) = &audit
        {
            audit.reopen();
        }
        thread::sleep(NAP);
    }
    supervisor.tell("STOPPING=1");
    tracing::info!(node, "stopping");
    drop(http);
    server.stop()?;
    tracing::info!(node, "stopped");
    session
        .output
        .record(&json!({"event": "stopped", "node": node}), &format!("node {node} has stopped"))
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
