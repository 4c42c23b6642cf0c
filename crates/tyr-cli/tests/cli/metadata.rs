//! Service metadata and locations, over a directory and a cluster.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::cluster::Cluster;
use crate::nodes::until;
use crate::shell::Shell;

#[test]
fn a_directory_keeps_service_metadata_by_revisions() {
    let shell = Shell::new();
    let first = shell.text(["meta", "put", "service/leader", "--value", "alice", "--if-absent"]);
    assert_eq!(first.trim(), "1");
    let late = shell.refused(["meta", "put", "service/leader", "--value", "bob", "--if-absent"]);
    assert_eq!((late.0, late.1.as_str()), (5, "Conflict"));
    assert_eq!(shell.ok(["meta", "get", "service/leader"]), b"alice");
    shell.ok_fed(["meta", "put", "service/config"], b"a = 1\n");
    let put = ["meta", "put", "service/leader", "--value", "bob", "--if-revision"];
    assert_eq!(shell.refused([&put[..], &["2"]].concat()).0, 5);
    assert_eq!(shell.text([&put[..], &["1"]].concat()).trim(), "3");
    let listed = shell.json(["meta", "list", "service/"]);
    let keys: Vec<_> = listed.iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(keys, ["service/config", "service/leader"]);
    assert_eq!((&listed[1]["created"], &listed[1]["changed"]), (&1.into(), &3.into()));
    assert_eq!(listed[0]["base64"], "YSA9IDEK");
    shell.ok(["meta", "delete", "service/leader", "--if-revision", "3"]);
    let gone = shell.refused(["meta", "get", "service/leader"]);
    assert_eq!((gone.0, gone.1.as_str()), (3, "NotFound"));
    assert!(gone.2.contains("service/leader"), "{}", gone.2);
    let wrong = shell.refused(["meta", "put", "/service", "--value", "x"]);
    assert_eq!((wrong.0, wrong.1.as_str()), (9, "InvalidArgument"));
    let alone = shell.refused(["meta", "watch"]);
    assert_eq!((alone.0, alone.1.as_str()), (2, "Usage"));
    shell.assert_clean();
}

#[test]
fn a_directory_is_one_place() {
    let shell = Shell::new();
    shell.ok(["put", "ks", "a", "--value", "hello"]);
    let located = shell.json(["locations", "ks", "a", "--offset", "1"]);
    assert_eq!((&located[0]["offset"], &located[0]["bytes"]), (&1.into(), &4.into()));
    assert_eq!(located[0]["replicas"], Value::Array(Vec::new()));
    assert_eq!(shell.refused(["locations", "ks", "b"]).0, 3);
}

#[test]
fn usage_of_a_directory_is_exact_at_once() {
    let shell = Shell::new();
    shell.ok(["put", "ks", "a", "--value", "hello"]);
    shell.ok(["put", "ks", "b", "--value", "hi"]);
    let usage = shell.json(["usage"]).remove(0);
    let ks = usage["keyspaces"].as_array().unwrap().iter().find(|it| it["name"] == "ks").unwrap();
    assert_eq!((&ks["blobs"], &ks["bytes"]), (&2.into(), &7.into()));
    assert!(usage["nodes"][0]["disk"]["taken_bytes"].as_u64().unwrap() > 0, "{usage}");
    shell.ok(["rm", "ks", "a"]);
    assert_eq!(shell.json(["usage", "ks"])[0]["bytes"], 2);
    assert!(!shell.text(["usage"]).contains("counted"), "there is nothing to wait for");
    assert_eq!(shell.refused(["usage", "other"]).0, 3);
}

#[test]
fn stretches_are_what_is_written_and_stat_tells_how_much() {
    let shell = Shell::new();
    shell.ok(["put", "ks", "a", "--value", "hello"]);
    shell.ok(["truncate", "ks", "a", "1MiB"]);
    shell.ok(["append", "ks", "a", "--value", "end"]);
    let told = shell.json(["stretches", "ks", "a"]);
    let told: Vec<_> = told.iter().map(|it| (&it["offset"], &it["bytes"])).collect();
    assert_eq!(told, [(&0.into(), &5.into()), (&(1 << 20).into(), &3.into())]);
    let part = shell.json(["stretches", "ks", "a", "--offset", "3", "--len", "1KiB"]);
    assert_eq!((&part[0]["offset"], &part[0]["bytes"]), (&3.into(), &2.into()));
    let stat = &shell.json(["stat", "ks", "a"])[0];
    assert_eq!((&stat["size"], &stat["allocated"]), (&((1 << 20) + 3).into(), &8.into()));
    assert_eq!(shell.refused(["stretches", "ks", "b"]).0, 3);
}

#[test]
fn a_cluster_tells_who_watches_and_where_chunks_lie() {
    let cluster = Cluster::form(3, false);
    cluster.text(&["meta", "put", "service/a", "--value", "1"]);
    let watch = ["meta", "watch", "service/", "--after", "0", "--data", &cluster.address];
    let mut watching = cluster.shell.start(watch);
    let mut told = BufReader::new(watching.stdout.take().unwrap()).lines();
    assert!(told.next().unwrap().unwrap().ends_with("put     service/a"));
    cluster.text(&["meta", "put", "other/a", "--value", "1"]);
    cluster.text(&["meta", "delete", "service/a"]);
    assert!(told.next().unwrap().unwrap().ends_with("delete  service/a"));
    watching.kill().unwrap();
    watching.wait().unwrap();

    cluster.text(&["keyspace", "create", "notes", "--chunk-size", "4KiB", "--replication", "2"]);
    cluster.text(&["truncate", "notes", "a", "10000"]);
    let located = cluster.json(&["locations", "notes", "a"]);
    assert_eq!(located.len(), 3);
    for location in &located {
        assert_eq!(location["replicas"].as_array().unwrap().len(), 2, "{location}");
    }
    assert!(cluster.json(&["stretches", "notes", "a"]).is_empty());
    cluster.text(&["append", "notes", "a", "--value", "12345"]);
    cluster.text(&["write", "notes", "a", "4090", "--value", "0123456789"]);
    let told = cluster.json(&["stretches", "notes", "a"]);
    let told: Vec<_> = told.iter().map(|it| (&it["offset"], &it["bytes"])).collect();
    assert_eq!(told, [(&4090.into(), &10.into()), (&10_000.into(), &5.into())]);
    assert_eq!(cluster.json(&["stat", "notes", "a"])[0]["allocated"], 15);
    let text = cluster.text(&["locations", "notes", "a", "--offset", "8192"]);
    assert!(text.contains("@127.0.0.1:"), "{text}");
}

#[test]
fn the_cluster_log_tells_what_happened_and_goes_on() {
    let cluster = Cluster::form(3, false);
    cluster.text(&["keyspace", "create", "notes"]);
    let told = cluster.json(&["events"]);
    let last = told.last().unwrap();
    assert_eq!(last["event"], "keyspace notes was created");
    assert!(last["time_us"].as_u64().unwrap() > 1_700_000_000_000_000);
    let follow = ["events", "--follow", "--limit", "1", "--data", &cluster.address];
    let mut following = cluster.shell.start(follow);
    let mut told = BufReader::new(following.stdout.take().unwrap()).lines();
    assert!(told.next().unwrap().unwrap().ends_with("keyspace notes was created"));
    cluster.text(&["keyspace", "drop", "notes"]);
    assert!(told.next().unwrap().unwrap().ends_with("keyspace notes was dropped"));
    cluster.text(&["keyspace", "create", "photos"]);
    assert!(told.next().unwrap().unwrap().ends_with("keyspace photos was created"));
    cluster.text(&["keyspace", "quota", "photos", "--bytes", "12", "--operations", "3"]);
    let quota = "quota of keyspace photos: 12 bytes, 3 operations a second";
    assert!(told.next().unwrap().unwrap().ends_with(quota));
    following.kill().unwrap();
    following.wait().unwrap();
    let last = cluster.json(&["events", "-n", "1"]).remove(0);
    assert_eq!((&last["of"], &last["event"]), (&"user".into(), &quota.into()));
    let shell = Shell::new();
    assert_eq!(shell.refused(["events"]).1, "Usage");
}

#[test]
fn a_key_is_there_while_its_command_runs_and_goes_when_its_process_stands_still() {
    let cluster = Cluster::form(3, false);
    let put = |key: &'static str, program: [&'static str; 2]| {
        let put = ["meta", "put", key, "--value", "x", "--ttl", "1", "--json", "--data"];
        [&put[..], &[cluster.address.as_str(), "--"], &program].concat().join(" ")
    };
    let start = |line: &str| cluster.shell.start(line.split(' ').map(str::to_owned));
    let listed = || cluster.json(&["meta", "list", "service/"]).len();
    let mut running = start(&put("service/a", ["sleep", "600"]));
    until("the key is there", || listed() == 1);
    let pid = rustix::process::Pid::from_child(&running);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    until("the key is gone", || listed() == 0);
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(6), "it is told that it lost the key");
    let ended = start(&put("service/b", ["sleep", "0"])).wait().unwrap();
    assert!(ended.success() && listed() == 0);
    let shell = Shell::new();
    let seen = ["meta", "put", "service/c", "--value", "x", "--", "sh", "-c", "exit 7"];
    assert_eq!(shell.run(seen).status.code(), Some(7));
    assert!(shell.json(["meta", "list"]).is_empty());
    assert_eq!(shell.refused(["meta", "put", "a", "--value", "x", "--ttl", "5"]).1, "Usage");
}

#[test]
fn the_cluster_log_names_who_did_it() {
    let cluster = Cluster::form(1, true);
    cluster.text(&["keyspace", "create", "photos", "--replication", "1"]);
    cluster.text(&["user", "add", "alice"]);
    cluster.text(&["user", "grant", "alice", "photos", "write"]);
    let told = cluster.json(&["events", "-n", "3"]);
    let told: Vec<_> = told.iter().map(|it| (&it["of"], &it["by"], &it["event"])).collect();
    let root = &"root".into();
    assert_eq!(told[0], (&"map".into(), root, &"keyspace photos was created".into()));
    assert_eq!(told[1], (&"user".into(), root, &"user alice: made".into()));
    assert_eq!(
        told[2],
        (&"user".into(), root, &"user alice: gets write on keyspace photos".into())
    );
    assert!(cluster.text(&["events"]).contains("user alice: made (by root)"));
}
