//! A monitor that is about to stop, and leads, has another one lead first (M6).

use std::sync::atomic::Ordering;
use std::time::Duration;

use openraft::Vote;
use tyr_types::Result;

use super::consensus::network;
use super::monitor::{Monitor, Shared};
use bytes::Bytes;

/// How long that may take; then the others find out by themselves that nobody leads.
const HAND_OVER_MAX: Duration = Duration::from_secs(1);

/// Who is to lead, and by which vote this one does.
struct Heir {
    node: u64,
    leader: Vote<u64>,
    /// Whether it has all that there is.
    has_all: bool,
}

impl Shared {
    /// Whether this monitor decides nothing any more because it stops.
    pub(super) fn is_handing_over(&self) -> bool {
        self.is_handing_over.load(Ordering::Acquire)
    }

    /// Answers a message of Raft.
    pub(super) async fn answer_raft(&self, call: &[u8]) -> Result<Bytes> {
        network::answer(&self.raft, &self.network.succession, call).await
    }

    /// The monitor that has the most of the log, if this one leads.
    fn heir(&self) -> Option<Heir> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let own = metrics.id;
        // Only of a leader it is known what others have.
        let replicated = metrics.replication.as_ref()?;
        let voters = metrics.membership_config.membership().voter_ids();
        let index_of = |node: &u64| replicated.get(node).copied().flatten().map(|it| it.index);
        let node = voters.filter(|node| *node != own).max_by_key(index_of)?;
        let has_all = index_of(&node) >= metrics.last_log_index;
        Some(Heir { node, leader: metrics.vote, has_all })
    }

    /// Returns when another monitor leads, or this one did not.
    async fn hand_over(&self) {
        let mut metrics = self.raft.metrics();
        loop {
            let Some(Heir { node, leader, has_all }) = self.heir() else { return };
            if has_all && let Some(address) = self.address(node) {
                self.network.hand_over(&address, leader).await;
                break;
            }
            if metrics.changed().await.is_err() {
                return;
            }
        }
        let own = u64::from(self.options.node.0);
        let is_followed = |leader: Option<u64>| leader.is_some_and(|leader| leader != own);
        while !is_followed(metrics.borrow_and_update().current_leader) {
            if metrics.changed().await.is_err() {
                return;
            }
        }
    }
}

impl Monitor {
    /// The node is about to stop: if its monitor leads, another does from now on, or as soon as the
    /// others have noticed. It decides nothing any more.
    pub async fn hand_over(&self) {
        self.shared.is_handing_over.store(true, Ordering::Release);
        let shared = std::sync::Arc::clone(&self.shared);
        // On the monitor's own runtime, whoever stops it and wherever.
        let handing_over = self.shared.runtime().spawn(async move {
            _ = tokio::time::timeout(HAND_OVER_MAX, shared.hand_over()).await;
        });
        _ = handing_over.await;
    }
}
