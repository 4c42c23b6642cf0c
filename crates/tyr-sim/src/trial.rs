//! One run of a scenario from one seed: what [`crate::sweep`] and [`crate::shrink`] do many of.

use tyr_protocol::Rule;
use tyr_types::Result;

use crate::report::Report;
use crate::scenario::Scenario;
use crate::scenario::run_setup::run_setup;
use crate::setup::{Stores, Trace};
use crate::world;

/// Words of a violation that say which kind it is; those after are about the case at hand.
const LIKENESS_WORDS: usize = 8;

/// How runs are made, whatever the scenario and the seed.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// A rule that does not hold.
    pub broken: Option<Rule>,
    /// What nodes keep their chunks in, whatever the scenario says of it; one that needs a model
    /// has one.
    pub stores: Option<Stores>,
    /// The machines' invariants are checked after every so many steps.
    pub check_every: u32,
    /// What is written down.
    pub trace: Trace,
}

impl Default for Manner {
    fn default() -> Self {
        Self { broken: None, stores: None, check_every: 64, trace: Trace::Off }
    }
}

/// Runs `scenario` from `seed`.
///
/// # Errors
/// `InvalidArgument` when the scenario cannot run at all.
pub fn run(scenario: &Scenario, seed: u64, manner: Manner) -> Result<Report> {
    let mut setup = run_setup(scenario, seed)?;
    if let Some(stores) =
        manner.stores.filter(|_| !scenario.needs_model() && scenario.needs_real().is_none())
    {
        setup.stores = stores;
    }
    setup.broken = manner.broken;
    setup.check_every = manner.check_every;
    setup.trace = manner.trace;
    Ok(world::run(setup))
}

/// Which kind of violation this is: its first words without names, numbers and times.
pub fn likeness(violation: &str) -> String {
    let is_common = |word: &&str| {
        let is_place = word.contains(".rs:");
        is_place || !word.contains(|c: char| c.is_ascii_digit() || c == '"')
    };
    let words: Vec<&str> =
        violation.split_whitespace().filter(is_common).take(LIKENESS_WORDS).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_of_one_kind_are_alike_whatever_they_name() {
        let [one, same, other] = [
            "transaction 7a3 of client 3 was lost at 17 us",
            "transaction ab1 of client 1 was lost at 99 us",
            "replicas of \"a\" differ",
        ]
        .map(likeness);
        assert_eq!(one, same);
        assert_ne!(one, other);
    }

    #[test]
    fn panics_at_different_places_are_not_alike() {
        let [one, other] = ["a/b.rs:1:5: no", "a/b.rs:2:5: no"].map(likeness);
        assert_ne!(one, other);
    }
}
