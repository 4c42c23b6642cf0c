//! A keyspace of one replica, when a node is gone that alone has part of it: real nodes.

use std::process::Output;

use serde_json::{Value, json};

use crate::nodes::{Nodes, until};
use crate::shell::{Shell, describe, lines, refusal, succeeded};

/// Blobs in the keyspace of one replica: each of three nodes has some.
const BLOBS: usize = 16;

/// Three nodes, and the keyspaces `three` and `one`, of as many replicas.
struct Cluster {
    shell: Shell,
    nodes: Nodes,
    data: String,
}

impl Cluster {
    fn form() -> Self {
        let shell = Shell::empty();
        let nodes = Nodes::form(&shell, 3, &["--insecure"]);
        let places = nodes.listen.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let cluster = Self { shell, nodes, data: format!("tyr://{places}") };
        succeeded(cluster.run(&["keyspace", "create", "three", "--replication", "3"]));
        succeeded(cluster.run(&["keyspace", "create", "one", "--replication", "1"]));
        (0..BLOBS).for_each(|blob| drop(succeeded(cluster.put("one", blob))));
        cluster
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.shell.run([arguments, &["--json", "--data", &self.data]].concat())
    }

    fn put(&self, keyspace: &str, blob: usize) -> Output {
        let name = format!("blob-{blob}");
        self.shell.feed(["put", keyspace, &name, "--json", "--data", &self.data], name.as_bytes())
    }

    /// How many blobs of `one` are there, are absent, and cannot be reached now.
    fn count(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for blob in 0..BLOBS {
            let name = format!("blob-{blob}");
            let output = self.shell.run(["get", "one", &name, "--json", "--data", &self.data]);
            let place = match output.status.success() {
                true => {
                    let plain = self.shell.run(["get", "one", &name, "--data", &self.data]);
                    assert_eq!(plain.stdout, name.as_bytes(), "{}", describe(&plain));
                    0
                }
                false => match refusal(&output) {
                    (_, kind, _) if kind == "NotFound" => 1,
                    (_, kind, message) => {
                        assert_eq!(kind, "Unavailable", "{message}");
                        assert!(message.contains("tyr keyspace loss one"), "{message}");
                        2
                    }
                },
            };
            counts[place] += 1;
        }
        counts
    }

    /// What `tyr status` says of keyspaces of which part is unavailable.
    fn unavailable(&self) -> Value {
        lines(&self.run(&["status"]).stdout)[0]["unavailable"].clone()
    }

    /// Kills the node, and waits until it is declared down.
    fn lose(&mut self, node: usize) {
        let process = &mut self.nodes.processes[node];
        process.child.kill().expect("it runs");
        process.child.wait().expect("it was killed");
        let expected = json!([{"keyspace": "one", "nodes": [node]}]);
        until("it is declared down", || self.unavailable() == expected);
    }

    fn start(&mut self, node: usize) {
        let mut process = self.nodes.start(&self.shell, node, &["--insecure"]);
        process.wait_for("ready");
        self.nodes.processes[node] = process;
        until("it is back", || self.unavailable() == json!([]));
    }
}

#[test]
fn a_node_that_is_gone_stops_only_what_it_alone_has_until_it_is_back_or_that_is_given_up() {
    let mut cluster = Cluster::form();
    let (code, kind, message) = refusal(&cluster.run(&["keyspace", "loss", "one", "--yes"]));
    assert_eq!((code, &kind[..]), (3, "NotFound"), "nothing is lost: {message}");
    cluster.lose(2);
    succeeded(cluster.put("three", 0));
    let [there, absent, away] = cluster.count();
    assert!(there > 0 && away > 0 && absent == 0, "{there} {absent} {away}");
    let (_, kind, message) = refusal(&cluster.run(&["ls", "one"]));
    assert_eq!(kind, "Unavailable", "a listing has no holes: {message}");

    cluster.start(2);
    assert_eq!(cluster.count(), [BLOBS, 0, 0], "it was all on its disk");
    cluster.lose(2);
    succeeded(cluster.put("three", 1));

    let (code, kind, message) = refusal(&cluster.run(&["keyspace", "loss", "one"]));
    assert_eq!((code, &kind[..]), (2, "Usage"), "it asks: {message}");
    for part in ["Node 2 is down", "node 2 alone had of keyspace one is lost", "--yes"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    let (_, kind, message) = refusal(&cluster.run(&["keyspace", "loss", "three", "--yes"]));
    assert_eq!(kind, "InvalidArgument", "{message}");
    assert_eq!(cluster.count(), [there, 0, away], "nothing was changed");

    let said = lines(&succeeded(cluster.run(&["keyspace", "loss", "one", "--yes"])));
    assert_eq!((&said[0]["name"], &said[0]["lost_with_nodes"]), (&json!("one"), &json!([2])));
    until("others hold it", || cluster.unavailable() == json!([]));
    assert_eq!(cluster.count(), [there, away, 0], "what it alone had is empty");
    (0..BLOBS).for_each(|blob| drop(succeeded(cluster.put("one", blob))));
    cluster.start(2);
    assert_eq!(cluster.count(), [BLOBS, 0, 0], "what was written since");
}
