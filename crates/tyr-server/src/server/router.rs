//! The way out of a node: to peers and clients by the network, to the monitors wherever they are.

use std::sync::{Arc, OnceLock};

use tyr_protocol::message::{Address, Envelope};
use tyr_types::NodeId;

use crate::driver::{Driver, Outbound};
use crate::gate::MonitorInbox;
use tyr_net::Network;

/// Knows who speaks for the monitors.
pub(crate) trait Leader: MonitorInbox {
    /// The node that leads them, as far as known.
    fn leader(&self) -> Option<NodeId>;
}

/// Sends what a driver and the monitors of a node have to say.
pub(crate) struct Router {
    node: NodeId,
    network: Network,
    monitors: OnceLock<Arc<dyn Leader>>,
    driver: OnceLock<Arc<Driver>>,
}

impl Router {
    /// The router of a node; closed until it is told who is there.
    pub fn new(node: NodeId, network: Network) -> Arc<Self> {
        let (monitors, driver) = (OnceLock::new(), OnceLock::new());
        Arc::new(Self { node, network, monitors, driver })
    }

    /// Opens it.
    pub fn open(&self, monitors: Arc<dyn Leader>, driver: Arc<Driver>) {
        let is_first = self.monitors.set(monitors).is_ok() && self.driver.set(driver).is_ok();
        assert!(is_first, "a router is opened once");
    }

    /// Sends what the monitors of this node say to a node, perhaps this one.
    pub fn send_from_monitors(&self, to: NodeId, envelope: Envelope) {
        debug_assert!(
            matches!(envelope.from, Address::Monitors),
            "what goes out here is said by the monitors"
        );
        if to != self.node {
            self.network.send(Address::Node(to), &envelope);
            self.network.flush();
        } else if let Some(driver) = self.driver.get() {
            driver.receive(std::iter::once(envelope));
        }
    }
}

impl Outbound for Router {
    fn send(&self, to: Address, envelope: Envelope) {
        match to {
            Address::Node(_) | Address::Client(_) => {
                self.network.send(to, &envelope);
            }
            Address::Monitors => {
                let Some(monitors) = self.monitors.get() else { return };
                match monitors.leader() {
                    Some(leader) if leader == self.node => monitors.receive(envelope),
                    Some(leader) => {
                        self.network.send(Address::Node(leader), &envelope);
                    }
                    None => {} // It is said again.
                }
            }
        }
    }

    fn flush(&self) {
        self.network.flush();
    }
}
