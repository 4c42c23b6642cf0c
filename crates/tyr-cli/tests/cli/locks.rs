//! `tyr lock`: commands under a lock.

use crate::shell::{Shell, refusal};

#[test]
fn a_command_runs_under_the_lock_and_its_exit_code_is_the_answer() {
    let shell = Shell::new();
    let script = "printf %s $TYR_LOCK_TOKEN";
    assert_eq!(shell.ok(["lock", "ks", "jobs", "--", "sh", "-c", script]), b"1");
    assert_eq!(shell.ok(["lock", "ks", "jobs", "--wait", "5", "--", "sh", "-c", script]), b"2");
    assert_eq!(shell.text(["lock", "ks", "jobs"]), "2\tfree\n");
    let failed = shell.run(["lock", "ks", "jobs", "--", "sh", "-c", "exit 42"]);
    assert_eq!(failed.status.code(), Some(42));
    assert!(failed.stderr.is_empty(), "the command says why, or not");
    let shown = shell.json(["lock", "ks", "jobs"]);
    assert_eq!((&shown[0]["token"], &shown[0]["holder"]), (&3.into(), &serde_json::Value::Null));
}

#[test]
fn what_cannot_be_run_or_is_no_lock_is_refused_in_words() {
    let shell = Shell::new();
    let refused = refusal(&shell.run(["lock", "ks", "jobs", "--json", "--", "/nowhere/at-all"]));
    assert_eq!(refused.0, 9);
    assert!(refused.2.contains("/nowhere/at-all"), "{}", refused.2);
    shell.ok(["put", "ks", "data", "--value", "something else"]);
    let refused = refusal(&shell.run(["lock", "ks", "data", "--json", "--", "true"]));
    assert!(refused.2.contains("no lock"), "{}", refused.2);
    assert_eq!(refusal(&shell.run(["lock", "ks", "never", "--json"])).1, "NotFound");
    let usage = shell.run(["lock", "ks", "jobs", "--duration", "11", "--", "true"]);
    assert_eq!(usage.status.code(), Some(2));
}
