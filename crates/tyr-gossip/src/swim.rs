//! How `foca` is set up: SWIM's own bounds, from ours and the size of the cluster.
//!
//! Must not know: the machine.

use std::num::{NonZeroU8, NonZeroUsize};
use std::time::Duration;

use foca::PeriodicParams;

use super::config::GossipConfig;
use super::seal::MESSAGE_LEN_MAX;

/// Others asked to find a way around, and nodes told of news at once: SWIM's authors take 3.
const HELPERS: usize = 3;

/// SWIM's own bounds, in a cluster of so many nodes.
pub(super) fn swim_config(config: &GossipConfig, nodes: usize) -> foca::Config {
    let probe = Duration::from_millis(config.probe_interval_ms);
    let helpers = NonZeroUsize::new(HELPERS).expect("there are some");
    // News have reached everybody when each has passed them on to some more than the logarithm.
    let rounds = (nodes + 1).next_power_of_two().trailing_zeros() as u8;
    foca::Config {
        probe_period: probe,
        probe_rtt: Duration::from_micros(config.ask_interval_us()),
        num_indirect_probes: helpers,
        max_transmissions: NonZeroU8::new((2 * rounds).max(4)).expect("at least 4"),
        // Phi says when.
        suspect_to_down_after: Duration::from_millis(config.suspicion_min_ms),
        // The dead are remembered as long as the map has them.
        remove_down_after: None,
        max_packet_size: NonZeroUsize::new(MESSAGE_LEN_MAX).expect("a datagram holds something"),
        // Who was taken for dead by mistake must hear of it, to go on in its next life.
        notify_down_members: true,
        // The map says who there is, and this machine asks those who are silent.
        periodic_announce: None,
        periodic_announce_to_down_members: None,
        periodic_gossip: Some(PeriodicParams { frequency: probe / 2, num_members: helpers }),
    }
}
