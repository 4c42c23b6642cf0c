//! The driver on the loopback.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tyr_types::{Epoch, ErrorKind, NodeId};

use crate::{Gossip, GossipConfig, GossipEvent, GossipOptions, PeerState, Rejection, Rumour};
use tyr_net::NodeAddresses;
use tyr_net::access::Key;

/// Generous: the machine may be busy.
const DEADLINE: Duration = Duration::from_secs(30);

/// What the nodes of one test found, in order.
#[derive(Default)]
struct Log {
    found: Mutex<Vec<(Instant, u16, GossipEvent)>>,
    changed: Condvar,
}

impl Log {
    /// Waits until so many such were found. Answers when the last came.
    fn wait_for(&self, count: usize, is_it: impl Fn(u16, GossipEvent) -> bool) -> Instant {
        let deadline = Instant::now() + DEADLINE;
        let mut found = self.found.lock();
        loop {
            let mut such = found.iter().filter(|(_, by, event)| is_it(*by, *event));
            if let Some((at, _, _)) = such.nth(count - 1) {
                return *at;
            }
            let waited = self.changed.wait_until(&mut found, deadline);
            assert!(!waited.timed_out(), "{:?}", *found);
        }
    }
}

fn options(node: u16, address: SocketAddr, secret: &str) -> GossipOptions {
    GossipOptions {
        node: NodeId(node),
        incarnation: 1,
        cluster: Some(5),
        secret: Some(Key::of(secret)),
        address,
        config: GossipConfig::default(),
        runtime: None,
    }
}

fn start(node: u16, secret: &str, log: &Arc<Log>) -> Gossip {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let log = Arc::clone(log);
    let events = Arc::new(move |event| {
        log.found.lock().push((Instant::now(), node, event));
        log.changed.notify_all();
    });
    Gossip::start(options(node, any, secret), events).unwrap()
}

fn addresses(nodes: &BTreeMap<u16, Gossip>) -> BTreeMap<NodeId, NodeAddresses> {
    let at = |it: &Gossip| NodeAddresses {
        addresses: vec![it.address().to_string()],
        ..NodeAddresses::default()
    };
    nodes.iter().map(|(node, it)| (NodeId(*node), at(it))).collect()
}

fn start_all(count: u16, log: &Arc<Log>) -> BTreeMap<u16, Gossip> {
    let nodes: BTreeMap<u16, Gossip> =
        (1..=count).map(|node| (node, start(node, "secret", log))).collect();
    let addresses = addresses(&nodes);
    nodes.values().for_each(|gossip| gossip.set_nodes(&addresses));
    let all = usize::from(count * (count - 1));
    log.wait_for(all, |_, event| matches!(event, GossipEvent::Alive { .. }));
    nodes
}

#[test]
fn nodes_on_sockets_find_each_other_hear_rumours_and_notice_a_goodbye() {
    let log = Arc::new(Log::default());
    let mut nodes = start_all(3, &log);
    nodes[&1].tell(Rumour { epoch: Epoch(7), ..Rumour::default() }).unwrap();
    let event = GossipEvent::Epoch { epoch: Epoch(7), node: NodeId(1) };
    log.wait_for(2, |_, it| it == event);
    assert_eq!(nodes[&2].rumours()[0].rumour.epoch, Epoch(7));
    let gone = nodes.remove(&3).unwrap();
    gone.close();
    log.wait_for(2, |_, it| it == GossipEvent::Down { node: NodeId(3), incarnation: 1 });
    assert_eq!(nodes[&1].view()[1].state, PeerState::Down);
    assert!(nodes[&1].statistics().sent > 0);
}

#[test]
fn a_node_that_vanishes_is_found_down_on_sockets() {
    let log = Arc::new(Log::default());
    let nodes = start_all(3, &log);
    // Without a word: to all others it is where nobody listens.
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut moved = addresses(&nodes);
    moved.get_mut(&NodeId(3)).unwrap().addresses = vec![silent.local_addr().unwrap().to_string()];
    nodes[&3].set_nodes(&BTreeMap::new());
    let gone_at = Instant::now();
    nodes.values().take(2).for_each(|gossip| gossip.set_nodes(&moved));
    let is_it = |_, event| event == GossipEvent::Down { node: NodeId(3), incarnation: 1 };
    let [first, last] = [1, 2].map(|count| log.wait_for(count, is_it) - gone_at);
    println!("on sockets: found down by the first after {first:?}, by both after {last:?}");
    let others = |event| matches!(event, GossipEvent::Down { node, .. } if node != NodeId(3));
    assert!(!log.found.lock().iter().any(|(_, by, event)| *by != 3 && others(*event)));
}

#[test]
fn who_has_another_secret_is_not_heard() {
    let log = Arc::new(Log::default());
    let mut nodes = start_all(2, &log);
    nodes.insert(3, start(3, "other", &log));
    let all = addresses(&nodes);
    nodes.values().for_each(|gossip| gossip.set_nodes(&all));
    log.wait_for(1, |by, event| {
        by == 1 && event == GossipEvent::Down { node: NodeId(3), incarnation: 0 }
    });
    let rejected = nodes[&1].statistics().rejected;
    assert!(rejected[&Rejection::Unauthentic] > 0, "{rejected:?}");
    assert_eq!(nodes[&1].view()[0].state, PeerState::Alive);
}

#[test]
fn names_are_looked_up_and_gossip_runs_on_a_runtime_handed_in() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let log = Arc::new(Log::default());
    let mut nodes = BTreeMap::new();
    for node in 1..=2u16 {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let seen = Arc::clone(&log);
        let events = Arc::new(move |event| {
            seen.found.lock().push((Instant::now(), node, event));
            seen.changed.notify_all();
        });
        let options =
            GossipOptions { runtime: Some(runtime.handle().clone()), ..options(node, any, "s") };
        nodes.insert(node, Gossip::start(options, events).unwrap());
    }
    let named: BTreeMap<_, _> = nodes
        .iter()
        .map(|(node, it)| {
            let addresses = vec![format!("localhost:{}", it.address().port())];
            (NodeId(*node), NodeAddresses { addresses, ..NodeAddresses::default() })
        })
        .collect();
    nodes.values().for_each(|gossip| gossip.set_nodes(&named));
    log.wait_for(2, |_, event| matches!(event, GossipEvent::Alive { .. }));
    nodes[&1].close();
    log.wait_for(1, |by, event| by == 2 && matches!(event, GossipEvent::Down { .. }));
}

#[test]
fn an_address_in_use_is_an_error_that_names_it() {
    let log = Arc::new(Log::default());
    let first = start(1, "secret", &log);
    let error = Gossip::start(options(2, first.address(), "secret"), Arc::new(|_| {})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains(&first.address().to_string()), "{error}");
}
