//! Connections that end, and come back.

use super::*;

#[test]
fn two_nodes_that_know_each_other_have_one_connection() {
    let (one, two) = pair(config());
    assert_speak(&one, &two, node(1), node(2));
    assert_speak(&two, &one, node(2), node(1));
    for site in [&one, &two] {
        let statistics = site.network.statistics();
        assert_eq!(statistics.nodes, 1);
        assert_eq!(statistics.accepted + statistics.connected, 1);
    }
    assert_eq!(two.network.statistics().accepted, 1, "the lower number connects");
    assert!(two.network.statistics().targets.is_empty());
}

#[test]
fn a_node_that_comes_back_at_its_address_is_connected_again() {
    let (one, two) = pair(config());
    let address = two.address;
    two.network.close();
    one.inbox.wait("node 2 is gone", |seen| (seen.gone.len() == 1).then_some(()));
    eventually("an attempt fails", || one.network.statistics().targets[&NodeId(2)].failures > 1);
    let status = one.network.statistics().targets[&NodeId(2)].clone();
    assert_eq!(status.connected, None);
    let error = status.last_error.unwrap();
    assert!(error.contains(&format!("node 2 at {address}: nobody listens there")), "{error}");
    let two = start_at(config(), hello(node(2), 2), address);
    two.inbox.wait("node 1 is here", |seen| (!seen.here.is_empty()).then_some(()));
    assert_speak(&one, &two, node(1), node(2));
    let status = one.network.statistics().targets[&NodeId(2)].clone();
    assert_eq!((status.connected, status.failures), (Some(address), 0));
    let peers = one.inbox.wait("both", |seen| (seen.here.len() == 2).then(|| seen.here.clone()));
    assert_eq!((peers[0].incarnation, peers[1].incarnation), (1, 2));
    assert!(peers[0].connection < peers[1].connection);
}

#[test]
fn a_node_that_moved_is_connected_at_its_new_address_at_once() {
    let patient = NetworkConfig {
        backoff_min: DEADLINE * 2,
        backoff_max: DEADLINE * 2,
        ..NetworkConfig::default()
    };
    let (one, old) = pair(patient);
    // The old one still holds its end, as a machine that lost its power does.
    let new = start(config(), hello(node(2), 2));
    one.network.set_nodes(&nodes(&[(2, new.address)]));
    new.inbox.wait("node 1 is here", |seen| (!seen.here.is_empty()).then_some(()));
    assert_speak(&one, &new, node(1), node(2));
    old.inbox.wait("node 1 is gone", |seen| (seen.gone.len() == 1).then_some(()));
}

#[test]
fn a_node_that_is_not_reached_is_tried_at_once_when_nodes_are_told_anew() {
    let patient = NetworkConfig {
        backoff_min: DEADLINE * 2,
        backoff_max: DEADLINE * 2,
        ..NetworkConfig::default()
    };
    let (one, two) = pair(patient);
    let address = two.address;
    two.network.close();
    one.inbox.wait("node 2 is gone", |seen| (seen.gone.len() == 1).then_some(()));
    let two = start_at(config(), hello(node(2), 2), address);
    one.network.set_nodes(&nodes(&[(2, address)]));
    two.inbox.wait("node 1 is here", |seen| (!seen.here.is_empty()).then_some(()));
    assert_speak(&one, &two, node(1), node(2));
}

#[test]
fn a_node_that_is_not_used_any_more_is_let_go() {
    let (one, two) = pair(config());
    one.network.set_nodes(&BTreeMap::new());
    two.inbox.wait("node 1 is gone", |seen| (seen.gone.len() == 1).then_some(()));
    eventually("none is left", || one.network.statistics().nodes == 0);
    assert!(one.network.statistics().targets.is_empty());
}

#[test]
fn of_many_connections_that_one_client_makes_at_once_the_newest_stays() {
    let site = start(config(), hello(node(1), 1));
    let said = hello(Address::Client(5), 0);
    let mut raws: Vec<_> = (0..20).map(|_| Raw::connect(site.address)).collect();
    std::thread::scope(|scope| {
        for raw in &mut raws {
            scope.spawn(|| raw.greet(&said).unwrap());
        }
    });
    let (here, gone) = site.inbox.wait("all but one are gone", |seen| {
        (seen.gone.len() == 19).then(|| (seen.here.clone(), seen.gone.clone()))
    });
    assert_eq!(here.len(), 20);
    assert_eq!(site.network.statistics().clients, 1);
    let left: Vec<_> =
        here.iter().filter(|peer| !gone.iter().any(|gone| Arc::ptr_eq(gone, peer))).collect();
    // Numbers are given before one is taken into use, so the highest need not be the last.
    assert_eq!(left.len(), 1);
    let mut last =
        raws.into_iter().find(|raw| raw.stream.local_addr().unwrap() == left[0].socket).unwrap();
    send_surely(&site.network, Address::Client(5), &small(node(1), 9));
    site.network.flush();
    assert_eq!(last.hear().map(|envelope| number(&envelope)), Some(9));
}

/// F4.
#[test]
fn another_client_of_the_same_number_is_refused_in_words_and_ones_own_newer_connection_is_not() {
    let site = start(config(), hello(node(1), 1));
    let mut first = Raw::connect(site.address);
    first.greet(&hello(Address::Client(5), 3)).unwrap();
    site.inbox.wait("it is here", |seen| (!seen.here.is_empty()).then_some(()));
    for count in [3, 1] {
        let error = Raw::connect(site.address).greet(&hello(Address::Client(5), count));
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert!(error.message().contains("connected under the number of this one"), "{error}");
    }
    assert_refused(&site, Refusal::Identity, 2);
    let mut again = Raw::connect(site.address);
    again.greet(&hello(Address::Client(5), 4)).unwrap();
    assert!(first.is_closed());
}

/// F4: each would end the other's connection for ever.
#[test]
fn a_second_client_of_one_number_does_not_disturb_the_first() {
    let site = start(config(), hello(node(1), 1));
    let first = client(5, 1, &site);
    let second = start(config(), hello(Address::Client(5), 0));
    second.network.set_nodes(&nodes(&[(1, site.address)]));
    second.inbox.wait("it is refused", |seen| (seen.refused == [NodeId(1)]).then_some(()));
    let status = second.network.statistics().targets[&NodeId(1)].clone();
    assert!(status.last_error.unwrap().contains("connect anew"));
    assert_speak(&first, &site, Address::Client(5), node(1));
    assert_eq!((status.failures, site.network.statistics().clients), (1, 1));
}

/// The first connection may have ended without the node having heard of it.
#[test]
fn a_client_that_comes_back_takes_the_place_of_its_own_connection() {
    let site = start(config(), hello(node(1), 1));
    let first = client(5, 1, &site);
    for times in 2..5 {
        first.network.disconnect(node(1), "it is a test");
        first.inbox.wait("it is back", |seen| (seen.here.len() == times).then_some(()));
        assert_speak(&first, &site, Address::Client(5), node(1));
    }
    assert_eq!(site.network.statistics().refused.values().sum::<u64>(), 0);
}

#[test]
fn an_older_incarnation_does_not_take_the_place_of_a_newer() {
    let site = start(config(), hello(node(2), 1));
    let mut newer = Raw::connect(site.address);
    newer.greet(&hello(node(1), 5)).unwrap();
    site.inbox.wait("it is here", |seen| (!seen.here.is_empty()).then_some(()));
    let error = Raw::connect(site.address).greet(&hello(node(1), 4)).unwrap_err();
    assert!(error.message().contains("connected already as incarnation 5"), "{error}");
    assert_refused(&site, Refusal::Identity, 1);
    newer.say(&small(node(1), 3));
    assert_eq!(site.inbox.take(1), [3]);
    let mut newest = Raw::connect(site.address);
    newest.greet(&hello(node(1), 6)).unwrap();
    assert!(newer.is_closed());
    newest.say(&small(node(1), 4));
    assert_eq!(site.inbox.take(1), [4]);
}

#[test]
fn a_connection_that_is_ended_by_its_owner_comes_back() {
    let (one, two) = pair(config());
    two.network.disconnect(node(1), "it is a test");
    one.inbox.wait("node 2 is back", |seen| (seen.here.len() == 2).then_some(()));
    two.inbox.wait("node 1 is back", |seen| (seen.here.len() == 2).then_some(()));
    assert_speak(&one, &two, node(1), node(2));
}

#[test]
fn names_are_looked_up_and_addresses_tried_in_turn() {
    let (one, two) = (start(config(), hello(node(1), 1)), start(config(), hello(node(2), 1)));
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let free = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let named = format!("localhost:{}", two.address.port());
    let addresses = NodeAddresses { addresses: vec![free, named], tls_name: None };
    one.network.set_nodes(&BTreeMap::from([(NodeId(2), addresses)]));
    one.inbox.wait("node 2 is here", |seen| (!seen.here.is_empty()).then_some(()));
    assert_speak(&one, &two, node(1), node(2));
}
