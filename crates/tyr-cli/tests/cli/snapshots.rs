//! Kept snapshots, on the command line.

use crate::shell::Shell;

#[test]
fn every_command_that_reads_reads_what_a_kept_snapshot_has() {
    let shell = Shell::new();
    shell.ok(["put", "ks", "a", "--value", "hello"]);
    shell.ok(["put", "ks", "b", "--value", "soon gone"]);
    let kept = &shell.json(["snapshot", "keep", "monday"])[0];
    assert_eq!((&kept["name"], &kept["held"]), (&"monday".into(), &0.into()));
    shell.ok(["put", "ks", "a", "--value", "goodbye to all"]);
    shell.ok(["put", "ks", "c", "--value", "new"]);
    shell.ok(["rm", "ks", "b"]);
    let at = ["--at", "monday"];
    assert_eq!(shell.ok([&["get", "ks", "a"][..], &at].concat()), b"hello");
    let told = &shell.json([&["get", "ks", "a", "--len", "4"][..], &at].concat())[0];
    assert_eq!((&told["base64"], &told["len"]), (&"aGVsbA==".into(), &4.into()));
    let both = ["cat", "ks", "a", "b"];
    assert_eq!(shell.ok([&both[..], &at].concat()), b"hellosoon gone");
    assert_eq!(shell.ok([&both[..], &["--len", "4"], &at].concat()), b"hellsoon");
    assert_eq!(shell.text([&["ls", "ks"][..], &at].concat()), "a\nb\n");
    assert_eq!(shell.json([&["stat", "ks", "a"][..], &at].concat())[0]["size"], 5);
    let told = &shell.json([&["stretches", "ks", "b"][..], &at].concat())[0];
    assert_eq!((&told["offset"], &told["bytes"]), (&0.into(), &9.into()));
    assert_eq!(shell.refused([&["get", "ks", "c"][..], &at].concat()).0, 3);
    assert_eq!(shell.text(["ls", "ks"]), "a\nc\n");

    let again = shell.refused(["snapshot", "keep", "monday"]);
    assert_eq!((again.0, again.1.as_str()), (4, "AlreadyExists"));
    assert_eq!(shell.refused(["snapshot", "keep", "mon day"]).0, 9);
    let listed = &shell.json(["snapshot", "list"])[0];
    assert_eq!((&listed["name"], &listed["version"]), (&kept["name"], &kept["version"]));
    assert!(listed["held"].as_u64().unwrap() > 0, "{listed}");
    assert!(shell.text(["snapshot", "list"]).contains("monday"));
    shell.assert_clean();
    shell.ok(["snapshot", "drop", "monday"]);
    let gone = shell.refused([&["get", "ks", "a"][..], &at].concat());
    assert_eq!((gone.0, gone.1.as_str()), (3, "NotFound"));
    assert!(gone.2.contains("monday"), "{}", gone.2);
    assert_eq!(shell.refused(["snapshot", "drop", "monday"]).0, 3);
    assert!(shell.json(["snapshot", "list"]).is_empty());
    shell.assert_clean();
}
