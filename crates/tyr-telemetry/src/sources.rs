//! The sources of one service, and what became of the input of each.
//!
//! `/healthz`, `/metrics` and the summary when the service ends say the same, because it is from
//! here.

use std::sync::Arc;

use serde::Serialize;

use crate::intake::{Intake, IntakeCounts, Notify};
use crate::source::apmon::{DatagramCounts, Meter};
use crate::telemetry::{Counts, Telemetry};

/// The intakes of a service that takes all it can get.
#[derive(Clone)]
pub struct Sources {
    /// The store that they feed.
    pub telemetry: Telemetry,
    /// Of line protocol.
    pub influx: Arc<Intake>,
    /// Of datagrams.
    pub apmon: Arc<Intake>,
    /// What counts the datagrams, where there is a socket for them.
    pub meter: Option<Arc<Meter>>,
    /// Of this machine's own metrics.
    pub live: Arc<Intake>,
}

/// What became of the input of all sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SourceCounts {
    /// What was recorded, in all.
    pub recorded: Counts,
    /// Of line protocol.
    pub influx: IntakeCounts,
    /// Of datagrams.
    pub apmon: ApmonCounts,
    /// Of this machine's own metrics.
    pub live: IntakeCounts,
}

/// What became of datagrams, and of the values in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ApmonCounts {
    /// The values; those that were refused count with the datagrams that were.
    #[serde(flatten)]
    pub intake: IntakeCounts,
    /// The datagrams, where there is a socket for them.
    pub datagrams: Option<DatagramCounts>,
}

impl Sources {
    /// The sources of a service on this store.
    pub fn new(telemetry: &Telemetry, meter: Option<Arc<Meter>>, notify: &Notify) -> Self {
        let intake = |name| Intake::new(telemetry, name, Arc::clone(notify));
        Self {
            telemetry: telemetry.clone(),
            influx: intake("influx"),
            apmon: intake("apmon"),
            meter,
            live: intake("live"),
        }
    }

    /// What became of their input so far.
    pub fn counts(&self) -> SourceCounts {
        SourceCounts {
            recorded: self.telemetry.counts(),
            influx: self.influx.counts(),
            apmon: ApmonCounts {
                intake: self.apmon.counts(),
                datagrams: self.meter.as_ref().map(|meter| meter.counts()),
            },
            live: self.live.counts(),
        }
    }

    /// Tells what was kept silent of bad input; for once a second.
    pub fn tell_rest(&self) {
        [&self.influx, &self.apmon, &self.live].iter().for_each(|intake| intake.tell_rest());
    }
}
