//! `tyr log`: the shared log from a shell.

use std::io::{BufRead, BufReader, Write};

use crate::nodes::Nodes;
use crate::shell::{Shell, lines, succeeded};

/// A log with segments so small that it goes on in others all the time.
fn made() -> Shell {
    let shell = Shell::empty();
    shell.ok(["log", "create", "orders", "--segment-size", "1KiB", "--durability", "buffered"]);
    shell
}

fn numbered(count: usize) -> String {
    (0..count).map(|n| format!("{n:050}\n")).collect()
}

#[test]
fn lines_are_appended_and_read_in_order() {
    let shell = made();
    let input = numbered(100);
    let told = shell.ok_fed(["log", "append", "orders"], input.as_bytes());
    assert_eq!(String::from_utf8(told).unwrap(), "100 entries from 0:0:64\n");
    let told = shell.text(["log", "append", "orders", "--value", "one\ntwo"]);
    assert!(told.starts_with("2 entries from 0:1:"), "{told}");
    let told = shell.text(["log", "append", "orders", "--value", "a\nb", "--whole"]);
    assert!(told.starts_with("1 entry from 0:1:"), "{told}");
    assert_eq!(shell.ok_fed(["log", "append", "orders"], b""), b"0 entries\n");
    assert_eq!(shell.text(["log", "read", "orders"]), format!("{input}one\ntwo\na\nb\n"));
    let long = shell.text(["log", "read", "orders", "-l", "-n", "1"]);
    assert!(long.contains("Z  0:0:64  0000"), "{long}");

    let entries = shell.json(["log", "read", "orders"]);
    assert_eq!(entries.len(), 103);
    assert_eq!(entries[102]["text"], "a\nb");
    let position = |n: usize| entries[n]["position"].as_str().unwrap();
    let part = shell.json(["log", "read", "orders", "--from", position(40), "--to", position(50)]);
    assert_eq!(part, entries[40..50]);
    assert_eq!(shell.json(["log", "tail", "orders", "-n", "5"]), entries[98..]);
    assert_eq!(shell.json(["log", "read", "orders", "--from", "time:now"]), entries[103..]);
    assert_eq!(shell.json(["log", "read", "orders", "--from", "time:-1h"]), entries);
}

#[test]
fn bytes_that_are_no_text_are_base64_in_json_and_themselves_else() {
    let shell = made();
    shell.ok_fed(["log", "append", "orders", "--whole"], &[0, 255, b'\n']);
    assert_eq!(shell.json(["log", "read", "orders"])[0]["base64"], "AP8K");
    assert_eq!(shell.ok(["log", "read", "orders"]), [0, 255, b'\n', b'\n']);
}

#[test]
fn consumers_of_a_group_share_what_is_there_and_a_group_is_moved_and_deleted() {
    let shell = made();
    shell.ok_fed(["log", "append", "orders"], numbered(30).as_bytes());
    let read = |limit: &str| shell.json(["log", "read", "orders", "--group", "g", "-n", limit]);
    let (first, second, rest) = (read("10"), read("10"), read("99"));
    assert_eq!((first.len(), second.len(), rest.len()), (10, 10, 10));
    assert_eq!([first, second, rest].concat(), shell.json(["log", "read", "orders"]));
    let groups = &shell.json(["log", "groups", "orders"])[0];
    assert_eq!((&groups["group"], &groups["behind_bytes"]), (&"g".into(), &0.into()));
    shell.ok(["log", "groups", "orders", "--seek", "g", "--to", "oldest"]);
    assert_eq!(read("99").len(), 30);
    assert!(shell.text(["log", "groups", "orders"]).contains("g      0:"));
    shell.ok(["log", "groups", "orders", "--delete", "g"]);
    assert!(shell.json(["log", "groups", "orders"]).is_empty());
    assert_eq!(shell.refused(["log", "groups", "orders", "--delete", "g"]).0, 3);
}

#[test]
fn a_log_is_trimmed_sealed_and_deleted() {
    let shell = made();
    for _ in 0..5 {
        shell.ok_fed(["log", "append", "orders"], numbered(30).as_bytes());
    }
    let entries = shell.json(["log", "read", "orders"]);
    let at = entries[75]["position"].as_str().unwrap();
    let trimmed = &shell.json(["log", "trim", "orders", "--before", at])[0];
    assert_eq!((&trimmed["segments"], &trimmed["begin"][0]), (&2.into(), &at.into()), "{trimmed}");
    assert_eq!(shell.json(["log", "read", "orders"]), entries[75..]);
    let gone = entries[0]["position"].as_str().unwrap();
    let (code, kind, text) = shell.refused(["log", "read", "orders", "--from", gone]);
    assert_eq!((code, kind.as_str()), (3, "NotFound"));
    assert!(text.contains(&format!("the partition begins at {at}")), "{text}");
    shell.ok(["log", "trim", "orders"]);
    let kept = |words: &[&str]| {
        shell.json(["log", "retention", "orders"].iter().chain(words))[0]["retain_bytes"].clone()
    };
    assert_eq!(kept(&["--retain-for", "7d"]), serde_json::Value::Null);
    assert_eq!(kept(&["--retain", "1KiB"]), 1024);
    assert!(shell.text(["log", "status", "orders"]).contains("kept for 7d; kept: the newest 1.0"));
    assert_eq!(kept(&["--retain-for", "off"]), 1024, "what is not said stays");
    shell.ok(["log", "trim", "orders"]);
    assert!(shell.json(["log", "read", "orders"]).len() < entries.len() - 75);
    assert_eq!(kept(&["--retain", "off"]), serde_json::Value::Null);
    assert_eq!(shell.refused(["log", "retention", "orders"]).0, 2, "something is to be said");
    let at = shell.json(["log", "status", "orders"])[0]["partitions"][0]["begin"].clone();

    shell.ok(["log", "seal", "orders"]);
    let (code, _, text) = shell.refused(["log", "append", "orders", "--value", "late"]);
    assert_eq!(code, 9);
    assert!(text.contains("log orders is sealed"), "{text}");
    let status = &shell.json(["log", "status", "orders"])[0];
    assert_eq!((&status["sealed"], &status["partitions"][0]["begin"]), (&true.into(), &at));
    assert!(shell.text(["log", "status", "orders"]).contains("sealed; segments of 1.0 KiB"));
    assert_eq!(shell.text(["log", "status"]), "orders\n");
    shell.ok(["log", "delete", "orders"]);
    assert_eq!(shell.refused(["log", "read", "orders"]).0, 3);
    assert_eq!(shell.text(["log", "status"]), "");
    shell.assert_clean();
}

#[test]
fn a_strict_log_has_numbers_over_its_partitions() {
    let shell = Shell::empty();
    let create = ["log", "create", "ledger", "--strict", "--partitions", "3"];
    shell.ok(create.into_iter().chain(["--durability", "buffered", "--retain-for", "7d"]));
    for n in 0..6 {
        let told = shell.text(["log", "append", "ledger", "--value", &n.to_string()]);
        assert!(told.contains(&format!(", number {n}")), "{told}");
    }
    let from = shell.json(["log", "read", "ledger", "--from", "number:2"]);
    let numbers: Vec<_> = from.iter().map(|it| it["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [2, 3, 4, 5]);
    let status = shell.text(["log", "status", "ledger"]);
    assert!(status.contains("strict, numbers 0 to before 6"), "{status}");
    assert!(status.contains("kept for 7d"), "{status}");
    assert_eq!(shell.refused(["log", "read", "ledger", "--from", "number:7"]).0, 3);
    let same = |key| shell.json(["log", "append", "ledger", "--value", "x", "--key", key]);
    let lane = |it: Vec<serde_json::Value>| it[0]["position"].as_str().unwrap()[..1].to_owned();
    assert_eq!(lane(same("ann")), lane(same("ann")));
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let shell = made();
    for (arguments, code, part) in [
        (&["create", "orders"][..], 4, "there is a log orders"),
        (&["create", "a/b"], 9, "letters, digits"),
        (&["create", "big", "--segment-size", "1GiB"], 9, "lies in one chunk"),
        (&["create", "none", "--partitions", "0"], 9, "1 to 1024 partitions"),
        (&["read", "nothing"], 3, "there is no log nothing in keyspace logs"),
        (&["read", "orders", "--keyspace", "other"], 3, "no log orders in keyspace other"),
        (&["read", "orders", "--from", "0:0:70"], 3, "nothing has been written"),
        (&["read", "orders", "--from", "number:0"], 9, "not strict"),
        (&["append", "orders", "--value", "x", "--partition", "1"], 9, "partitions 0 to 0"),
        (&["delete", "nothing"], 3, "no log nothing"),
    ] {
        let (got, _, text) = shell.refused(["log"].iter().chain(arguments));
        assert_eq!(got, code, "{arguments:?}: {text}");
        assert!(text.contains(part), "{arguments:?}: {text}");
    }
    for arguments in [
        &["read", "orders", "--from", "soon"][..],
        &["create", "x", "--retain-for", "5w"],
        &["groups", "orders", "--seek", "g"],
        &["tail", "orders", "-f"],
    ] {
        let output = shell.run(["log"].iter().chain(arguments));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn who_is_killed_while_it_appends_leaves_whole_batches_in_order() {
    let shell = Shell::empty();
    shell.ok(["log", "create", "orders", "--segment-size", "1KiB"]);
    let mut acknowledged = 0;
    let mut expected = 0;
    for round in 0..4 {
        let mut child = shell.start(["log", "append", "orders", "--json"]);
        let mut input = child.stdin.take().expect("it was piped");
        let told = BufReader::new(child.stdout.take().expect("it was piped"));
        let feeding = std::thread::spawn(move || {
            // It ends when the child is killed, which breaks the pipe.
            let mut count = 0;
            while input.write_all(format!("{round} {count:0300}\n").as_bytes()).is_ok() {
                count += 1;
            }
        });
        for line in told.lines().take(20 + 7 * round) {
            let batch = &lines(line.expect("it is text").as_bytes())[0];
            acknowledged += batch["entries"].as_u64().expect("it has a count");
        }
        child.kill().expect("it runs");
        child.wait().expect("it was not waited for");
        feeding.join().expect("it only writes");
        let entries = shell.json(["log", "read", "orders"]);
        assert!(entries.len() as u64 >= acknowledged, "nothing acknowledged is lost");
        for (n, entry) in entries[expected..].iter().enumerate() {
            assert_eq!(entry["text"], format!("{round} {n:0300}"));
        }
        (expected, acknowledged) = (entries.len(), entries.len() as u64);
    }
    shell.assert_clean();
}

#[test]
fn a_log_of_a_cluster_is_followed_until_it_is_sealed() {
    let shell = Shell::empty();
    let nodes = Nodes::form(&shell, 3, &["--insecure"]);
    let address = format!("tyr://{}", nodes.listen[0]);
    let at = |arguments: &[&str]| {
        let store = ["--data", &address, "log"];
        let words: Vec<String> =
            store.iter().chain(arguments).map(|word| (*word).to_owned()).collect();
        words
    };
    let create = ["create", "orders", "--partitions", "2", "--segment-size", "1KiB"];
    shell.ok(at(&create));
    shell.ok_fed(at(&["append", "orders"]), numbered(20).as_bytes());
    let mut follower = shell.start(at(&["tail", "orders", "-n", "0", "-f"]));
    let told = BufReader::new(follower.stdout.take().expect("it was piped"));
    let mut told = told.lines();
    // Who follows from now on may begin after what comes first: it is told of what comes then.
    let mut first = 0;
    let follows = std::thread::spawn(move || told.next().map(|line| (line, told)));
    while !follows.is_finished() {
        shell.ok(at(&["append", "orders", "--value", &format!("first {first}")]));
        first += 1;
    }
    let (line, told) = follows.join().expect("it only reads").expect("there is a line");
    assert!(line.expect("it is text").starts_with("first "));
    for n in 0..10 {
        shell.ok(at(&["append", "orders", "--value", &format!("then {n}")]));
    }
    shell.ok(at(&["seal", "orders"]));
    let mut came: Vec<String> = told.map(|line| line.expect("it is text")).collect();
    came.retain(|line| line.starts_with("then "));
    came.sort();
    assert_eq!(came, (0..10).map(|n| format!("then {n}")).collect::<Vec<_>>());
    succeeded(follower.wait_with_output().expect("it ends with the log"));
}
