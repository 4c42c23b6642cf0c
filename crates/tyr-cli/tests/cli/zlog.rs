//! `tyr zlog`: a log in the design of CORFU from a shell.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};

use serde_json::Value;

use crate::nodes::Nodes;
use crate::shell::{Shell, lines};

/// A log of objects so small that it goes on in others all the time.
fn made() -> Shell {
    let shell = Shell::empty();
    let create = ["zlog", "create", "orders", "--width", "2", "--slots", "4"];
    shell.ok(create.into_iter().chain(["--durability", "buffered"]));
    shell
}

/// Positions and texts.
fn entries(shell: &Shell, store: &[&str]) -> BTreeMap<u64, String> {
    let read = shell.json(store.iter().chain(&["zlog", "read", "orders"]));
    let pair = |it: &Value| Some((it["position"].as_u64()?, it["text"].as_str()?.to_owned()));
    read.iter().map(|it| pair(it).expect("an entry is text")).collect()
}

#[test]
fn what_is_appended_is_read_by_position_trimmed_and_deleted() {
    let shell = made();
    let input: String = (0..20).map(|n| format!("{n}\n")).collect();
    let told = shell.ok_fed(["zlog", "append", "orders"], input.as_bytes());
    assert_eq!(String::from_utf8(told).unwrap(), "20 entries from 0\n");
    assert_eq!(shell.ok_fed(["zlog", "append", "orders"], b""), b"0 entries\n");
    let told = shell.text(["zlog", "append", "orders", "--value", "a\nb", "--whole"]);
    assert_eq!(told, "1 entry from 20\n");
    assert_eq!(shell.text(["zlog", "read", "orders"]), format!("{input}a\nb\n"));
    assert_eq!(
        shell.text(["zlog", "read", "orders", "--from", "8", "-n", "2", "-l"]),
        "8  8\n9  9\n"
    );
    assert_eq!(shell.text(["zlog", "read", "orders", "--from", "18", "--to", "20"]), "18\n19\n");
    assert_eq!(shell.text(["zlog", "tail", "orders", "-n", "2"]), "19\na\nb\n");

    shell.ok(["zlog", "fill", "orders", "22"]);
    assert_eq!(shell.refused(["zlog", "fill", "orders", "20"]).0, 4);
    shell.ok(["zlog", "trim", "orders", "--position", "19"]);
    let told = shell.text(["zlog", "trim", "orders", "--before", "17"]);
    assert_eq!(told, "2 stripes gone, the log begins at 17\n");
    assert_eq!(shell.text(["zlog", "read", "orders", "-l", "-n", "2"]), "17  17\n18  18\n");
    for n in [21, 23] {
        let told = shell.text(["zlog", "append", "orders", "--value", "more"]);
        assert_eq!(told, format!("1 entry from {n}\n"), "22 is filled");
    }
    // Each that appended left its counter, so nothing was ever recovered.
    let status = &shell.json(["zlog", "status", "orders"])[0];
    assert_eq!(
        (&status["begin"], &status["tail"], &status["term"]),
        (&17.into(), &24.into(), &0.into())
    );
    assert!(shell.text(["zlog", "status", "orders"]).contains("positions 17 to before 24"));
    assert_eq!(shell.text(["zlog", "status"]), "orders\n");
    assert_eq!(shell.refused(["zlog", "create", "orders"]).0, 4);
    shell.ok(["zlog", "delete", "orders"]);
    let (code, _, text) = shell.refused(["zlog", "read", "orders"]);
    assert_eq!(code, 3);
    assert!(text.contains("there is no log orders in keyspace zlogs"), "{text}");
    shell.assert_clean();
}

/// What a program says that it has appended, until it is killed.
fn append_and_die(shell: &Shell, store: &[&str], round: usize) -> BTreeMap<u64, String> {
    let mut child = shell.start(store.iter().chain(&["zlog", "append", "orders", "--json"]));
    let mut input = child.stdin.take().expect("it was piped");
    let told = BufReader::new(child.stdout.take().expect("it was piped"));
    let feeding = std::thread::spawn(move || {
        // It ends when the child is killed, which breaks the pipe.
        let mut count = 0;
        while input.write_all(format!("{round} {count}\n").as_bytes()).is_ok() {
            count += 1;
        }
    });
    let mut acknowledged = BTreeMap::new();
    for (n, line) in told.lines().take(9 + 4 * round).enumerate() {
        let told = &lines(line.expect("it is text").as_bytes())[0];
        let position = told["position"].as_u64().expect("it has a position");
        acknowledged.insert(position, format!("{round} {n}"));
    }
    child.kill().expect("it runs");
    child.wait().expect("it was not waited for");
    feeding.join().expect("it only writes");
    acknowledged
}

fn check_kills(shell: &Shell, store: &[&str], rounds: usize) {
    let mut acknowledged = BTreeMap::new();
    for round in 0..rounds {
        acknowledged.extend(append_and_die(shell, store, round));
        let found = entries(shell, store);
        for (position, text) in &acknowledged {
            assert_eq!(found.get(position), Some(text), "position {position}");
        }
    }
    let status = &shell.json(store.iter().chain(&["zlog", "status", "orders"]))[0];
    assert_eq!(status["term"].as_u64().map(|term| term > 0), Some(rounds > 1), "{status}");
}

#[test]
fn who_is_killed_while_it_appends_leaves_each_entry_where_it_said() {
    let shell = Shell::empty();
    shell.ok(["zlog", "create", "orders", "--width", "2", "--slots", "4"]);
    check_kills(&shell, &[], 3);
    shell.assert_clean();
}

#[test]
fn who_is_killed_with_the_sequencer_of_a_cluster_is_followed_by_the_next() {
    let shell = Shell::empty();
    let nodes = Nodes::form(&shell, 3, &["--insecure"]);
    let address = format!("tyr://{}", nodes.listen[0]);
    let store = ["--data", &*address];
    shell.ok(store.iter().chain(&["zlog", "create", "orders", "--width", "2", "--slots", "4"]));
    // The second one waits for the lease of the first, and recovers the log.
    check_kills(&shell, &store, 2);
}
