//! What the network has done, and how it stands: for metrics, and for `tyr status`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tyr_types::NodeId;

use super::refusal::Refusal;

/// What the network has done since it was started, and how it stands.
#[derive(Clone, Debug, Default)]
pub struct NetworkStatistics {
    /// Connections with nodes.
    pub nodes: usize,
    /// Connections with clients.
    pub clients: usize,
    /// Connections that have not said hello yet.
    pub waiting: usize,
    /// Messages handed to connections that were written, or are being written.
    pub messages_sent: u64,
    /// Bytes written, before TLS.
    pub bytes_sent: u64,
    /// System calls that wrote them; with TLS, pieces handed to it.
    pub writes: u64,
    /// Messages that came in.
    pub messages_received: u64,
    /// Bytes that came in, after TLS.
    pub bytes_received: u64,
    /// Reads that brought them.
    pub reads: u64,
    /// Messages dropped because the receiver is not connected.
    pub dropped_unconnected: u64,
    /// Messages dropped because too much waits already.
    pub dropped_full: u64,
    /// Messages dropped because they are longer than a frame may be.
    pub dropped_too_long: u64,
    /// Messages dropped because the receiver's program does not speak their feature level.
    pub dropped_too_new: u64,
    /// Messages that came in, and that this program does not understand.
    pub not_understood: u64,
    /// Connections taken from callers, of the control plane too.
    pub accepted: u64,
    /// Connections made to others.
    pub connected: u64,
    /// Connections that ended because the peer broke the protocol after its hello.
    pub broken: u64,
    /// Callers refused, by kind; kinds that did not come are there with 0.
    pub refused: BTreeMap<Refusal, u64>,
    /// The nodes that this process connects to.
    pub targets: BTreeMap<NodeId, NodeStatus>,
}

impl NetworkStatistics {
    /// Callers refused for this reason.
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.refused.get(&refusal).copied().unwrap_or(0)
    }
}

/// How it stands with a node that this process connects to.
#[derive(Clone, Debug, Default)]
pub struct NodeStatus {
    /// Where it is connected to, if it is.
    pub connected: Option<SocketAddr>,
    /// Attempts that failed since it was connected last.
    pub failures: u64,
    /// Why the last attempt failed, or the last connection ended, and what to do.
    pub last_error: Option<String>,
    /// Whether the last attempt failed because one side does not let the other in: trying again
    /// helps when somebody has changed something.
    pub is_denied: bool,
}

/// What all connections count together.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub messages_sent: AtomicU64,
    pub bytes_sent: AtomicU64,
    pub writes: AtomicU64,
    pub messages_received: AtomicU64,
    pub bytes_received: AtomicU64,
    pub reads: AtomicU64,
    pub dropped_unconnected: AtomicU64,
    pub dropped_full: AtomicU64,
    pub dropped_too_long: AtomicU64,
    pub dropped_too_new: AtomicU64,
    pub not_understood: AtomicU64,
    pub accepted: AtomicU64,
    pub connected: AtomicU64,
    pub broken: AtomicU64,
    /// Bytes that wait on connections of clients.
    pub client_outboxes_len: AtomicUsize,
    /// Connections of all kinds, see [`Place`].
    pub places: AtomicUsize,
}

/// Adds to a counter. They are read for display only, so no order is kept.
pub(super) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counters {
    /// The counts, without what other parts know.
    pub fn read(&self) -> NetworkStatistics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        NetworkStatistics {
            messages_sent: read(&self.messages_sent),
            bytes_sent: read(&self.bytes_sent),
            writes: read(&self.writes),
            messages_received: read(&self.messages_received),
            bytes_received: read(&self.bytes_received),
            reads: read(&self.reads),
            dropped_unconnected: read(&self.dropped_unconnected),
            dropped_full: read(&self.dropped_full),
            dropped_too_long: read(&self.dropped_too_long),
            dropped_too_new: read(&self.dropped_too_new),
            not_understood: read(&self.not_understood),
            accepted: read(&self.accepted),
            connected: read(&self.connected),
            broken: read(&self.broken),
            ..NetworkStatistics::default()
        }
    }
}

/// One among the connections that there may be; given back when it is dropped.
#[derive(Debug)]
pub struct Place(Arc<Counters>);

impl Place {
    /// Takes one, if there are fewer than `max`.
    pub(super) fn take(counters: &Arc<Counters>, max: usize) -> Option<Self> {
        debug_assert!(max > 0, "there may be some: the configuration was checked");
        let before = counters.places.fetch_add(1, Ordering::Relaxed);
        let place = Self(Arc::clone(counters));
        (before < max).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let before = self.0.places.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a place is given back once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_places_as_there_may_be() {
        let counters = Arc::new(Counters::default());
        let first = Place::take(&counters, 2).unwrap();
        let second = Place::take(&counters, 2).unwrap();
        assert!(Place::take(&counters, 2).is_none());
        assert!(Place::take(&counters, 3).is_some(), "a node's");
        drop(first);
        let third = Place::take(&counters, 2);
        assert!(third.is_some());
        drop((second, third));
        assert_eq!(counters.places.load(Ordering::Relaxed), 0);
    }
}
