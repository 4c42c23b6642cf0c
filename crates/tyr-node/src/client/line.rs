//! A client's line to its cluster: messages over the network, questions to the monitors over
//! control connections, and where the nodes are.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tyr_protocol::map::{Change, ClusterMap};
use tyr_protocol::message::{Address, Envelope};
use tyr_types::{Epoch, NodeId, Result};

use super::Transport;
use super::control::{Asked, Control};
use crate::monitors::control::MetadataClient;
use crate::monitors::status::Bootstrap;
use crate::router::network::{Network, NodeAddresses};
use crate::server::Thread;

/// The line to a cluster.
pub(super) struct Line {
    network: Network,
    monitors: MetadataClient,
    handle: Handle,
    /// Where control connections and what follows the cluster run.
    thread: Mutex<Option<Thread>>,
    /// There is a newer map.
    changed: Arc<Notify>,
}

impl Line {
    /// A line by this network, which asks the monitors on this thread.
    pub fn new(network: Network, monitors: MetadataClient, thread: Thread) -> Arc<Self> {
        let changed = Arc::new(Notify::new());
        let handle = thread.handle.clone();
        let following = follow(network.clone(), monitors.clone(), Arc::clone(&changed));
        handle.spawn(following);
        Arc::new(Self { network, monitors, handle, thread: Mutex::new(Some(thread)), changed })
    }

    /// Has something asked on the control thread.
    fn ask<T: Send + 'static>(
        &self,
        asking: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Asked<T> {
        let asked = self.handle.spawn(asking);
        Box::pin(async move { asked.await.unwrap_or_else(|_| Err(super::answer::closed())) })
    }
}

impl Transport for Line {
    fn send(&self, to: NodeId, envelope: Envelope) {
        // What is lost is sent again (F6); the network counts it.
        self.network.send(Address::Node(to), &envelope);
    }

    fn flush(&self) {
        self.network.flush();
    }

    fn learn(&self, _: &Arc<ClusterMap>) {
        self.changed.notify_one();
    }
}

impl Control for Line {
    fn map(&self) -> Asked<Arc<ClusterMap>> {
        let monitors = self.monitors.clone();
        self.ask(async move { Ok(Arc::new(monitors.newest().await?.cluster_map()?)) })
    }

    fn propose(&self, change: Change) -> Asked<Epoch> {
        let monitors = self.monitors.clone();
        self.ask(async move { monitors.propose(change).await })
    }

    fn close(&self) {
        self.network.close();
        if let Some(mut thread) = self.thread.lock().take() {
            thread.close();
        }
    }
}

/// Tells the network where the nodes are, whenever there is a newer map.
async fn follow(network: Network, monitors: MetadataClient, changed: Arc<Notify>) {
    loop {
        changed.notified().await;
        match monitors.bootstrap().await {
            Ok(bootstrap) => network.set_nodes(&addresses(&bootstrap)),
            // It asks for long; the next map is the next occasion.
            Err(error) => tracing::warn!(%error, "where the nodes are is not known"),
        }
    }
}

/// Where the nodes are.
pub(super) fn addresses(bootstrap: &Bootstrap) -> BTreeMap<NodeId, NodeAddresses> {
    let of_node = |(node, record): (&u16, &crate::monitors::NodeRecord)| {
        let addresses = record.addresses.clone();
        (NodeId(*node), NodeAddresses { addresses, tls_name: None })
    };
    bootstrap.nodes.iter().map(of_node).collect()
}
