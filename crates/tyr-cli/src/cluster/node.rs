//! `tyr node`: the nodes of a cluster, and changes of who holds what.

use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use tyr::Error;
use tyr_control::{Change, ClusterMap, Membership};
use tyr_metadata::reserved;
use tyr_server::NodeId;

use super::reports::{self, Told};
use super::status::rows;
use super::{Connection, question};
use crate::failure::Outcome;
use crate::output::table;
use crate::session::Session;

/// How often is looked how far a change is.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What to do with nodes.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// List the nodes
    List(ListArguments),
    /// Let a node in again that left; a new one joins by itself (tyr serve --join)
    Add(AddArguments),
    /// Take a node out of the cluster, once others have what it holds
    Drain(DrainArguments),
    /// Wait no more for a node that is down; others copy what it held from the rest
    Remove(RemoveArguments),
    /// Strike a node off the list that left, or that never came in
    Forget(ForgetArguments),
    /// Change how much of the data a node takes
    Weight(WeightArguments),
    /// Make a node one of the monitors, or one no more
    Monitor(MonitorArguments),
    /// Give up the change of the ring that is under way
    Cancel(CancelArguments),
}

/// `tyr node list`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr node list --data tyr://127.0.0.1:7070")]
pub struct ListArguments {}

/// `tyr node add`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr node add 3")]
pub struct AddArguments {
    /// The node's number
    node: u16,
    /// Wait until it has all that it is to hold
    #[arg(long = "wait")]
    is_waited: bool,
}

/// `tyr node drain`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr node drain 3 --wait")]
pub struct DrainArguments {
    /// The node's number
    node: u16,
    /// Wait until it holds nothing any more
    #[arg(long = "wait")]
    is_waited: bool,
    /// Do it without a question where it leaves fewer nodes than replicas
    #[arg(long = "yes")]
    is_accepted: bool,
}

/// `tyr node remove`
#[derive(Args, Debug)]
#[command(after_help = "\
What only this node held is lost: that is so only if all other replicas of it are gone too.

Example:
  tyr node remove 3 --wait")]
pub struct RemoveArguments {
    /// The node's number
    node: u16,
    /// Wait until others have what it held
    #[arg(long = "wait")]
    is_waited: bool,
}

/// `tyr node forget`
#[derive(Args, Debug)]
#[command(after_help = "\
For nodes that are out: drained, removed, or never let in. Stop the node before. Its number is not \
given to another one.

Example:
  tyr node forget 3")]
pub struct ForgetArguments {
    /// The node's number
    node: u16,
}

/// `tyr node weight`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr node weight 3 200")]
pub struct WeightArguments {
    /// The node's number
    node: u16,
    /// Its weight, compared with others'; nodes have 100 unless they say otherwise
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    weight: u32,
    /// Wait until everything is where it is to be
    #[arg(long = "wait")]
    is_waited: bool,
}

/// `tyr node monitor`
#[derive(Args, Debug)]
#[command(after_help = "\
A node runs a monitor when it was started with the setting monitor = \"yes\".

Example:
  tyr node monitor 3 yes")]
pub struct MonitorArguments {
    /// The node's number
    node: u16,
    /// Whether it is to be one
    #[arg(value_parser = ["yes", "no"])]
    is_monitor: String,
    /// Do it without a question where it leaves fewer than three
    #[arg(long = "yes")]
    is_accepted: bool,
}

/// `tyr node cancel`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr node cancel")]
pub struct CancelArguments {}

/// Does what the command line says.
pub fn run(session: &mut Session, command: NodeCommand) -> Outcome {
    let connection = Connection::open(session)?;
    match command {
        NodeCommand::List(ListArguments {}) => list(session, &connection),
        NodeCommand::Add(AddArguments { node, is_waited }) => {
            let change = newcomer(&connection, node)?;
            change_ring(session, &connection, change, is_waited)
        }
        NodeCommand::Drain(DrainArguments { node, is_waited, is_accepted }) => {
            if !is_accepted {
                ask_about_drain(&connection, NodeId(node))?;
            }
            change_ring(session, &connection, Change::Drain(NodeId(node)), is_waited)
        }
        NodeCommand::Remove(RemoveArguments { node, is_waited }) => {
            change_ring(session, &connection, Change::Remove(NodeId(node)), is_waited)
        }
        NodeCommand::Forget(ForgetArguments { node }) => forget(session, &connection, node),
        NodeCommand::Weight(WeightArguments { node, weight, is_waited }) => {
            let change = Change::SetWeight { node: NodeId(node), weight };
            change_ring(session, &connection, change, is_waited)
        }
        NodeCommand::Monitor(MonitorArguments { node, is_monitor, is_accepted }) => {
            let is_monitor = is_monitor == "yes";
            if !is_monitor && !is_accepted {
                ask_about_dismissal(&connection, node)?;
            }
            connection
                .ask(|client| async move { client.appoint(NodeId(node), is_monitor).await })?;
            session.output.record(&json!({"node": node, "monitor": is_monitor}), "")
        }
        NodeCommand::Cancel(CancelArguments {}) => {
            change_ring(session, &connection, Change::CancelMove, false)
        }
    }
}

fn list(session: &mut Session, connection: &Connection) -> Outcome {
    let bootstrap = connection.ask(|client| async move { client.bootstrap().await })?;
    let status = connection.ask(|client| async move { client.status().await })?;
    let rows = rows(&bootstrap, &status)?;
    if session.output.is_json() {
        return rows.iter().try_for_each(|row| session.output.json(&row.as_json()));
    }
    let line = |row: &super::status::Row| {
        vec![
            row.node.to_string(),
            row.address.clone(),
            row.state.clone(),
            row.membership.to_owned(),
            row.weight.to_string(),
            row.domain.map_or_else(|| "-".to_owned(), |domain| domain.to_string()),
            if row.is_monitor { "yes" } else { "no" }.to_owned(),
            row.version.clone(),
        ]
    };
    let heads = ["node", "address", "state", "ring", "weight", "domain", "monitor", "version"];
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    session.output.line(&table(&heads, &lines, &[0, 4, 5]))
}

/// The node as one that joins, as it told of itself.
fn newcomer(connection: &Connection, node: u16) -> Outcome<Change> {
    let bootstrap = connection.ask(|client| async move { client.bootstrap().await })?;
    let record = bootstrap.nodes.get(&node).ok_or_else(|| {
        Error::not_found(format!(
            "nobody has heard of node {node}; a new node joins by itself: tyr serve --join"
        ))
    })?;
    let mut newcomer = record.newcomer(NodeId(node));
    // One that has run all the time since it left comes in under its next incarnation: it takes
    // that when it sees itself in the map.
    if let Some(last) = bootstrap.cluster_map()?.incarnation(newcomer.node) {
        newcomer.incarnation = newcomer.incarnation.max(last + 1);
    }
    Ok(Change::Join(vec![newcomer]))
}

/// Asks before a node goes without which there are fewer nodes than replicas.
fn ask_about_drain(connection: &Connection, node: NodeId) -> Outcome {
    let bootstrap = connection.ask(|client| async move { client.bootstrap().await })?;
    match thinned_by_drain(&bootstrap.cluster_map()?, node) {
        Some(words) => question::ask(&words),
        None => Ok(()),
    }
}

/// What is said before it; nothing when enough nodes are left.
fn thinned_by_drain(map: &ClusterMap, node: NodeId) -> Option<String> {
    let members = map.next.as_ref().unwrap_or(&map.ring).members();
    let left = members.keys().filter(|member| **member != node).count();
    let open = map.keyspaces.values().filter(|keyspace| !keyspace.is_dropped);
    let thin = open.filter(|keyspace| usize::from(keyspace.config.replication) > left);
    let names: Vec<String> =
        thin.map(|it| format!("{} ({})", it.name, it.config.replication)).collect();
    // What is refused anyway is not asked about.
    (members.contains_key(&node) && left > 0 && !names.is_empty()).then(|| {
        format!(
            "Without node {} there are {left} nodes, fewer than replicas of: {}. What is in them \
             is then kept {left} times.",
            node.0,
            names.join(", ")
        )
    })
}

/// Asks before a monitor goes without which no loss of another one is survived.
fn ask_about_dismissal(connection: &Connection, node: u16) -> Outcome {
    let status = connection.ask(|client| async move { client.status().await })?;
    match weakened_by_dismissal(&status.voters, node)? {
        Some(words) => question::ask(&words),
        None => Ok(()),
    }
}

/// What is said before it; nothing when enough are left.
fn weakened_by_dismissal(voters: &[u16], node: u16) -> Outcome<Option<String>> {
    let left: Vec<String> =
        voters.iter().filter(|voter| **voter != node).map(u16::to_string).collect();
    if left.len() == voters.len() || left.len() > 2 {
        return Ok(None);
    }
    match &left[..] {
        [] => Err(Error::invalid(format!(
            "node {node} is the only monitor, and without one there is no cluster; make another \
             node one first: tyr node monitor NODE yes"
        ))
        .into()),
        [only] => Ok(Some(format!(
            "Node {only} is then the only monitor: while it is down nothing changes hands, and if \
             its disk is lost so is the cluster."
        ))),
        _ => Ok(Some(format!(
            "Nodes {} are then the only monitors: while one of them is down nothing changes hands.",
            left.join(" and ")
        ))),
    }
}

/// Takes what a node told of itself out of the service metadata: then nobody knows of it.
fn forget(session: &mut Session, connection: &Connection, node: u16) -> Outcome {
    let bootstrap = connection.ask(|client| async move { client.bootstrap().await })?;
    let status = connection.ask(|client| async move { client.status().await })?;
    let map = bootstrap.cluster_map()?;
    let record = bootstrap.nodes.get(&node).ok_or_else(|| {
        Error::not_found(format!(
            "nobody has heard of node {node}; `tyr node list` shows those there are"
        ))
    })?;
    let first = match map.membership(NodeId(node)) {
        Membership::Out if status.voters.contains(&node) || status.learners.contains(&node) => {
            format!("is one of the monitors; take it out of them: tyr node monitor {node} no")
        }
        Membership::Out => match reports::ask_one(connection, node, record)? {
            Told::Report(_) | Told::Older => {
                "runs, and would tell of itself again; stop it".to_owned()
            }
            Told::Nothing(_) => String::new(),
        },
        Membership::In | Membership::Joining | Membership::Leaving => format!(
            "is in the cluster; drain it (tyr node drain {node}), or, if it is lost, remove it \
             (tyr node remove {node})"
        ),
    };
    if !first.is_empty() {
        return Err(Error::unavailable(format!("node {node} {first} first")).into());
    }
    connection.change(&reserved::node(NodeId(node)), |_| Ok((None, ())))?;
    session.output.record(&json!({"node": node, "forgotten": true}), "")
}

fn change_ring(
    session: &mut Session,
    connection: &Connection,
    change: Change,
    is_waited: bool,
) -> Outcome {
    let epoch = connection.ask(|client| async move { client.propose(change).await })?.0;
    let mut now = epoch;
    let mut is_moving = true;
    while is_waited && is_moving {
        session.interrupt.check()?;
        let bootstrap = connection.ask(|client| async move { client.bootstrap().await })?;
        let map = bootstrap.cluster_map()?;
        // Whoever is asked may not have heard of the change yet.
        (now, is_moving) = (map.epoch.0, map.epoch.0 < epoch || map.next.is_some());
        if is_moving {
            thread::sleep(LOOK_AGAIN);
        }
    }
    let text = match is_waited {
        true => format!("done, in epoch {now}"),
        false => format!("in effect since epoch {epoch}; `tyr status` shows how far it is"),
    };
    session.output.record(&json!({"epoch": now, "done": !is_moving}), &text)
}

#[cfg(test)]
mod tests {
    use tyr::KeyspaceConfig;

    use super::*;

    #[test]
    fn a_drain_that_leaves_fewer_nodes_than_replicas_is_asked_about() {
        let replicated = |replication| KeyspaceConfig { replication, ..KeyspaceConfig::default() };
        let map = |nodes| ClusterMap::of(nodes, &[replicated(3), replicated(2)]);
        assert_eq!(thinned_by_drain(&map(4), NodeId(1)), None);
        let words = thinned_by_drain(&map(3), NodeId(1)).unwrap();
        assert!(words.contains("there are 2 nodes") && words.contains("keyspace-1 (3)"), "{words}");
        assert!(!words.contains("keyspace-2"), "{words}");
        assert_eq!(thinned_by_drain(&map(3), NodeId(7)), None, "there is no such node");
        let leaving = map(4).changed(&Change::Drain(NodeId(0))).unwrap();
        assert!(thinned_by_drain(&leaving, NodeId(1)).is_some(), "one leaves already");
    }

    #[test]
    fn fewer_than_three_monitors_are_asked_about_and_none_is_refused() {
        assert_eq!(weakened_by_dismissal(&[0, 1, 2, 3], 3).unwrap(), None);
        assert_eq!(weakened_by_dismissal(&[0, 1, 2], 7).unwrap(), None, "it is none");
        let words = weakened_by_dismissal(&[0, 1, 2], 1).unwrap().unwrap();
        assert!(words.contains("Nodes 0 and 2 are then the only monitors"), "{words}");
        let words = weakened_by_dismissal(&[0, 1], 0).unwrap().unwrap();
        assert!(words.contains("Node 1 is then the only monitor"), "{words}");
        let refused = weakened_by_dismissal(&[4], 4).unwrap_err();
        assert!(refused.to_string().contains("monitor NODE yes"), "{refused}");
    }
}
