//! Medians of all runs, as a table for people and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Scenario;
use super::case::Case;
use super::machine::Machine;
use super::meter::Figures;
use crate::output::table;

/// The figures of all runs of all cases, in the order in which the cases first ran.
pub struct Results {
    machine: Machine,
    runs: u32,
    cases: Vec<(Case, Vec<Figures>)>,
}

/// A column: the figure's name, its heading, its decimals.
type Column = (&'static str, &'static str, usize);

fn columns(scenario: Scenario) -> &'static [Column] {
    match scenario {
        Scenario::Monalisa => &[
            ("per_s", "txn/s", 0),
            ("cpu_us", "CPU µs/txn", 2),
            ("p50_us", "p50 µs", 1),
            ("p99_us", "p99 µs", 1),
            ("transactions_per_sync", "txn/sync", 1),
        ],
        Scenario::Reads => &[
            ("per_s", "reads/s", 0),
            ("cpu_us", "CPU µs/read", 2),
            ("p50_us", "p50 µs", 1),
            ("p99_us", "p99 µs", 1),
        ],
        Scenario::Transforms => &[
            ("per_s", "txn/s", 0),
            ("cpu_us", "CPU µs/txn", 2),
            ("p50_us", "p50 µs", 1),
            ("p99_us", "p99 µs", 1),
            ("aborts_per_commit", "aborts/commit", 2),
        ],
        Scenario::Mix => &[
            ("reads_per_cpu_s", "reads/CPU s of reader", 0),
            ("reader_cpu_us", "CPU µs/read", 2),
            ("reads_per_s_per_reader", "reads/s/reader", 0),
            ("reader_cpu_share", "CPU/reader", 3),
            ("writes_per_s", "txn/s", 0),
        ],
        Scenario::Stream => &[
            ("write_mib_per_s", "write MiB/s", 0),
            ("write_cpu_us_per_mib", "CPU µs/MiB", 0),
            ("read_mib_per_s", "read MiB/s", 0),
            ("read_cpu_us_per_mib", "CPU µs/MiB", 0),
            ("disk_per_byte", "on disk/B", 3),
            ("written_per_byte", "written/B", 3),
        ],
        Scenario::Random | Scenario::RandomNode => &RANDOM,
        Scenario::Return => &RETURN,
        Scenario::Restart => &[
            ("fill_s", "fill s", 1),
            ("ready_s", "ready s", 2),
            ("node_cpu_s", "CPU s", 2),
            ("node_resident_mib", "resident MiB", 0),
            ("node_peak_mib", "its peak MiB", 0),
            ("first_read_us", "first reads µs", 0),
        ],
        Scenario::Log => &[
            ("per_s", "calls/s", 0),
            ("cpu_us", "CPU µs/call", 2),
            ("entries_per_cpu_s", "entries/CPU s", 0),
            ("p50_us", "p50 µs", 1),
            ("p99_us", "p99 µs", 1),
        ],
        Scenario::Calls => &CALLS,
        Scenario::Endurance => &ENDURANCE,
        Scenario::Open => &[
            ("per_s", "blobs/s", 0),
            ("cpu_us", "CPU µs/blob", 2),
            ("disk_per_byte", "on disk/B", 2),
            ("open_ms", "open ms", 1),
            ("open_cpu_ms", "open CPU ms", 1),
            ("memory_opened_mib", "opened MiB", 1),
            ("memory_read_mib", "after reads MiB", 1),
            ("first_reads_cpu_us", "CPU µs/first read", 1),
        ],
    }
}

/// Of calls of methods.
const CALLS: [Column; 4] = [
    ("per_s", "calls/s", 0),
    ("cpu_us", "CPU µs/call", 2),
    ("p50_us", "p50 µs", 1),
    ("p99_us", "p99 µs", 1),
];

/// Of a blob that is overwritten at random: what that costs, then what reading does.
const RANDOM: [Column; 18] = [
    ("writes_per_s", "writes/s", 0),
    ("write_cpu_us", "CPU µs/write", 2),
    ("p50_us", "p50 µs", 1),
    ("p99_us", "p99 µs", 1),
    ("p999_us", "p99.9 µs", 1),
    ("slowest_ms", "slowest ms", 1),
    ("written_per_byte", "written/B", 3),
    ("device_written_per_byte", "of the device", 3),
    ("disk_per_byte_max", "most on disk/B", 3),
    ("rest_s", "s until it rests", 1),
    ("rest_cpu_us", "CPU µs/write then", 2),
    ("cold_kib_per_read", "disk KiB/cold read", 1),
    ("read_cpu_us", "CPU µs/read", 2),
    ("read_us_p50", "read p50 µs", 1),
    ("untouched_mib_per_s", "untouched MiB/s", 0),
    ("through_mib_per_s", "through MiB/s", 0),
    ("through_share", "through/untouched", 3),
    ("node_peak_mib", "peak of who stores MiB", 0),
];

/// Of a node that comes back: what is its own, and what others notice.
const RETURN: [Column; 12] = [
    ("ready_s", "ready s", 2),
    ("node_cpu_s", "CPU s", 2),
    ("others_cpu_s", "CPU s of others", 2),
    ("compared", "compared", 0),
    ("copied", "copied", 0),
    ("copied_mib", "copied MiB", 2),
    ("copied_per_changed", "copied/changed B", 3),
    ("node_resident_mib", "resident MiB", 0),
    ("node_peak_mib", "its peak MiB", 0),
    ("wait_ms_max", "longest wait ms", 0),
    ("wait_returning_ms_max", "since its start", 0),
    ("fill_s", "fill s", 1),
];

/// Of a long time: the first half, and the second to it.
const ENDURANCE: [Column; 14] = [
    ("first_measured_per_s", "txn/s", 0),
    ("measured_per_s_ratio", "second half/first", 3),
    ("first_overwritten_per_s", "overwrites/s", 0),
    ("overwritten_per_s_ratio", "second/first", 3),
    ("first_cpu_us", "CPU µs/txn or write", 2),
    ("cpu_us_ratio", "second/first", 3),
    ("first_resident_mib", "resident MiB", 0),
    ("resident_mib_ratio", "second/first", 3),
    ("first_disk_mib", "disk MiB", 0),
    ("disk_mib_ratio", "second/first", 3),
    ("first_slowest_ms", "slowest ms", 0),
    ("second_slowest_ms", "in the second", 0),
    ("snapshots", "snapshots", 0),
    ("snapshots_ended", "too old", 0),
];

/// What every table ends with.
const COMMON: [Column; 2] =
    [("memory_peak_mib", "peak MiB", 0), ("foreign_cpu_percent", "other CPU %", 0)];

impl Results {
    /// Without any.
    pub fn new(machine: Machine, runs: u32) -> Self {
        Self { machine, runs, cases: Vec::new() }
    }

    /// Takes the figures of one run of `case`.
    pub fn add(&mut self, case: &Case, figures: Figures) {
        match self.cases.iter_mut().find(|(known, _)| known == case) {
            Some((_, all)) => all.push(figures),
            None => self.cases.push((case.clone(), vec![figures])),
        }
    }

    /// What the figures are measured on, as text.
    pub fn preface(&self) -> String {
        format!(
            "{}, medians of {} runs\nCPU is that of the whole process (CLOCK_PROCESS_CPUTIME_ID, \
             all threads, user and kernel), the benchmark's own loop included",
            self.machine, self.runs
        )
    }

    /// A table for each scenario, then what follows from them.
    pub fn as_text(&self) -> String {
        let mut text = String::new();
        for scenario in Scenario::ALL {
            let cases: Vec<_> =
                self.cases.iter().filter(|(case, _)| case.scenario() == scenario).collect();
            if !cases.is_empty() {
                writeln!(text, "\n{}", scenario_table(scenario, &cases))
                    .expect("a String takes any text");
            }
        }
        for (name, value) in self.conclusions() {
            write!(text, "\n{name}: {value:.2}").expect("a String takes any text");
        }
        text.trim_end().to_owned()
    }

    /// Everything, with the least and the largest of all runs beside each median.
    pub fn as_json(&self) -> Value {
        let cases: Vec<Value> = self
            .cases
            .iter()
            .map(|(case, all)| {
                let names = all.first().into_iter().flat_map(Figures::names);
                let figures: BTreeMap<&str, Value> = names
                    .map(|name| {
                        let sorted = sorted(all, name);
                        let ends = (sorted.first(), sorted.last());
                        (name, json!({"median": median(&sorted), "min": ends.0, "max": ends.1}))
                    })
                    .collect();
                json!({"label": case.label(), "case": case, "runs": all.len(), "figures": figures})
            })
            .collect();
        let conclusions: BTreeMap<String, f64> = self.conclusions().into_iter().collect();
        json!({"machine": self.machine, "cases": cases, "conclusions": conclusions})
    }

    /// Ratios between cases, for those that ran.
    fn conclusions(&self) -> Vec<(String, f64)> {
        let mut found = Vec::new();
        let mut ratio = |name: &str, over: Option<f64>, under: Option<f64>| {
            if let (Some(over), Some(under)) = (over, under) {
                found.push((name.to_owned(), over / under));
            }
        };
        for name in ["memory", "buffered", "sync"] {
            let of = |writers| {
                let durability = name.to_owned();
                self.median_of(&Case::Monalisa { durability, writers }, "per_s")
            };
            ratio(&format!("monalisa, {name}: throughput of 32 writers to 1"), of(32), of(1));
        }
        let of =
            |is_in_place| self.median_of(&Case::Transforms { is_in_place, writers: 32 }, "per_s");
        ratio("transforms to read-modify-write, throughput", of(true), of(false));
        for (figure, name) in [
            ("reads_per_cpu_s", "mix: lowest to highest, reads per reader at equal CPU"),
            ("reads_per_s_per_reader", "mix: lowest to highest, reads per reader on the wall"),
        ] {
            let rates: Vec<f64> = self
                .cases
                .iter()
                .filter(|(case, _)| case.scenario() == Scenario::Mix)
                .filter_map(|(_, all)| median(&sorted(all, figure)))
                .collect();
            let lowest = rates.iter().copied().reduce(f64::min);
            ratio(name, lowest, rates.iter().copied().reduce(f64::max));
        }
        for (case, _) in &self.cases {
            let Case::Stream { is_plain_file: false, is_synced, bytes } = *case else { continue };
            let file = Case::Stream { is_plain_file: true, is_synced, bytes };
            for verb in ["write", "read"] {
                let figure = format!("{verb}_mib_per_s");
                let name = format!("{} to plain file: {verb}", case.label());
                ratio(&name, self.median_of(case, &figure), self.median_of(&file, &figure));
            }
        }
        found
    }

    fn median_of(&self, case: &Case, figure: &str) -> Option<f64> {
        let (_, all) = self.cases.iter().find(|(known, _)| known == case)?;
        median(&sorted(all, figure))
    }
}

fn scenario_table(scenario: Scenario, cases: &[&(Case, Vec<Figures>)]) -> String {
    let columns: Vec<&Column> = columns(scenario).iter().chain(&COMMON).collect();
    let mut heads = vec!["case"];
    heads.extend(columns.iter().map(|(_, head, _)| *head));
    let rows: Vec<Vec<String>> = cases
        .iter()
        .map(|(case, all)| {
            let cells = columns.iter().map(|(name, _, decimals)| {
                let middle = median(&sorted(all, name));
                middle.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
            });
            std::iter::once(case.label()).chain(cells).collect()
        })
        .collect();
    let right: Vec<usize> = (1..heads.len()).collect();
    table(&heads, &rows, &right)
}

/// A figure of all runs, least first.
fn sorted(all: &[Figures], name: &str) -> Vec<f64> {
    let mut values: Vec<f64> = all.iter().filter_map(|figures| figures.get(name)).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::machine;

    fn figures(name: &str, value: f64) -> Figures {
        let mut figures = Figures::default();
        figures.set(name, value);
        figures
    }

    fn results() -> Results {
        Results::new(machine::describe(std::path::Path::new("/")), 3)
    }

    #[test]
    fn the_median_is_that_of_the_runs_of_one_case() {
        let mut results = results();
        for rate in [1.0, 100.0, 3.0] {
            results.add(&Case::Reads { readers: 1 }, figures("per_s", rate));
        }
        results.add(&Case::Reads { readers: 2 }, figures("per_s", 8.0));
        assert_eq!(results.median_of(&Case::Reads { readers: 1 }, "per_s"), Some(3.0));
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
        let json = results.as_json();
        assert_eq!(json["cases"][0]["figures"]["per_s"]["max"], 100.0);
        assert!(results.as_text().contains("reads/s"));
    }

    #[test]
    fn the_conclusions_are_ratios_of_medians() {
        let mut results = results();
        for (is_in_place, rate) in [(true, 30.0), (false, 10.0)] {
            let case = Case::Transforms { is_in_place, writers: 32 };
            results.add(&case, figures("per_s", rate));
        }
        for (writers, rate) in [(2, 90.0), (30, 100.0)] {
            let case = Case::Mix { writers, readers: 32 - writers };
            results.add(&case, figures("reads_per_cpu_s", rate));
        }
        let values: Vec<f64> = results.conclusions().into_iter().map(|(_, value)| value).collect();
        assert_eq!(values, [3.0, 0.9]);
    }
}
