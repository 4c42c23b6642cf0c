//! What a node that starts again, or others that go, must not take away (F3, M3, R1).

use std::sync::Arc;

use tyr_types::{
    BlobOperations, ByteRange, Bytes, NodeId, Operation, Payload, Timestamp, Transaction,
    TransactionId,
};

use super::stand::{CLIENT, Stand, map};
use super::world::blob;
use crate::chain::Ends;
use crate::commit::{Attempt, Placements};
use crate::level::LEVEL;
use crate::map::{Change, ClusterMap, Newcomer};
use crate::member::{Effect, Event, Record};
use crate::message::{Address, Body, Envelope, ReadRequest};
use crate::read::Kind;

/// The log's record of a write whose whole chain is this node.
fn validated(map: &ClusterMap) -> Record {
    let payload = Payload::Inline(Bytes::from_static(b"answered"));
    let operations = vec![Operation::Write { offset: 0, payload }];
    let blobs = vec![BlobOperations { blob: blob(0), operations }];
    let transaction =
        Arc::new(Transaction { id: TransactionId(1 << 64), blobs, reads: Vec::new() });
    let at = |clock| Timestamp { epoch: map.epoch, clock, node: 0 };
    Record::Validated {
        chain: map.chain(&transaction, &Ends::new()).unwrap(),
        transaction,
        attempt: Attempt { epoch: map.epoch, number: 0, coordinator: NodeId(0) },
        begun: at(500),
        proposal: at(600),
        placed: Placements::new(),
    }
}

fn is_served(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Serve { .. }))
}

/// R1: its client may have been answered before the node started again, and a node that joins since
/// has to be asked before it is applied.
#[test]
fn what_one_node_had_decided_alone_is_waited_for_after_a_restart() {
    let first = map(1);
    let newcomer = Newcomer { node: NodeId(1), incarnation: 1, ..Newcomer::default() };
    let second = first.changed(&Change::Join(vec![newcomer])).unwrap();
    let mut stand = Stand::new(0, &first);
    stand.member.replay(Record::Map(Arc::new(first.clone())), &mut stand.shelf);
    stand.member.replay(validated(&first), &mut stand.shelf);
    let incarnation = stand.member.incarnation();
    let back = Change::Return { node: NodeId(0), incarnation, has_disk: true, level: LEVEL };
    stand.learn(&second.changed(&back).unwrap());
    stand.lease();
    let (from, epoch) = (Address::Client(CLIENT), stand.member.epoch());
    let mut read = |read, blob| {
        let range = ByteRange { start: 0, end: 8 };
        let (is_attributes, kind, is_copy) = (false, Kind::Direct, false);
        let request = ReadRequest { read, asker: from, blob, range, is_attributes, kind, is_copy };
        let body = Body::Read(request);
        is_served(&stand.step(Event::Receive(Envelope { epoch, incarnation: 0, from, body })))
    };
    assert!(read(1, blob(1)), "nothing was in flight there");
    assert!(!read(2, blob(0)));
}

/// M3: by the next map somebody may be gone who knew of what was decided beside this node.
#[test]
fn a_node_has_prepared_for_a_map_when_what_it_has_logged_is_durable() {
    let first = map(3);
    let mut stand = Stand::new(0, &first);
    stand.lease();
    let second = first.changed(&Change::Down(NodeId(2))).unwrap();
    stand.monitors_say(Body::Prepare(Arc::new(second.clone())));
    stand.now_us += 20_000;
    let is_prepared = |effects: &[Effect]| {
        effects.iter().any(|effect| match effect {
            Effect::Send { envelope, .. } => matches!(envelope.body, Body::Prepared { .. }),
            _ => false,
        })
    };
    let effects = stand.step(Event::Tick);
    assert!(!is_prepared(&effects));
    let synced: Vec<u64> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Persist { number, is_synced: true, .. } => Some(*number),
            _ => None,
        })
        .collect();
    let [number] = synced[..] else { panic!("one record is synced: {effects:?}") };
    assert!(is_prepared(&stand.step(Event::Persisted { number })));
    assert!(!is_prepared(&stand.step(Event::Tick)), "said once");
    stand.monitors_say(Body::Prepare(Arc::new(second)));
    stand.now_us += 20_000;
    assert!(!is_prepared(&stand.step(Event::Tick)), "said at once when it is asked again");
}
