//! What a version manager tells of the snapshots in use (V2).

use std::sync::Arc;

use tyr_types::{ByteRange, NodeId, Timestamp};

use super::checkpoints::transaction;
use super::stand::{CLIENT, Stand, map};
use super::world::blob;
use crate::chain::Ends;
use crate::level::LEVEL;
use crate::map::Change;
use crate::member::{Effect, Event, MemberConfig, Record};
use crate::message::{Address, Body, Envelope, ReadRequest};
use crate::read::Kind;
use crate::versions::Usage;

/// A node by itself that knows of all snapshots: a read timeout has passed since it started.
fn sure() -> Stand {
    let mut stand = Stand::new(0, &map(1));
    stand.lease();
    stand.now_us += MemberConfig::default().read_timeout_us;
    stand.lease();
    stand
}

/// The client says this; what is written to the log is durable at once.
fn hear(stand: &mut Stand, body: Body) -> Vec<Effect> {
    let (epoch, from) = (stand.member.epoch(), Address::Client(CLIENT));
    let envelope = Envelope { epoch, incarnation: 0, from, body };
    let mut effects = stand.step(Event::Receive(envelope));
    let persisted = |effect: &Effect| match effect {
        Effect::Persist { number, is_synced: true, .. } => Some(*number),
        _ => None,
    };
    let numbers: Vec<u64> = effects.iter().filter_map(persisted).collect();
    for number in numbers {
        effects.extend(stand.step(Event::Persisted { number }));
    }
    effects
}

/// A snapshot of the blob begins with this read of the client; answers where it reads.
fn begin(stand: &mut Stand, read: u64) -> Timestamp {
    stand.now_us += 1_000;
    let request = ReadRequest {
        read,
        asker: Address::Client(CLIENT),
        blob: blob(0),
        range: ByteRange { start: 0, end: 8 },
        is_attributes: true,
        kind: Kind::First,
        is_copy: false,
    };
    let effects = hear(stand, Body::Read(request));
    let served = effects.iter().find_map(|effect| match effect {
        Effect::Serve { at, .. } => *at,
        _ => None,
    });
    served.expect("the blob is clean")
}

/// The blob is written a second later; answers what is known of it then, if anything is.
fn told(stand: &mut Stand) -> Option<Usage> {
    stand.lease();
    stand.asked += 1;
    let transaction = transaction(u128::from(CLIENT) << 64 | u128::from(stand.asked), 0);
    let begun_us = stand.now_us;
    let (ends, is_retry, settled) = (Ends::new(), false, 0);
    hear(stand, Body::Submit { transaction, ends, begun_us, is_retry, settled });
    stand.shelf.usages.get(&blob(0)).cloned()
}

/// V2.
#[test]
fn each_snapshot_in_use_is_told_and_the_news_are_of_now_however_old_it_is() {
    let mut stand = sure();
    let first = begin(&mut stand, 1);
    let before = told(&mut stand).unwrap();
    assert_eq!(before.moments(), [first]);
    let second = begin(&mut stand, 2);
    let later = told(&mut stand).unwrap();
    assert_eq!(later.moments(), [first, second]);
    assert!(before.as_of() <= second, "it was said before that others may begin from there on");
    assert!(second < later.as_of(), "news are of when they are told");
    hear(&mut stand, Body::SnapshotEnded { read: 1 });
    let last = told(&mut stand).unwrap();
    assert_eq!(last.moments(), [second]);
    assert!(later.as_of().clock + 500_000 < last.as_of().clock, "the second lasts on");
}

/// V1, V2: what nobody ends is told until the read timeout.
#[test]
fn a_snapshot_that_its_client_forgot_is_told_until_the_read_timeout() {
    let mut stand = sure();
    let at = begin(&mut stand, 1);
    stand.now_us += MemberConfig::default().read_timeout_us - 2_000_000;
    assert_eq!(told(&mut stand).unwrap().moments(), [at]);
    stand.now_us += 1_000_000;
    assert_eq!(told(&mut stand).unwrap().moments(), []);
}

/// V2: half of the truth would let versions go that are in use.
#[test]
fn who_has_started_again_tells_nothing_before_what_it_forgot_has_timed_out() {
    let first = map(1);
    let mut stand = Stand::new(0, &first);
    stand.member.replay(Record::Map(Arc::new(first.clone())), &mut stand.shelf);
    let incarnation = stand.member.incarnation();
    let back = Change::Return { node: NodeId(0), incarnation, has_disk: true, level: LEVEL };
    stand.learn(&first.changed(&back).unwrap());
    stand.lease();
    let at = begin(&mut stand, 1);
    stand.now_us += MemberConfig::default().read_timeout_us - 2_000_000;
    assert_eq!(told(&mut stand), None);
    let later = begin(&mut stand, 2);
    stand.now_us += 1_000_000;
    assert_eq!(told(&mut stand).unwrap().moments(), [later], "{at} has timed out");
}
