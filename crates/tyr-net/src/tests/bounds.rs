//! What happens when there is too much: of messages, of connections, of work.

use super::*;

#[test]
fn a_peer_that_does_not_read_costs_a_bounded_outbox_and_nobody_else() {
    let bounded = NetworkConfig { outbox_len_max: 1 << 20, ..config() };
    let site = start(bounded, hello(node(2), 1));
    let other = client(8, 2, &site);
    let mut raw = Raw::connect(site.address);
    raw.greet(&hello(Address::Client(7), 0)).unwrap();
    site.inbox.wait("both are here", |seen| (seen.here.len() == 2).then_some(()));
    // More than the sockets of both sides and the outbox hold together.
    let bytes = Bytes::from(vec![1; 100_000]);
    let mut sent = Vec::new();
    for number in 0..1000 {
        if site.network.send(Address::Client(7), &large(node(2), number, &bytes)) {
            sent.push(number);
        }
        site.network.flush();
    }
    let statistics = site.network.statistics();
    assert!(statistics.dropped_full > 0);
    assert_eq!(statistics.dropped_full + sent.len() as u64, 1000);
    assert_speak(&other, &site, Address::Client(8), node(2));
    assert_speak(&site, &other, node(2), Address::Client(8));
    let heard: Vec<_> = sent.iter().map(|_| number(&raw.hear().unwrap())).collect();
    assert_eq!(heard, sent, "what was taken arrives, once somebody reads");
    send_surely(&site.network, Address::Client(7), &small(node(2), 2000));
    site.network.flush();
    assert_eq!(number(&raw.hear().unwrap()), 2000);
}

#[test]
fn clients_that_do_not_read_share_a_bound_that_does_not_hold_for_nodes() {
    let bounded = NetworkConfig { client_outboxes_len_max: 1 << 20, ..config() };
    let (one, two) = pair(bounded);
    let mut raws: Vec<_> = (0..3).map(|_| Raw::connect(two.address)).collect();
    for (name, raw) in (1..).zip(&mut raws) {
        raw.greet(&hello(Address::Client(name), 0)).unwrap();
    }
    two.inbox.wait("all are here", |seen| (seen.here.len() == 4).then_some(()));
    let bytes = Bytes::from(vec![1; 100_000]);
    for number in 0..1000 {
        two.network.send(Address::Client(1), &large(node(2), number, &bytes));
        two.network.flush();
    }
    assert!(!two.network.send(Address::Client(2), &small(node(2), 1)), "they share it");
    assert!(two.network.send(node(1), &small(node(2), 1)));
    two.network.flush();
    assert_eq!(one.inbox.take(1), [1]);
    drop(raws.remove(0));
    eventually("what waited for who is gone is forgotten", || {
        two.network.send(Address::Client(2), &small(node(2), 2))
    });
    two.network.flush();
    assert_eq!(number(&raws[0].hear().unwrap()), 2);
}

#[test]
fn a_peer_that_takes_nothing_for_too_long_is_given_up() {
    let impatient = NetworkConfig { silence_timeout: Duration::from_secs(1), ..config() };
    let site = start(impatient, hello(node(2), 1));
    let mut raw = Raw::connect(site.address);
    raw.greet(&hello(Address::Client(7), 0)).unwrap();
    site.inbox.wait("it is here", |seen| (!seen.here.is_empty()).then_some(()));
    let bytes = Bytes::from(vec![1; 20 << 20]);
    assert!(site.network.send(Address::Client(7), &large(node(2), 1, &bytes)));
    site.network.flush();
    site.inbox.wait("it is gone", |seen| (!seen.gone.is_empty()).then_some(()));
    assert!(!site.network.send(Address::Client(7), &small(node(2), 1)));
    eventually("its place is free", || {
        site.network.shared().counters.places.load(Ordering::Relaxed) == 0
    });
    assert_eq!(site.network.shared().counters.client_outboxes_len.load(Ordering::Relaxed), 0);
}

#[test]
fn clients_are_refused_when_there_are_too_many_connections_and_nodes_are_not() {
    let bounded = NetworkConfig { connections_max: 2, ..config() };
    let site = start(bounded, hello(node(2), 1));
    let mut raws: Vec<_> = (0..3).map(|_| Raw::connect(site.address)).collect();
    raws[0].greet(&hello(Address::Client(0), 0)).unwrap();
    raws[1].greet(&hello(Address::Client(1), 0)).unwrap();
    let error = raws[2].greet(&hello(Address::Client(2), 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("there are 2 connections"), "{error}");
    assert_refused(&site, Refusal::Full, 1);
    Raw::connect(site.address).greet(&hello(node(1), 1)).unwrap();
    raws.clear();
    eventually("there is a place again", || {
        Raw::connect(site.address).greet(&hello(Address::Client(3), 0)).is_ok()
    });
}

#[test]
fn while_the_receiver_is_busy_clients_are_not_read_from_and_nodes_are() {
    let (one, two) = pair(config());
    let client = client(8, 2, &two);
    two.inbox.wait("both are here", |seen| (seen.here.len() == 2).then_some(()));
    two.inbox.is_busy.store(true, Ordering::SeqCst);
    // A read may be under way, and brings this.
    send_surely(&client.network, node(2), &small(Address::Client(8), 0));
    client.network.flush();
    eventually("the connection waits", || two.inbox.is_told.load(Ordering::SeqCst));
    for number in 1..100 {
        send_surely(&client.network, node(2), &small(Address::Client(8), number));
        client.network.flush();
    }
    for number in 1000..2000 {
        send_surely(&one.network, node(2), &small(node(1), number));
        one.network.flush();
    }
    let is_of_node = |envelope: &Envelope| envelope.from == node(1);
    two.inbox.wait("those of the node", |seen| {
        (seen.messages.iter().filter(|envelope| is_of_node(envelope)).count() == 1000).then_some(())
    });
    two.inbox.seen.lock().messages.retain(|envelope| !is_of_node(envelope));
    assert!(two.inbox.count() <= 1, "clients wait");
    two.inbox.is_busy.store(false, Ordering::SeqCst);
    two.network.resume();
    assert_eq!(two.inbox.take(100), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_configuration_out_of_range_is_refused() {
    for wrong in [
        NetworkConfig { threads: 0, ..config() },
        NetworkConfig { threads: 1000, ..config() },
        NetworkConfig { connections_max: 0, ..config() },
        NetworkConfig { silence_timeout: Duration::from_millis(10), ..config() },
        NetworkConfig { backoff_max: Duration::from_millis(1), ..config() },
    ] {
        let parts = NetworkParts {
            identity: Arc::new(|| hello(node(1), 1)),
            authenticate: Arc::new(Doorkeeper),
            receive: Arc::new(Inbox::default()),
            control: None,
        };
        let error = Network::start(wrong, parts).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn a_port_in_use_is_refused_in_words() {
    let site = start(config(), hello(node(1), 1));
    let error = site.network.listen(site.address).unwrap_err();
    assert!(error.message().contains("does another process"), "{error}");
}
