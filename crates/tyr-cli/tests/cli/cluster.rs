//! The commands over a cluster: data as over a directory, and its nodes and users.

use serde_json::Value;

use crate::nodes::{Nodes, get, until};
use crate::shell::{Shell, noise, refusal, succeeded};

/// A cluster, and a shell whose store it is.
pub struct Cluster {
    pub shell: Shell,
    pub nodes: Nodes,
    /// `tyr://..`, without options.
    pub address: String,
    /// What follows it for who may do everything.
    root: String,
}

impl Cluster {
    pub fn form(count: usize, is_checked: bool) -> Self {
        let shell = Shell::empty();
        let secret = shell.path("secret").display().to_string();
        shell.ok(["secret", &secret]);
        let audit = shell.path("audit.log").display().to_string();
        let checked = ["--secret-file", &secret, "--audit-file", &audit];
        let nodes = Nodes::form(&shell, count, if is_checked { &checked } else { &["--insecure"] });
        let places = nodes.listen.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let root =
            if is_checked { format!("/?user=root&key_file={secret}") } else { String::new() };
        Self { shell, nodes, address: format!("tyr://{places}"), root }
    }

    /// What follows the address for who may do everything.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// What a command answers who may do everything.
    pub fn text(&self, arguments: &[&str]) -> String {
        let data = format!("{}{}", self.address, self.root);
        let output = self.shell.command(arguments).env("TYR_DATA", data).output();
        String::from_utf8(succeeded(output.expect("it starts"))).expect("answers are UTF-8")
    }

    /// The same as JSON lines.
    pub fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let text = self.text(&[arguments, &["--json"]].concat());
        text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
    }

    /// Exit code and kind of the error that somebody gets.
    pub fn refused(&self, user: &str, arguments: &[&str]) -> (i32, String) {
        let data = format!("{}{user}", self.address);
        let mut command = self.shell.command(arguments);
        let output = command.args(["--json", "--data", &data]).output().expect("it starts");
        let (code, kind, _) = refusal(&output);
        (code, kind)
    }
}

#[test]
fn data_commands_do_over_a_cluster_what_they_do_in_a_directory() {
    let cluster = Cluster::form(3, false);
    cluster.text(&["keyspace", "create", "notes", "--chunk-size", "4KiB"]);
    assert!(cluster.text(&["keyspace", "list"]).contains("notes"));
    cluster.text(&["put", "notes", "a", "--value", "hello"]);
    assert_eq!(cluster.text(&["append", "notes", "a", "--value", " world"]).trim(), "5");
    assert_eq!(cluster.text(&["get", "notes", "a"]), "hello world");
    cluster.text(&["write", "notes", "a", "0", "--value", "HELLO"]);
    assert_eq!(cluster.text(&["get", "notes", "a", "--offset", "3", "--len", "4"]), "LO w");
    assert_eq!(cluster.text(&["apply", "notes", "n", "0", "add", "u64", "41"]).trim(), "41");
    assert_eq!(cluster.json(&["stat", "notes", "a"])[0]["size"], 11);
    let inspected = cluster.text(&["inspect"]);
    assert!(inspected.contains("notes") && inspected.contains("19 B"), "{inspected}");
    assert!(inspected.contains("tyr status") && !inspected.contains("folds"), "{inspected}");
    assert!(cluster.json(&["inspect"])[0].get("statistics").is_none());
    cluster.text(&["cas", "notes", "a", "0", "HELLO", "hello"]);
    assert_eq!(cluster.refused("", &["cas", "notes", "a", "0", "HELLO", "x"]).1, "Conflict");
    let script = cluster.shell.path("script");
    std::fs::write(&script, "append notes a x\n\ncompare notes a 0 HELLO\n").unwrap();
    let refused = cluster.shell.run(["txn", script.to_str().unwrap(), "--data", &cluster.address]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("line 3: keyspace notes blob \"a\": "), "{text}");
    std::fs::write(&script, "append notes a \"!\"\napply notes n 0 add u64 1\n").unwrap();
    cluster.text(&["txn", script.to_str().unwrap()]);
    assert_eq!(cluster.text(&["cat", "notes", "a"]), "hello world!");
    cluster.text(&["cp", "notes", "a", "notes", "b"]);
    cluster.text(&["cp", "notes", "a", "notes", "b", "--from", "6", "--len", "2", "--to", "0"]);
    assert_eq!(cluster.text(&["get", "notes", "b"]), "wollo world!");
    cluster.text(&["rm", "notes", "b"]);
    cluster.text(&["truncate", "notes", "a", "5"]);
    cluster.text(&["rm", "notes", "n"]);
    assert_eq!(cluster.refused("", &["get", "notes", "n"]), (3, "NotFound".to_owned()));
    assert_eq!(cluster.refused("", &["check"]), (2, "Usage".to_owned()));
    cluster.text(&["keyspace", "drop", "notes"]);
    assert_eq!(cluster.refused("", &["get", "notes", "a"]).1, "NotFound");
}

#[test]
fn a_watch_shows_which_keys_change_and_a_guarded_keyspace_says_that_it_is() {
    let cluster = Cluster::form(1, false);
    cluster.text(&["keyspace", "create", "notes", "--guarded"]);
    assert!(cluster.text(&["keyspace", "show", "notes"]).contains("guarded            by leases"));
    let mut watching =
        cluster.shell.command(["watch", "notes", "--prefix", "a/", "-n", "3", "--json"]);
    watching.args(["--data", &cluster.address]).stdout(std::process::Stdio::piped());
    let mut watching = watching.spawn().expect("it starts");
    let lines = std::io::BufReader::new(watching.stdout.take().expect("it is piped"));
    let mut lines = std::io::BufRead::lines(lines).map(|line| line.expect("it is text"));
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap()).unwrap() };
    assert_eq!(next()["anew"], true);
    cluster.text(&["put", "notes", "b", "--value", "of no interest"]);
    cluster.text(&["put", "notes", "a/1", "--value", "one"]);
    assert_eq!(next()["key"], "a/1");
    cluster.text(&["rm", "notes", "a/1"]);
    assert_eq!(next()["key"], "a/1");
    assert!(watching.wait().expect("it ends after three lines").success());
    assert_eq!(cluster.refused("", &["watch", "nothing"]).1, "NotFound");
    let directory = Shell::new();
    let refused = refusal(&directory.run(["watch", "ks", "--json"]));
    assert_eq!(refused.0, 2);
    assert!(refused.2.contains("a cluster"), "{}", refused.2);
}

#[test]
fn a_notice_is_shown_by_who_watches_and_acknowledged_then() {
    let cluster = Cluster::form(1, false);
    cluster.text(&["keyspace", "create", "notes"]);
    let mut watching = cluster.shell.command(["watch", "notes", "-n", "2", "--reply", "got it"]);
    watching.args(["--data", &cluster.address, "--json"]).stdout(std::process::Stdio::piped());
    let mut watching = watching.spawn().expect("it starts");
    let lines = std::io::BufReader::new(watching.stdout.take().expect("it is piped"));
    let mut lines = std::io::BufRead::lines(lines).map(|line| line.expect("it is text"));
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap()).unwrap() };
    assert_eq!(next()["anew"], true);
    let shown = cluster.text(&["notify", "notes", "limits", "read it again", "--timeout", "30"]);
    assert!(shown.starts_with("acknowledged  ") && shown.ends_with("  got it\n"), "{shown}");
    let notice = next();
    assert_eq!((&notice["key"], &notice["notice"]), (&"limits".into(), &"read it again".into()));
    assert!(watching.wait().expect("it ends after two lines").success());
    assert_eq!(cluster.refused("", &["notify", "nothing", "limits"]).1, "NotFound");
    let refused = refusal(&Shell::new().run(["notify", "ks", "key", "--json"]));
    assert_eq!(refused.0, 2);
    assert!(refused.2.contains("a cluster"), "{}", refused.2);
}

#[test]
fn a_lock_is_held_by_one_process_of_a_cluster_while_its_command_runs() {
    let cluster = Cluster::form(3, false);
    cluster.text(&["keyspace", "create", "jobs"]);
    let held = ["lock", "jobs", "nightly", "--data", &cluster.address, "--", "cat"];
    let mut holder = cluster.shell.start(held);
    // It ends when its standard input does.
    let input = holder.stdin.take();
    let show = ["lock", "jobs", "nightly", "--data", &cluster.address];
    let shown = loop {
        let shown = cluster.shell.run(show);
        if shown.status.success() {
            break String::from_utf8(shown.stdout).unwrap();
        }
    };
    assert!(shown.starts_with("1\tprocess "), "{shown}");
    let other = ["lock", "jobs", "nightly", "--data", &cluster.address, "--json"];
    let refused = cluster.shell.run(other.iter().chain(&["--no-wait", "--", "true"]));
    assert_eq!((refusal(&refused).0, refusal(&refused).1), (5, "Conflict".to_owned()));
    drop(input);
    assert!(holder.wait().unwrap().success());
    cluster.shell.ok(other.iter().chain(&["--", "true"]));
    assert_eq!(cluster.text(&["lock", "jobs", "nightly"]), "2\tfree\n");
}

#[test]
fn a_file_of_any_length_is_written_to_a_cluster_in_one_transaction() {
    let cluster = Cluster::form(3, false);
    cluster.text(&["keyspace", "create", "notes"]);
    let content = noise((17 << 20) + 3, 1);
    let file = cluster.shell.path("long");
    std::fs::write(&file, &content).unwrap();
    let file = file.to_str().unwrap();
    let put = cluster.json(&["put", "notes", "long", file]);
    assert_eq!(put[0]["size"], content.len());
    assert_eq!(cluster.text(&["append", "notes", "long", file]), "17825795\n");
    let written = cluster.json(&["write", "notes", "long", "1", file]);
    assert_eq!(written[0]["len"], content.len());
    let out = cluster.shell.path("out");
    cluster.text(&["get", "notes", "long", "--output", out.to_str().unwrap()]);
    let expected = [&content[..1], &content, &content[1..]].concat();
    assert!(std::fs::read(out).unwrap() == expected, "it comes back otherwise");
}

#[test]
fn users_may_do_what_they_were_granted_and_lose_it_again() {
    let cluster = Cluster::form(1, true);
    cluster.text(&["keyspace", "create", "photos", "--replication", "1"]);
    cluster.text(&["put", "photos", "tree", "--value", "green"]);
    let key = cluster.text(&["user", "add", "alice"]);
    let file = cluster.shell.path("alice.key");
    std::fs::write(&file, &key).unwrap();
    let alice = format!("/?user=alice&key_file={}", file.display());
    let denied = (10, "PermissionDenied".to_owned());
    assert_eq!(cluster.refused("", &["get", "photos", "tree"]), denied);
    assert_eq!(cluster.refused(&alice, &["get", "photos", "tree"]), denied);
    cluster.text(&["user", "grant", "alice", "photos", "read"]);
    let data = format!("{}{alice}", cluster.address);
    until("the right counts", || {
        let mut command = cluster.shell.command(["get", "photos", "tree", "--data", &data]);
        command.output().unwrap().stdout == b"green"
    });
    assert_eq!(cluster.refused(&alice, &["put", "photos", "tree", "--value", "x"]), denied);
    assert_eq!(cluster.refused(&alice, &["user", "add", "bob"]), denied);
    assert_eq!(cluster.refused(&alice, &["user", "list"]), denied);
    assert_eq!(cluster.refused(&alice, &["keyspace", "create", "mine"]), denied);
    let listed = cluster.json(&["user", "list"]);
    assert_eq!(
        (&listed[0]["user"], &listed[0]["rights"]["photos"]),
        (&"alice".into(), &"read".into())
    );
    assert_eq!(cluster.refused(&cluster.root, &["user", "add", "alice"]).1, "AlreadyExists");
    cluster.text(&["user", "key", "alice", "--replace"]);
    until("the old key ends", || cluster.refused(&alice, &["get", "photos", "tree"]) == denied);
    cluster.text(&["user", "revoke", "alice", "photos"]);
    cluster.text(&["user", "remove", "alice"]);
    assert_eq!(cluster.refused(&cluster.root, &["user", "remove", "alice"]).1, "NotFound");
    let audit = std::fs::read_to_string(cluster.shell.path("audit.log")).unwrap();
    let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let has = |user: &str, what: &str| {
        let is_it = |line: &Value| {
            line["user"] == user && line["what"].as_str().is_some_and(|it| it.contains(what))
        };
        lines.iter().any(is_it)
    };
    for act in ["made", "gets read on keyspace photos", "its keys are replaced", "removed"] {
        assert!(has("root", &format!("user alice: {act}")), "{act} in {audit}");
    }
    assert!(has("root", "user alice: loses read on keyspace photos"), "{audit}");
    assert!(has("alice", "user bob: made"), "what was not allowed is there too: {audit}");
    let refused = lines.iter().filter(|line| line["message"] == "a control connection was refused");
    let named = |line: &&Value| {
        line["user"] == "alice" && line["from"].as_str().unwrap().starts_with("127.0.0.1:")
    };
    assert!(refused.filter(named).count() > 0, "her old key: {audit}");
    assert!(!audit.contains(key.trim()), "no key is in it");
}

#[test]
fn usage_tells_how_much_there_is_and_how_full_the_disks_are() {
    let cluster = Cluster::form(3, false);
    cluster.text(&["keyspace", "create", "photos"]);
    cluster.text(&["put", "photos", "tree", "--value", "green"]);
    cluster.text(&["keyspace", "quota", "photos", "--bytes", "1KiB"]);
    let shown = || cluster.json(&["usage", "photos"]).remove(0);
    until("all is counted", || {
        let shown = shown();
        shown["counted_ago_s"].is_number() && shown["bytes_max"] == 1024
    });
    assert_eq!((&shown()["blobs"], &shown()["bytes"]), (&1.into(), &5.into()));
    let text = cluster.text(&["usage"]);
    assert!(text.contains("photos        1  5 B of 1.0 KiB") && text.contains("\nall "), "{text}");
    let all = cluster.json(&["usage"]).remove(0);
    assert_eq!(all["nodes"].as_array().unwrap().len(), 3);
    assert!(all["disk"]["taken_bytes"].as_u64().unwrap() > 0, "{all}");
    assert_eq!(cluster.refused("", &["usage", "nothing"]), (3, "NotFound".to_owned()));
}

#[test]
fn a_quota_is_set_shown_kept_and_taken_away() {
    let cluster = Cluster::form(1, false);
    cluster.text(&["keyspace", "create", "photos", "--replication", "1"]);
    cluster.text(&["put", "photos", "tree", "--value", "0123456789"]);
    assert!(cluster.text(&["keyspace", "quota", "photos"]).contains("no quota"));
    cluster.text(&["keyspace", "quota", "photos", "--bytes", "12", "--blobs", "9"]);
    cluster.text(&["keyspace", "quota", "photos", "--blobs", "none"]);
    let shown = || cluster.json(&["keyspace", "quota", "photos"]).remove(0);
    until("what is used is counted", || shown()["used"]["bytes"] == 10);
    assert_eq!(shown()["quota"]["bytes"], 12);
    assert_eq!(shown()["quota"]["blobs"], Value::Null);
    let exceeded = (11, "QuotaExceeded".to_owned());
    assert_eq!(cluster.refused("", &["append", "photos", "tree", "--value", "abc"]), exceeded);
    cluster.text(&["append", "photos", "tree", "--value", "ab"]);
    assert!(cluster.text(&["status"]).contains("keyspace photos: its quota is nearly used up"));
    let (_, metrics) = get(cluster.nodes.http[0], "/metrics");
    for line in
        ["tyr_refusals_total{reason=\"quota\"} 1", "tyr_quota_bytes{keyspace=\"photos\"} 12.0"]
    {
        assert!(metrics.lines().any(|it| it == line), "{line} in {metrics}");
    }
    cluster.text(&["keyspace", "quota", "photos", "--bytes", "none"]);
    until("the limit is gone", || {
        let data = &cluster.address;
        let append = ["append", "photos", "tree", "--value", "c", "--data", data];
        cluster.shell.command(append).output().unwrap().status.success()
    });
    assert_eq!(cluster.refused("", &["keyspace", "quota", "nothing"]).1, "NotFound");
    let directory = cluster.shell.command(["keyspace", "quota", "photos", "--json"]).output();
    let (code, kind, message) = refusal(&directory.unwrap());
    assert_eq!((code, &*kind), (2, "Usage"));
    assert!(message.contains("only keyspaces of clusters have quotas"), "{message}");
}
