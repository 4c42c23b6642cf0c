//! The nodes that this process connects to: one task each, which keeps one connection.
//!
//! Of two nodes the one of the lower number connects, so that there is one connection between
//! them; a client connects to all it is told of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::net::lookup_host;
use tokio::sync::Notify;
use tyr_protocol::message::Address;
use tyr_types::{Error, ErrorKind, NodeId};

use super::statistics::NodeStatus;
use super::{Shared, connection, greeting};
use tyr_runtime::clock::random_u64;

/// Where a node is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeAddresses {
    /// `host:port`, tried in turn.
    pub addresses: Vec<String>,
    /// What its certificate names, when that is not the name made of its number.
    pub tls_name: Option<String>,
}

/// A node to connect to.
#[derive(Debug)]
struct Target {
    node: NodeId,
    addresses: Mutex<NodeAddresses>,
    changed: Notify,
    is_removed: AtomicBool,
    status: Mutex<NodeStatus>,
}

/// The nodes to connect to.
#[derive(Debug, Default)]
pub(super) struct Targets(Mutex<BTreeMap<NodeId, Arc<Target>>>);

impl Targets {
    /// From now on these; connections to others end. Who is not reached is tried at once: that
    /// nodes are told anew is a sign that one may be back.
    pub fn set(&self, shared: &Arc<Shared>, nodes: &BTreeMap<NodeId, NodeAddresses>) {
        let ours = (shared.parts.identity)().sender;
        let is_ours_to_call = |node: NodeId| match ours {
            Address::Node(ours) => ours < node,
            Address::Client(_) | Address::Monitors => true,
        };
        let mut targets = self.0.lock();
        targets.retain(|node, target| {
            let stays = nodes.contains_key(node);
            if !stays {
                target.is_removed.store(true, Ordering::SeqCst);
                target.changed.notify_one();
            }
            stays
        });
        debug_assert!(targets.keys().all(|node| nodes.contains_key(node)), "others are let go");
        for (node, addresses) in nodes.iter().filter(|(node, _)| is_ours_to_call(**node)) {
            if let Some(target) = targets.get(node) {
                let is_reached = shared.links.has(Address::Node(*node));
                let mut known = target.addresses.lock();
                if *known != *addresses || !is_reached {
                    *known = addresses.clone();
                    target.changed.notify_one();
                }
                continue;
            }
            let target = Arc::new(Target {
                node: *node,
                addresses: Mutex::new(addresses.clone()),
                changed: Notify::new(),
                is_removed: AtomicBool::new(false),
                status: Mutex::default(),
            });
            let before = targets.insert(*node, Arc::clone(&target));
            debug_assert!(before.is_none(), "one task connects to a node");
            let shared = Arc::clone(shared);
            let thread = shared.threads.next().clone();
            thread.spawn(async move { target.keep_connected(&shared).await });
        }
        // Whose task ends is not taken for connected for ever.
        debug_assert!(targets.values().all(|target| !target.is_removed()), "those here are used");
    }

    /// How it stands with each.
    pub fn status(&self) -> BTreeMap<NodeId, NodeStatus> {
        let targets = self.0.lock();
        targets.iter().map(|(node, target)| (*node, target.status.lock().clone())).collect()
    }
}

impl Target {
    async fn keep_connected(&self, shared: &Arc<Shared>) {
        let mut backoff = Backoff::new(shared);
        while !self.is_removed() {
            let addresses = self.addresses.lock().clone();
            let called = tokio::select! {
                biased;
                called = greeting::call(shared, self.node, &addresses) => called,
                () = self.changed.notified() => continue,
            };
            match called {
                Ok(greeted) => {
                    let since = Instant::now();
                    self.stay(shared, greeted).await;
                    if since.elapsed() > shared.config.backoff_max {
                        backoff.restart();
                    }
                }
                Err(error) => {
                    self.failed(&error);
                    if self.is_removed() {
                        return; // Who calls the node in its place may be why.
                    }
                    shared.parts.receive.refused(self.node, &error);
                    if error.kind() == ErrorKind::AlreadyExists {
                        return; // Each of the two would end the other's connection for ever.
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.next()) => {}
                () = self.changed.notified() => backoff.restart(),
            }
        }
    }

    fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::SeqCst)
    }

    /// Until the connection ends, or the node is not where it leads to any more.
    async fn stay(&self, shared: &Arc<Shared>, greeted: greeting::Greeted) {
        let at = greeted.peer.socket;
        debug_assert_eq!(greeted.peer.address, Address::Node(self.node), "it is whom was called");
        *self.status.lock() = NodeStatus { connected: Some(at), ..NodeStatus::default() };
        tracing::info!(node = self.node.0, %at, "connected");
        let running = connection::run(shared, greeted);
        tokio::pin!(running);
        let reason = loop {
            tokio::select! {
                biased;
                reason = &mut running => break reason,
                () = self.changed.notified() => {
                    if self.is_removed() {
                        shared.links.end_one(Address::Node(self.node), "the node is not used");
                    } else if !self.is_at(at).await {
                        shared.links.end_one(Address::Node(self.node), "the node has moved");
                        self.changed.notify_one();
                    }
                }
            }
        };
        tracing::info!(node = self.node.0, %at, "connection ended: {reason}");
        let mut status = self.status.lock();
        status.connected = None;
        status.last_error = Some(format!("node {} at {at}: {reason}", self.node.0));
    }

    /// Whether one of the node's addresses is this one.
    async fn is_at(&self, at: std::net::SocketAddr) -> bool {
        let addresses = self.addresses.lock().clone().addresses;
        for address in addresses {
            if let Ok(mut found) = lookup_host(address).await
                && found.any(|found| found == at)
            {
                return true;
            }
        }
        false
    }

    fn failed(&self, error: &Error) {
        let mut status = self.status.lock();
        status.failures += 1;
        status.is_denied = error.kind() == ErrorKind::PermissionDenied;
        let error = error.to_string();
        // The same again is not said again.
        if status.last_error.as_deref() != Some(error.as_str()) {
            tracing::warn!(node = self.node.0, "cannot connect: {error}");
            status.last_error = Some(error);
        }
    }
}

/// How long to wait before the next attempt.
struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    fn new(shared: &Shared) -> Self {
        let (min, max) = (shared.config.backoff_min, shared.config.backoff_max);
        assert!(!min.is_zero() && min <= max, "pauses are bounded: the configuration was checked");
        Self { min, max, next: min }
    }

    fn restart(&mut self) {
        self.next = self.min;
    }

    /// By chance up to a half more or less: who lost the same node does not come back together.
    fn next(&mut self) -> Duration {
        let wait = self.next;
        debug_assert!((self.min..=self.max).contains(&wait), "a pause has bounds");
        self.next = (wait * 2).min(self.max);
        let by_chance = wait.mul_f64(0.5 + (random_u64() % 1000) as f64 / 1000.0);
        debug_assert!(self.min / 2 <= by_chance && by_chance <= self.max * 3 / 2, "{by_chance:?}");
        by_chance
    }
}
