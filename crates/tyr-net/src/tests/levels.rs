//! Programs of other releases at the other end.

use super::*;

/// The frame of a message, as one that needs this feature level.
fn frame_of_level(level: u8, envelope: &Envelope) -> Vec<u8> {
    let mut outgoing = Outgoing::new();
    encode(envelope, &mut outgoing).unwrap();
    let mut frame = outgoing.take_bytes().to_vec();
    frame[9] = level;
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&frame[..4]), &frame[8..]);
    frame[4..8].copy_from_slice(&checksum.to_le_bytes());
    frame
}

#[test]
fn what_is_not_understood_is_dropped_by_itself_and_the_connection_goes_on() {
    let site = start(config(), hello(node(2), 1));
    let mut raw = Raw::connect(site.address);
    raw.greet(&Hello { level: LEVEL + 1, ..hello(node(1), 1) }).unwrap();
    raw.say(&small(node(1), 1));
    raw.send(&frame_of_level(LEVEL + 1, &small(node(1), 2)));
    raw.send(&frame_of_level(LEVEL + 1, &small(node(1), 3)));
    raw.say(&small(node(1), 4));
    assert_eq!(site.inbox.take(2), [1, 4]);
    let unread = std::mem::take(&mut site.inbox.seen.lock().unread);
    assert_eq!(unread.len(), 2);
    assert!(unread.iter().all(|it| it.from == node(1) && it.level == LEVEL + 1));
    let statistics = site.network.statistics();
    assert_eq!((statistics.not_understood, statistics.broken), (2, 0));
}

#[test]
fn who_speaks_for_somebody_else_in_what_is_not_understood_is_closed() {
    let site = start(config(), hello(node(2), 1));
    let mut raw = Raw::connect(site.address);
    raw.greet(&hello(Address::Client(1), 0)).unwrap();
    raw.send(&frame_of_level(LEVEL + 1, &small(node(1), 2)));
    assert!(raw.is_closed());
    assert!(site.inbox.seen.lock().unread.is_empty());
}

#[test]
fn on_a_connection_is_spoken_what_both_ends_speak() {
    let site = start(config(), hello(node(2), 1));
    for (theirs, both) in [(LEVEL + 5, LEVEL), (LEVEL, LEVEL)] {
        let mut raw = Raw::connect(site.address);
        raw.greet(&Hello { level: theirs, ..hello(Address::Client(theirs.into()), 0) }).unwrap();
        let address = Address::Client(theirs.into());
        let peer = site.inbox.wait("the client is here", |seen| {
            seen.here.iter().find(|peer| peer.address == address).cloned()
        });
        assert_eq!(peer.level, both);
    }
}

#[test]
fn nothing_is_sent_that_needs_more_than_the_other_end_speaks() {
    let (one, two) = (start(config(), hello(node(1), 1)), start(config(), hello(node(2), 1)));
    meet(&one, &two);
    // No message of today needs more; a link of level 0 shows the way of one that does.
    let peer = two.inbox.wait("node 1 is here", |seen| seen.here.first().cloned());
    let below = Arc::new(Peer { level: 0, ..(*peer).clone() });
    let bounds = link::OutboxBounds { one: 1 << 20, clients: 1 << 20 };
    let link = link::Link::new(below, None, bounds, Arc::default());
    assert_eq!(link.put(&small(node(2), 1)), Put::TooNew);
    assert_eq!(link.waiting_len(), 0);
}
