//! Seats that are moved by hand and by a policy, over a cluster of processes.

use crate::cluster::Cluster;
use crate::nodes::until;

const SEAT: &str = "zlogs/orders%00lock";

/// A cluster with a log whose sequencer was asked, and so is a seat.
fn seated() -> Cluster {
    let cluster = Cluster::form(3, true);
    cluster.text(&["zlog", "create", "orders"]);
    append(&cluster, "first");
    until("a node says that it has the seat", || node_of(&cluster).is_some());
    cluster
}

fn append(cluster: &Cluster, value: &str) -> u64 {
    let said = cluster.json(&["zlog", "append", "orders", "--ask", "--value", value]);
    said[0]["position"].as_u64().expect("it has a position")
}

/// The node that says that it has the seat.
fn node_of(cluster: &Cluster) -> Option<u64> {
    let nodes = cluster.json(&["seat", "list"]);
    let has = |seats: &serde_json::Value| {
        seats.as_array().is_some_and(|seats| seats.iter().any(|it| it["name"] == SEAT))
    };
    nodes.iter().find(|node| has(&node["seats"]))?["node"].as_u64()
}

fn token_of(cluster: &Cluster) -> u64 {
    cluster.json(&["zlog", "status", "orders"])[0]["token"].as_u64().expect("it has a token")
}

#[test]
fn a_seat_is_listed_moved_with_its_counter_and_sent_home() {
    let cluster = seated();
    let home = node_of(&cluster).expect("it is there");
    let (mut position, mut token) = (0, token_of(&cluster));
    for step in 1..=4_u64 {
        let node = (home + step) % 3;
        let mode = if step % 2 == 0 { "--proxy" } else { "--json" };
        cluster.text(&["seat", "move", SEAT, &node.to_string(), mode]);
        position += 1;
        assert_eq!(append(&cluster, "next"), position, "positions go on");
        until("the node says that it has the seat", || node_of(&cluster) == Some(node));
        let shown = &cluster.json(&["seat", "show", SEAT])[0];
        assert_eq!((&shown["node"], &shown["should"]["node"]), (&node.into(), &node.into()));
        let grown = token_of(&cluster);
        assert!(grown > token, "{grown} after {token}");
        token = grown;
    }
    cluster.text(&["seat", "move", SEAT, "--home"]);
    assert_eq!(append(&cluster, "last"), position + 1);
    until("it is at home", || node_of(&cluster) == Some(home));
    let refused = cluster.refused("", &["seat", "list"]);
    assert_eq!(refused.1, "PermissionDenied");
}

/// Moves everything to the node of number 0, or to that of number 1, whatever it is asked.
fn policy(to: usize) -> String {
    format!(
        "function where()
            BAL_LOG('info', 'asked')
            for index, node in ipairs(nodes) do
                if node.number == {to} then targets[index] = nodes[whoami].load + 1 end
            end
        end"
    )
}

#[test]
fn a_policy_is_installed_moves_a_seat_fails_and_is_stopped_and_the_log_says_so() {
    let cluster = seated();
    let at = node_of(&cluster).expect("it is there");
    let to = (at as usize + 1) % 3;
    let file = cluster.shell.path("policy.luau");
    let install = |script: &str| {
        std::fs::write(&file, script).expect("the folder is there");
        let file = file.display().to_string();
        cluster.text(&["balancer", "install", &file, "--tick", "0.2"])
    };
    assert!(install(&policy(to)).trim_end().ends_with(" 1"));
    until("the policy moves the seat", || {
        append(&cluster, "more");
        node_of(&cluster) == Some(to as u64)
    });
    let log = || cluster.text(&["balancer", "log"]);
    until("the log tells of it", || log().contains(&format!("seat {SEAT} goes from node {at}")));
    assert!(log().contains("balancer: info: asked"));
    let fails = "function where() if #nodes[whoami].seats > 0 then error('lost') end end";
    assert!(install(fails).trim_end().ends_with(" 2"));
    until("the log tells that it fails", || log().contains("lost"));
    let shown = cluster.text(&["balancer", "show"]);
    assert!(shown.contains("runs every 0.2 s"), "{shown}");
    assert_eq!(cluster.text(&["balancer", "show", "--script"]), fails);
    cluster.text(&["balancer", "install", "--built-in", "sequencer"]);
    cluster.text(&["balancer", "stop"]);
    assert!(cluster.text(&["balancer", "show"]).contains("nothing is balanced"));
    let no_policy = cluster.shell.path("none.luau");
    std::fs::write(&no_policy, "function where(").expect("the folder is there");
    let root = cluster.root();
    let refused = cluster.refused(root, &["balancer", "install", &no_policy.display().to_string()]);
    assert_eq!(refused.1, "InvalidArgument");
}
