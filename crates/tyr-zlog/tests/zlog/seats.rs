//! The sequencer as a seat of a node, which is asked over the network.

use std::sync::{Arc, Once};
use std::time::Duration;

use tyr::blocking::Tyr;
use tyr::{BlobName, Bytes, ErrorKind, Key, KeyspaceId, MethodAnswer, MethodCall};
use tyr_object::{Hosting, SeatDirectory, SeatKind, SeatMode, SeatName};
use tyr_server::{Answering, MethodHost, SeatAnswering};
use tyr_zlog::{Given, Opening, SequencerKind, Sequencing};

use crate::place::{Place, all_from, hasty, on, patient};
use tyr_testing::{Cluster, Kind, stores};

/// What a node of a test runs methods by, and has its seats in.
struct Host(Hosting);

impl MethodHost for Host {
    fn call(&self, user: &str, keyspace: &str, call: MethodCall) -> Answering {
        let (hosting, user, keyspace) = (self.0.clone(), user.to_owned(), keyspace.to_owned());
        Box::pin(async move { hosting.call(&user, &keyspace, call).await })
    }

    fn ask_seat(
        &self,
        keyspace: &str,
        request: &MethodCall,
        is_authority: bool,
    ) -> Option<SeatAnswering> {
        self.0.ask_seat(keyspace, request, is_authority)
    }
}

/// The sequencers of logs, as these tests have them.
fn kinds() -> Vec<Arc<dyn SeatKind>> {
    let lease = Duration::from_secs(1);
    vec![Arc::new(SequencerKind { opening: Opening { lease, ..patient() } })]
}

/// What has sequencers as seats, on this store.
fn hosting(store: Tyr) -> Hosting {
    Hosting::seating(kinds(), move || Ok(store.clone()))
}

/// Lets all nodes have seats.
fn host(cluster: &Cluster) {
    static HOSTED: Once = Once::new();
    HOSTED.call_once(|| {
        for server in cluster.servers() {
            let store = cluster.connect();
            let hosting = Hosting::serving(server.node(), kinds(), move || Ok(store.clone()));
            server.host_methods_by(Arc::new(Host(hosting)));
        }
    });
}

/// How a log is opened of which the positions are asked for.
fn asking() -> Opening {
    Opening { sequencing: Sequencing::Asked, ..patient() }
}

#[test]
fn many_append_by_one_seat_and_each_position_is_given_once() {
    const TASKS: u64 = 24;
    const EACH: u64 = 8;
    for kind in stores() {
        on(kind, |place| async move {
            place.cluster.iter().for_each(|cluster| host(cluster));
            place.log("orders").await;
            let logs =
                [place.open("orders", 0, asking()).await, place.open("orders", 1, asking()).await];
            let append = |task: u64| {
                let log = logs[task as usize % 2].clone();
                tokio::spawn(async move {
                    let mut positions = Vec::new();
                    for n in 0..EACH {
                        positions.push(log.append(format!("{task} {n}")).await.unwrap());
                    }
                    assert!(positions.is_sorted(), "what is appended later is behind");
                    positions
                })
            };
            let tasks: Vec<_> = (0..TASKS).map(append).collect();
            let mut positions = Vec::new();
            for task in tasks {
                positions.extend(task.await.unwrap());
            }
            positions.sort_unstable();
            assert!(positions.iter().copied().eq(0..TASKS * EACH), "{positions:?}");
            let status = logs[0].status().await.unwrap();
            assert_eq!(status.term, 0, "nothing had to be recovered");
            if place.cluster.is_some() {
                assert_eq!(status.token, 1, "one node has the seat, and nobody else");
            }
            // Who wants to hold it is handed it, with its counter; and back.
            let held = place.open("orders", 1, patient()).await;
            let tail = TASKS * EACH;
            assert_eq!(held.append("held").await.unwrap(), tail);
            assert_eq!(logs[1].append("asked").await.unwrap(), tail + 1);
            assert_eq!(logs[0].status().await.unwrap().term, 0);
            assert_eq!(all_from(&held, 0).await.len() as u64, tail + 2);
            for log in logs {
                log.close().await.unwrap();
            }
        });
    }
}

#[test]
fn positions_go_on_wherever_the_sequencer_is_moved() {
    const ROUNDS: u64 = 4;
    const EACH: u64 = 24;
    on(Kind::Cluster, |place| async move {
        let cluster = place.cluster.unwrap();
        host(cluster);
        place.log("orders").await;
        let name = SeatName::new(&place.keyspace, &Key::new("orders\0lock").unwrap());
        let directory = SeatDirectory::of(&cluster.connect());
        let is_there = || directory.list().unwrap().nodes.len() >= 3;
        assert!(std::iter::repeat_with(is_there).take(100_000).any(|it| it));
        let logs =
            [place.open("orders", 0, asking()).await, place.open("orders", 1, asking()).await];
        let mut positions = Vec::new();
        for round in 0..ROUNDS {
            let append = |log: tyr_zlog::Log| {
                tokio::spawn(async move {
                    let mut positions = Vec::new();
                    for n in 0..EACH {
                        positions.push(log.append(n.to_string()).await.unwrap());
                    }
                    assert!(positions.is_sorted(), "what is appended later is behind");
                    positions
                })
            };
            let tasks = logs.each_ref().map(|log| append(log.clone()));
            let mode = if round % 2 == 0 { SeatMode::Client } else { SeatMode::Proxy };
            directory.move_to(&name, (round % 3) as u16, mode, "a test").unwrap();
            for task in tasks {
                positions.extend(task.await.unwrap());
            }
        }
        positions.sort_unstable();
        assert!(positions.iter().copied().eq(0..2 * ROUNDS * EACH), "{positions:?}");
        let status = logs[0].status().await.unwrap();
        assert_eq!(status.term, 0, "it was handed over each time, and never recovered");
        assert!(status.token >= 2, "more than one had it: {}", status.token);
        for log in logs {
            log.close().await.unwrap();
        }
    });
}

/// A run of positions, as a seat answers it.
#[derive(Debug)]
struct Answer {
    token: u64,
    term: u64,
    first: u64,
    count: u64,
}

impl Answer {
    fn given(&self, index: u64) -> Given {
        assert!(index < self.count, "{self:?}");
        Given { position: self.first + index, term: self.term }
    }
}

/// Asks a program for the sequencer of the log `orders`.
async fn ask(hosting: &Hosting, place: &Place, keyspace: KeyspaceId, input: Bytes) -> MethodAnswer {
    let blob = BlobName { keyspace, key: Key::new("orders\0lock").unwrap() };
    let (class, method) = ("zlog.sequencer".to_owned(), "next".to_owned());
    hosting.call("bob", &place.keyspace, MethodCall { blob, class, method, input }).await
}

fn wanting(count: u64) -> Bytes {
    Bytes::copy_from_slice(&count.to_le_bytes())
}

fn read(answer: &Bytes) -> Answer {
    let numbers: Vec<u64> = answer.as_chunks().0.iter().map(|it| u64::from_le_bytes(*it)).collect();
    let [token, term, first, count] = numbers[..] else { panic!("{numbers:?}") };
    Answer { token, term, first, count }
}

#[test]
fn the_seat_of_a_killed_holder_gives_nothing_that_can_be_mistaken_for_the_next() {
    on(Kind::Cluster, |place| async move {
        let log = place.log("orders").await;
        let keyspace = log.keyspace().id();
        let cluster = place.cluster.unwrap();
        let stores = [cluster.connect(), cluster.connect()];
        let [one, two] = stores.each_ref().map(|store| hosting(store.clone()));
        let before = read(&ask(&one, &place, keyspace, wanting(3)).await.unwrap());
        assert_eq!((before.term, before.first, before.count), (0, 0, 3));
        // These know the view of before, whatever comes.
        let late = place.open("orders", 0, patient()).await;
        assert!(late.write(before.given(0), "zero").await.unwrap());
        let [killed, _other] = stores;
        killed.close().unwrap();
        ask(&one, &place, keyspace, wanting(1)).await.unwrap_err();
        let after = read(&ask(&two, &place, keyspace, wanting(3)).await.unwrap());
        assert!(after.token > before.token && after.term > before.term, "{before:?} {after:?}");
        // The numbers are given again that nobody has written, in a term of their own. Were the
        // term not looked at, this would be a write of a free position.
        assert_eq!(after.first, 1);
        assert!(!late.write(before.given(1), "late").await.unwrap());
        assert!(log.write(after.given(0), "one").await.unwrap());
        assert!(!late.write(before.given(1), "late").await.unwrap());
        let reader = place.open("orders", 1, hasty()).await;
        let there: Vec<Bytes> = all_from(&reader, 0).await.into_iter().map(|it| it.data).collect();
        assert_eq!(there[..2], ["zero", "one"]);
    });
}

#[test]
fn what_no_sequencer_can_be_asked_is_refused_in_words() {
    on(Kind::Cluster, |place| async move {
        let log = place.log("orders").await;
        let keyspace = log.keyspace().id();
        let node = hosting(place.cluster.unwrap().connect());
        for input in [wanting(0), wanting(1_025), Bytes::from_static(b"1")] {
            let refused = ask(&node, &place, keyspace, input).await.unwrap_err();
            assert_eq!(refused.kind, ErrorKind::InvalidArgument, "{}", refused.text);
            assert!(refused.text.contains("1 to 1024"), "{}", refused.text);
        }
    });
}
