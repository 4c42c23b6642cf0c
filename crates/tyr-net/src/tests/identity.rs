//! Who may connect to whom, and what is said to who may not.

use super::*;

/// What `one` is told when it is node 2 that it wants and `two` is there.
#[track_caller]
fn refused(one: &Site, two: &Site, refusal: Option<Refusal>) -> String {
    one.network.set_nodes(&nodes(&[(2, two.address)]));
    eventually("an attempt fails", || one.network.statistics().targets[&NodeId(2)].failures > 1);
    if let Some(refusal) = refusal {
        eventually("it is counted", || two.network.statistics().refused(refusal) > 0);
    }
    assert!(one.inbox.seen.lock().here.is_empty());
    assert!(two.inbox.seen.lock().here.is_empty());
    one.network.statistics().targets[&NodeId(2)].last_error.clone().unwrap()
}

#[test]
fn nodes_of_two_clusters_do_not_speak() {
    let one = start(config(), hello(node(1), 1));
    let two = start(config(), Hello { cluster: Some(0xbad), ..hello(node(2), 1) });
    let error = refused(&one, &two, Some(Refusal::Cluster));
    assert!(error.contains("two clusters"), "{error}");
    assert!(error.contains("00000000000000000000000000c10573"), "{error}");
    assert!(error.contains("00000000000000000000000000000bad"), "{error}");
}

#[test]
fn who_does_not_know_its_cluster_yet_is_taken() {
    let one = start(config(), Hello { cluster: None, ..hello(node(1), 1) });
    let two = start(config(), hello(node(2), 1));
    meet(&one, &two);
    assert_speak(&one, &two, node(1), node(2));
}

#[test]
fn a_wrong_token_is_refused_in_the_words_of_the_authenticator() {
    let token = Bytes::from_static(b"let me in");
    let one = start(config(), Hello { token, ..hello(node(1), 1) });
    let two = start(config(), hello(node(2), 1));
    let error = refused(&one, &two, Some(Refusal::Permission));
    assert!(error.contains("the token is not known; ask an administrator"), "{error}");
}

#[test]
fn who_finds_another_node_at_an_address_hears_so() {
    let one = start(config(), hello(node(1), 1));
    let two = start(config(), hello(node(3), 1));
    let error = refused(&one, &two, Some(Refusal::Identity));
    assert!(error.contains("here is node 3, not node 2"), "{error}");
}

#[test]
fn two_nodes_of_one_number_hear_so() {
    let site = start(config(), hello(node(2), 1));
    let error = Raw::connect(site.address).greet(&hello(node(2), 9)).unwrap_err();
    assert!(error.message().contains("both sides are node 2"), "{error}");
}

#[test]
fn the_higher_number_does_not_connect_and_monitors_do_not() {
    let site = start(config(), hello(node(2), 1));
    let error = Raw::connect(site.address).greet(&hello(node(3), 1)).unwrap_err();
    assert!(error.message().contains("the one of the lower number does"), "{error}");
    assert!(Raw::connect(site.address).greet(&hello(Address::Monitors, 0)).is_err());
    assert_refused(&site, Refusal::Identity, 2);
}

#[test]
fn another_version_is_told_ours() {
    let site = start(config(), hello(node(2), 1));
    let mut bytes = BytesMut::from(&hello(node(1), 1).to_bytes().unwrap()[..]);
    bytes[8] = 99;
    let mut raw = Raw::connect(site.address);
    raw.send(&bytes);
    let error = raw.hear_hello().unwrap_err();
    assert!(error.message().contains("speaks version 99"), "{error}");
    assert_refused(&site, Refusal::Version, 1);
}

#[test]
fn the_answer_says_who_we_are_and_keeps_our_token() {
    let site = start(config(), hello(node(2), 6));
    let answer = Raw::connect(site.address).greet(&hello(Address::Client(1), 0)).unwrap();
    let receiver = Some(Address::Client(1));
    assert_eq!(answer, Hello { receiver, token: Bytes::new(), ..hello(node(2), 6) });
}

#[test]
fn a_client_that_speaks_as_somebody_else_is_closed() {
    let site = start(config(), hello(node(2), 1));
    for (claim, count) in [(node(1), 1), (Address::Client(2), 2), (Address::Monitors, 3)] {
        let mut raw = Raw::connect(site.address);
        raw.greet(&hello(Address::Client(1), 0)).unwrap();
        raw.say(&small(Address::Client(1), 1));
        assert_eq!(site.inbox.take(1), [1]);
        raw.say(&small(claim, 1));
        assert!(raw.is_closed());
        assert_eq!(site.network.statistics().broken, count);
    }
    assert_eq!(site.inbox.count(), 0);
}

#[test]
fn a_node_speaks_for_the_monitors_too() {
    let (one, two) = pair(config());
    assert_speak(&one, &two, Address::Monitors, node(2));
}
