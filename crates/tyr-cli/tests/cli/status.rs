//! What `tyr status` says of nodes that are there, and of those that are not.

use serde_json::{Value, json};

use crate::nodes::{Nodes, Process, until};
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

#[test]
fn one_word_and_the_exit_code_say_how_the_cluster_is() {
    let mut hidden = Hidden::form(3);
    let status = |code: i32| {
        let output = hidden.shell.run(["status", "--json", "--data", &hidden.data]);
        let said = lines(&output.stdout).remove(0);
        (output.status.code() == Some(code)).then_some(said)
    };
    let create = ["keyspace", "create", "notes", "--data", &hidden.data];
    succeeded(hidden.shell.run(create));
    let well = status(0).expect("all is there");
    assert_eq!(well["health"], json!({"word": "healthy", "reasons": []}));
    let disk = &well["nodes"][1]["report"]["disk"];
    assert!(disk["free_bytes"].as_u64() > Some(0) && disk["size_bytes"].as_u64() > Some(0));
    let kill = |process: &mut Process| {
        process.child.kill().unwrap();
        process.child.wait().unwrap();
    };
    kill(&mut hidden.nodes.processes[2]);
    until("a node is missed", || {
        let said = hidden.status();
        said["health"]["word"] == "degraded" && said["thin"][0]["nodes"] == json!([2])
    });
    let output = hidden.shell.run(["status", "--data", &hidden.data]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("degraded: cluster "), "{text}");
    assert!(text.contains("keyspace notes: all of it has fewer live replicas than 3"), "{text}");
    assert!(text.contains("node 2 does not answer"), "{text}");
    kill(&mut hidden.nodes.processes[1]);
    until("nobody leads", || hidden.status()["health"]["word"] == "unavailable");
    let output = hidden.shell.run(["status", "--data", &hidden.data]);
    assert_eq!(output.status.code(), Some(6), "{output:?}");
}

#[test]
fn a_node_whose_folder_is_deleted_says_so_and_ends() {
    let shell = Shell::empty();
    let mut nodes = Nodes::form(&shell, 1, &["--insecure"]);
    // The node goes on making files meanwhile: a folder may not be empty when its turn comes.
    until("the folder is deleted", || std::fs::remove_dir_all(shell.path("node-0")).is_ok());
    let status = nodes.processes.remove(0).end();
    assert_eq!(status.code(), Some(3), "there is no folder");
    let log = std::fs::read_to_string(shell.path("node-0.log")).unwrap();
    assert!(log.contains("its folder was deleted or replaced while it ran"), "{log}");
}
