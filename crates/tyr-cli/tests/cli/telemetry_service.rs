//! `tyr telemetry serve`: in over the network, and nothing lost without being counted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Child, ChildStdout};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::shell::{Shell, lines};
use crate::telemetry::{LINES, verified};

/// A service, and what it says.
struct Service {
    child: Child,
    output: BufReader<ChildStdout>,
    http: String,
    apmon: String,
}

impl Service {
    fn start(shell: &Shell, flags: &[&str]) -> Self {
        let serve = ["telemetry", "serve", "--http", "127.0.0.1:0", "--apmon", "127.0.0.1:0"];
        let mut child = shell.start(serve.iter().chain(flags).copied());
        let mut output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("it says where it listens");
        let (http, apmon) = match serde_json::from_str::<Value>(&line) {
            Ok(said) => {
                let address = |name: &str| said[name].as_str().expect("an address").to_owned();
                (address("http"), address("apmon"))
            }
            Err(_) => {
                let (http, apmon) =
                    line.trim().split_once(", ApMon on udp://").expect("two addresses");
                (
                    http.strip_prefix("listening on http://").expect("an address").to_owned(),
                    apmon.to_owned(),
                )
            }
        };
        Self { child, output, http, apmon }
    }

    fn get(&self, path: &str) -> String {
        let answer = http(&self.http, "GET", path, "");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer.split_once("\r\n\r\n").expect("a head").1.to_owned()
    }

    fn counts(&self) -> Value {
        serde_json::from_str(&self.get("/healthz")).expect("JSON")
    }

    /// What it says in the end.
    fn stop(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it runs");
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("it ends its output");
        assert!(self.child.wait().expect("it ends").success());
        rest
    }
}

/// A datagram with these doubles.
fn datagram(parameters: &[(&str, f64)]) -> Vec<u8> {
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
    bytes.extend((parameters.len() as u32).to_be_bytes());
    for (name, value) in parameters {
        text(&mut bytes, name);
        bytes.extend(5_u32.to_be_bytes());
        bytes.extend(value.to_be_bytes());
    }
    bytes
}

#[test]
fn a_service_takes_lines_and_datagrams_and_answers_queries() {
    let shell = Shell::empty();
    let service = Service::start(&shell, &["--apmon-password", "word", "--json"]);
    let posted = http(&service.http, "POST", "/api/v2/write?precision=s", LINES);
    assert!(posted.starts_with("HTTP/1.1 204"), "{posted}");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // Datagrams have no answer, so they are sent until the store has one.
    let asked = loop {
        socket.send_to(&datagram(&[("load", 3.5)]), &service.apmon).unwrap();
        let asked = service.get("/api/catalog");
        if asked.contains("node1") {
            break asked;
        }
    };
    assert!(asked.contains("gsi"), "{asked}");
    socket.send_to(b"garbage", &service.apmon).unwrap();
    let counts = loop {
        let counts = service.counts();
        if counts["apmon"]["datagrams"]["refused"]["long_string"] == 1 {
            break counts;
        }
    };
    assert_eq!((&counts["status"], &counts["influx"]["stored"]), (&"ok".into(), &4.into()));
    let metrics = service.get("/metrics");
    for line in [
        "# TYPE tyr_apmon_datagrams_refused_total counter",
        "tyr_apmon_datagrams_refused_total{reason=\"long_string\"} 1",
        "tyr_telemetry_stored_total{source=\"influx\"} 4",
        concat!("tyr_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1.0"),
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line} in\n{metrics}");
    }

    let rest = service.stop();
    let counts = &lines(rest.as_bytes())[0];
    assert_eq!(counts["influx"]["stored"], 4);
    let datagrams = &counts["apmon"]["datagrams"];
    assert_eq!(datagrams["read"], counts["apmon"]["stored"], "{counts}");
    assert_eq!(
        datagrams["received"].as_u64().unwrap(),
        datagrams["read"].as_u64().unwrap() + 1,
        "{counts}"
    );
    assert_eq!(verified(&shell)["measurements"], counts["stored"]);
    shell.assert_clean();
}

/// The service is stopped while it still has most of what came.
#[test]
fn a_burst_is_recorded_or_counted_as_lost_and_the_summary_says_so() {
    const SENT: u64 = 2000;
    let shell = Shell::empty();
    let service = Service::start(&shell, &["--batch", "16"]);
    let parameters = ["a", "b", "c", "d", "e"].map(|name| (name, 1.0));
    let (socket, bytes) = (UdpSocket::bind("127.0.0.1:0").unwrap(), datagram(&parameters));
    for _ in 0..SENT {
        socket.send_to(&bytes, &service.apmon).unwrap();
    }
    let summary = service.stop();
    let line = |start: &str| {
        let line = summary.lines().find_map(|line| line.strip_prefix(start));
        line.unwrap_or_else(|| panic!("{start} in {summary}")).to_owned()
    };
    let number = |text: &str, name: &str| -> u64 {
        let after = text.split_once(name).unwrap().1.trim_start();
        after.split(|it: char| !it.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    let datagrams = line("datagrams: ");
    let read = number(&datagrams, "read");
    assert_eq!(read + number(&datagrams, "lost"), SENT, "{summary}");
    assert_eq!(number(&line("apmon: "), "stored"), read * 5, "{summary}");
    assert!(summary.contains("\ninflux: stored 0, refused 0, ignored 0, failed 0\n"), "{summary}");
    assert_eq!(verified(&shell)["measurements"], read * 5);
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
