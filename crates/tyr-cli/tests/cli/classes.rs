//! Object classes, over a directory and over a cluster.

use std::net::SocketAddr;
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::nodes::{Nodes, get};
use crate::shell::{Shell, lines, refusal, succeeded};

const REGISTER: &str = r#"
return { name = "register", methods = {
  set = { kind = "call", run = function(cx, blob, input)
    if blob:size() > 0 then cx:fail("AlreadyExists", "it is set", 17) end
    blob:write(0, input)
  end },
  get = { kind = "query", run = function(cx, blob) return blob:read(0, 4096) end },
}, tests = {
  is_set_once = function(blob, call)
    call("set", "a")
    local answer, kind = call("set", "b")
    assert(kind == "AlreadyExists")
  end,
} }"#;

#[test]
fn a_class_is_tried_installed_enabled_and_called() {
    let shell = Shell::new();
    let tested =
        String::from_utf8(shell.ok_fed(["class", "test", "-"], REGISTER.as_bytes())).unwrap();
    assert_eq!(tested, "is_set_once ok\n");
    shell.ok(["keyspace", "create", "registers", "--placed-by", "up-to:0"]);
    let installed = shell.ok_fed(["class", "install", "-"], REGISTER.as_bytes());
    assert_eq!(installed, b"register 1\n");
    let call = |rest: &[&'static str]| [&["class", "call", "registers"][..], rest].concat();
    let refused = shell.refused(call(&["one", "register", "get"]));
    assert_eq!((refused.0, refused.1.as_str()), (10, "PermissionDenied"));
    shell.ok(["class", "enable", "register", "registers"]);
    shell.ok(call(&["one", "register", "set", "first"]));
    let taken = shell.refused(call(&["one", "register", "set", "second"]));
    assert_eq!((taken.0, taken.1.as_str(), taken.2.as_str()), (4, "AlreadyExists", "it is set"));
    let failed = shell.run([&call(&["one", "register", "set", "-5"])[..], &["--json"]].concat());
    let told: Value = serde_json::from_slice(&failed.stderr).unwrap();
    assert_eq!(told["error"]["code"], 17);
    let failed = shell.run(call(&["one", "register", "set", "-5"]));
    assert_eq!(String::from_utf8_lossy(&failed.stderr), "tyr: it is set (code 17)\n");
    assert_eq!(shell.ok(call(&["one", "register", "get"])), b"first");
    assert_eq!(shell.json(call(&["one", "register", "get"]))[0]["base64"], "Zmlyc3Q=");
    assert_eq!(shell.ok(["get", "registers", "one"]), b"first");
    let missing = shell.refused(call(&["one", "register", "fly"]));
    assert_eq!((missing.0, missing.1.as_str()), (3, "NotFound"));
    shell.assert_clean();
}

#[test]
fn versions_are_listed_shown_and_retired() {
    let shell = Shell::new();
    shell.ok_fed(["class", "install", "-"], REGISTER.as_bytes());
    let again = shell.ok_fed(["class", "install", "-"], REGISTER.as_bytes());
    assert_eq!(again, b"register 1 was installed already\n");
    let second = REGISTER.replace("it is set", "it was set before");
    assert_eq!(shell.ok_fed(["class", "install", "-"], second.as_bytes()), b"register 2\n");
    assert_eq!(shell.ok(["class", "show", "register", "--script"]), second.as_bytes());
    let first = shell.ok(["class", "show", "register", "--script", "--number", "1"]);
    assert_eq!(first, REGISTER.as_bytes());
    shell.ok(["class", "retire", "register", "2"]);
    let listed = shell.json(["class", "list"]);
    assert_eq!((&listed[0]["class"], &listed[0]["current"]), (&"register".into(), &1.into()));
    let shown = shell.json(["class", "show", "register"]).remove(0);
    let retired: Vec<bool> = shown["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["retired"].as_bool().unwrap())
        .collect();
    assert_eq!(retired, [false, true]);
    assert!(shell.text(["class", "show", "register"]).contains("retired"));
    assert!(shell.text(["class", "list"]).contains("register"));
    assert_eq!(shell.refused(["class", "retire", "register", "2"]).0, 3);
}

#[test]
fn a_script_that_fails_is_told_with_what_is_wrong() {
    let shell = Shell::new();
    let broken = REGISTER.replace(r#"kind == "AlreadyExists""#, "false");
    let refused_fed = |words: [&str; 3], script: &str| {
        refusal(&shell.feed([&words[..], &["--json"]].concat(), script.as_bytes()))
    };
    let (code, kind, message) = refused_fed(["class", "install", "-"], &broken);
    assert_eq!((code, kind.as_str()), (9, "InvalidArgument"));
    assert!(message.contains("is_set_once"), "{message}");
    let (code, kind, message) = refused_fed(["class", "test", "-"], &broken);
    assert_eq!((code, kind.as_str(), message.as_str()), (1, "Differences", "1 of 1 tests failed"));
    let (code, _, message) = refused_fed(["class", "test", "-"], "return {");
    assert_eq!(code, 9);
    assert!(message.contains(":1:"), "the line is told: {message}");
    assert_eq!(shell.refused(["class", "show", "register"]).0, 3);
}

const COUNTER: &str = r#"
return { name = "counter", methods = {
  add = { kind = "call", run = function(cx, blob, input)
    if cx.caller ~= "clerk" then cx:fail("PermissionDenied", "a clerk counts") end
    return tostring(blob:transform(0, "add", "u64", tonumber(buffer.tostring(input))))
  end },
} }"#;

#[test]
fn nodes_run_methods_for_a_user_who_may_only_call_also_when_one_of_them_is_gone() {
    let shell = Shell::empty();
    let secret = shell.path("secret").display().to_string();
    shell.ok(["secret", &secret]);
    let nodes = Nodes::form(&shell, 3, &["--secret-file", &secret]);
    let places = nodes.listen.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let as_user = |user: &str, key: &str, words: &[&str]| {
        let address = format!("tyr://{places}/?user={user}&key_file={key}");
        shell.command(words).arg("--json").env("TYR_DATA", address).output().unwrap()
    };
    let root = |words: &[&str]| succeeded(as_user("root", &secret, words));
    let script = shell.path("counter.lua").display().to_string();
    std::fs::write(&script, COUNTER).unwrap();
    root(&["keyspace", "create", "counters", "--placed-by", "up-to:0"]);
    root(&["class", "install", &script]);
    root(&["class", "enable", "counter", "counters"]);
    let added = lines(&root(&["user", "add", "clerk"])).remove(0);
    let key = shell.path("clerk.key").display().to_string();
    std::fs::write(&key, added["key"].as_str().unwrap()).unwrap();
    root(&["user", "grant", "clerk", "counters", "call"]);

    let clerk = |words: &[&str]| as_user("clerk", &key, words);
    let count = |key: &str| {
        let answer = succeeded(clerk(&["class", "call", "counters", key, "counter", "add", "1"]));
        lines(&answer).remove(0)["base64"].as_str().unwrap().to_owned()
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..4).for_each(|_| drop(count("all"))));
        }
    });
    assert_eq!(count("all"), "MTc=", "17, counted once each");
    let refused = refusal(&clerk(&["put", "counters", "all", &script]));
    assert_eq!((refused.0, refused.1.as_str()), (10, "PermissionDenied"), "{refused:?}");
    assert!(refused.2.contains("tyr user grant clerk counters write"), "{refused:?}");
    let refused = refusal(&as_user(
        "root",
        &secret,
        &["class", "call", "counters", "all", "counter", "add", "1"],
    ));
    assert_eq!(refused.2, "a clerk counts", "the user who is connected calls");

    let called = |http: &SocketAddr| {
        let (_, text) = get(*http, "/metrics");
        let line = text.lines().find(|line| line.starts_with("tyr_method_calls_total"));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).unwrap()
    };
    let called: Vec<u64> = nodes.http.iter().map(called).collect();
    assert_eq!(called.iter().max(), Some(&18), "one node is that of the object: {called:?}");

    nodes.processes[0].signal(Signal::KILL);
    for key in ["a", "b", "c", "d"] {
        assert_eq!(count(key), "MQ==", "1");
    }
    assert_eq!(count("all"), "MTg=", "18");
}
