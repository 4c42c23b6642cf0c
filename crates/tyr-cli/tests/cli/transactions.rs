//! `tyr txn`: scripts, all or nothing.

use crate::shell::{Shell, lines, refusal};

#[test]
fn a_script_takes_effect_as_a_whole() {
    let shell = Shell::new();
    shell.ok(["keyspace", "create", "other", "--durability", "memory"]);
    let script = b"# a comment\n\
        create ks a\n\
        put ks 'a key' \"two\\nlines\"\n\
        append ks log hex:0102\n\
        append ks log base64:Aw==\n\
        write other w 2 x\n\
        apply ks n 0 add u32 7\n\
        delete ks nothing\n\
        truncate ks t 1KiB\n";
    let text = String::from_utf8(shell.ok_fed(["txn"], script)).unwrap();
    assert!(text.contains("line 5: append ks log: appended at 2"), "{text}");
    assert!(text.contains("line 7: apply ks n: now 7"), "{text}");
    assert!(text.contains("line 8: delete ks nothing: was not there"), "{text}");
    assert_eq!(shell.ok(["get", "ks", "a key"]), b"two\nlines");
    assert_eq!(shell.ok(["get", "ks", "log"]), [1, 2, 3]);
    assert_eq!(shell.json(["stat", "ks", "t"])[0]["size"], 1024);
}

#[test]
fn the_commit_timestamp_is_written_where_the_script_says() {
    let shell = Shell::new();
    let script = b"append ks log \"\\T first\"\nappend ks log \"\\T second\"\nread ks log 0 4\n";
    let output = shell.ok_fed(["txn", "--json"], script);
    assert_eq!(lines(&output)[0]["results"][2]["base64"], "AAAAAA==");
    shell.ok_fed(["txn"], b"append ks log \"\\T third\"\n");
    let log = shell.ok(["get", "ks", "log"]);
    let [first, second, third] = [&log[..22], &log[22..45], &log[45..]];
    assert_eq!(
        (&first[16..], &second[16..], &third[16..]),
        (&b" first"[..], &b" second"[..], &b" third"[..])
    );
    assert!(first[..16] == second[..16] && second[..16] < third[..16], "{log:?}");
    let (code, _, text) = refusal(&shell.feed(["txn", "--json"], b"compare ks log 0 \"\\T\"\n"));
    assert_eq!(code, 9);
    assert!(text.starts_with("line 1: "), "{text}");
}

#[test]
fn a_hole_is_made_by_a_command_and_by_a_script_and_moves_no_end() {
    let shell = Shell::new();
    shell.ok(["put", "ks", "a", "--value", "0123456789"]);
    shell.ok(["clear", "ks", "a", "7", "1KiB"]);
    shell.ok_fed(["txn"], b"clear ks a 1 2\nclear ks absent 0 100\n");
    assert_eq!(shell.ok(["get", "ks", "a"]), b"0\0\x003456\0\0\0");
    assert_eq!(shell.text(["ls", "ks"]), "a\n");
}

#[test]
fn reads_see_what_the_lines_before_wrote() {
    let shell = Shell::new();
    shell.ok(["put", "ks", "a", "--value", "old"]);
    let script = b"get ks a\nwrite ks a 0 new!\nread ks a 1 2\nstat ks a\n";
    let output = shell.ok_fed(["txn", "--json"], script);
    let answer = &lines(&output)[0];
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results[0]["base64"], "b2xk");
    assert_eq!(results[2]["base64"], "ZXc=");
    assert_eq!(results[3]["size"], 4);
    assert_eq!(results[3]["line"], 4);
    assert!(answer["version"].is_string());
}

/// Q3.
#[test]
fn a_script_lists_a_group_with_what_the_lines_before_wrote() {
    let shell = Shell::new();
    shell.ok(["keyspace", "create", "files", "--placed-by", "up-to:/"]);
    shell.ok(["put", "files", "home/a", "--value", "1"]);
    shell.ok(["put", "files", "work/a", "--value", "1"]);
    let script = b"put files home/b 22\nlist files home/\n";
    let text = String::from_utf8(shell.ok_fed(["txn"], script)).unwrap();
    assert!(text.contains("line 2: list files home/: 2 keys: home/a, home/b"), "{text}");
    let output = shell.ok_fed(["txn", "--json"], b"list files home/b\n");
    let entries = &lines(&output)[0]["results"][0]["entries"];
    assert_eq!((&entries[0]["key"], &entries[0]["size"]), (&"home/b".into(), &2.into()));
    let (code, kind, text) = refusal(&shell.feed(["txn", "--json"], b"list files h\n"));
    assert_eq!((code, kind.as_str()), (9, "InvalidArgument"));
    assert!(text.starts_with("line 1: ") && text.contains("which group"), "{text}");
}

#[test]
fn a_condition_that_fails_leaves_nothing_behind() {
    let shell = Shell::new();
    shell.ok(["put", "ks", "a", "--value", "1"]);
    let script = b"put ks b 2\nappend ks a 2\ncompare ks a 0 0\n";
    let (code, kind, text) = refusal(&shell.feed(["txn", "--json"], script));
    assert_eq!((code, kind.as_str()), (5, "Conflict"));
    assert!(text.starts_with("line 3: keyspace ks blob \"a\": "), "{text}");
    assert_eq!(shell.text(["ls", "ks"]), "a\n");
    assert_eq!(shell.ok(["get", "ks", "a"]), b"1");
    let script = b"put ks b 2\ncompare ks a 0 1\ncreate ks a\n";
    let (code, kind, text) = refusal(&shell.feed(["txn", "--json"], script));
    assert_eq!((code, kind.as_str()), (4, "AlreadyExists"));
    assert!(text.starts_with("line 3: keyspace ks blob \"a\": "), "{text}");
    let script = b"compare ks a 0 1\ncompare ks a 0 2\nappend-at ks a 9 x\n";
    let (_, _, text) = refusal(&shell.feed(["txn", "--json"], script));
    assert!(text.starts_with("line 2: keyspace ks blob \"a\": "), "{text}");
    let script =
        b"apply ks n 0 add u8 5\ncompare-number ks n 0 u8 < 1\ncompare-number ks n 0 u8 > 0\n";
    let (code, _, text) = refusal(&shell.feed(["txn", "--json"], script));
    assert_eq!(code, 5);
    assert!(text.starts_with("line 3: keyspace ks blob \"n\": the number compared "), "{text}");
    assert_eq!(shell.text(["ls", "ks"]), "a\n");
    shell.ok_fed(["txn"], b"compare ks a 0 1\nput ks b 2\n");
    assert_eq!(shell.text(["ls", "ks"]), "a\nb\n");
}

#[test]
fn whether_a_blob_is_there_is_a_condition_with_a_code_of_its_own() {
    let shell = Shell::new();
    shell.ok(["put", "ks", "a", "--value", ""]);
    let script = b"expect-present ks a\nput ks b 1\nexpect-absent ks a\n";
    let (code, kind, text) = refusal(&shell.feed(["txn", "--json"], script));
    assert_eq!((code, kind.as_str()), (4, "AlreadyExists"));
    assert!(text.starts_with("line 3: keyspace ks blob \"a\": "), "{text}");
    let script = b"put ks b 1\nexpect-present ks b\ndelete ks b\nexpect-present ks b\n";
    let (code, kind, text) = refusal(&shell.feed(["txn", "--json"], script));
    assert_eq!((code, kind.as_str()), (3, "NotFound"));
    assert!(text.starts_with("line 4: keyspace ks blob \"b\": "), "{text}");
    assert_eq!(shell.text(["ls", "ks"]), "a\n");
    let script = b"expect-absent ks b\nput ks b 1\nexpect-present ks b\nexpect-present ks a\n";
    shell.ok_fed(["txn"], script);
    assert_eq!(shell.text(["ls", "ks"]), "a\nb\n");
}

#[test]
fn a_mistake_in_a_line_is_named_and_nothing_is_done() {
    let shell = Shell::new();
    for (script, line, code, part) in [
        ("put ks a 1\nfrob ks b\n", "line 2", 9, "append-at"),
        ("put ks a 1\n\nput ks b\n", "line 3", 9, "put KEYSPACE KEY DATA"),
        ("put ks a 1\nput nix b 2\n", "line 2", 3, "nix"),
        ("put ks a 1\nread ks absent 0 1\n", "line 2", 3, "absent"),
        ("put ks a 1\nwrite ks a 9223372036854775807 xx\n", "line 2", 9, "9223372036854775807"),
        ("put ks a \"1\n", "line 1", 9, "close"),
    ] {
        let (got, _, message) = refusal(&shell.feed(["txn", "--json"], script.as_bytes()));
        assert_eq!(got, code, "{script}: {message}");
        assert!(message.contains(line) && message.contains(part), "{script}: {message}");
        assert_eq!(shell.text(["ls", "ks"]), "", "{script}");
    }
}

#[test]
fn an_empty_script_and_one_from_a_file_work_too() {
    let shell = Shell::new();
    shell.ok_fed(["txn"], b"");
    let file = shell.path("script");
    std::fs::write(&file, "put ks a 'from a file'").unwrap();
    shell.ok(["txn", file.to_str().unwrap()]);
    assert_eq!(shell.ok(["get", "ks", "a"]), b"from a file");
}
