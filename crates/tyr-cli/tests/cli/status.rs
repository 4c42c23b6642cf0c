//! What `tyr status` says of nodes that are there, and of those that are not.

use serde_json::Value;

use crate::nodes::{Nodes, until};
use crate::shell::{Shell, lines, succeeded};

/// Nodes that answer no HTTP, as one machine sees those of others, and a shell beside them.
struct Hidden {
    shell: Shell,
    nodes: Nodes,
    data: String,
}

impl Hidden {
    fn form(count: usize) -> Self {
        let shell = Shell::empty();
        let nodes = Nodes::form(&shell, count, &["--insecure", "--http", "off"]);
        let places = nodes.listen.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        Self { shell, nodes, data: format!("tyr://{places}") }
    }

    fn status(&self) -> Value {
        let output = self.shell.run(["status", "--json", "--data", &self.data]);
        lines(&output.stdout).remove(0)
    }
}

#[test]
fn each_row_is_what_that_node_itself_says_and_one_that_is_stopped_says_nothing() {
    let mut hidden = Hidden::form(3);
    let row = |status: &Value, node: usize| status["nodes"][node].clone();
    let status = hidden.status();
    for node in 0..3 {
        let report = &row(&status, node)["report"];
        assert_eq!(report["node"], node, "{status}");
        assert_eq!(report["listen"], hidden.nodes.listen[node].to_string(), "{status}");
        assert_eq!(report["is_ready"], true, "{status}");
    }
    hidden.nodes.processes[2].child.kill().unwrap();
    hidden.nodes.processes[2].child.wait().unwrap();
    let status = hidden.status();
    assert_eq!(row(&status, 2)["report"], Value::Null, "{status}");
    let why = row(&status, 2)["error"].as_str().unwrap().to_owned();
    assert!(why.contains(&hidden.nodes.listen[2].to_string()), "{why}");
    assert_eq!(row(&status, 0)["report"]["node"], 0, "{status}");
}

#[test]
fn what_a_keyspace_has_used_is_told_where_no_node_answers_http() {
    let hidden = Hidden::form(1);
    let run = |arguments: &[&str]| {
        let output = hidden.shell.run([arguments, &["--json", "--data", &hidden.data]].concat());
        lines(&succeeded(output))
    };
    run(&["keyspace", "create", "photos", "--replication", "1"]);
    run(&["put", "photos", "tree", "--value", "0123456789"]);
    run(&["keyspace", "quota", "photos", "--bytes", "1MiB"]);
    let used = || run(&["keyspace", "quota", "photos"])[0]["used"]["bytes"].clone();
    until("what is used is counted", || used() == 10);
}
