//! Messages on connections that are well.

use super::*;

/// Both nodes send so many each.
const MANY: u64 = 500_000;

/// Sends numbers from 0 on, some before each flush.
fn send_many(site: &Site, from: Address, to: Address) {
    for number in 0..MANY {
        send_surely(&site.network, to, &small(from, number));
        if number % 50 == 0 {
            site.network.flush();
        }
    }
    site.network.flush();
}

#[test]
fn two_nodes_exchange_a_million_messages_in_order() {
    let (one, two) = pair(config());
    std::thread::scope(|scope| {
        scope.spawn(|| send_many(&one, node(1), node(2)));
        scope.spawn(|| send_many(&two, node(2), node(1)));
        for site in [&one, &two] {
            for start in (0..MANY).step_by(10_000) {
                let expected: Vec<_> = (start..start + 10_000).collect();
                assert!(site.inbox.take(10_000) == expected, "from {start} on");
            }
        }
    });
    let statistics = one.network.statistics();
    assert_eq!((statistics.messages_sent, statistics.messages_received), (MANY, MANY));
    assert!(statistics.writes <= MANY / 10, "{} writes", statistics.writes);
    assert!(statistics.reads <= MANY / 10, "{} reads", statistics.reads);
}

#[test]
fn messages_of_many_threads_on_one_connection_all_arrive_in_order_of_each() {
    const THREADS: u64 = 8;
    const EACH: u64 = 20_000;
    let (one, two) = pair(config());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let one = &one;
            scope.spawn(move || {
                for number in 0..EACH {
                    send_surely(&one.network, node(2), &small(node(1), number * THREADS + thread));
                    one.network.flush();
                }
            });
        }
    });
    let got = two.inbox.take((THREADS * EACH) as usize);
    for thread in 0..THREADS {
        let of_thread: Vec<_> = got.iter().filter(|number| *number % THREADS == thread).collect();
        assert_eq!(of_thread.len() as u64, EACH);
        assert!(of_thread.is_sorted());
    }
}

#[test]
fn the_largest_answers_travel_beside_small_messages() {
    let (one, two) = pair(config());
    let bytes = Bytes::from(vec![0xab; tyr_types::limits::READ_LEN_MAX as usize]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..100 {
                match number % 40 {
                    7 => send_surely(&one.network, node(2), &large(node(1), number, &bytes)),
                    _ => send_surely(&one.network, node(2), &small(node(1), number)),
                }
                one.network.flush();
            }
        });
        for number in 0..100 {
            let got = two.inbox.wait("the next", |seen| {
                (!seen.messages.is_empty()).then(|| seen.messages.remove(0))
            });
            assert_eq!(super::number(&got), number);
            if let Body::Part(part) = got.body {
                assert!(part.bytes == bytes, "{number}");
            }
        }
    });
}

#[test]
fn a_message_longer_than_a_frame_is_dropped_and_the_connection_stays() {
    let (one, two) = pair(config());
    let bytes = Bytes::from(vec![0; tyr_protocol::wire::FRAME_LEN_MAX]);
    assert!(!one.network.send(node(2), &large(node(1), 1, &bytes)));
    assert_eq!(one.network.statistics().dropped_too_long, 1);
    assert_speak(&one, &two, node(1), node(2));
}

#[test]
fn a_message_to_who_is_not_connected_is_dropped_and_counted() {
    let site = start(config(), hello(node(1), 1));
    for to in [node(1), node(2), Address::Client(3), Address::Monitors] {
        assert!(!site.network.send(to, &small(node(1), 1)));
    }
    assert_eq!(site.network.statistics().dropped_unconnected, 4);
}

#[test]
fn a_client_asks_and_the_node_answers_from_where_it_receives() {
    let site = start(config(), hello(node(1), 1));
    let network = site.network.clone();
    *site.inbox.react.lock() = Some(Box::new(move |peer, batch| {
        for envelope in batch {
            network.send(peer.address, &small(node(1), number(envelope) + 1000));
        }
        network.flush();
    }));
    let client = client(77, 1, &site);
    assert_eq!(client.inbox.wait("", |seen| seen.here.first().cloned()).address, node(1));
    let peer = site.inbox.wait("the client is here", |seen| seen.here.first().cloned());
    assert_eq!(peer.principal.get::<String>().unwrap(), "Client(77)");
    for number in 0..1000 {
        send_surely(&client.network, node(1), &small(Address::Client(77), number));
        client.network.flush();
    }
    assert_eq!(client.inbox.take(1000), (1000..2000).collect::<Vec<_>>());
    // It holds the network that holds it.
    *site.inbox.react.lock() = None;
}

#[test]
fn connections_are_spread_over_threads() {
    let config = NetworkConfig { threads: 3, ..config() };
    let site = start(config, hello(node(1), 1));
    let threads = Arc::new(Mutex::new(std::collections::BTreeSet::new()));
    let seen = Arc::clone(&threads);
    *site.inbox.react.lock() = Some(Box::new(move |_, _| {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        seen.lock().insert(name);
    }));
    let clients: Vec<_> = (0..6).map(|name| client(name, 1, &site)).collect();
    for (name, client) in clients.iter().enumerate() {
        send_surely(&client.network, node(1), &small(Address::Client(name as u64), 1));
        client.network.flush();
    }
    eventually("all threads receive", || threads.lock().len() == 3);
}

/// More than sockets take at once, so it is not the thread that flushes that writes it.
#[test]
fn what_was_sent_before_the_end_arrives() {
    let (one, two) = pair(config());
    assert_last_arrive(&one, &two);
}

#[test]
fn a_network_can_be_closed_from_where_it_receives() {
    let (one, two) = pair(config());
    let network = two.network.clone();
    *two.inbox.react.lock() = Some(Box::new(move |_, _| network.close()));
    send_surely(&one.network, node(2), &small(node(1), 1));
    one.network.flush();
    one.inbox.wait("node 2 is gone", |seen| (!seen.gone.is_empty()).then_some(()));
    *two.inbox.react.lock() = None;
}
