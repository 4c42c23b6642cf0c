//! The table of exit codes in docs/reference/cli.md, row by row.
//!
//! Codes 10 and 11 need a cluster with users and quotas, and are where those are tested; that no
//! two kinds share one, where the codes are.

use std::io::{Read, Write};
use std::process::Stdio;

use rustix::process::Signal;

use crate::nodes::Nodes;
use crate::shell::{Shell, noise, refusal, succeeded};

const PAGE: &str = include_str!("../../../../docs/reference/cli.md");

/// The row of the page about this code says this.
#[track_caller]
fn assert_row(code: i32, part: &str) {
    let begin = format!("| {code} | ");
    let row = PAGE.lines().find(|line| line.starts_with(&begin)).expect("the code has a row");
    assert!(row.contains(part), "{row}");
}

#[test]
fn what_an_embedded_store_and_its_files_refuse_has_the_code_that_the_page_says() {
    let shell = Shell::new();
    shell.ok(["put", "ks", "there", "--value", "x"]);
    let secret = shell.path("secret").display().to_string();
    shell.ok(["secret", &secret]);
    let folder = shell.data().display().to_string();
    let missing = "tyr://127.0.0.1:1/?user=ann&key_file=/no/key";
    for (code, kind, arguments) in [
        (3, "NotFound", &["get", "ks", "nix"][..]),
        (3, "NotFound", &["get", "nix", "there"]),
        (3, "NotFound", &["get", "ks", "there", "--data", "/no/such/store"]),
        (4, "AlreadyExists", &["create", "ks", "there"]),
        (4, "AlreadyExists", &["keyspace", "create", "ks"]),
        (4, "AlreadyExists", &["secret", &secret]),
        (5, "Conflict", &["cas", "ks", "there", "0", "y", "z"]),
        (6, "Unavailable", &["put", "ks", "there", "/no/such/file"]),
        (6, "Unavailable", &["put", "ks", "there", &folder]),
        (6, "Unavailable", &["write", "ks", "there", "0", "/no/such/file"]),
        (6, "Unavailable", &["append", "ks", "there", "/no/such/file"]),
        (6, "Unavailable", &["txn", "/no/such/file"]),
        (6, "Unavailable", &["secret", "/no/such/folder/secret"]),
        (6, "Unavailable", &["telemetry", "replay", "/no/such/file"]),
        (6, "Unavailable", &["get", "ks", "there", "--data", missing]),
        (6, "Unavailable", &["status", "--data", missing]),
        (9, "InvalidArgument", &["put", "ks", ""]),
        (2, "Usage", &["put", "ks", "there", "--no-such-flag"]),
    ] {
        let refused = shell.refused(arguments);
        assert_eq!((refused.0, &*refused.1), (code, kind), "{arguments:?}: {}", refused.2);
        assert_row(code, if code == 2 { "makes no sense" } else { kind });
    }
}

#[test]
fn a_checkpoint_of_a_later_release_is_no_damage() {
    let shell = Shell::new();
    let path = shell.data().join("checkpoint");
    let mut checkpoint = std::fs::read(&path).unwrap();
    checkpoint[4] = 99;
    std::fs::write(&path, &checkpoint).unwrap();
    for command in [&["ls", "ks"][..], &["put", "ks", "a", "--value", "x"], &["check"]] {
        let (code, kind, text) = shell.refused(command);
        assert_eq!((code, &*kind), (6, "Unavailable"), "{command:?}: {text}");
        assert!(text.contains("later release") && text.contains("checkpoint"), "{text}");
    }
    assert_row(6, "later release");
    checkpoint[4] = 1;
    std::fs::write(&path, &checkpoint).unwrap();
    shell.assert_clean();
}

#[test]
fn a_version_that_is_gone_has_a_code_of_its_own() {
    let shell = Shell::empty();
    let nodes = Nodes::form(&shell, 1, &["--insecure"]);
    let data = format!("tyr://{}/", nodes.listen[0]);
    let start = |arguments: &[&str]| {
        let mut command = shell.command(arguments);
        command.env("TYR_DATA", &data).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let done = |arguments: &[&str]| succeeded(start(arguments).wait_with_output().unwrap());
    done(&["keyspace", "create", "ks", "--single-version"]);
    let large = shell.path("large").display().to_string();
    std::fs::write(&large, noise(8 << 20, 1)).unwrap();
    done(&["put", "ks", "a", &large]);

    let mut get = start(&["get", "ks", "a"]);
    let mut output = get.stdout.take().unwrap();
    output.read_exact(&mut [0; 1000]).unwrap();
    // The pipe holds far less than the blob: the rest is read when this is there.
    done(&["put", "ks", "a", &large]);
    output.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(get.wait().unwrap().code(), Some(8));
    assert_row(8, "SnapshotTooOld");
}

#[test]
fn a_commit_without_an_answer_has_a_code_of_its_own() {
    let shell = Shell::empty();
    let nodes = Nodes::form(&shell, 3, &["--insecure"]);
    let data = format!("tyr://{}/?timeout=2s", nodes.listen[0]);
    succeeded(shell.run(["keyspace", "create", "ks", "--data", &data]));

    let mut write = shell.start(["write", "ks", "a", "0", "--json", "--data", &data]);
    let mut input = write.stdin.take().unwrap();
    // The pipe holds far less: when all of it is written, the keyspace is open, and what comes is
    // being read. It is too little to be uploaded ahead.
    input.write_all(&noise(512 << 10, 1)).unwrap();
    // The head of its chain takes it in; the others say nothing.
    nodes.processes[1].signal(Signal::STOP);
    nodes.processes[2].signal(Signal::STOP);
    drop(input);
    let (code, kind, text) = refusal(&write.wait_with_output().unwrap());
    assert_eq!((code, &*kind), (7, "TimedOut"), "{text}");
    assert_row(7, "TimedOut");
}
