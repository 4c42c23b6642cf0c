//! `tyr demo` and `tyr bench`, at their smallest.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::shell::{Shell, describe, lines};

#[test]
fn the_demo_works_without_a_terminal_and_everything_agrees() {
    let shell = Shell::empty();
    let output = shell
        .command(["demo", "--seconds", "2.5", "--writers", "4", "--rate", "2000", "--json"])
        .env_remove("TYR_DATA")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", describe(&output));
    let lines = lines(&output.stdout);
    assert!(lines.len() >= 2, "a line a second and a summary: {lines:?}");
    let summary = &lines.last().unwrap()["summary"];
    assert!(summary["measurements"].as_u64().unwrap() > 100, "{summary}");
    assert!(summary["live"].as_u64().unwrap() > 0, "{summary}");
    assert!(summary["audits"].as_u64().unwrap() > 0, "{summary}");
    assert_eq!(summary["audit_differences"], 0);
    assert_eq!(summary["verify"]["differences_count"], 0);
}

#[test]
fn the_demo_of_a_cluster_passes_over_the_environment_and_refuses_a_store() {
    let shell = Shell::empty();
    let (code, kind, message) = shell.refused(["demo", "--cluster", "3", "--data", "elsewhere"]);
    assert_eq!((code, kind.as_str()), (2, "Usage"), "{message}");
    // The store that TYR_DATA names is not made, and not needed.
    shell.ok(["demo", "--cluster", "3", "--seconds", "1", "--writers", "2", "--rate", "200"]);
    assert!(!shell.data().exists());
}

#[test]
fn ctrl_c_ends_the_demo_early_with_its_summary_and_leaves_the_data() {
    let shell = Shell::empty();
    let data = shell.data();
    let said = ["--data", data.to_str().unwrap()];
    let demo = ["demo", "--seconds", "600", "--writers", "2", "--rate", "500"];
    let mut child = shell.start([demo.as_slice(), &said].concat());
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    std::io::BufRead::read_line(&mut output, &mut text).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    std::io::Read::read_to_string(&mut output, &mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    assert!(text.contains("verified:") && text.contains("checked:"), "{text}");
    shell.ok(["telemetry", "verify", "--keyspace", "demo"]);
    // Another one would write into what is there.
    let (code, kind, message) = shell.refused(["demo", "--data", said[1]]);
    assert_eq!((code, kind.as_str()), (2, "Usage"), "{message}");
    assert!(message.contains("tyr keyspace drop demo"), "{message}");
    shell.assert_clean();
}

/// What the environment names is for other commands: it may be a cluster that others use.
#[test]
fn the_demo_writes_nothing_into_the_store_that_only_the_environment_names() {
    let shell = Shell::empty();
    shell.ok(["keyspace", "create", "mine"]);
    let output = shell.run(["demo", "--seconds", "0.5", "--writers", "1", "--rate", "100"]);
    assert!(output.status.success(), "{}", describe(&output));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("in a folder of its own"), "{told}");
    let keyspaces = shell.json(["keyspace", "list"]);
    assert_eq!((keyspaces.len(), &keyspaces[0]["name"]), (1, &"mine".into()), "{keyspaces:?}");
}

#[test]
fn every_benchmark_runs_at_its_smallest() {
    let shell = Shell::empty();
    let results = &shell.json(["bench", "--quick"])[0];
    assert!(results["machine"]["cpus"].as_u64().unwrap() > 0);
    let cases = results["cases"].as_array().unwrap();
    for scenario in ["monalisa", "reads", "transforms", "mix", "plain file", "blob", "open", "log"]
    {
        let case = cases.iter().find(|case| case["label"].as_str().unwrap().starts_with(scenario));
        let case = case.unwrap_or_else(|| panic!("no case of {scenario}: {results}"));
        for (name, figure) in case["figures"].as_object().unwrap() {
            assert!(figure["median"].is_f64(), "{scenario} {name}: {figure}");
        }
    }
    assert!(results["conclusions"].as_object().unwrap().len() >= 9, "{results}");
    let is_random = |case: &Value| case["label"].as_str().unwrap().starts_with("random");
    assert!(!cases.iter().any(is_random), "it takes long, and nobody asked for it: {results}");
}

#[test]
fn the_return_of_a_node_is_measured_where_it_is_asked_for() {
    let shell = Shell::empty();
    let results = &shell.json(["bench", "--quick", "--only", "return"])[0];
    let cases = results["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2, "{results}");
    for (case, (blobs, changed)) in cases.iter().zip([(3_000.0, 232.0), (16.0, 2.0)]) {
        let of = |name: &str| case["figures"][name]["median"].as_f64().unwrap();
        // What the other client has written counts, too.
        assert!((blobs..=blobs + 16.0).contains(&of("compared")), "{case}");
        assert!((changed..=changed + 16.0).contains(&of("copied")), "{case}");
        assert!(of("ready_s") > 0.0 && of("wait_ms_max") > 0.0, "{case}");
    }
}

#[test]
fn a_node_that_was_killed_is_measured_until_it_serves_again() {
    let shell = Shell::empty();
    let results = &shell.json(["bench", "--quick", "--only", "restart"])[0];
    let figures = &results["cases"][0]["figures"];
    for name in ["fill_s", "ready_s", "node_cpu_s", "node_resident_mib", "first_read_us"] {
        assert!(figures[name]["median"].as_f64().unwrap() > 0.0, "{name}: {results}");
    }
}

#[test]
fn a_long_time_is_measured_in_its_parts() {
    let shell = Shell::empty();
    let results = &shell.json(["bench", "--quick", "--only", "endurance"])[0];
    let figures = &results["cases"][0]["figures"];
    assert!(figures["first_measured_per_s"]["median"].as_f64().unwrap() > 0.0, "{figures}");
    assert!(figures["window_12_resident_mib"]["median"].is_f64(), "{figures}");
}

#[test]
fn random_overwrites_are_measured_where_they_are_asked_for() {
    let shell = Shell::empty();
    let results = &shell.json(["bench", "--quick", "--only", "random,random-node"])[0];
    let cases = results["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 6, "{results}");
    for case in cases {
        for name in ["write_cpu_us", "slowest_ms", "disk_per_byte_max", "through_share"] {
            assert!(case["figures"][name]["median"].as_f64().unwrap() > 0.0, "{name}: {case}");
        }
    }
}
