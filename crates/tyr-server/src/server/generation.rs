//! Whether a node's folder is as new as what the cluster has seen of the node (M4).
//!
//! A folder that was put back from a copy lacks what the node has promised and acknowledged since,
//! and nothing in it says so. So the node counts: a number in its folder, the *generation*, is
//! raised durably, then told to the cluster, and only then does the node ask for a lease. The
//! cluster never knows a higher generation than the folder has, whenever the node stops, unless
//! the folder is not the one that it was.
//!
//! ```text
//!   start ─► do other nodes know a higher generation? ─yes─► refused, before its monitor votes
//!     │ no, or nobody answers
//!     └─► do the monitors? ─yes─► refused, before it has a lease
//!           │ no
//!           └─► raised in the folder, then at the monitors ─► it takes part
//!                 ▲                                             │
//!                 └──── every ten seconds, and when it stops ◄──┘
//! ```
//!
//! It knows nothing of what lies in the folder.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tyr_types::{Error, NodeId, Result};

use super::identity::Identity;
use tyr_control::MetadataClient;
use tyr_control::NodeRecord;
use tyr_metadata::reserved;

/// How often it is raised while a node runs: a copy that was made while it ran shows after so long.
/// Each time costs two syncs in the folder and one change of the metadata.
const RAISE_EVERY_MIN: Duration = Duration::from_secs(10);

/// How often it is raised in a large cluster, where all are told of each change.
const RAISE_EVERY_MAX: Duration = Duration::from_secs(600);

/// All nodes together raise once in this time at most: from twenty on each does so less often.
const BETWEEN_NODES: Duration = Duration::from_millis(500);

/// How long a node that stops waits for the monitors to take note of it.
const STOP_PATIENCE: Duration = Duration::from_millis(500);

/// How long a node that starts waits for others to say what they have seen of it. Where all start
/// together nobody answers, and the monitors are asked as soon as one leads.
pub(super) const PEERS_PATIENCE: Duration = Duration::from_millis(500);

const _: () = assert!(PEERS_PATIENCE.as_millis() < RAISE_EVERY_MIN.as_millis());
const _: () = assert!(STOP_PATIENCE.as_millis() < RAISE_EVERY_MIN.as_millis());
const _: () = assert!(RAISE_EVERY_MIN.as_millis() < RAISE_EVERY_MAX.as_millis());

/// How often each of so many nodes raises its generation while it runs.
pub(super) fn raise_every(nodes: usize) -> Duration {
    let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
    BETWEEN_NODES.saturating_mul(nodes).clamp(RAISE_EVERY_MIN, RAISE_EVERY_MAX)
}

/// A node's folder as its cluster knows it.
pub(crate) struct Generation {
    node: NodeId,
    folder: PathBuf,
    /// What the node tells of itself, but for the generation.
    record: NodeRecord,
    identity: Mutex<Identity>,
    /// Whether the cluster took note of a higher one since the start.
    is_raised: AtomicBool,
    refusal: OnceLock<String>,
}

impl Generation {
    /// Of a node that has just started.
    pub fn new(node: NodeId, folder: PathBuf, record: NodeRecord, identity: Identity) -> Self {
        let identity = Mutex::new(identity);
        let (is_raised, refusal) = (AtomicBool::new(false), OnceLock::new());
        Self { node, folder, record, identity, is_raised, refusal }
    }

    /// What the node tells of itself.
    pub fn record(&self) -> &NodeRecord {
        &self.record
    }

    /// Takes note of the cluster, durably.
    ///
    /// # Errors
    /// As [`Identity::join`].
    pub fn join(&self, cluster: u128) -> Result<()> {
        self.identity.lock().join(&self.folder, cluster)
    }

    /// Remembers where other nodes are, durably.
    ///
    /// # Errors
    /// As [`Identity::remember`].
    pub fn remember(&self, peers: Vec<String>) -> Result<()> {
        self.identity.lock().remember(&self.folder, peers)
    }

    /// Whether the node may ask for a lease.
    pub fn is_proven(&self) -> bool {
        self.is_raised.load(Ordering::Acquire) && self.refusal.get().is_none()
    }

    /// Why the node takes no part.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.get().map(String::as_str)
    }

    /// Tells the cluster of the node, if the folder is as new as what the cluster knows of it. The
    /// first time the generation is raised.
    ///
    /// # Errors
    /// `InvalidArgument` when it is older, which is [kept](Generation::refusal); as
    /// [`MetadataClient::admit`] when the monitors do not take it; `Unavailable` when the disk
    /// refuses.
    pub async fn prove(&self, client: &MetadataClient) -> Result<()> {
        let is_due = !self.is_raised.load(Ordering::Acquire);
        self.tell(client, is_due).await
    }

    /// Raises the generation of a node that takes part, here and at the monitors.
    ///
    /// # Errors
    /// As [`Generation::prove`].
    pub async fn raise(&self, client: &MetadataClient) -> Result<()> {
        match self.is_proven() {
            true => self.tell(client, true).await,
            false => Ok(()),
        }
    }

    /// Raises it once more, if the monitors answer soon: a copy that was made while the node ran is
    /// older than the folder from here on.
    pub async fn raise_at_stop(&self, client: &MetadataClient) {
        match tokio::time::timeout(STOP_PATIENCE, self.raise(client)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::info!(%error, "the generation is not raised at the end"),
            Err(_) => tracing::info!("no monitor takes note of the generation at the end"),
        }
    }

    async fn tell(&self, client: &MetadataClient, is_due: bool) -> Result<()> {
        let entry = client.get(reserved::node(self.node)).await?;
        let known = entry.and_then(|entry| NodeRecord::decode(&entry.value).ok());
        let generation = {
            let mut identity = self.identity.lock();
            if let Some(known) = &known
                && let Err(error) = check(&identity, self.node, &self.folder, known)
            {
                let _ = self.refusal.set(error.message().to_owned());
                return Err(error);
            }
            if is_due {
                let known = known.map_or(0, |known| known.generation);
                identity.raise_generation(&self.folder, known)?;
            }
            identity.generation().unwrap_or_default()
        };
        client.admit(Some(self.node), NodeRecord { generation, ..self.record.clone() }).await?;
        self.is_raised.fetch_or(is_due, Ordering::AcqRel);
        debug_assert!(self.is_raised.load(Ordering::Acquire), "the first time it is due");
        Ok(())
    }
}

/// Asks other nodes what they have seen of this one, before it does anything. None need answer.
///
/// # Errors
/// `InvalidArgument` when they have seen a newer folder.
pub(super) async fn ask_peers(
    client: &MetadataClient,
    identity: &Identity,
    node: NodeId,
    folder: &Path,
) -> Result<()> {
    let Ok(bootstrap) = client.bootstrap().await else { return Ok(()) };
    bootstrap.nodes.get(&node.0).map_or(Ok(()), |known| check(identity, node, folder, known))
}

/// Whether the folder is as new as what is known of the node. Of one that a program of before
/// wrote last nothing can be said.
fn check(identity: &Identity, node: NodeId, folder: &Path, known: &NodeRecord) -> Result<()> {
    let is_same = identity.drawn()? == known.identity;
    let is_older = identity.generation().is_some_and(|own| own < known.generation);
    match is_same && is_older {
        false => Ok(()),
        true => Err(Error::invalid(format!(
            "{} is older than what the cluster has seen of node {}: it was put back from a copy, \
             or another process runs as this node from another folder; what the node acknowledged \
             since is not in it, so it takes no part. Set it aside and start a node on an empty \
             folder with join: it copies what it is to hold from the others. If all that the \
             others lack is in this copy, the guide says how to go on from it: \"A folder is \
             older than the cluster\"",
            folder.display(),
            node.0
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(identity: &Identity, generation: u64) -> NodeRecord {
        NodeRecord { identity: identity.drawn().unwrap(), generation, ..NodeRecord::at("a:1") }
    }

    /// M4.
    #[test]
    fn a_folder_that_is_older_than_what_the_cluster_knows_is_refused_however_often_it_starts() {
        let folder = tempfile::tempdir().unwrap();
        let (path, node) = (folder.path(), NodeId(3));
        let mut identity = Identity::begin(path).unwrap();
        identity.raise_generation(path, 0).unwrap();
        let copy = std::fs::read(path.join("node.json")).unwrap();
        for generation in 2..6 {
            identity = Identity::begin(path).unwrap();
            assert!(check(&identity, node, path, &known(&identity, generation - 1)).is_ok());
            identity.raise_generation(path, generation - 1).unwrap();
            assert_eq!(identity.generation(), Some(generation));
        }
        assert!(check(&identity, node, path, &known(&identity, 5)).is_ok());
        std::fs::write(path.join("node.json"), copy).unwrap();
        for _ in 0..10 {
            let identity = Identity::begin(path).unwrap();
            let refused = check(&identity, node, path, &known(&identity, 5)).unwrap_err();
            assert!(refused.message().contains("older than what the cluster has seen of node 3"));
            let others = NodeRecord { identity: 1, ..known(&identity, 5) };
            assert!(check(&identity, node, path, &others).is_ok(), "that is another node's");
        }
    }

    /// M4: a stop between any two steps of a start leaves a folder that is not taken for older.
    #[test]
    fn a_node_that_stops_before_the_cluster_knows_its_generation_is_not_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let mut at_cluster = 0;
        for n in 0..20 {
            let mut identity = Identity::begin(path).unwrap();
            assert!(check(&identity, NodeId(3), path, &known(&identity, at_cluster)).is_ok());
            if n % 3 > 0 {
                identity.raise_generation(path, at_cluster).unwrap();
            }
            if n % 3 > 1 {
                at_cluster = identity.generation().unwrap();
            }
        }
        assert!(at_cluster > 6);
    }

    #[test]
    fn nodes_raise_often_and_many_together_not_too_often() {
        let seconds = |nodes| raise_every(nodes).as_secs();
        assert_eq!([1, 3, 20].map(seconds), [10; 3]);
        assert_eq!([64, 500, 1200, 60_000].map(seconds), [32, 250, 600, 600]);
    }

    #[test]
    fn a_folder_of_a_program_before_is_taken_and_counts_on_from_what_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let mut identity = Identity::begin(folder.path()).unwrap();
        assert!(check(&identity, NodeId(3), folder.path(), &known(&identity, 7)).is_ok());
        identity.raise_generation(folder.path(), 7).unwrap();
        assert_eq!(Identity::begin(folder.path()).unwrap().generation(), Some(8));
    }
}
