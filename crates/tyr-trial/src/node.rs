//! `tyr-trial node`: a real node in this process, as `tyr serve` has it, and a little more: it can
//! break a rule, so that a test sees its checkers notice, and speak as the next release might
//! (`TYR_LEVEL`).
//!
//! It prints `ready` when it takes part for the first time, what it has in flight on SIGUSR1, and
//! stops cleanly on SIGTERM.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rustix::process::{Signal, set_parent_process_death_signal};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use tyr_runtime::broken::{Rule, with_broken};
use tyr_server::InitialNode;
use tyr_server::{Formation, Server, ServerOptions};
use tyr_types::{Error, NodeId, Result};

/// How often it looks whether it takes part.
const LOOK: Duration = Duration::from_millis(20);

/// What a node is told.
#[derive(Args, Clone, Debug)]
pub struct NodeArguments {
    /// Its folder.
    #[arg(long)]
    folder: PathBuf,
    /// Its number.
    #[arg(long)]
    number: u16,
    /// Where it listens.
    #[arg(long)]
    listen: SocketAddr,
    /// Where others reach it, when that is elsewhere.
    #[arg(long)]
    advertise: Option<String>,
    /// The nodes that form the cluster: `0=host:port,1=host:port`; all of them are monitors.
    #[arg(long, conflicts_with = "join")]
    nodes: Option<String>,
    /// The cluster to be joined: `host:port,host:port`.
    #[arg(long)]
    join: Option<String>,
    /// The rule that it breaks, by its name in `Rule`.
    #[arg(long)]
    broken: Option<String>,
    /// Bytes of log after which a fold begins.
    #[arg(long, default_value_t = 1 << 20)]
    fold_log_bytes: u64,
    /// Memory for recent operations and cache.
    #[arg(long, default_value_t = 32 << 20)]
    cache_bytes: u64,
}

/// Runs a node until SIGTERM.
///
/// # Errors
/// What [`Server::start`] fails with.
pub fn run(arguments: &NodeArguments) -> Result<()> {
    // Who is killed together with its nodes leaves none behind.
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Error::io("cannot follow the trial", error.into()))?;
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    let options = options(arguments)?;
    let server = match &arguments.broken {
        Some(name) => with_broken(rule(name)?, || Server::start(options))?,
        None => Server::start(options)?,
    };
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGUSR1])
        .map_err(|error| Error::io("cannot wait for signals", error))?;
    let mut is_told = false;
    loop {
        match signals.pending().next() {
            Some(SIGUSR1) => eprintln!("{}", server.brief()),
            Some(_) => break,
            None => {}
        }
        if !is_told && server.is_ready() {
            is_told = true;
            println!("ready");
            // Whoever listened may be gone.
            let _ = std::io::stdout().flush();
        }
        std::thread::sleep(LOOK);
    }
    server.stop()
}

fn options(arguments: &NodeArguments) -> Result<ServerOptions> {
    let mut options = ServerOptions::new(arguments.folder.clone(), arguments.listen);
    options.node = Some(NodeId(arguments.number));
    options.advertise = arguments.advertise.iter().cloned().collect();
    options.fold_log_bytes = arguments.fold_log_bytes;
    options.cache_bytes = arguments.cache_bytes;
    options.formation = match (&arguments.nodes, &arguments.join) {
        (Some(nodes), _) => {
            Formation::Initial(nodes.split(',').map(initial).collect::<Result<_>>()?)
        }
        (None, Some(join)) => Formation::Join(join.split(',').map(str::to_owned).collect()),
        (None, None) => Formation::Known,
    };
    Ok(options)
}

fn initial(text: &str) -> Result<InitialNode> {
    let parts = text.split_once('=').and_then(|(n, address)| Some((n.parse().ok()?, address)));
    let (number, address) =
        parts.ok_or_else(|| Error::invalid(format!("a node is `number=host:port`, not {text}")))?;
    Ok(InitialNode { node: NodeId(number), address: address.to_owned(), is_monitor: true })
}

/// The rule of this name.
///
/// # Errors
/// `InvalidArgument` with all names.
pub fn rule(name: &str) -> Result<Rule> {
    let found = Rule::ALL.iter().copied().find(|rule| format!("{rule:?}") == name);
    found.ok_or_else(|| Error::invalid(format!("no rule is {name}; there are {:?}", Rule::ALL)))
}
