//! Scans: who is asked what, and how the pages become one (Q1, Q2).

use super::*;
use crate::level::{LEVEL_EXPECTING, LEVEL_SCANNING};
use crate::map::Change;
use crate::message::{ListedBlob, ScanRequest};
use tyr_types::{PlacedBy, Scan, ScanEntry, ScanPage, Stat};

impl Client {
    fn scan(&mut self, scan: Scan) -> CallId {
        let at = Some(time(50));
        self.call(Call::Scan { keyspace: KeyspaceId(1), scan: Box::new(scan), at })
    }

    /// The questions for pages since the last look; everything else sent is forgotten.
    fn pages_asked(&mut self) -> Vec<(NodeId, ScanRequest)> {
        let of_scan = |(to, body)| match body {
            Body::Scan(request) => Some((to, ScanRequest::clone(&request))),
            _ => None,
        };
        std::mem::take(&mut self.sent).into_iter().filter_map(of_scan).collect()
    }

    fn pages(&mut self, from: NodeId, number: u64, page: ScanPage) {
        self.receive(from, Body::Scanned { number, page });
    }

    fn page(&mut self) -> ScanPage {
        match self.answer() {
            Answer::Page(page) => page,
            other => panic!("a scan is answered, not {other:?}"),
        }
    }
}

fn page(keys: &[&str], resume: Option<&'static str>) -> ScanPage {
    let stat = Some(Stat { size: 1, version: time(40) });
    let entry = |key: &&str| ScanEntry { key: Key::new(key).unwrap(), stat, bytes: Bytes::new() };
    let resume = resume.map(|at| Bytes::from_static(at.as_bytes()));
    ScanPage { entries: keys.iter().map(entry).collect(), groups: Vec::new(), resume }
}

fn keys(page: &ScanPage) -> Vec<String> {
    page.entries.iter().map(|entry| entry.key.to_string()).collect()
}

#[test]
fn every_node_is_asked_once_and_pages_count_up_to_where_the_first_of_them_ended() {
    let mut client = Client::new();
    client.scan(Scan::new().limit(10));
    let asked = client.pages_asked();
    assert_eq!(asked.len(), 5);
    for (index, (node, request)) in asked.iter().enumerate() {
        assert_eq!((request.at, request.limit), (Some(time(50)), 10));
        let found = match index {
            0 => page(&["a", "d"], None),
            1 => page(&["b", "c"], Some("c\0")),
            _ => page(&[], None),
        };
        assert!(client.done.is_empty(), "not all have answered");
        client.pages(*node, request.number, found);
    }
    let answer = client.page();
    assert_eq!(keys(&answer), ["a", "b", "c"]);
    assert_eq!(answer.resume.unwrap(), "c\0");
    assert!(client.sent.is_empty() && client.session.due_us().is_none(), "nothing is left of it");
}

/// H.
#[test]
fn where_the_prefix_is_of_one_group_its_node_alone_is_asked() {
    let placed_by = PlacedBy::UpTo(b'/');
    let config = KeyspaceConfig { chunk_size: CHUNK, placed_by, ..Default::default() };
    let mut client = Client::with(ClusterMap::of(5, &[config]), SessionConfig::default());
    client.scan(Scan::new().prefix("dir/").first_bytes(100));
    let asked = client.pages_asked();
    let [(node, request)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(*node, client.replicas("dir/x", 0)[0], "its authority");
    client.pages(*node, request.number, page(&["dir/x"], None));
    assert_eq!(keys(&client.page()), ["dir/x"]);
}

#[test]
fn who_is_silent_or_not_ready_is_asked_the_same_again_and_nobody_else() {
    let mut client = Client::new();
    client.scan(Scan::new());
    let asked = client.pages_asked();
    for (node, request) in &asked[2..] {
        client.pages(*node, request.number, page(&[], None));
    }
    let (silent, not_here) = (&asked[0], &asked[1]);
    client.receive(not_here.0, Body::NotHere(Asked::Read(not_here.1.number)));
    assert!(client.pages_asked().is_empty(), "after a pause");
    client.pass(30_000);
    assert_eq!(client.pages_asked(), std::slice::from_ref(not_here));
    client.pages(not_here.0, not_here.1.number, page(&["b"], None));
    client.pass(1_000_000);
    assert!(client.has_sent(|body| *body == Body::FetchMap), "it may be gone");
    assert_eq!(client.pages_asked(), std::slice::from_ref(silent));
    client.pages(silent.0, silent.1.number, page(&["a"], None));
    client.pages(silent.0, silent.1.number, page(&["z"], None));
    assert_eq!(keys(&client.page()), ["a", "b"]);
}

#[test]
fn when_chunks_change_places_all_are_asked_anew() {
    let mut client = Client::new();
    client.scan(Scan::new());
    let asked = client.pages_asked();
    for (node, request) in &asked[1..] {
        client.pages(*node, request.number, page(&["old"], None));
    }
    let gone = asked[0].0;
    let next = client.session.map.changed(&Change::Down(gone)).unwrap();
    client.receive(asked[1].0, Body::NewerMap(Arc::new(next)));
    assert!(client.has_sent(|body| matches!(body, Body::CancelRead { .. })));
    let again = client.pages_asked();
    assert_eq!(again.len(), 4, "{gone:?} is not there");
    assert!(again.iter().all(|(_, request)| request.number > asked[4].1.number), "new questions");
    client.pages(asked[0].0, asked[0].1.number, page(&["late"], None));
    for (node, request) in again {
        client.pages(node, request.number, page(&[], None));
    }
    assert!(keys(&client.page()).is_empty(), "nothing of the placement before");
}

#[test]
fn a_refusal_and_a_deadline_end_it_and_who_was_asked_hears() {
    let mut client = Client::new();
    client.scan(Scan::new());
    let (node, request) = client.pages_asked()[0].clone();
    let refused = Body::Refused { read: request.number, abort: abort(ErrorKind::SnapshotTooOld) };
    client.receive(node, refused);
    assert_eq!(client.refusal().kind, ErrorKind::SnapshotTooOld);
    let told = client.sent.iter().filter(|(_, body)| matches!(body, Body::CancelRead { .. }));
    assert_eq!(told.count(), 5);
    client.scan(Scan::new());
    client.pass(40_000_000);
    assert_eq!(client.refusal().kind, ErrorKind::Unavailable);
    let call = client.scan(Scan::new());
    client.step(Event::Cancel { call });
    assert!(client.session.is_empty() && client.session.due_us().is_none());
}

#[test]
fn what_cannot_be_the_answer_is_none() {
    let mut client = Client::new();
    client.scan(Scan::new().from("m").to("t"));
    let asked = client.pages_asked();
    let (node, number) = (asked[0].0, asked[0].1.number);
    client.pages(node, number, page(&["a"], None));
    client.pages(node, number, page(&["n"], Some("a")));
    client.pages(node, number, page(&["n"], Some("z")));
    client.pages(asked[1].0, number, page(&["n"], None));
    for (node, request) in &asked[1..] {
        client.pages(*node, request.number, page(&[], None));
    }
    assert!(client.done.is_empty(), "the first has not answered");
    client.pages(node, number, page(&["n"], None));
    assert_eq!(keys(&client.page()), ["n"]);
}

#[test]
fn a_scan_out_of_range_asks_nobody() {
    let mut client = Client::new();
    client.scan(Scan::new().first_bytes(CHUNK + 1));
    assert!(client.refusal().reason.contains("first chunk"));
    client.scan(Scan::new().limit(0));
    assert!(client.refusal().reason.contains("limit"));
    client.scan(Scan::new().prefix("b").from("c"));
    assert_eq!(client.page(), ScanPage::default());
    assert!(client.sent.is_empty());
}

#[test]
fn a_cluster_of_before_is_asked_in_its_words_or_refused_with_the_level() {
    let old = ClusterMap { level: LEVEL_EXPECTING, ..map() };
    let mut client = Client::with(old, SessionConfig::default());
    client.scan(Scan::new().first_bytes(4));
    let needed = format!("feature level {LEVEL_SCANNING}");
    assert!(client.refusal().reason.contains(&needed));
    client.scan(Scan::new().prefix("k").from("k5").to("k8").limit(3).keys_only());
    let sent = std::mem::take(&mut client.sent);
    assert_eq!(sent.len(), 5);
    for (index, (node, body)) in sent.into_iter().enumerate() {
        let Body::ListKeys(request) = body else { panic!("{body:?}") };
        let after = request.after.unwrap();
        assert!(after < "k5" && after > "k4", "just before it");
        let blob = |key: &'static str| ListedBlob {
            key: Bytes::from_static(key.as_bytes()),
            size: 1,
            version: time(9),
        };
        let listed = if index == 0 { vec![blob("k5"), blob("k7"), blob("k9")] } else { vec![] };
        let number = request.number;
        client.receive(node, Body::Keys { number, keys: listed, is_end: index > 0 });
    }
    let page = client.page();
    assert_eq!((keys(&page), page.resume), (vec!["k5".to_owned(), "k7".to_owned()], None));
    assert!(page.entries.iter().all(|entry| entry.stat.is_none()));
}
