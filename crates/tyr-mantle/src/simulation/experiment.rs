//! The experiments that are drawn in `docs/figures`.

use tyr_types::Result;

use super::{Run, Setup, run};
use crate::builtin;

/// A figure.
#[derive(Debug)]
pub struct Figure {
    /// What its files are called.
    pub name: &'static str,
    /// What stands above it.
    pub title: &'static str,
    /// Its runs, with what each is called.
    runs: fn() -> Vec<(&'static str, Setup)>,
}

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "balancing",
        title: "Three sequencers of four clients each, all at one of three nodes at first: sum a \
                second (simulated)",
        runs: policies,
    },
    Figure {
        name: "balancing-modes",
        title: "Two sequencers of four clients each at one of two nodes, moved from 60 s on: sum \
                a second (simulated)",
        runs: modes,
    },
];

/// What is moved of two seats, and how requests get there.
const HALF: &str = "function where() targets[whoami + 1] = mds[whoami][\"load\"] / 2 end";
const FULL: &str = "function where() targets[whoami + 1] = mds[whoami][\"load\"] end";
const ONCE: &str = "function when() return whoami == 1 and #mds[2].seats == 0 end";
const ALWAYS: &str = "function when() return whoami == 1 end";
const PROXY: &str = "function mode() return \"proxy\" end";

fn policies() -> Vec<(&'static str, Setup)> {
    let of = |name| {
        let policy = builtin::script(name).map(str::to_owned);
        (name, Setup { policy, ..Setup::default() })
    };
    vec![of("none"), of("hard"), of("sequencer")]
}

fn modes() -> Vec<(&'static str, Setup)> {
    let of = |name, parts: &[&str]| {
        let setup = Setup {
            nodes: 2,
            seats: 2,
            seconds: 240,
            begin_us: 50_000_000,
            policy: Some(parts.join("\n")),
            ..Setup::default()
        };
        (name, setup)
    };
    vec![
        of("client half", &[ONCE, HALF]),
        of("proxy half", &[ONCE, HALF, PROXY]),
        of("client full", &[ALWAYS, FULL]),
        of("proxy full", &[ALWAYS, FULL, PROXY]),
    ]
}

/// The runs of a figure.
///
/// # Errors
/// `InvalidArgument` when one of its policies is none.
pub fn runs(figure: &Figure) -> Result<Vec<(&'static str, Run)>> {
    let setups = (figure.runs)().into_iter();
    setups.map(|(name, setup)| Ok((name, run(&setup)?))).collect()
}
