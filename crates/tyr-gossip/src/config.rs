//! How gossip is started: intervals and bounds, each with its derivation.
//!
//! Must not know: what the machine does with them.

use tyr_types::{Error, Result};

/// Times in milliseconds. The defaults find a failed node within 1.5 s on a quiet network.
#[derive(Clone, Debug, PartialEq)]
pub struct GossipConfig {
    /// Each node asks one other whether it lives, once in this time, in turn. A third of it is
    /// given to the direct answer, the rest to the ways around. Default 250: each node gets and
    /// asks four questions a second, whatever the size of the cluster.
    pub probe_interval_ms: u64,
    /// A suspect is given at least this long to answer. Default 500: six more questions.
    pub suspicion_min_ms: u64,
    /// A suspect is given up after this long, whatever else is known. Default 3,000: below the
    /// 4 s of silence after which monitors act without gossip.
    pub suspicion_max_ms: u64,
    /// Between the two a suspect is given up when the chance that it lives and was silent by
    /// accident is below ten to the minus this. Default 8.
    pub phi_threshold: f64,
    /// What a node has to tell goes out once in this time; in a cluster of more than 16 nodes less
    /// often, in proportion. Default 1,000.
    pub rumour_interval_ms: u64,
}

impl Default for GossipConfig {
    fn default() -> Self {
        Self {
            probe_interval_ms: 250,
            suspicion_min_ms: 500,
            suspicion_max_ms: 3_000,
            phi_threshold: 8.0,
            rumour_interval_ms: 1_000,
        }
    }
}

/// Below it a third of a probe's time is less than a scheduler may keep a process waiting.
const PROBE_INTERVAL_MIN_MS: u64 = 50;

/// Nothing here takes longer: leases have acted since.
const TIME_MAX_MS: u64 = 60_000;

const _: () = assert!(0 < PROBE_INTERVAL_MIN_MS && PROBE_INTERVAL_MIN_MS < TIME_MAX_MS);

impl GossipConfig {
    /// # Errors
    /// `InvalidArgument`, with what is allowed.
    pub fn validate(&self) -> Result<()> {
        let Self { probe_interval_ms: probe, suspicion_min_ms: min, suspicion_max_ms: max, .. } =
            *self;
        if !(PROBE_INTERVAL_MIN_MS..=TIME_MAX_MS).contains(&probe) {
            return Err(Error::invalid(format!(
                "gossip asks every {PROBE_INTERVAL_MIN_MS} to {TIME_MAX_MS} ms, not every {probe}"
            )));
        }
        if min < probe || max < min || max > TIME_MAX_MS {
            return Err(Error::invalid(format!(
                "a suspect's time lies between suspicion_min, at least one probe_interval \
                 ({probe} ms), and suspicion_max, at most {TIME_MAX_MS} ms; {min} and {max} ms \
                 were given"
            )));
        }
        // Beyond 100 no silence is enough, below 1 one answer in ten that is late would be.
        if !(1.0..=100.0).contains(&self.phi_threshold) {
            return Err(Error::invalid(format!(
                "phi_threshold lies between 1 and 100, {} does not",
                self.phi_threshold
            )));
        }
        if !(probe..=TIME_MAX_MS).contains(&self.rumour_interval_ms) {
            return Err(Error::invalid(format!(
                "rumour_interval is {probe} (the probe_interval) to {TIME_MAX_MS} ms, not {}",
                self.rumour_interval_ms
            )));
        }
        Ok(())
    }

    /// How long an answer is waited for before others are asked, and how often suspects are asked.
    pub(super) fn ask_interval_us(&self) -> u64 {
        debug_assert!(self.probe_interval_ms >= PROBE_INTERVAL_MIN_MS, "it was checked");
        self.probe_interval_ms * 1_000 / 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_nonsense_is_refused_with_the_range() {
        let good = GossipConfig::default();
        good.validate().unwrap();
        let bad = [
            (GossipConfig { probe_interval_ms: 0, ..good.clone() }, "50 to 60000 ms"),
            (GossipConfig { suspicion_min_ms: 100, ..good.clone() }, "at least one probe_interval"),
            (GossipConfig { suspicion_max_ms: 499, ..good.clone() }, "500 and 499 ms"),
            (GossipConfig { phi_threshold: f64::NAN, ..good.clone() }, "between 1 and 100"),
            (GossipConfig { phi_threshold: 0.5, ..good.clone() }, "between 1 and 100"),
            (GossipConfig { rumour_interval_ms: 1, ..good }, "rumour_interval"),
        ];
        for (config, text) in bad {
            let error = config.validate().unwrap_err();
            assert!(error.message().contains(text), "{error}");
        }
    }
}
