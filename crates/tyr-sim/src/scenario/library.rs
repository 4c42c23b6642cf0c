//! The scenarios that come with the simulator: the texts of `scenarios/`.

use std::sync::LazyLock;

use tyr_types::{Error, Result};

use super::Scenario;
use super::parse::parse;

/// A scenario of the library.
#[derive(Debug)]
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// What the text describes.
    pub scenario: Scenario,
}

macro_rules! texts {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../scenarios/", $name, ".txt")))),*]
    };
}

/// Names and texts. A seed without a scenario runs that at seed modulo their number.
const TEXTS: &[(&str, &str)] = texts![
    "standard",
    "healthy",
    "alone",
    "three",
    "majority",
    "nine",
    "apart-one",
    "apart-two",
    "crashes",
    "power",
    "power-lost",
    "partitions",
    "links",
    "lossy",
    "clocks",
    "clock-hours",
    "clock-days",
    "clocks-apart",
    "pauses",
    "disks",
    "head-lost",
    "answer-lost",
    "cut-long",
    "cut-bridge",
    "replace",
    "join",
    "drain",
    "bank",
    "rewrites",
    "ends",
    "alone-away",
    "ends-away",
    "ends-upheaval",
    "snapshots",
    "hot-pairs",
    "hot-snapshots",
    "long-snapshots",
    "quiet-clocks",
    "restarts",
    "orders",
    "terms",
    "isolated",
    "hot-join",
    "late",
    "reshaping",
    "upheaval",
    "cut-join",
    "single-version",
    "rot",
    "chaos",
    "clock-behind",
    "client-year",
    "borders",
    "mixed",
    "groups",
    "drop",
    "single-away",
    "single-moves",
    "single-lost",
    "single-older",
    "thirty-two",
    "rolling",
    "sleepers",
    "long-mixed",
    "long-away",
    "day-away",
    "long-cuts",
    "long-bridges",
    "long-links",
    "third-lost",
    "real-steady",
    "real-kills",
    "real-moves",
    "real-durability",
    "real-away",
    "sides",
    "sides-older",
    "pages",
    "pages-older",
    "stamps",
    "stamps-older",
    "holes",
    "stretches",
    "holes-older",
    "uploads",
    "uploads-unused",
    "uploads-grow",
    "uploads-moves",
    "uploads-late",
    "uploads-hot",
    "uploads-older",
    "real-uploads",
    "copies",
    "copies-moves",
    "copies-older",
    "real-copies",
    "real-snapshots",
    "held-snapshots",
    "locks",
    "real-locks",
    "caches",
    "group-caches",
    "real-caches",
    "real-group-caches",
    "watches",
    "notices",
    "held-moments",
    "moments",
    "real-moments",
    "rooms",
    "rooms-moves",
    "pieces",
    "real-pieces",
    "kept",
    "real-kept",
    "real-kept-away",
    "real-kept-moves",
    "alone-restarts",
    "calls",
    "calls-moves",
    "real-calls",
];

static LIBRARY: LazyLock<Vec<Named>> = LazyLock::new(|| {
    let read = |&(name, text): &(&'static str, &'static str)| {
        let scenario = parse(text);
        let scenario = scenario.unwrap_or_else(|error| panic!("scenarios/{name}.txt: {error}"));
        Named { name, text, scenario }
    };
    TEXTS.iter().map(read).collect()
});

/// All of them.
pub fn all() -> &'static [Named] {
    &LIBRARY
}

/// The one of this name.
///
/// # Errors
/// `NotFound` with the names there are.
pub fn named(name: &str) -> Result<&'static Named> {
    all().iter().find(|named| named.name == name).ok_or_else(|| {
        let names: Vec<&str> = all().iter().map(|named| named.name).collect();
        Error::not_found(format!("no scenario \"{name}\"; there are {}", names.join(", ")))
    })
}

/// Which scenario a seed runs.
#[derive(Clone, Debug)]
pub enum Choice {
    /// The seed decides.
    BySeed,
    /// Always this one.
    Always(Box<(String, Scenario)>),
}

impl Choice {
    /// The scenario of `seed`, with its name.
    pub fn of(&self, seed: u64) -> (&str, &Scenario) {
        match self {
            Self::BySeed => {
                let named = &all()[(seed % all().len() as u64) as usize];
                (named.name, &named.scenario)
            }
            Self::Always(always) => (&always.0, &always.1),
        }
    }

    /// The scenario of this name among those that seeds run.
    pub fn named(&self, name: &str) -> Option<&Scenario> {
        match self {
            Self::BySeed => named(name).ok().map(|named| &named.scenario),
            Self::Always(always) => (always.0 == name).then_some(&always.1),
        }
    }
}
