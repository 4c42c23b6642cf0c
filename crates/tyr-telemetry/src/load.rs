//! A load for demonstrations and tests: a fleet of machines whose values follow the day.
//!
//! Everything follows from the seed: the same seed at the same times gives the same measurements.

use std::f64::consts::TAU;
use std::sync::Arc;

use crate::calendar::{DAY_US, Day};
use crate::series::Series;

const SITES: [&str; 6] = ["cern", "fnal", "kek", "desy", "bnl", "triumf"];
const CLUSTERS: [&str; 4] = ["batch", "storage", "interactive", "gpu"];
const JOBS: [&str; 5] = ["reconstruction", "simulation", "analysis", "transfer", "calibration"];

/// The parameters: name, lowest, swing over the day, noise.
const PARAMETERS: [(&str, f64, f64, f64); 6] = [
    ("cpu.usage", 15.0, 60.0, 8.0),
    ("memory.used", 4e9, 9e9, 2e8),
    ("load.1", 0.5, 12.0, 0.7),
    ("network.received", 1e6, 9e7, 5e6),
    ("disk.written", 2e5, 4e7, 3e6),
    ("temperature", 31.0, 14.0, 0.4),
];

/// How large the fleet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// What everything follows from.
    pub seed: u64,
    /// Sites. Default 3.
    pub sites: usize,
    /// Clusters of each site. Default 2.
    pub clusters: usize,
    /// Hosts of each cluster. Default 5.
    pub hosts: usize,
    /// Parameters of each host. Default 4, at most 6.
    pub parameters: usize,
    /// Jobs, which hosts share. Default 3.
    pub jobs: usize,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self { seed: 0, sites: 3, clusters: 2, hosts: 5, parameters: 4, jobs: 3 }
    }
}

/// Gives measurements of a fleet without end.
#[derive(Clone, Debug)]
pub struct Generator {
    members: Arc<[Member]>,
    random: u64,
}

#[derive(Debug)]
struct Member {
    series: Series,
    low: f64,
    swing: f64,
    noise: f64,
    /// When its day begins, as a part of the day.
    phase: f64,
}

impl Generator {
    /// A generator over the fleet of these options.
    pub fn new(options: &LoadOptions) -> Self {
        let mut random = options.seed;
        let mut members = Vec::new();
        for site in 0..options.sites.max(1) {
            let phase = site as f64 / options.sites.max(1) as f64;
            for cluster in 0..options.clusters.max(1) {
                for host in 0..options.hosts.max(1) {
                    for parameter in PARAMETERS.iter().take(options.parameters.max(1)) {
                        let job = next_random(&mut random) as usize % options.jobs.max(1);
                        members.push(Member {
                            series: Series {
                                site: numbered(&SITES, site),
                                cluster: numbered(&CLUSTERS, cluster),
                                host: format!("node{host:02}"),
                                parameter: parameter.0.to_owned(),
                                job: numbered(&JOBS, job),
                            },
                            low: parameter.1,
                            swing: parameter.2 * (0.6 + 0.4 * unit(&mut random)),
                            noise: parameter.3,
                            phase,
                        });
                    }
                }
            }
        }
        Self { members: members.into(), random }
    }

    /// A generator over the same fleet that goes another way, for one more writer.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self { members: Arc::clone(&self.members), random: next_random(&mut self.random) }
    }

    /// The next measurement: of which series, and its value at this time.
    pub fn next(&mut self, time_us: i64) -> (&Series, f64) {
        let place = next_random(&mut self.random) as usize % self.members.len();
        let noise = unit(&mut self.random) + unit(&mut self.random) - 1.0;
        let member = &self.members[place];
        let of_day = (time_us - Day::of(time_us).start_us()) as f64 / DAY_US as f64;
        let wave = 0.5 - 0.5 * ((of_day + member.phase) * TAU).cos();
        let value = member.low + member.swing * wave + member.noise * noise;
        (&member.series, value.max(0.0))
    }

    /// All series of the fleet.
    pub fn series(&self) -> impl Iterator<Item = &Series> {
        self.members.iter().map(|member| &member.series)
    }
}

/// The name at this place; beyond the last, the names again with a number.
fn numbered(names: &[&str], place: usize) -> String {
    let name = names[place % names.len()];
    match place / names.len() {
        0 => name.to_owned(),
        round => format!("{name}{}", round + 1),
    }
}

/// The next of a sequence of pseudo-random numbers (SplitMix64).
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A pseudo-random number from 0 on, below 1.
fn unit(state: &mut u64) -> f64 {
    (next_random(state) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_load() {
        let options = LoadOptions { seed: 7, ..LoadOptions::default() };
        let (mut a, mut b) = (Generator::new(&options), Generator::new(&options));
        let mut other = Generator::new(&LoadOptions { seed: 8, ..options });
        let mut differs = false;
        for n in 0..100 {
            let next = a.next(n);
            assert_eq!(next, b.next(n));
            differs |= next != other.next(n);
        }
        assert!(differs);
    }

    #[test]
    fn every_series_has_its_own_names() {
        let options = LoadOptions { sites: 9, clusters: 6, jobs: 7, ..LoadOptions::default() };
        let load = Generator::new(&options);
        let names: HashSet<&Series> = load.series().collect();
        assert_eq!(names.len(), 9 * 6 * 5 * 4);
    }

    #[test]
    fn values_can_be_recorded_and_follow_the_day() {
        let mut load =
            Generator::new(&LoadOptions { sites: 1, parameters: 1, ..LoadOptions::default() });
        let mut mean = |time_us: i64| (0..200).map(|_| load.next(time_us).1).sum::<f64>() / 200.0;
        let (night, noon) = (mean(0), mean(DAY_US / 2));
        assert!(noon > night + 20.0, "{night} {noon}");
    }
}
