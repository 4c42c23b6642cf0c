//! Nodes that join, are drained, stay out, come in again and are forgotten.

use rustix::process::Signal;
use serde_json::Value;
use tyr_testing::free_address;

use crate::cluster::Cluster;
use crate::nodes::{Process, until};

#[test]
fn a_node_joins_gets_data_is_drained_and_the_status_shows_it() {
    let cluster = Cluster::form(3, false);
    cluster.text(&["keyspace", "create", "notes"]);
    for number in 0..20 {
        cluster.text(&["put", "notes", &number.to_string(), "--value", "hello"]);
    }
    let listen = free_address().to_string();
    let folder = cluster.shell.path("node-3").display().to_string();
    let join = cluster.nodes.listen[1].to_string();
    let start = |log: &str| {
        let serve = ["serve", "--insecure", "--folder", &folder, "--listen", &listen];
        let serve = [&serve[..], &["--http", "off", "--join", &join]].concat();
        Process::start(&cluster.shell, log, &serve)
    };
    let mut process = start("node-3.log");
    process.wait_for("ready");
    let ring = |node: u64| {
        let nodes = cluster.json(&["node", "list"]);
        let found = nodes.iter().find(|it| it["node"] == node).cloned();
        found.map_or(Value::Null, |found| found["ring"].clone())
    };
    until("it is in", || ring(3) == "in");
    assert!(cluster.text(&["status"]).contains("leads the monitors"));
    let status = &cluster.json(&["status"])[0];
    assert_eq!(status["nodes"].as_array().unwrap().len(), 4, "{status}");
    assert_eq!(status["nodes"][0]["report"]["is_ready"], true, "{status}");
    cluster.text(&["node", "drain", "3", "--wait"]);
    assert_eq!(ring(3), "out");
    process.signal(Signal::TERM);
    process.wait_for("stopped");
    for number in 0..20 {
        assert_eq!(cluster.text(&["get", "notes", &number.to_string()]), "hello");
    }

    let mut process = start("node-3-again.log");
    process.wait_for("listening");
    let said = || std::fs::read_to_string(cluster.shell.path("node-3-again.log")).unwrap();
    until("it is told why it stays out", || said().contains("node 3 was drained"));
    assert_eq!(ring(3), "out");
    let refused = |node: &str| cluster.refused("", &["node", "forget", node]).1;
    assert_eq!((refused("3"), refused("0")), ("Unavailable".into(), "Unavailable".into()));
    cluster.text(&["node", "add", "3", "--wait"]);
    process.wait_for("ready");
    assert_eq!(ring(3), "in");
    cluster.text(&["node", "drain", "3", "--wait"]);
    cluster.text(&["node", "add", "3", "--wait"]);
    assert_eq!(ring(3), "in", "it has run all the time");

    cluster.text(&["node", "drain", "3", "--wait"]);
    process.signal(Signal::TERM);
    process.wait_for("stopped");
    cluster.text(&["node", "forget", "3"]);
    assert_eq!(ring(3), Value::Null);
    assert_eq!(cluster.refused("", &["node", "forget", "3"]).1, "NotFound");
}
