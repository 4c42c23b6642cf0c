//! What a version manager tells of the snapshots in use (V2).

use std::sync::Arc;

use tyr_types::{ByteRange, Epoch, NodeId, Timestamp};

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

/// The client takes a moment of everything, as this question, or says where it is.
fn moment(stand: &mut Stand, read: u64, placed: Option<(u64, Timestamp)>) -> Option<Timestamp> {
    let effects = hear(stand, Body::Moment { read, placed });
    let answered = effects.into_iter().find_map(|effect| match effect {
        Effect::Send { envelope: Envelope { body: Body::Part(part), .. }, .. } => Some(part),
        _ => None,
    });
    answered.and_then(|part| part.at)
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

/// V5: nobody knows yet where it reads, but all from where on.
#[test]
fn a_moment_of_everything_is_told_of_every_blob_from_the_first_question_to_the_end() {
    let mut stand = sure();
    let clock = moment(&mut stand, 1, None).unwrap();
    for _ in 0..2 {
        let from = told(&mut stand).unwrap();
        assert_eq!((from.as_of(), from.moments()), (clock, &[][..]));
    }
    assert_eq!(moment(&mut stand, 1, None), Some(clock), "either answer counts");
    let at = Timestamp { clock: clock.clock + 700_000, ..clock };
    let low = Timestamp { clock: clock.clock - 1, ..clock };
    assert_eq!(moment(&mut stand, 2, Some((1, low))), None, "there versions may have gone");
    assert_eq!(moment(&mut stand, 2, Some((1, at))), Some(at));
    assert_eq!(moment(&mut stand, 2, Some((1, at))), Some(at), "asked again");
    assert!(stand.member.clock() >= at, "R5");
    let first = begin(&mut stand, 3);
    let both = told(&mut stand).unwrap();
    assert_eq!(both.moments(), [at, first]);
    assert_eq!(stand.member.snapshot_floor(), at);
    hear(&mut stand, Body::SnapshotEnded { read: 2 });
    assert_eq!(told(&mut stand).unwrap().moments(), [first]);
}

/// V5: who never says where it reads must not keep every version for a read timeout.
#[test]
fn a_moment_that_is_not_placed_in_time_is_forgotten_and_cannot_be_placed_any_more() {
    let mut stand = sure();
    let clock = moment(&mut stand, 1, None).unwrap();
    stand.now_us += 8_000_000;
    assert_eq!(told(&mut stand).unwrap().as_of(), clock);
    assert!(told(&mut stand).unwrap().as_of() > clock);
    assert_eq!(moment(&mut stand, 2, Some((1, clock))), None);
    assert_eq!(moment(&mut stand, 2, Some((7, clock))), None, "nor one that was never begun");
    let (again, ahead) = (moment(&mut stand, 1, None).unwrap(), 20_000_000);
    let ahead = Timestamp { clock: again.clock + ahead, ..again };
    assert_eq!(moment(&mut stand, 2, Some((1, ahead))), None, "no node has given that out");
}

/// V5: who goes by another map does not know all authorities.
#[test]
fn a_moment_is_taken_by_the_newest_map_only() {
    let mut stand = sure();
    let mut ask = |epoch: u32, read: u64| {
        let envelope = Envelope {
            epoch: Epoch(epoch),
            incarnation: 0,
            from: Address::Client(CLIENT),
            body: Body::Moment { read, placed: None },
        };
        let effects = stand.step(Event::Receive(envelope));
        effects.into_iter().any(|effect| match effect {
            Effect::Send { envelope, .. } => matches!(envelope.body, Body::Part(_)),
            _ => false,
        })
    };
    assert!(!ask(0, 1) && ask(1, 1));
}
