//! What is to be known of any program.

use super::Reading::{Count, Level, Levels};
use super::{Metric, labelled, metric};
use crate::process;

/// The metrics of the process.
pub static METRICS: [Metric<()>; 4] = [
    metric(
        "tyr_build_info",
        "Always 1; the label says which release the program is.",
        Levels("version", |()| labelled(&[(env!("CARGO_PKG_VERSION"), 1.0)])),
    ),
    metric(
        "process_cpu_seconds",
        "Processor time of the process, in whole seconds.",
        Count(|()| process::cpu_seconds()),
    ),
    metric(
        "process_resident_memory_bytes",
        "Memory of the process that is in use.",
        Level(|()| process::resident_bytes() as f64),
    ),
    metric("process_open_fds", "Open files and sockets.", Level(|()| process::open_files() as f64)),
];
