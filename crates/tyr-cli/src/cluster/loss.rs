//! `tyr keyspace loss`: a keyspace of one replica waits for a node that is down, and alone has part
//! of it. Here an operator says that this is not to come back.

use clap::Args;
use serde_json::json;
use tyr::Error;
use tyr_control::status::Status;
use tyr_control::{Change, ClusterMap};
use tyr_server::NodeId;

use super::{Connection, question};
use crate::failure::Outcome;
use crate::session::Session;

/// `tyr keyspace loss`
#[derive(Args, Debug)]
#[command(after_help = "\
Says what is lost, and asks. Nothing is lost while the node can come back with its disk: then \
start it instead. Only keyspaces with one replica lose a part in this way.

Examples:
  tyr keyspace loss scratch
  tyr keyspace loss scratch --yes")]
pub struct LossArguments {
    /// The keyspace
    name: String,
    /// Accept it without a question
    #[arg(long = "yes")]
    is_accepted: bool,
}

/// Does what the command line says.
pub fn run(session: &mut Session, arguments: &LossArguments) -> Outcome {
    let connection = Connection::open(session)?;
    let bootstrap = connection.ask(|client| async move { client.bootstrap().await })?;
    let status = connection.ask(|client| async move { client.status().await })?;
    let map = bootstrap.cluster_map()?;
    let (id, keyspace) = map.keyspace_named(&arguments.name).ok_or_else(|| {
        Error::not_found(format!(
            "there is no keyspace \"{}\"; `tyr keyspace list` shows those there are",
            arguments.name.escape_debug()
        ))
    })?;
    let change = Change::AcceptLoss(id);
    map.changed(&change)?; // Or why there is nothing to accept.
    let nodes = map.missing(keyspace);
    if !arguments.is_accepted {
        let mut words: Vec<String> = nodes.iter().map(|node| gone(*node, &status)).collect();
        words.push(format!(
            "What {} alone had of keyspace {} is lost for good; it goes on with that part empty.",
            names(&nodes),
            arguments.name
        ));
        question::ask(&words.join("\n"))?;
    }
    let epoch = connection.ask(|client| async move { client.propose(change).await })?.0;
    let numbers: Vec<u16> = nodes.iter().map(|node| node.0).collect();
    let text = format!("{} lost the part that {} alone had", arguments.name, names(&nodes));
    session
        .output
        .record(&json!({"name": arguments.name, "lost_with_nodes": numbers, "epoch": epoch}), &text)
}

/// A node that is down, and since when as far as is known.
fn gone(node: NodeId, status: &Status) -> String {
    let seats = status.leadership.as_ref().map(|leadership| &leadership.seats);
    let silent_us = seats.and_then(|seats| seats.get(&node.0)).map(|seat| seat.silent_us);
    match silent_us {
        Some(silent_us) => {
            format!("Node {} is down; it was heard of {} s ago.", node.0, silent_us / 1_000_000)
        }
        None => format!("Node {} is down.", node.0),
    }
}

fn names(nodes: &[NodeId]) -> String {
    let numbers: Vec<String> = nodes.iter().map(|node| node.0.to_string()).collect();
    match &numbers[..] {
        [only] => format!("node {only}"),
        several => format!("nodes {}", several.join(", ")),
    }
}

/// The keyspaces that wait for nodes which are down, with those.
pub fn waiting(map: &ClusterMap) -> Vec<(String, Vec<u16>)> {
    let open = map.keyspaces.values().filter(|keyspace| !keyspace.is_dropped);
    let waiting = open.map(|keyspace| {
        let nodes: Vec<u16> = map.missing(keyspace).iter().map(|node| node.0).collect();
        (keyspace.name.to_string(), nodes)
    });
    waiting.filter(|(_, nodes)| !nodes.is_empty()).collect()
}

/// The same of the cluster that `--data` names; of a directory nothing.
///
/// # Errors
/// When the monitors do not answer.
pub fn waiting_in(session: &Session) -> Outcome<Vec<(String, Vec<u16>)>> {
    if !session.is_cluster()? {
        return Ok(Vec::new());
    }
    let connection = Connection::open(session)?;
    let bootstrap = connection.ask(|client| async move { client.bootstrap().await })?;
    Ok(waiting(&bootstrap.cluster_map()?))
}

/// What an operator reads of a keyspace that waits.
pub fn warning(name: &str, nodes: &[u16]) -> String {
    let nodes: Vec<NodeId> = nodes.iter().copied().map(NodeId).collect();
    format!(
        "keyspace {name}: what {} alone has is unavailable, and nothing else of it; start it \
         with its disk, or accept the loss: tyr keyspace loss {name}",
        names(&nodes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tyr::KeyspaceConfig;

    #[test]
    fn keyspaces_that_wait_are_told_with_the_nodes_and_what_to_do() {
        let single = KeyspaceConfig { replication: 1, ..KeyspaceConfig::default() };
        let map = ClusterMap::of(3, &[KeyspaceConfig::default(), single]);
        assert!(waiting(&map).is_empty());
        let down = map.changed(&Change::Down(NodeId(1))).unwrap();
        let told = waiting(&down);
        assert_eq!(told, [("keyspace-2".to_owned(), vec![1])]);
        let text = warning(&told[0].0, &told[0].1);
        assert!(text.contains("node 1") && text.contains("tyr keyspace loss keyspace-2"), "{text}");
    }
}
