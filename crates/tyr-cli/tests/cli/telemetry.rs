//! `tyr telemetry`: in by every way, out by every query, verified.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::shell::{Shell, lines, refusal};

const LINES: &str = "\
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

fn verified(shell: &Shell) -> Value {
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

/// A datagram of one parameter, `load`, a double.
fn datagram(value: f64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u32).to_be_bytes());
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    };
    text(&mut bytes, "v:2.2.0_cppp:word");
    bytes.extend(1_u32.to_be_bytes());
    bytes.extend(1_u32.to_be_bytes());
    text(&mut bytes, "farm");
    text(&mut bytes, "node1");
    bytes.extend(1_u32.to_be_bytes());
    text(&mut bytes, "load");
    bytes.extend(5_u32.to_be_bytes());
    bytes.extend(value.to_be_bytes());
    bytes
}

#[test]
fn a_service_takes_lines_and_datagrams_and_answers_queries() {
    let shell = Shell::empty();
    let serve = ["telemetry", "serve", "--http", "127.0.0.1:0", "--apmon", "127.0.0.1:0"];
    let mut child = shell.start(serve.into_iter().chain(["--apmon-password", "word", "--json"]));
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let listening: Value = serde_json::from_str(&line).unwrap();
    let address = |name: &str| listening[name].as_str().unwrap().to_owned();

    let posted = http(&address("http"), "POST", "/api/v2/write?precision=s", LINES);
    assert!(posted.starts_with("HTTP/1.1 204"), "{posted}");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // Datagrams have no answer, so they are sent until the store has one.
    let asked = loop {
        socket.send_to(&datagram(3.5), address("apmon")).unwrap();
        let asked = http(&address("http"), "GET", "/api/catalog", "");
        if asked.contains("node1") {
            break asked;
        }
    };
    assert!(asked.contains("gsi"), "{asked}");
    socket.send_to(b"garbage", address("apmon")).unwrap();
    assert!(http(&address("http"), "GET", "/healthz", "").starts_with("HTTP/1.1 200"));

    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    let counts = &lines(rest.as_bytes())[0];
    assert_eq!(counts["influx"]["stored"], 4);
    assert!(counts["apmon"]["stored"].as_u64().unwrap() >= 1, "{counts}");
    let measurements = verified(&shell)["measurements"].clone();
    assert_eq!(measurements, counts["stored"]);
    shell.assert_clean();
}

fn http(address: &str, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the service listens");
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .expect("the service reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the service answers");
    answer
}
