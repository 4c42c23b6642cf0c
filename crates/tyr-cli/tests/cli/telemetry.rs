//! `tyr telemetry`: in from files and pipes, out by every query, verified.

use serde_json::Value;

use crate::shell::{Shell, lines, refusal};

pub const LINES: &str = "\
load,site=cern,cluster=batch,host=n1,job=reco one=0.5 1700000000
load,site=cern,cluster=batch,host=n1,job=reco one=1.5 1700000010
load,site=cern,cluster=batch,host=n2,job=reco one=4 1700000070
load,site=gsi,cluster=batch,host=n3,job=reco one=8 1700003600
";

fn loaded() -> Shell {
    let shell = Shell::empty();
    let ingest = ["telemetry", "ingest", "lines", "--precision", "s", "--region", "cern=europe"];
    let output = shell.ok_fed(ingest, LINES.as_bytes());
    assert_eq!(String::from_utf8_lossy(&output), "stored 4, refused 0, ignored 0, failed 0\n");
    shell
}

pub fn verified(shell: &Shell) -> Value {
    let report = shell.json(["telemetry", "verify"]).remove(0);
    assert_eq!(report["differences_count"], 0, "{report}");
    report
}

#[test]
fn lines_become_series_and_aggregates() {
    let shell = loaded();
    assert_eq!(verified(&shell)["measurements"], 4);
    let all = ["telemetry", "query", "all", "-p", "load.one", "-w", "day"];
    let series = &shell.json(all)[0];
    let point = &series["points"][0];
    assert_eq!((&point["count"], &point["sum"]), (&4.into(), &14.0.into()), "{series}");
    assert_eq!((&point["min"], &point["max"]), (&0.5.into(), &8.0.into()));
    let host = ["telemetry", "query", "host", "cern/batch/n1", "-p", "load.one"];
    assert_eq!(shell.json(host)[0]["points"][0]["count"], 2);
    let europe = ["telemetry", "query", "region", "europe", "-p", "load.one", "-w", "hour"];
    assert_eq!(shell.json(europe)[0]["points"][0]["count"], 3);
}

#[test]
fn answers_come_as_table_chart_csv_and_json() {
    let shell = loaded();
    let query = ["telemetry", "query", "all", "-p", "load.one", "-f"];
    let of = |format: &str| shell.text(query.iter().copied().chain([format]));
    assert!(of("table").contains("count"));
    assert!(of("csv").lines().next().unwrap().contains(','));
    assert!(of("chart").contains(['█', '▁', '▇', '⣿', '▄']), "{}", of("chart"));
    assert!(serde_json::from_str::<Value>(&of("json")).is_ok());
}

#[test]
fn raw_measurements_come_back_in_the_order_of_time() {
    let shell = loaded();
    let late = "load,site=cern,cluster=batch,host=n1,job=reco one=9 1699999990\n";
    shell.ok_fed(["telemetry", "ingest", "lines", "--precision", "s"], late.as_bytes());
    let raw = ["telemetry", "query", "generator", "cern/batch/n1/reco", "-p", "load.one", "--raw"];
    let samples = shell.json(raw).remove(0)["samples"].clone();
    let values: Vec<f64> =
        samples.as_array().unwrap().iter().filter_map(|sample| sample["value"].as_f64()).collect();
    assert_eq!(values, [9.0, 0.5, 1.5]);
    let part = raw.iter().copied().chain(["--from", "1700000005", "--to", "1700000011"]);
    assert_eq!(shell.json(part)[0]["samples"].as_array().unwrap().len(), 1);
    let wrong = ["telemetry", "query", "host", "cern/batch/n1", "-p", "load.one", "--raw"];
    assert_eq!(shell.refused(wrong).0, 2);
}

#[test]
fn the_top_and_the_catalog_name_who_it_is() {
    let shell = loaded();
    let top = &shell.json(["telemetry", "top", "host", "--by", "max", "-n", "2"])[0];
    assert_eq!(top["entries"].as_array().unwrap().len(), 2);
    assert_eq!(top["entries"][0]["names"], serde_json::json!(["gsi", "batch", "n3"]), "{top}");
    let catalog = &shell.json(["telemetry", "list", "--site", "cern"])[0];
    assert_eq!(catalog["entries"].as_array().unwrap().len(), 2, "{catalog}");
    assert!(shell.text(["telemetry", "list"]).contains("gsi"));
}

#[test]
fn what_is_called_by_no_name_that_there_is_is_not_found_and_what_is_like_it_is_offered() {
    let shell = loaded();
    for (command, part) in [
        (&["query", "all", "-p", "laod.one"][..], "did you mean load.one?"),
        (&["query", "site", "cren", "-p", "load.one"], "did you mean cern?"),
        (&["query", "region", "europa", "-p", "load.one"], "did you mean europe?"),
        (&["query", "cluster", "gsi/batch2", "-p", "load.one"], "no cluster \"batch2\""),
        (&["query", "host", "gsi/batch/n1", "-p", "load.one"], "nothing has all of site \"gsi\""),
        (&["query", "generator", "cern/batch/n9/reco", "-p", "load.one", "--raw"], "no host"),
        (&["top", "host", "-p", "load.on"], "did you mean load.one?"),
        (&["list", "--job", "recp"], "did you mean reco?"),
    ] {
        let (code, kind, text) = shell.refused(["telemetry"].iter().chain(command));
        assert_eq!((code, kind.as_str()), (3, "NotFound"), "{command:?}: {text}");
        assert!(text.contains(part), "{command:?}: {text}");
    }
    let early = ["telemetry", "query", "all", "-p", "load.one", "--to", "2001-01-01"];
    assert_eq!(shell.text(early).to_lowercase().trim(), "nothing.", "it was measured later");
}

#[test]
fn lines_that_cannot_be_used_are_passed_over_and_told() {
    let shell = Shell::empty();
    let text = format!("{LINES}garbage\nload one=NaNaN 1\n");
    let output =
        shell.feed(["telemetry", "ingest", "lines", "--precision", "s", "--json"], text.as_bytes());
    let (code, kind, message) = refusal(&output);
    assert_eq!((code, kind.as_str()), (1, "Differences"), "{message}");
    let counts = &lines(&output.stdout)[0];
    assert_eq!((&counts["stored"], &counts["refused"]), (&4.into(), &2.into()));
    assert_eq!(verified(&shell)["measurements"], 4);
}

#[test]
fn csv_files_replay_with_the_times_they_say() {
    let shell = Shell::empty();
    let folder = shell.path("machines");
    std::fs::create_dir(&folder).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let one =
        file("one.csv", "timestamp,value\n2014-04-01 00:00:00,1.5\n2014-04-01 00:05:00,2.5\n");
    let two = file("two.csv", "timestamp,value\n2014-04-02 00:00:00,7\n");
    let report = &shell.json(["telemetry", "replay", &one, &two])[0];
    assert_eq!((&report["rows"], &report["stored"]), (&3.into(), &3.into()), "{report}");
    assert_eq!(verified(&shell)["measurements"], 3);
    let hosts = &shell.json(["telemetry", "top", "host", "--by", "count"])[0];
    assert_eq!(hosts["entries"][0]["names"], serde_json::json!(["csv", "machines", "one"]));

    let other = file("other.csv", "ts,machine,load\n1700000000000,m1,3\n1700000000001,m2,4\n");
    let flags = [
        "--time-column",
        "ts",
        "--time-format",
        "ms",
        "--value-column",
        "load",
        "--host-column",
        "machine",
        "--site",
        "here",
        "--parameter",
        "load",
        "--no-path-names",
    ];
    shell.ok(["telemetry", "replay", &other].into_iter().chain(flags));
    let listed = &shell.json(["telemetry", "list", "--site", "here"])[0];
    assert_eq!(listed["entries"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(shell.refused(["telemetry", "replay", "/no/such.csv"]).0, 6);
}

#[test]
fn this_machine_is_measured() {
    let shell = Shell::empty();
    shell.ok(["telemetry", "ingest", "live", "--seconds", "0.7", "--interval", "0.2"]);
    assert!(verified(&shell)["measurements"].as_u64().unwrap() > 10);
    let listed = shell.text(["telemetry", "list"]);
    assert!(listed.contains("memory.used") && listed.contains("load.1"), "{listed}");
}
