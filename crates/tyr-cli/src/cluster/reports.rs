//! What each node says of itself: asked at the node, by the port that it has in the cluster.
//!
//! Where a node answers HTTP is its own affair, often its own machine's; where it is reached by the
//! others they all know. Who answers at an address need not be who was meant: that is noticed.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tyr_control::status::Bootstrap;
use tyr_control::{MetadataClient, NodeRecord};
use tyr_server::NodeReport;

use super::Connection;
use crate::failure::Outcome;

/// Nodes that are asked at once.
const ASKED_AT_ONCE: usize = 64;

/// What became of the question how a node is.
#[derive(Debug)]
pub enum Told {
    /// It says so.
    Report(Box<NodeReport>),
    /// Its program is of an older release, and does not tell.
    Older,
    /// It does not answer, or another one does, or what it says makes no sense.
    Nothing(String),
}

impl Told {
    /// The report, if there is one.
    pub fn report(&self) -> Option<&NodeReport> {
        match self {
            Self::Report(report) => Some(report),
            Self::Older | Self::Nothing(_) => None,
        }
    }
}

/// What the nodes say, by their numbers.
pub type Reports = BTreeMap<u16, Told>;

/// Asks every node.
///
/// # Errors
/// None of a node: it is in the reports.
pub fn ask_all(connection: &Connection, bootstrap: &Bootstrap) -> Outcome<Reports> {
    ask(connection, bootstrap, usize::MAX)
}

/// Asks the first so many nodes.
///
/// # Errors
/// As [`ask_all`].
pub fn ask(connection: &Connection, bootstrap: &Bootstrap, limit: usize) -> Outcome<Reports> {
    let nodes = bootstrap.nodes.iter().take(limit);
    let places: Vec<_> = nodes.map(|(node, record)| (*node, record.addresses.clone())).collect();
    connection.ask(|client| async move {
        let room = Arc::new(Semaphore::new(ASKED_AT_ONCE));
        let mut asking = JoinSet::new();
        for (node, addresses) in places {
            let (client, room) = (client.clone(), Arc::clone(&room));
            asking.spawn(async move {
                let _place = room.acquire().await;
                (node, ask_node(&client, node, &addresses).await)
            });
        }
        Ok(asking.join_all().await.into_iter().collect())
    })
}

/// Asks one node.
///
/// # Errors
/// As [`ask_all`].
pub fn ask_one(connection: &Connection, node: u16, record: &NodeRecord) -> Outcome<Told> {
    let addresses = record.addresses.clone();
    connection.ask(|client| async move { Ok(ask_node(&client, node, &addresses).await) })
}

/// Asks a node, at each of its addresses until somebody answers.
async fn ask_node(client: &MetadataClient, node: u16, addresses: &[String]) -> Told {
    let mut last = "it has no address".to_owned();
    for address in addresses {
        match client.report(address).await {
            Ok(None) => return Told::Older,
            Ok(Some(bytes)) => return understand(node, address, &bytes),
            Err(error) => last = error.to_string(),
        }
    }
    Told::Nothing(last)
}

/// The report of this node, if it is that.
fn understand(node: u16, address: &str, bytes: &[u8]) -> Told {
    match serde_json::from_slice::<NodeReport>(bytes) {
        Ok(report) if report.node == node => Told::Report(Box::new(report)),
        Ok(report) => Told::Nothing(format!(
            "at {address} answers node {}: two nodes have one address, or the one that node {node} \
             gives (advertise) leads elsewhere",
            report.node
        )),
        Err(error) => Told::Nothing(format!("{address}: not understood: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_another_node_is_noticed() {
        let report = r#"{"node": 1, "version": "1", "listen": "a:1", "uptime_s": 1.0, "starts": 1,
            "is_ready": true, "reasons": [], "lease_left_ms": 1, "in_flight": 0, "commits": 0,
            "reads": 0, "clients": 0, "is_leading": false, "movement": {"is_moving": false,
            "unlisted": 0, "missing": 0, "installed": 0, "bytes": 0, "remaining_s": null},
            "map": null, "what_a_later_release_adds": 1}"#;
        assert!(understand(1, "a:1", report.as_bytes()).report().is_some());
        let Told::Nothing(text) = understand(2, "a:1", report.as_bytes()) else {
            panic!("it is node 1's")
        };
        assert!(text.contains("a:1 answers node 1") && text.contains("node 2"), "{text}");
        assert!(matches!(understand(1, "a:1", b"{}"), Told::Nothing(_)));
    }
}
