//! Logs of a node: lines on standard error, and what is kept for auditors in a file of its own.
//!
//! ```text
//!   tracing ──┬─ level ──► repeats ──► standard error: text on a terminal, JSON elsewhere
//!             └─ target `audit` ──► audit file, rotated by size
//! ```
//!
//! Libraries say little here: what they think worth an `info` is not what an operator wants to
//! read.

mod audit;
mod repeats;

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

pub use self::audit::{AuditFile, AuditPlan};
use self::repeats::RepeatLimited;
use crate::failure::{Failure, Outcome};

/// The crates whose lines count as ours.
const OURS: [&str; 14] = [
    "tyr",
    "tyr_cli",
    "tyr_client",
    "tyr_control",
    "tyr_embedded",
    "tyr_gossip",
    "tyr_monitors",
    "tyr_net",
    "tyr_protocol",
    "tyr_runtime",
    "tyr_server",
    "tyr_store",
    "tyr_trace",
    AUDIT,
];

/// What is said under this target also goes to the audit file.
pub const AUDIT: &str = "audit";

/// How a node logs.
#[derive(Clone, Debug)]
pub struct LogPlan {
    /// The least grave level that is logged.
    pub level: &'static str,
    /// `auto`, `text` or `json`.
    pub format: &'static str,
    /// The audit file, if there is one.
    pub audit: Option<AuditPlan>,
}

/// Begins to log; answers the audit file, for whoever is told to open it anew.
///
/// # Errors
/// `Unavailable` when the audit file cannot be opened, `Usage` when somebody logs already.
pub fn begin(plan: &LogPlan) -> Outcome<Option<AuditFile>> {
    let audit = plan.audit.clone().map(AuditFile::open).transpose()?;
    let is_terminal = std::io::stderr().is_terminal();
    let is_json = match plan.format {
        "json" => true,
        "text" => false,
        _ => !is_terminal,
    };
    let format = tracing_subscriber::fmt::format();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // Who looks for something wants all of it.
    let is_limited = !matches!(plan.level, "debug" | "trace");
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match (is_json, is_limited) {
        (true, false) => lines.json().flatten_event(true).boxed(),
        (true, true) => {
            let limited = RepeatLimited::new(format.json().flatten_event(true), is_json);
            lines.json().event_format(limited).boxed()
        }
        (false, false) => lines.with_ansi(is_terminal).boxed(),
        (false, true) => {
            lines.with_ansi(is_terminal).event_format(RepeatLimited::new(format, is_json)).boxed()
        }
    };
    let audit_lines = audit.clone().map(|file| {
        let only = Targets::new().with_target(AUDIT, LevelFilter::TRACE);
        tracing_subscriber::fmt::layer()
            .json()
            .flatten_event(true)
            .with_writer(file)
            .with_filter(only)
    });
    Registry::default()
        .with(lines.with_filter(targets(plan.level)))
        .with(audit_lines)
        .try_init()
        .map_err(|error| Failure::Usage(format!("logging has begun before: {error}")))?;
    Ok(audit)
}

/// What Raft warns of, and takes for errors, is its ordinary life: votes that cross, and each
/// message to a node that restarts. Monitors say in their own words what matters, and a node whose
/// Raft failed for good is not alive.
const RAFT: &str = "openraft";

/// Ours from this level on, of others only what is grave.
fn targets(level: &str) -> Targets {
    let level = match level {
        "error" => LevelFilter::ERROR,
        "warn" => LevelFilter::WARN,
        "debug" => LevelFilter::DEBUG,
        "trace" => LevelFilter::TRACE,
        _ => LevelFilter::INFO,
    };
    let others = if level == LevelFilter::TRACE { level } else { level.min(LevelFilter::WARN) };
    let raft = if level >= LevelFilter::DEBUG { others } else { LevelFilter::OFF };
    Targets::new()
        .with_default(others)
        .with_target(RAFT, raft)
        .with_targets(OURS.map(|target| (target, level)))
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    #[test]
    fn libraries_say_only_what_is_grave() {
        use tracing::Level;
        let info = targets("info");
        assert!(info.would_enable("tyr_server::server", &Level::INFO));
        assert!(!info.would_enable("tyr_server::server", &Level::DEBUG));
        assert!(!info.would_enable("openraft::core", &Level::INFO));
        assert!(info.would_enable("hyper::server", &Level::WARN));
        assert!(!info.would_enable("openraft::core", &Level::WARN));
        assert!(!info.would_enable("openraft::replication", &Level::ERROR));
        assert!(targets("debug").would_enable("openraft::core", &Level::WARN));
        assert!(info.would_enable(AUDIT, &Level::INFO));
        assert!(targets("trace").would_enable("openraft::core", &Level::TRACE));
        assert!(!targets("error").would_enable("openraft::core", &Level::WARN));
        assert_eq!(targets("error").default_level(), Some(LevelFilter::ERROR));
    }
}
