//! What became of the input, as a service or an ingestion says it in the end.

use std::fmt::Write as _;

use tyr_telemetry::source::apmon::DatagramCounts;
use tyr_telemetry::{IntakeCounts, SourceCounts};

/// One source.
pub fn of_intake(counts: &IntakeCounts) -> String {
    format!(
        "stored {}, refused {}, ignored {}, failed {}",
        counts.stored, counts.refused, counts.ignored, counts.failed
    )
}

/// All sources of a service, a line each.
pub fn of_service(counts: &SourceCounts) -> String {
    let mut text = format!("stored {} measurements", counts.recorded.measurements);
    for (name, counts) in
        [("influx", &counts.influx), ("apmon", &counts.apmon.intake), ("live", &counts.live)]
    {
        write!(text, "\n{name}: {}", of_intake(counts)).expect("a String takes any text");
    }
    if let Some(datagrams) = &counts.apmon.datagrams {
        write!(text, "\n{}", of_datagrams(datagrams)).expect("a String takes any text");
    }
    text
}

/// The datagrams; each is in one of these.
pub fn of_datagrams(counts: &DatagramCounts) -> String {
    let reasons = |named: &[(&str, u64)]| {
        let some = named.iter().filter(|(_, count)| *count > 0);
        let some: Vec<String> = some.map(|(name, count)| format!("{name} {count}")).collect();
        if some.is_empty() { String::new() } else { format!(" ({})", some.join(", ")) }
    };
    let refused = reasons(&counts.refused.by_reason());
    let lost = reasons(&[
        ("in the kernel", counts.dropped_by_kernel.unwrap_or_default()),
        ("in the queue", counts.overflowed),
        ("at the stop", counts.unfinished),
    ]);
    let unknown = match counts.dropped_by_kernel {
        Some(_) => "",
        None => ", and what the kernel dropped is not known",
    };
    format!(
        "datagrams: received {}, read {}, refused {}{refused}, lost {}{lost}{unknown}",
        counts.received,
        counts.read,
        counts.refused.total(),
        counts.lost(),
    )
}

#[cfg(test)]
mod tests {
    use tyr_telemetry::source::apmon::RefusedDatagrams;

    use super::*;

    #[test]
    fn a_summary_says_where_datagrams_were_lost_and_why_they_were_refused() {
        let mut counts = DatagramCounts {
            received: 12,
            read: 9,
            refused: RefusedDatagrams { cut: 2, ..RefusedDatagrams::default() },
            overflowed: 1,
            dropped_by_kernel: Some(3),
            ..DatagramCounts::default()
        };
        assert_eq!(
            of_datagrams(&counts),
            "datagrams: received 12, read 9, refused 2 (cut 2), lost 4 (in the kernel 3, in the \
             queue 1)"
        );
        counts.dropped_by_kernel = None;
        let text = of_datagrams(&counts);
        assert!(
            text.ends_with("lost 1 (in the queue 1), and what the kernel dropped is not known")
        );
    }
}
