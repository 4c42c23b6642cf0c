//! `tyr serve` as a process: its settings, a cluster of three, signals, what it shows.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;

use rustix::process::Signal;
use serde_json::Value;
use tyr_testing::free_address;

use crate::nodes::{Nodes, Process, get, until};
use crate::shell::{Shell, describe};

#[test]
fn everything_that_is_wrong_with_settings_is_said_at_once_with_its_source() {
    let shell = Shell::empty();
    let file = shell.path("tyr.toml");
    let text =
        "# a comment\ncache = \"1MiB\"\ncolour = 1\nnodes = \"0=127.0.0.1:7070\"\nnode = 7\n";
    std::fs::write(&file, text).unwrap();
    let mut command = shell.command(["serve", "--check", "--lease", "soon", "--config"]);
    let output = command.arg(&file).env("TYR_WEIGHT", "0").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", describe(&output));
    let text = String::from_utf8(output.stderr).unwrap();
    let (by_themselves, together) = (
        ["tyr.toml:2", "tyr.toml:3", "TYR_WEIGHT", "--lease"],
        ["folder", "secret_file", "node = "],
    );
    for part in by_themselves.iter().chain(&together).chain(&["8 settings are wrong"]) {
        assert!(text.contains(part), "{part} in {text}");
    }
    std::fs::write(&file, "cache = \n").unwrap();
    let output = shell.command(["serve", "--check", "--config"]).arg(&file).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("not TOML") && !text.contains("folder is needed"), "{text}");
    let (code, kind, message) = shell.refused(["serve", "--check", "--listen", "127.0.0.1:7070"]);
    assert_eq!((code, kind.as_str()), (2, "Usage"), "{message}");
    for name in ["folder", "secret_file", "insecure", "nodes or join"] {
        assert!(message.contains(name), "{name} in {message}");
    }
}

#[test]
fn settings_in_effect_are_printed_with_where_they_come_from() {
    let shell = Shell::empty();
    let mut command = shell.command(["serve", "--print-config", "--weight", "7"]);
    let output = command.env("TYR_CACHE", "1GiB").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |name: &str| {
        let found = text.lines().find(|line| line.starts_with(&format!("{name} =")));
        found.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
    };
    assert!(line("weight").starts_with("weight = 7 ") && line("weight").ends_with("# --weight"));
    assert!(line("cache").contains("\"1GiB\"") && line("cache").ends_with("# TYR_CACHE"));
    assert!(line("lease").ends_with("# default"));
}

#[test]
fn three_nodes_form_a_cluster_show_how_they_are_and_stop_well() {
    let shell = Shell::empty();
    let mut nodes = Nodes::form(&shell, 3, &["--insecure"]);
    for http in &nodes.http {
        assert_eq!(get(*http, "/health/live").0, 200);
        until("it is ready", || get(*http, "/health/ready").0 == 200);
        let (status, text) = get(*http, "/metrics");
        assert_eq!(status, 200);
        for line in ["tyr_ready 1.0", "tyr_starts_total 1", "# TYPE tyr_commits_total counter"] {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
        let report: Value = serde_json::from_str(&get(*http, "/status").1).unwrap();
        assert_eq!(report["map"]["nodes"].as_array().unwrap().len(), 3, "{report}");
        assert_eq!(get(*http, "/elsewhere").0, 404);
    }
    for process in &nodes.processes {
        process.signal(Signal::HUP);
    }
    for mut process in nodes.processes.drain(..) {
        process.signal(Signal::TERM);
        process.wait_for("stopped");
        assert!(process.end().success());
    }
    let again = Nodes { processes: Vec::new(), ..nodes };
    let mut processes: Vec<Process> =
        (0..3).map(|number| again.start(&shell, number, &["--insecure"])).collect();
    for process in &mut processes {
        process.wait_for("ready");
    }
    let report: Value = serde_json::from_str(&get(again.http[0], "/status").1).unwrap();
    assert_eq!(report["starts"], 2, "{report}");
}

#[test]
fn a_node_without_the_others_lives_and_is_not_ready_and_says_why() {
    let shell = Shell::empty();
    let mut nodes = Nodes::form(&shell, 3, &["--insecure"]);
    for process in &mut nodes.processes[1..] {
        process.child.kill().unwrap();
    }
    let http = nodes.http[0];
    until("its lease runs out", || get(http, "/health/ready").0 == 503);
    let body: Value = serde_json::from_str(&get(http, "/health/ready").1).unwrap();
    assert!(body["reasons"][0].as_str().unwrap().contains("no lease"), "{body}");
    assert_eq!(get(http, "/health/live").0, 200);
    assert!(get(http, "/metrics").1.contains("tyr_ready 0.0"));
}

#[test]
fn traces_of_a_node_go_where_its_settings_say_and_are_counted() {
    let shell = Shell::empty();
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let settings = ["--insecure", "--trace-endpoint", &endpoint, "--trace-ratio", "1"];
    let nodes = Nodes::form(&shell, 1, &settings);
    let data = format!("tyr://{}", nodes.listen[0]);
    shell.ok(["keyspace", "create", "notes", "--data", &data]);
    shell.ok_fed(["put", "notes", "first", "--data", &data], b"x");
    let (mut stream, _) = collector.accept().unwrap();
    let mut posted = Vec::new();
    while !posted.windows(13).any(|part| part == b"\"transaction\"") {
        let mut some = [0; 4096];
        let len = stream.read(&mut some).unwrap();
        assert!(len > 0, "{}", String::from_utf8_lossy(&posted));
        posted.extend_from_slice(&some[..len]);
    }
    assert!(posted.starts_with(b"POST /v1/traces HTTP/1.1\r\n"));
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
    let is_counted = || {
        let (_, text) = get(nodes.http[0], "/metrics");
        let mut lines = text.lines();
        let spans = lines.find_map(|line| line.strip_prefix("tyr_trace_spans_total "));
        spans.unwrap().parse::<u64>().unwrap() > 0
    };
    until("the collector has taken them", is_counted);
    assert!(get(nodes.http[0], "/metrics").1.contains("tyr_trace_failing 0.0"));
}

#[test]
fn a_supervisor_is_told_and_the_end_of_input_ends_a_node() {
    let shell = Shell::empty();
    let path = shell.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let listen = free_address().to_string();
    let nodes = format!("0={listen}");
    let folder = shell.path("node").display().to_string();
    let mut process = Process::start_with(
        &shell,
        "node.log",
        &[
            &["serve", "--insecure", "--until-input-ends", "--http", "off", "--node", "0"],
            &["--listen", &listen, "--nodes", &nodes, "--folder", &folder][..],
        ]
        .concat(),
        &[("NOTIFY_SOCKET", path.to_str().unwrap())],
    );
    let mut bytes = [0; 64];
    let len = socket.recv(&mut bytes).unwrap();
    assert_eq!(&bytes[..len], b"READY=1");
    drop(process.child.stdin.take());
    let len = socket.recv(&mut bytes).unwrap();
    assert_eq!(&bytes[..len], b"STOPPING=1");
    process.wait_for("stopped");
    assert!(process.end().success());
}

#[test]
fn nodes_with_another_secret_are_kept_out_and_that_is_audited() {
    let shell = Shell::empty();
    let [secret, other, audit] =
        ["secret", "other", "audit.log"].map(|name| shell.path(name).display().to_string());
    shell.ok(["secret", &secret]);
    shell.ok(["secret", &other]);
    assert_eq!(shell.refused(["secret", &secret]).1, "AlreadyExists", "it is not overwritten");
    let nodes = Nodes::form(&shell, 1, &["--secret-file", &secret, "--audit-file", &audit]);
    let listen = free_address().to_string();
    let folder = shell.path("stranger").display().to_string();
    let join = nodes.listen[0].to_string();
    let stranger = shell.run([
        "serve",
        "--folder",
        &folder,
        "--listen",
        &listen,
        "--join",
        &join,
        "--http",
        "off",
        "--secret-file",
        &other,
        "--json",
    ]);
    assert!(!stranger.status.success(), "{}", describe(&stranger));
    let text = String::from_utf8_lossy(&stranger.stderr).into_owned();
    assert!(text.contains("secret"), "{text}");
}

#[test]
fn a_small_cluster_says_how_to_reach_it_reports_deaths_and_leaves_nothing_behind() {
    let shell = Shell::empty();
    let mut dev = Process::start(&shell, "dev.log", &["dev", "3", "--port", "0"]);
    let ready = dev.wait_for("ready");
    assert!(ready["address"].as_str().unwrap().starts_with("tyr://127.0.0.1:"), "{ready}");
    let folder = std::path::PathBuf::from(ready["folder"].as_str().unwrap());
    assert!(folder.join("node-2").exists());
    let node = &ready["nodes"][1];
    let http = node["http"].as_str().unwrap().parse().unwrap();
    until("it is ready", || get(http, "/health/ready").0 == 200);
    let pid = i32::try_from(node["pid"].as_i64().unwrap()).unwrap();
    let file = folder.join("node-1.pid");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{pid}\n"));
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    let ended = dev.wait_for("ended");
    assert_eq!((&ended["node"], ended["how"].as_str()), (&node["node"], Some("signal 9")));
    assert!(!file.exists(), "another process may get its number");
    dev.signal(Signal::INT);
    let stopped = dev.wait_for("stopped");
    assert_eq!(stopped["kept"], false);
    assert!(dev.end().success());
    assert!(!folder.exists(), "{}", folder.display());
}

#[test]
fn a_small_cluster_in_a_folder_of_its_own_goes_on_where_it_was() {
    let shell = Shell::empty();
    let folder = shell.path("mine").display().to_string();
    let mut addresses = Vec::new();
    for _ in 0..2 {
        let mut dev =
            Process::start(&shell, "dev.log", &["dev", "1", "--port", "0", "--folder", &folder]);
        addresses.push(dev.wait_for("ready")["address"].clone());
        dev.signal(Signal::TERM);
        assert_eq!(dev.wait_for("stopped")["kept"], true);
        assert!(dev.end().success());
    }
    assert_eq!(addresses[0], addresses[1]);
    assert_eq!(shell.refused(["dev", "3", "--folder", &folder]).1, "InvalidArgument");
    let checked = shell.text(["check", "--data", &format!("{folder}/node-0/store")]);
    assert!(checked.contains("0 errors") && checked.contains("tyr_scrub_repaired"), "{checked}");
}

#[test]
fn a_node_with_a_small_cache_warns_of_it_at_its_start() {
    for (cache, is_small) in [("8MiB", true), ("64MiB", false)] {
        let shell = Shell::empty();
        let _nodes = Nodes::form(&shell, 1, &["--insecure", "--cache", cache]);
        let log = std::fs::read_to_string(shell.path("node-0.log")).unwrap();
        assert_eq!(log.contains("the cache is small"), is_small, "{log}");
    }
}
