//! What a run came to, for people: what was done, how long nothing went on, what is wrong.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::check::Tally;
use crate::fault::Fault;
use crate::history::{Event, Kind};
use crate::run::Run;

/// A fault as it went.
#[derive(Clone, Debug)]
pub struct Suffered {
    /// What.
    pub fault: Fault,
    /// To whom, in words.
    pub text: String,
    /// When it began, in microseconds of the history.
    pub begun_us: u64,
    /// When it was mended.
    pub mended_us: u64,
    /// When the cluster was whole again.
    pub whole_us: u64,
    /// Of each workload the longest time in which nothing took effect, and when it ended after the
    /// fault began; in microseconds.
    pub gaps: Vec<(String, u64, u64)>,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Which network.
    pub fabric: &'static str,
    /// How long the cluster took to form.
    pub formed: Duration,
    /// How long all took but the checks.
    pub ran: Duration,
    /// The faults.
    pub suffered: Vec<Suffered>,
    /// How often each operation ended in each way.
    pub tally: BTreeMap<String, Tally>,
    /// What the comparison of replicas looked at.
    pub compared: String,
    /// What the second check looked at.
    pub second: String,
    /// Everything that is wrong.
    pub wrong: Vec<String>,
}

impl Report {
    /// Of a run that begins.
    pub fn new(run: &Run, fabric: &'static str, formed: Duration) -> Self {
        Self {
            seed: run.seed,
            fabric,
            formed,
            ran: Duration::ZERO,
            suffered: Vec::new(),
            tally: BTreeMap::new(),
            compared: String::new(),
            second: String::new(),
            wrong: Vec::new(),
        }
    }

    /// Something is wrong.
    pub fn wrong(&mut self, text: String) {
        self.wrong.push(text);
    }

    /// Finds out of each fault how long nothing took effect.
    pub fn measure(&mut self, events: &[Event]) {
        let mut done: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for event in events.iter().filter(|event| event.kind == Kind::Ok) {
            done.entry(&event.workload).or_default().push(event.at_us);
        }
        let ends: Vec<u64> =
            self.suffered.iter().skip(1).map(|it| it.begun_us).chain([u64::MAX]).collect();
        for (suffered, end_us) in self.suffered.iter_mut().zip(ends) {
            for (workload, times) in &done {
                let (gap, after) = gap(times, suffered.begun_us, end_us);
                suffered.gaps.push(((*workload).to_owned(), gap, after));
            }
        }
    }
}

/// The longest time between two of these that ends between the two moments, and how long after the
/// first moment it ended.
fn gap(times: &[u64], from_us: u64, to_us: u64) -> (u64, u64) {
    let pairs = times.windows(2).filter(|pair| pair[1] >= from_us && pair[0] < to_us);
    let longest = pairs.map(|pair| (pair[1] - pair[0], pair[1] - from_us)).max();
    longest.unwrap_or((0, 0))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |us: u64| us as f64 / 1e6;
        writeln!(
            f,
            "seed {} on {}: formed in {:.1} s, ran {:.1} s",
            self.seed,
            self.fabric,
            self.formed.as_secs_f64(),
            self.ran.as_secs_f64()
        )?;
        writeln!(
            f,
            "\n{:<13} {:>6} {:>6}  longest pause, s (ended s after the fault)",
            "fault", "lasted", "whole"
        )?;
        for it in &self.suffered {
            let gaps: Vec<String> = it
                .gaps
                .iter()
                .map(|(name, gap, after)| {
                    format!("{name} {:.1} ({:.1})", seconds(*gap), seconds(*after))
                })
                .collect();
            writeln!(
                f,
                "{:<13} {:>6.1} {:>6.1}  {}   [{}]",
                it.fault.name(),
                seconds(it.mended_us - it.begun_us),
                seconds(it.whole_us - it.mended_us),
                gaps.join(", "),
                it.text
            )?;
        }
        writeln!(f, "\n{:<28} {:>9} {:>9} {:>9}", "operation", "done", "failed", "unknown")?;
        for (name, Tally { done, failed, unknown }) in &self.tally {
            writeln!(f, "{name:<28} {done:>9} {failed:>9} {unknown:>9}")?;
        }
        writeln!(f, "\nreplicas: {}\nsecond check: {}", self.compared, self.second)?;
        match self.wrong.as_slice() {
            [] => writeln!(f, "nothing is wrong"),
            wrong => {
                writeln!(f, "\n{} things are wrong:", wrong.len())?;
                wrong.iter().try_for_each(|text| writeln!(f, "- {text}"))
            }
        }
    }
}
