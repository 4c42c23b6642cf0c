//! Commands on blobs and keyspaces.

use crate::shell::{Shell, noise};

#[test]
fn a_blob_comes_out_byte_for_byte_as_it_went_in() {
    let shell = Shell::new();
    for (key, len) in [("none", 0), ("small", 1000), ("large", 5 << 20)] {
        let bytes = noise(len, 7);
        shell.ok_fed(["put", "ks", key], &bytes);
        assert!(shell.ok(["get", "ks", key]) == bytes, "{key}");
    }
    shell.assert_clean();
}

#[test]
fn files_go_in_and_come_out_under_the_names_given() {
    let shell = Shell::new();
    let (from, to) = (shell.path("from"), shell.path("to"));
    let bytes = noise(300_000, 1);
    std::fs::write(&from, &bytes).unwrap();
    shell.ok(["put", "ks", "file", from.to_str().unwrap()]);
    shell.ok(["get", "ks", "file", "-o", to.to_str().unwrap()]);
    assert!(std::fs::read(&to).unwrap() == bytes);
    let (code, kind, message) = shell.refused(["put", "ks", "file", "/no/such/file"]);
    assert_eq!((code, kind.as_str()), (6, "Unavailable"));
    assert!(message.contains("/no/such/file"), "{message}");
}

#[test]
fn writes_appends_and_cuts_change_what_they_say() {
    let shell = Shell::new();
    shell.ok(["write", "ks", "b", "3", "--value", "abc"]);
    assert_eq!(shell.ok(["get", "ks", "b"]), b"\0\0\0abc");
    assert_eq!(shell.text(["append", "ks", "b", "--value", "hex:ff00"]).trim(), "6");
    shell.ok_fed(["write", "ks", "b", "0"], b"XYZ");
    assert_eq!(shell.ok(["get", "ks", "b"]), b"XYZabc\xff\0");
    assert_eq!(shell.ok(["get", "ks", "b", "--offset", "2", "--len", "2"]), b"Za");
    assert_eq!(shell.ok(["get", "ks", "b", "--offset", "7", "--len", "99"]), b"\0");
    shell.ok(["truncate", "ks", "b", "4"]);
    shell.ok(["truncate", "ks", "b", "6"]);
    assert_eq!(shell.ok(["get", "ks", "b"]), b"XYZa\0\0");
    assert_eq!(shell.text(["append", "ks", "b", "--value", "!", "--at", "6"]).trim(), "6");
    assert_eq!(shell.refused(["append", "ks", "b", "--value", "!", "--at", "6"]).0, 5);
    assert_eq!(shell.json(["stat", "ks", "b"])[0]["size"], 7);
}

#[test]
fn a_write_of_any_size_is_one_transaction() {
    let shell = Shell::new();
    let bytes = noise(9 << 20, 3);
    shell.ok_fed(["write", "ks", "b", "100"], &bytes);
    let got = shell.ok(["get", "ks", "b"]);
    assert!(got[..100] == [0; 100] && got[100..] == bytes);
    shell.ok_fed(["append", "ks", "b"], &bytes);
    assert_eq!(shell.json(["stat", "ks", "b"])[0]["size"], 100 + 2 * bytes.len());
}

#[test]
fn arithmetic_answers_the_new_value() {
    let shell = Shell::new();
    assert_eq!(shell.text(["apply", "ks", "n", "8", "add", "u64", "5"]).trim(), "5");
    assert_eq!(
        shell.text(["apply", "ks", "n", "8", "sub", "u64", "6"]).trim(),
        u64::MAX.to_string()
    );
    assert_eq!(shell.text(["apply", "ks", "n", "0", "swap", "i16", "-3"]).trim(), "-3");
    let answer = &shell.json(["apply", "ks", "n", "16", "max", "f64", "0.5"])[0];
    assert_eq!((answer["value"].as_f64(), answer["type"].as_str()), (Some(0.5), Some("f64")));
    let (code, kind, message) = shell.refused(["apply", "ks", "n", "0", "div", "u8", "0"]);
    assert_eq!((code, kind.as_str()), (9, "InvalidArgument"));
    assert!(message.contains("zero"), "{message}");
}

#[test]
fn a_swap_happens_only_where_the_expected_bytes_are() {
    let shell = Shell::new();
    shell.ok(["put", "ks", "lock", "--value", "free"]);
    shell.ok(["cas", "ks", "lock", "0", "free", "held"]);
    let (code, kind, _) = shell.refused(["cas", "ks", "lock", "0", "free", "held"]);
    assert_eq!((code, kind.as_str()), (5, "Conflict"));
    assert_eq!(shell.ok(["get", "ks", "lock"]), b"held");
}

#[test]
fn binary_keys_go_in_as_hex_and_come_out_escaped() {
    let shell = Shell::new();
    shell.ok(["put", "ks", "00ff61", "--hex-key", "--value", "x"]);
    shell.ok(["put", "ks", "näme", "--value", "y"]);
    assert_eq!(shell.text(["ls", "ks"]), "\\x00\\xffa\nnäme\n");
    let listed = shell.json(["ls", "ks", "--prefix", "00", "--hex-key"]);
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["key_hex"], &listed[0]["size"]), (&"00ff61".into(), &1.into()));
    assert_eq!(shell.ok(["get", "ks", "--hex-key", "00FF61"]), b"x");
    assert_eq!(shell.refused(["get", "ks", "--hex-key", "0"]).0, 9);
}

#[test]
fn a_listing_is_of_a_range_of_keys_and_shows_groups_as_one_line() {
    let shell = Shell::new();
    let script: String = ["a", "b/1", "b/2", "c", "d/x/y", "e"]
        .iter()
        .map(|key| format!("put ks {key} x\n"))
        .collect();
    shell.ok_fed(["txn"], script.as_bytes());
    assert_eq!(shell.text(["ls", "ks", "--from", "b/2", "--to", "d/x/y"]), "b/2\nc\n");
    assert_eq!(shell.text(["ls", "ks", "--delimiter", "/"]), "a\nb/\nc\nd/\ne\n");
    assert_eq!(shell.text(["ls", "ks", "-d", "/", "-n", "2"]), "a\nb/\n");
    assert_eq!(shell.text(["ls", "ks", "-d", "/", "-p", "d/"]), "d/x/\n");
    let listed = &shell.json(["ls", "ks", "-d", "/", "-p", "d/"])[0];
    assert_eq!(listed["group"], "d/x/");
    assert_eq!(listed["group_hex"], "642f782f");
    let long = shell.text(["ls", "ks", "-l", "-d", "/"]);
    assert!(long.lines().any(|line| line.trim() == "b/"), "{long}");
    let (_, _, turned) = shell.refused(["ls", "ks", "--from", "b", "--to", "a"]);
    assert!(turned.contains("exchange them"), "{turned}");
    let (_, _, empty) = shell.refused(["ls", "ks", "--delimiter", ""]);
    assert!(empty.contains("delimiter"), "{empty}");
}

#[test]
fn a_listing_is_in_key_order_and_can_be_cut_anywhere() {
    let shell = Shell::new();
    let script: String = (0..25).map(|n| format!("put ks b/{n:02} x\n")).collect();
    shell.ok_fed(["txn"], format!("{script}put ks c y\n").as_bytes());
    assert_eq!(shell.text(["ls", "ks"]).lines().count(), 26);
    let part = shell.text(["ls", "ks", "-p", "b/", "--after", "b/09", "-n", "2"]);
    assert_eq!(part, "b/10\nb/11\n");
    let listed = shell.text(["ls", "ks", "-l", "-n", "1"]);
    let (heads, row) = listed.split_once('\n').unwrap();
    let heads: Vec<&str> = heads.split_whitespace().collect();
    assert_eq!(heads, ["size", "changed", "(UTC)", "version", "key"]);
    let row: Vec<&str> = row.split_whitespace().collect();
    let [size, changed, version, _] = row[..] else { panic!("{listed}") };
    assert!(size == "1" && changed.starts_with("20") && changed.ends_with('Z'), "{listed}");
    assert_eq!(changed.len(), "2026-11-21T08:15:00Z".len(), "{listed}");
    assert_eq!(version.split('.').count(), 3, "{listed}");
}

#[test]
fn several_blobs_are_read_at_one_version() {
    let shell = Shell::new();
    for key in ["a", "b", "c"] {
        shell.ok(["put", "ks", key, "--value", &key.repeat(3)]);
    }
    assert_eq!(shell.ok(["cat", "ks", "a", "c", "a"]), b"aaacccaaa");
    assert_eq!(shell.ok(["cat", "ks", "b", "c", "--offset", "1", "--len", "1"]), b"bc");
    let blobs = shell.json(["cat", "ks", "a", "b"]);
    assert_eq!(blobs[1]["base64"], "YmJi");
    assert_eq!(shell.json(["stat", "ks", "a", "b"]).len(), 2);
    for arguments in [vec!["cat", "ks", "a", "d"], vec!["cat", "ks", "d", "--len", "1"]] {
        let (code, kind, message) = shell.refused(&arguments);
        assert_eq!((code, kind.as_str()), (3, "NotFound"));
        assert!(message.contains('d'), "{message}");
    }
}

#[test]
fn removal_is_one_transaction_and_names_what_was_not_there() {
    let shell = Shell::new();
    for key in ["a", "b", "c"] {
        shell.ok(["create", "ks", key]);
    }
    let (code, kind, message) = shell.refused(["rm", "ks", "a", "nix", "b"]);
    assert_eq!((code, kind.as_str()), (3, "NotFound"));
    assert!(message.contains("nix") && !message.contains("\"a\""), "{message}");
    assert_eq!(shell.text(["ls", "ks"]), "c\n");
    shell.ok(["rm", "ks", "--force", "nix", "c"]);
    assert_eq!(shell.text(["ls", "ks"]), "");
}

#[test]
fn a_keyspace_is_made_listed_shown_and_dropped() {
    let shell = Shell::empty();
    shell.ok([
        "keyspace",
        "create",
        "one",
        "--chunk-size",
        "4MiB",
        "--compress",
        "--single-version",
    ]);
    shell.ok(["keyspace", "create", "two", "--durability", "memory"]);
    let listed = shell.json(["keyspace", "list"]);
    assert_eq!(listed.len(), 2);
    let shown = &shell.json(["keyspace", "show", "one"])[0];
    assert_eq!(shown["chunk_size"], 4 << 20);
    assert_eq!(shown["compressed"], true);
    assert_eq!(shown["multi_versioned"], false);
    assert_eq!(shown["durability"], "sync");
    assert!(shell.text(["keyspace", "show", "two"]).contains("memory"));
    // A directory has one copy, whatever the keyspace would have in a cluster.
    for command in [vec!["keyspace", "list"], vec!["keyspace", "show", "two"]] {
        let text = shell.text(&command);
        assert!(text.contains("compression") && !text.contains("repli"), "{text}");
    }
    shell.ok(["keyspace", "drop", "one"]);
    assert_eq!(shell.json(["keyspace", "list"])[0]["name"], "two");
    assert_eq!(shell.refused(["keyspace", "drop", "one"]).0, 3);
    assert_eq!(shell.refused(["keyspace", "create", "two"]).0, 4);
    shell.ok(["keyspace", "create", "two", "--if-missing", "--durability", "memory"]);
    let other = ["keyspace", "create", "two", "--if-missing"];
    let (code, kind, message) = shell.refused(other);
    assert_eq!((code, kind.as_str()), (4, "AlreadyExists"));
    assert!(message.contains("durability"), "{message}");
    shell.assert_clean();
}

#[test]
fn errors_have_the_exit_codes_of_their_kinds() {
    let shell = Shell::new();
    shell.ok(["create", "ks", "there"]);
    for (arguments, code, kind) in [
        (vec!["get", "ks", "absent"], 3, "NotFound"),
        (vec!["get", "absent", "key"], 3, "NotFound"),
        (vec!["create", "ks", "there"], 4, "AlreadyExists"),
        (vec!["cas", "ks", "there", "0", "a", "b"], 5, "Conflict"),
        (vec!["put", "ks", ""], 9, "InvalidArgument"),
        (vec!["keyspace", "create", "three", "--chunk-size", "3"], 9, "InvalidArgument"),
        (vec!["keyspace", "create", "Upper Case"], 9, "InvalidArgument"),
        (vec!["write", "ks", "there", "9223372036854775808", "--value", "x"], 9, "InvalidArgument"),
        (vec!["truncate", "ks", "there", "18446744073709551615"], 9, "InvalidArgument"),
        (vec!["get", "ks", "there", "--offset", "9223372036854775808"], 9, "InvalidArgument"),
        (vec!["frobnicate"], 2, "Usage"),
        (vec!["truncate", "ks", "there", "many"], 2, "Usage"),
        (vec!["clear", "ks", "gone", "0", "1"], 3, "NotFound"),
        (vec!["clear", "ks", "there", "1", "18446744073709551615"], 9, "InvalidArgument"),
    ] {
        let refused = shell.refused(&arguments);
        assert_eq!((refused.0, refused.1.as_str()), (code, kind), "{arguments:?}: {}", refused.2);
        let text = shell.run(&arguments);
        assert_eq!(text.status.code(), Some(code));
        assert!(!text.stderr.is_empty() && text.stdout.is_empty(), "{arguments:?}");
    }
    shell.assert_clean();
}

#[test]
fn what_is_refused_says_the_allowed_range() {
    let shell = Shell::new();
    let (_, _, message) = shell.refused(["keyspace", "create", "x", "--chunk-size", "3"]);
    assert!(message.contains("4096") && message.contains("268435456"), "{message}");
    let (_, _, message) = shell.refused(["write", "ks", "x", "9223372036854775808", "-v", "x"]);
    assert!(message.contains("9223372036854775807"), "{message}");
    let (_, _, message) = shell.refused(["put", "ks", &"k".repeat(1025)]);
    assert!(message.contains("1024"), "{message}");
}

#[test]
fn an_inspection_counts_files_keyspaces_and_blobs() {
    let shell = Shell::new();
    shell.ok(["put", "ks", "a", "--value", "123456789"]);
    let store = &shell.json(["inspect"])[0];
    assert!(!store["files"].as_array().unwrap().is_empty());
    assert_eq!(store["keyspaces"][0]["blobs"], 1);
    assert_eq!(store["keyspaces"][0]["bytes"], 9);
    assert!(store["statistics"]["log_bytes"].is_u64());
    let blob = &shell.json(["inspect", "ks", "a", "--checksum"])[0];
    // The check value of CRC-32C.
    assert_eq!(blob["crc32c"], "e3069283");
    assert_eq!(blob["chunks"], 1);
    assert!(shell.text(["inspect"]).contains("buffered"));
}

#[test]
fn blobs_and_ranges_of_them_are_copied() {
    let shell = Shell::new();
    let bytes = noise(3 << 20, 9);
    shell.ok_fed(["put", "ks", "a"], &bytes);
    shell.ok(["keyspace", "create", "other"]);
    shell.ok(["put", "other", "b", "--value", "what was there"]);
    let told = &shell.json(["cp", "ks", "a", "other", "b"])[0];
    assert_eq!((&told["len"], &told["to"]["key"]), (&(3 << 20).into(), &"b".into()));
    assert!(shell.ok(["get", "other", "b"]) == bytes);
    shell.ok(["put", "ks", "c", "--value", "0123456789"]);
    shell.ok(["cp", "ks", "c", "other", "d", "--from", "2", "--len", "3", "--to", "1"]);
    assert_eq!(shell.ok(["get", "other", "d"]), b"\x00234");
    shell.ok(["cp", "ks", "c", "other", "d", "--from", "8"]);
    assert_eq!(shell.ok(["get", "other", "d"]), b"\x00234\0\0\0\x0089");
    let told =
        &shell.json(["cp", "ks", "c", "ks", "c", "--from", "7", "--len", "9", "--to", "0"])[0];
    assert_eq!(told["len"], 3);
    assert_eq!(shell.ok(["get", "ks", "c"]), b"7893456789");
    assert_eq!(shell.refused(["cp", "ks", "nobody", "other", "b"]).0, 3);
    assert_eq!(shell.refused(["cp", "ks", "a", "nowhere", "b"]).0, 3);
    let (code, _, message) = shell.refused(["cp", "ks", "a", "ks", "a"]);
    assert_eq!(code, 9, "{message}");
    assert!(message.contains("onto itself"), "{message}");
    assert!(shell.ok(["get", "other", "b"]) == bytes);
    shell.assert_clean();
}
