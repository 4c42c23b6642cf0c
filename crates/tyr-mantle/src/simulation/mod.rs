//! Nodes, clients and seats from a seed: what a policy makes of a load.
//!
//! ```text
//!   client ── request, a trip ──► node: one after the other, each some time ──► answer, a trip ──►
//!                                  └─ the seat is elsewhere: says so, or passes it on
//!   tick ──► Balancer, as it runs at a node ──► hand-over: nobody has the seat for some time
//! ```
//!
//! What is simulated are queues: nothing of Týr but the balancer and its policies. It shows how
//! policies behave over time, and not how fast Týr is. Times are in microseconds.
//!
//! [`world`] is what happens, [`chart`] draws it, [`experiment`] has what is drawn in the guide.

pub mod chart;
pub mod experiment;
mod random;
#[cfg(test)]
mod tests;
mod world;

use std::sync::Arc;
use std::time::Duration;

use tyr_types::Result;

use crate::balancer::{Balancer, Move};
use crate::policy::Policy;
use world::World;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What all chance comes from.
    pub seed: u64,
    /// Nodes, all seats at the first of them.
    pub nodes: usize,
    /// Seats.
    pub seats: usize,
    /// Clients of each, which ask again as soon as they are answered.
    pub clients: usize,
    /// For so long a node works at a request, about.
    pub service_us: u64,
    /// For so long at one that it sends on, or that it says the place of.
    pub redirect_us: u64,
    /// A message takes so long, about.
    pub trip_us: u64,
    /// A seat that is handed over answers nothing for so long.
    pub handover_us: u64,
    /// Between two ticks.
    pub tick_us: u64,
    /// When the first tick may be.
    pub begin_us: u64,
    /// How long all of it takes.
    pub seconds: u64,
    /// The policy; without one nothing is moved.
    pub policy: Option<String>,
}

impl Default for Setup {
    /// Three seats of four clients each at the first of three nodes, each of which has a fifth of a
    /// core: 1 ms for a request.
    fn default() -> Self {
        Self {
            seed: 1,
            nodes: 3,
            seats: 3,
            clients: 4,
            service_us: 1_000,
            redirect_us: 300,
            trip_us: 250,
            handover_us: 5_000,
            tick_us: 10_000_000,
            begin_us: 0,
            seconds: 100,
            policy: None,
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// For each second what each seat answered.
    pub rates: Vec<Vec<u64>>,
    /// Moves, with their times.
    pub moves: Vec<(u64, Move)>,
    /// Ticks in which the policy failed, and why.
    pub failures: Vec<(u64, String)>,
}

impl Run {
    /// What all seats answered in the seconds of this range, a second.
    pub fn mean(&self, seconds: std::ops::Range<usize>) -> u64 {
        let chosen = &self.rates[seconds];
        let sum: u64 = chosen.iter().flatten().sum();
        sum / chosen.len().max(1) as u64
    }
}

/// Runs it.
///
/// # Errors
/// `InvalidArgument` when the policy is none.
///
/// # Panics
/// When a seat gave a number twice, or was at two nodes.
pub fn run(setup: &Setup) -> Result<Run> {
    let clock = Arc::new(|| Duration::ZERO);
    let policy = setup.policy.as_ref();
    let policy = policy.map(|script| Policy::compile(script, Duration::from_secs(1), clock));
    let balancer = policy.transpose()?.map(|policy| Balancer::new(policy, setup.tick_us));
    Ok(World::new(setup, balancer).run())
}
