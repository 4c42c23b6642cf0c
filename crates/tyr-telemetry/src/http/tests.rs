//! The service over a real socket, spoken to byte by byte.

use std::io::Write;
use std::net::SocketAddr;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::*;
use crate::fixture::Fixture;

struct Running {
    fixture: Fixture,
    address: SocketAddr,
    sources: Sources,
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<()>>,
}

async fn start(options: HttpOptions) -> Running {
    let fixture = Fixture::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let sources = fixture.sources();
    let (stop, stopped) = oneshot::channel();
    let shutdown = async { stopped.await.unwrap_or_default() };
    let server = tokio::spawn(serve(listener, sources.clone(), options, shutdown));
    Running { fixture, address, sources, stop, server }
}

impl Running {
    async fn send(&self, bytes: &[u8]) -> (u16, String) {
        let (status, _, body) = self.exchange(bytes).await;
        (status, body)
    }

    /// The answer's status, head and body.
    async fn exchange(&self, bytes: &[u8]) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        // A refused body may be cut off while it is still being sent; the answer is there.
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        let status = answer.get(9..12).map_or(0, |status| status.parse().unwrap());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        (status, head.to_owned(), body.to_owned())
    }

    async fn post(&self, path: &str, headers: &str, body: &[u8]) -> (u16, String) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.send(&[head.as_bytes(), body].concat()).await
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        self.send(head.as_bytes()).await
    }

    async fn get_json(&self, path: &str) -> serde_json::Value {
        let (status, body) = self.get(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    async fn stop(self) -> Fixture {
        self.stop.send(()).unwrap();
        self.server.await.unwrap().unwrap();
        self.fixture
    }
}

const LINES: &[u8] = b"load,site=cern,cluster=batch,host=a,job=reco one=0.5 1700000000\n\
    load,site=cern,cluster=batch,host=a,job=reco one=1.5 1700000060\n\
    load,site=cern,cluster=batch,host=b,job=reco one=4 1700000000\n";

#[tokio::test]
async fn lines_in_either_version_are_recorded_and_can_be_asked_for() {
    let running = start(HttpOptions::default()).await;
    let written = running.post("/api/v2/write?bucket=b&org=o&precision=s", "", LINES).await;
    assert_eq!(written, (204, String::new()));
    let (status, _) = running.post("/write?db=x&precision=ms", "", b"up ok=t 1700000000000").await;
    assert_eq!(status, 204);
    let names = "site=cern&cluster=batch&host=a&job=reco&parameter=load.one";
    let raw = running.get_json(&format!("/api/series?{names}&from=2023-11-14")).await;
    assert_eq!(raw["samples"].as_array().unwrap().len(), 2);
    assert_eq!(raw["samples"][1]["value"], 1.5);
    let path = "/api/aggregate?scope=cluster&path=cern/batch&parameter=load.one&window=hour";
    let hour = running.get_json(path).await;
    assert_eq!(hour["points"][0]["count"], 3);
    assert_eq!(hour["points"][0]["max"], 4.0);
    let top = running.get_json("/api/top?scope=host&by=max&parameter=load.one").await;
    assert_eq!(top["entries"][0]["names"][2], "b");
    let catalog = running.get_json("/api/catalog?site=cern").await;
    assert_eq!(catalog["entries"].as_array().unwrap().len(), 2);
    let health = running.get_json("/healthz").await;
    assert_eq!((&health["status"], &health["influx"]["stored"]), (&"ok".into(), &4.into()));
    let (status, csv) = running.get(&format!("{path}&format=csv")).await;
    assert_eq!(status, 200);
    assert!(csv.starts_with("time,count,sum,mean,min,max\n2023-11-14T22:00:00Z,3,6,2,0.5,4\n"));
    running.stop().await.verify_clean(4).await;
}

#[tokio::test]
async fn a_body_with_bad_lines_is_answered_with_their_numbers_and_the_rest_recorded() {
    let running = start(HttpOptions::default()).await;
    let body = b"cpu v=1 1700000000\nnot a line\ncpu v=oops\ncpu v=2 1700000000\n";
    let (status, answer) = running.post("/api/v2/write?precision=s", "", body).await;
    assert_eq!(status, 400);
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["code"], "invalid");
    assert!(answer["message"].as_str().unwrap().contains("2 of 4 lines refused"), "{answer}");
    assert_eq!(answer["line_errors"][0]["line"], 2);
    assert_eq!(answer["line_errors"][1]["line"], 3);
    assert_eq!(running.sources.influx.counts().refused, 2);
    running.stop().await.verify_clean(2).await;
}

#[tokio::test]
async fn requests_that_are_wrong_are_refused_and_the_service_goes_on() {
    let running = start(HttpOptions { body_len_max: 1000, ..HttpOptions::default() }).await;
    let (status, answer) = running.post("/write?precision=years", "", LINES).await;
    assert_eq!(status, 400, "{answer}");
    let (status, _) = running.post("/write", "Content-Encoding: br\r\n", LINES).await;
    assert_eq!(status, 415);
    let (status, answer) = running.post("/write", "", &[b'x'; 1001]).await;
    assert_eq!(status, 413, "{answer}");
    for (path, why) in [
        ("/api/series?site=cern", "cluster is missing"),
        ("/api/series?sight=cern", "no parameter \\\"sight\\\""),
        ("/api/aggregate?scope=planet&parameter=x", "scope is generator"),
        ("/api/aggregate?scope=host&path=a/b&parameter=x", "site/cluster/host"),
        ("/api/top?from=noon", "2014-04-01"),
        ("/api/top?from=2020-01-01&to=2019-01-01", "begins before it ends"),
        ("/api/top?limit=0", "limit is 1 to"),
        ("/api/catalog?format=xml", "format is table"),
    ] {
        let (status, answer) = running.get(path).await;
        assert_eq!(status, 400, "{path}");
        assert!(answer.contains(why), "{path}: {answer}");
        assert!(answer.contains("InvalidArgument"), "{answer}");
    }
    assert_eq!(running.get("/nothing").await.0, 404);
    assert_eq!(running.send(b"\x16\x03\x01 no request at all\r\n\r\n").await.0, 400);
    assert_eq!(running.sources.influx.counts().refused, 3);
    assert_eq!(running.post("/write?precision=s", "", LINES).await.0, 204);
    running.stop().await.verify_clean(3).await;
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// What the Python packages `influxdb` 5.3.2 and `influxdb-client` 1.50.0 put into their requests.
const OLD_CLIENT: &str = "User-Agent: python-requests/2.34.2\r\nAccept-Encoding: gzip\r\n\
    Accept: application/x-msgpack\r\nContent-Encoding: gzip\r\n\
    Authorization: Basic cm9vdDpyb290\r\n";
const NEW_CLIENT: &str = "Accept-Encoding: identity\r\nAuthorization: Token t\r\n\
    User-Agent: influxdb-client-python/1.50.0\r\n";

#[tokio::test]
async fn the_clients_of_both_versions_find_what_they_look_for() {
    let running = start(HttpOptions::default()).await;
    let kind = "Content-Type: application/json\r\n";
    for (method, client) in [("GET", OLD_CLIENT), ("HEAD", OLD_CLIENT), ("GET", NEW_CLIENT)] {
        let ping = format!(
            "{method} /ping HTTP/1.1\r\nHost: 127.0.0.1:53035\r\n{client}{kind}\
             Connection: close\r\n\r\n"
        );
        let (status, head, body) = running.exchange(ping.as_bytes()).await;
        assert_eq!((status, body.as_str()), (204, ""), "{ping}");
        let head = head.to_ascii_lowercase();
        let build = concat!("\r\nx-influxdb-build: tyr-", env!("CARGO_PKG_VERSION"));
        assert!(head.contains("\r\nx-influxdb-version: 1.8.10"), "{head}");
        assert!(head.contains(build), "{head}");
    }
    let health = running.get_json("/health").await;
    assert_eq!((&health["name"], &health["status"]), (&"influxdb".into(), &"pass".into()));

    let packed = gzip(LINES);
    let headers = format!("{OLD_CLIENT}Content-Type: application/octet-stream\r\n");
    let path = "/write?db=metrics&precision=s";
    assert_eq!(running.post(path, &headers, &packed).await, (204, String::new()));
    let headers = format!(
        "Content-Type: text/plain\r\nAccept: application/json\r\nContent-Encoding: gzip\r\n\
         {NEW_CLIENT}"
    );
    let path = "/api/v2/write?org=o&bucket=bucket&precision=s";
    assert_eq!(running.post(path, &headers, &packed).await, (204, String::new()));
    running.stop().await.verify_clean(6).await;
}

#[tokio::test]
async fn a_packed_body_is_bound_by_what_it_unpacks_to() {
    let running = start(HttpOptions { body_len_max: 1000, ..HttpOptions::default() }).await;
    let gzipped = "Content-Encoding: gzip\r\n";
    let bomb = gzip(&[b' '; 100_000]);
    assert!(bomb.len() < 1000);
    let (status, answer) = running.post("/write", gzipped, &bomb).await;
    assert_eq!(status, 413);
    assert!(answer.contains("at most 1000 bytes when unpacked"), "{answer}");
    let (status, answer) = running.post("/write", gzipped, LINES).await;
    assert_eq!(status, 400);
    assert!(answer.contains("not whole gzip"), "{answer}");
    assert_eq!(running.sources.influx.counts().refused, 2);
    assert_eq!(running.post("/write?precision=s", gzipped, &gzip(LINES)).await.0, 204);
    running.stop().await.verify_clean(3).await;
}

#[tokio::test]
async fn clients_that_say_nothing_more_do_not_keep_the_service_from_stopping() {
    let running = start(HttpOptions::default()).await;
    let silent = TcpStream::connect(running.address).await.unwrap();
    let mut half = TcpStream::connect(running.address).await.unwrap();
    half.write_all(b"POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nab")
        .await
        .unwrap();
    assert_eq!(running.post("/write?precision=s", "", LINES).await.0, 204);
    running.stop().await.verify_clean(3).await;
    drop((silent, half));
}
