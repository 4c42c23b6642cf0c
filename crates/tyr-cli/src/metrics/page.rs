//! The reference page of metrics.

use std::fmt::Write as _;

use super::Reading::{Count, Counts, Level, Levels, Times};
use super::{Metric, node, program, store};

const HEAD: &str = "\
# Metrics

Made from the tables in `crates/tyr-cli/src/metrics/` by `tyr reference metrics`.

A node answers `GET /metrics` at the address of the setting
[`http`](configuration.md#logs-metrics-and-traces), and `tyr telemetry serve` at that of `--http`:
in Prometheus' text format, or in OpenMetrics if the request's `Accept` asks for it. All times are
seconds, all sizes bytes. Counters begin at 0 with each start of the program.
";

const TABLE: &str = "
| metric | kind | labels | meaning |
|---|---|---|---|
";

const NODE: &str = "
## A node

Which of them to watch, and what to do then, is in [the guide](../guide/cluster.md#what-to-watch).
";

const STORE: &str = "
## The monitoring store

Of `tyr telemetry serve`. What to do about losses is in
[the guide](../guide/telemetry.md#when-something-is-lost).
";

const PROGRAM: &str = "
## Both
";

/// The page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    write_table(&mut page, NODE, &node::METRICS);
    write_table(&mut page, STORE, &store::METRICS);
    write_table(&mut page, PROGRAM, &program::METRICS);
    page
}

fn write_table<S>(page: &mut String, head: &str, table: &[Metric<S>]) {
    page.push_str(head);
    page.push_str(TABLE);
    for metric in table {
        let (suffix, kind, label) = match &metric.reading {
            Count(_) => ("_total", "counter", ""),
            Counts(label, _) => ("_total", "counter", *label),
            Level(_) => ("", "gauge", ""),
            Levels(label, _) => ("", "gauge", *label),
            Times(_) => ("", "histogram", ""),
        };
        let label = if label.is_empty() { String::new() } else { format!("`{label}`") };
        writeln!(page, "| `{}{suffix}` | {kind} | {label} | {} |", metric.name, metric.help)
            .expect("a String takes any text");
    }
}
