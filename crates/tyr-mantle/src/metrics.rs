//! What nodes say of themselves when it is decided who should have which seat.

use std::collections::BTreeMap;

/// A seat, as the node says that has it.
#[derive(Clone, Debug, PartialEq)]
pub struct SeatMetrics {
    /// Its name, without white space.
    pub name: String,
    /// The class that requests to it call.
    pub kind: String,
    /// Requests a second, of late.
    pub rate: f64,
    /// Requests that are not answered yet.
    pub waiting: f64,
    /// For how many seconds the node has had it.
    pub since: f64,
}

/// A node that has seats, or would.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeMetrics {
    /// Its number.
    pub node: u16,
    /// What part of one core its process took of late; above 1 where it took more than one.
    pub cpu: f64,
    /// What else it says of itself, by name, as a policy sees it.
    pub values: BTreeMap<&'static str, f64>,
    /// Its seats.
    pub seats: Vec<SeatMetrics>,
}

impl NodeMetrics {
    /// Requests a second to all its seats: the metrics `all`, `auth` and `req` of policies.
    pub fn rate(&self) -> f64 {
        self.seats.iter().map(|seat| seat.rate).sum()
    }

    /// Requests that its seats have not answered: the metric `q`.
    pub fn waiting(&self) -> f64 {
        self.seats.iter().map(|seat| seat.waiting).sum()
    }
}
