//! What a service of the monitoring store counts: every input is in one of these.

use tyr_telemetry::source::apmon::DatagramCounts;
use tyr_telemetry::{IntakeCounts, SourceCounts};

use super::Reading::{Count, Counts, Level};
use super::{Metric, labelled, metric};

fn by_source(counts: &SourceCounts, read: fn(&IntakeCounts) -> u64) -> Vec<(String, u64)> {
    labelled(&[
        ("influx", read(&counts.influx)),
        ("apmon", read(&counts.apmon.intake)),
        ("live", read(&counts.live)),
    ])
}

/// What is counted of datagrams; zeros where there is no socket for them.
fn datagrams(counts: &SourceCounts) -> DatagramCounts {
    counts.apmon.datagrams.unwrap_or_default()
}

fn lost(counts: &DatagramCounts) -> Vec<(String, u64)> {
    let mut lost = labelled(&[("queue", counts.overflowed), ("stop", counts.unfinished)]);
    // What is not known is not there, instead of 0.
    lost.extend(counts.dropped_by_kernel.map(|dropped| ("kernel".to_owned(), dropped)));
    lost
}

/// The metrics of `tyr telemetry serve`.
pub static METRICS: [Metric<SourceCounts>; 13] = [
    metric(
        "tyr_telemetry_transactions",
        "Transactions that recorded measurements.",
        Count(|it| it.recorded.transactions),
    ),
    metric(
        "tyr_telemetry_stored",
        "Measurements recorded.",
        Counts("source", |it| by_source(it, |counts| counts.stored)),
    ),
    metric(
        "tyr_telemetry_refused",
        "Inputs (requests, lines, datagrams, values) that were malformed or out of range.",
        Counts("source", |it| by_source(it, |counts| counts.refused)),
    ),
    metric(
        "tyr_telemetry_ignored",
        "Values that are no numbers.",
        Counts("source", |it| by_source(it, |counts| counts.ignored)),
    ),
    metric(
        "tyr_telemetry_failed",
        "Measurements that the store did not take.",
        Counts("source", |it| by_source(it, |counts| counts.failed)),
    ),
    metric(
        "tyr_apmon_datagrams_received",
        "Datagrams taken from the kernel.",
        Count(|it| datagrams(it).received),
    ),
    metric(
        "tyr_apmon_datagrams_read",
        "Datagrams that were understood; tyr_telemetry_* count their values.",
        Count(|it| datagrams(it).read),
    ),
    metric(
        "tyr_apmon_datagrams_refused",
        "Datagrams refused as a whole: too short (cut), a string too long (long_string), a type \
         that there is not (unknown_type), or without the password (wrong_password).",
        Counts("reason", |it| labelled(&datagrams(it).refused.by_reason())),
    ),
    metric(
        "tyr_apmon_datagrams_lost",
        "Datagrams lost with nothing wrong in them: the socket's buffer was full (kernel; not \
         there where the system does not tell), the memory for those that wait (queue), or the \
         service stopped first (stop).",
        Counts("where", |it| it.apmon.datagrams.as_ref().map(lost).unwrap_or_default()),
    ),
    metric(
        "tyr_apmon_values_refused",
        "Values refused in datagrams that were read: by their name, their time, or their value.",
        Counts("reason", |it| labelled(&datagrams(it).values_refused.by_reason())),
    ),
    metric(
        "tyr_apmon_datagrams_waiting",
        "Datagrams that wait for being recorded, or are.",
        Level(|it| datagrams(it).waiting as f64),
    ),
    metric(
        "tyr_apmon_receive_buffer_bytes",
        "The socket's receive buffer; 0 without a socket.",
        Level(|it| datagrams(it).receive_buffer.granted_bytes as f64),
    ),
    metric(
        "tyr_apmon_receive_buffer_asked_bytes",
        "The receive buffer that was asked for.",
        Level(|it| datagrams(it).receive_buffer.asked_bytes as f64),
    ),
];
