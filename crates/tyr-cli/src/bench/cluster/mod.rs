//! `tyr bench --cluster`: what an operation costs a cluster of three nodes on this machine.
//!
//! The nodes are processes of this program, as `tyr dev` starts them; this process is the client,
//! with as many callers in flight as the case says, and a second client, which holds leases of what
//! they write, or watches it, in the cases that say so. CPU time is that of all four processes.
//!
//! ```text
//! cases ──► callers (tasks of one thread) ──► Tyr::connect ──► 3 × tyr serve
//!   └── meter: this process and the nodes, before and after
//! ```

mod caller;
mod case;
mod files;
mod other;
mod pattern;
mod processes;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tyr::{Error, Keyspace, Tyr};

use self::case::Case;
use self::pattern::Pattern;
pub use self::processes::Processes;
use super::machine;
use super::meter::Figures;
use crate::dev::{Children, Layout, Ports};
use crate::failure::{Failure, Outcome};
use crate::output::table;
use crate::session::Session;

/// Nodes of the cluster, and replicas of each chunk.
pub const NODES: u16 = 3;

/// How long the nodes have to form a cluster.
pub const READY_MAX: Duration = Duration::from_secs(60);

/// The figures of one case, with those of each run.
type Measured = (Case, Vec<Figures>);

/// Runs the cases with these words in their names so often, each for `seconds`.
pub fn run(session: &mut Session, words: &str, (runs, seconds): (u32, f64)) -> Outcome {
    let mut cases = Case::all();
    cases.retain(|case| case.label().contains(words));
    if cases.is_empty() {
        let labels: Vec<String> = Case::all().iter().map(Case::label).collect();
        let known = labels.join("\n  ");
        return Err(Failure::Usage(format!("no case is called \"{words}\"; there are\n  {known}")));
    }
    session.interrupt.expect();
    let folder = tempfile::Builder::new().prefix("tyr-bench-").tempdir();
    let folder = folder.map_err(|error| Error::io("cannot make a temporary folder", error))?;
    let machine = machine::describe(folder.path());
    let layout = Layout::find_or_make(folder.path(), NODES, Ports::Any)?;
    let mut children = Children::start(&layout, folder.path())?;
    let measured = children.wait_until_ready(READY_MAX).and_then(|()| {
        let processes = Processes::new(children.ids());
        measure(session, &layout.address(), &processes, cases, runs, seconds)
    });
    children.stop();
    let measured = measured?;
    let rows: Vec<Value> = measured.iter().map(|(case, runs)| case.as_json(runs)).collect();
    let preface = format!(
        "{machine}, {NODES} nodes, replication {NODES}, medians of {runs} runs\nCPU is that of all \
         nodes and of this process: all threads, user and kernel\n\n"
    );
    session.output.record(
        &json!({"machine": machine, "nodes": NODES, "runs": runs, "cases": rows}),
        &(preface + &as_text(&measured)),
    )
}

fn measure(
    session: &Session,
    address: &str,
    processes: &Processes,
    cases: Vec<Case>,
    runs: u32,
    seconds: f64,
) -> Outcome<Vec<Measured>> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::io("no runtime for the callers", error))?;
    let store = runtime.block_on(Tyr::connect(address))?;
    let other = runtime.block_on(Tyr::connect(address))?;
    let mut measured: Vec<Measured> = cases.into_iter().map(|it| (it, vec![])).collect();
    for run in 0..runs {
        for (case, figures) in &mut measured {
            session.interrupt.check()?;
            eprintln!("run {} of {runs}: {}", run + 1, case.label());
            figures.push(measure_case(&runtime, [&store, &other], processes, case, seconds)?);
        }
    }
    runtime.block_on(other.close())?;
    runtime.block_on(store.close())?;
    Ok(measured)
}

/// One case in a keyspace of its own, which goes afterwards.
fn measure_case(
    runtime: &Runtime,
    [store, other]: [&Tyr; 2],
    processes: &Processes,
    case: &Case,
    seconds: f64,
) -> Outcome<Figures> {
    let name = pattern::KEYSPACE;
    let keyspace: Keyspace = runtime.block_on(store.create_keyspace(name, case.config()))?;
    let to_other = runtime.block_on(other.keyspace(name))?;
    let mut pattern = Pattern::new(store.clone(), keyspace, to_other, *case);
    let figures = runtime.block_on(async {
        pattern.prepare().await?;
        caller::run(&pattern, processes, Duration::from_secs_f64(seconds)).await
    });
    drop(pattern);
    runtime.block_on(store.drop_keyspace(name))?;
    Ok(figures?)
}

fn as_text(measured: &[Measured]) -> String {
    let heads = [
        "case",
        "in flight",
        "per s",
        "MB/s",
        "CPU µs each",
        "of nodes",
        "p50 ms",
        "p99 ms",
        "aborts",
    ];
    let rows: Vec<_> = measured.iter().map(|(case, runs)| case.as_row(runs)).collect();
    table(&heads, &rows, &[1, 2, 3, 4, 5, 6, 7, 8])
}
