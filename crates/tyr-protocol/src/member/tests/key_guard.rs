//! Whom leases keep off in guarded keyspaces (K2).

mod groups;

use std::sync::Arc;

use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Key, KeyspaceConfig, KeyspaceId, LeaseMode, Leased,
    NodeId, Operation, Payload, ReadCheck, Timestamp, Transaction, TransactionId,
};

use super::shelf::CHUNK;
use super::stand::Stand;
use crate::chain::Ends;
use crate::commit::{self, Attempt, Decision, OutcomeRetention};
use crate::key_lease::{Ask, Message, Wish};
use crate::map::{Change, ClusterMap};
use crate::member::key_leasing::grace_us;
use crate::member::{Effect, Event};
use crate::message::{Address, Body, Envelope, ReadRequest};
use crate::read::Kind;
use crate::rule::Rule;

use LeaseMode::{Exclusive, Shared};

const DURATION_US: u64 = 3_000_000;

/// Nodes of which each chunk has three, if there are as many; all is guarded.
fn map(nodes: u16) -> ClusterMap {
    let replication = u8::try_from(nodes.min(3)).expect("at most three");
    let config = KeyspaceConfig { chunk_size: CHUNK, replication, ..Default::default() };
    ClusterMap::of(nodes, &[KeyspaceConfig { is_guarded: true, ..config }])
}

/// A key whose authority is this node.
fn key_of(map: &ClusterMap, node: u16) -> BlobName {
    let name = |number: u32| BlobName {
        keyspace: KeyspaceId(1),
        key: Key::new(number.to_be_bytes()).unwrap(),
    };
    (0..).map(name).find(|blob| map.holders(blob, 0)[0] == NodeId(node)).unwrap()
}

fn id(client: u64, number: u64) -> TransactionId {
    TransactionId(u128::from(client) << 64 | u128::from(number))
}

/// A transaction of a client that writes a blob.
fn write(client: u64, number: u64, blob: &BlobName) -> Arc<Transaction> {
    let payload = Payload::Inline(Bytes::from(1_u64.to_le_bytes().to_vec()));
    let operations = vec![Operation::Write { offset: 0, payload }];
    let blobs = vec![BlobOperations { blob: blob.clone(), operations }];
    Arc::new(Transaction { id: id(client, number), blobs, reads: Vec::new() })
}

/// A transaction that has read a blob, and writes another.
fn read_and_write(client: u64, read: &BlobName, written: &BlobName) -> Arc<Transaction> {
    let mut transaction = Transaction::clone(&write(client, 5, written));
    let (range, is_attributes) = (ByteRange { start: 0, end: 8 }, true);
    let at = Timestamp { clock: 1, ..Timestamp::ZERO };
    transaction.reads =
        vec![ReadCheck { blob: read.clone(), range, is_attributes, at, listed: None }];
    Arc::new(transaction)
}

impl Stand {
    /// A client says this; what clients and nodes are told in the end, when all is durable.
    fn client_says(&mut self, client: u64, body: Body) -> String {
        let (epoch, from) = (self.member.epoch(), Address::Client(client));
        self.done(Event::Receive(Envelope { epoch, incarnation: 0, from, body }))
    }

    fn done(&mut self, event: Event) -> String {
        let mut said = Vec::new();
        let mut events = std::collections::VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for effect in self.step(event) {
                match effect {
                    Effect::Persist { number, is_synced: true, .. } => {
                        events.push_back(Event::Persisted { number });
                    }
                    Effect::Resume => events.push_back(Event::Resume),
                    Effect::Send {
                        envelope:
                            Envelope { body: Body::Renew { incarnation, epoch, sent_us, .. }, .. },
                        ..
                    } => {
                        let (duration_us, retention) = (2_000_000, OutcomeRetention::UNKNOWN);
                        self.monitors_say(Body::Granted {
                            incarnation,
                            sent_us,
                            duration_us,
                            epoch,
                            retention,
                        });
                    }
                    effect => said.extend(brief(&effect)),
                }
            }
        }
        said.join(", ")
    }

    fn holds(&mut self, client: u64, mode: LeaseMode, blob: &BlobName) -> String {
        self.asks(client, mode, Leased::Key(blob.clone()))
    }

    fn asks(&mut self, client: u64, mode: LeaseMode, of: Leased) -> String {
        let (lease, wish, sent_us, duration_us) = (9, Wish::Wait, self.now_us, DURATION_US);
        let ask = Ask { client, lease, of, mode, duration_us, sent_us, wish };
        self.client_says(client, Body::KeyLease(Message::asking(ask)))
    }

    fn gives_back(&mut self, client: u64) -> String {
        self.client_says(client, Body::KeyLease(Message::GiveBack { lease: 9 }))
    }

    fn renews(&mut self, client: u64) -> String {
        self.client_says(client, Body::KeyLease(Message::Renew { sent_us: 6, leases: vec![9] }))
    }

    fn submits(&mut self, transaction: &Arc<Transaction>) -> String {
        let (transaction, begun_us) = (Arc::clone(transaction), self.now_us);
        let client = u64::try_from(transaction.id.0 >> 64).unwrap();
        let (ends, is_retry) = (Ends::new(), false);
        self.client_says(client, Body::Submit { transaction, ends, begun_us, is_retry, settled: 0 })
    }

    fn reads(&mut self, client: u64, blob: &BlobName) -> String {
        self.asked += 1;
        let (range, asker) = (ByteRange { start: 0, end: 8 }, Address::Client(client));
        let request = ReadRequest {
            read: self.asked,
            asker,
            blob: blob.clone(),
            range,
            is_attributes: true,
            kind: Kind::Direct,
            is_copy: false,
        };
        self.client_says(client, Body::Read(request))
    }

    /// So many seconds later, under a lease of its own: what is said meanwhile.
    fn later(&mut self, seconds: u64) -> String {
        let said = (0..seconds).map(|_| {
            self.now_us += 1_000_000;
            self.done(Event::Tick)
        });
        said.filter(|said| !said.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

fn brief(effect: &Effect) -> Option<String> {
    if let Effect::Serve { request: ReadRequest { asker: Address::Client(client), .. }, .. } =
        effect
    {
        return Some(format!("{client} read"));
    }
    if let Effect::List { client, .. } = effect {
        return Some(format!("{client} listed"));
    }
    let Effect::Send { to, envelope } = effect else { return None };
    let what = match &envelope.body {
        Body::KeyLease(Message::Granted { .. }) => "granted",
        Body::KeyLease(Message::Waits { .. }) => "waits",
        Body::KeyLease(Message::Recall { .. }) => "recall",
        Body::KeyLease(Message::Renewed { held, .. }) if held.len() == 1 => "held",
        Body::Reply { decision: Decision::Commit(_), .. } => "committed",
        Body::Reply { decision: Decision::Abort(abort), .. } => abort.kind.name(),
        Body::Refused { abort, .. } => abort.kind.name(),
        Body::Read(_) => "asked",
        Body::NotHere(_) => "not here",
        Body::Commit(commit::Message::Withdrawn { .. }) => "withdrawn",
        Body::Commit(commit::Message::Again { .. }) => "again",
        Body::Commit(commit::Message::Forward { .. }) => "forward",
        _ => return None,
    };
    match to {
        Address::Client(client) => Some(format!("{client} {what}")),
        Address::Node(node) => Some(format!("node {} {what}", node.0)),
        Address::Monitors => None,
    }
}

fn stand(nodes: u16) -> (Stand, BlobName, ClusterMap) {
    let map = map(nodes);
    let mut stand = Stand::new(0, &map);
    stand.lease();
    let key = key_of(&map, 0);
    (stand, key, map)
}

#[test]
fn who_writes_what_others_hold_waits_until_they_have_given_it_back() {
    let (mut stand, key, map) = stand(1);
    let other = (0..9_u32)
        .map(|number| BlobName {
            keyspace: KeyspaceId(1),
            key: Key::new(format!("other-{number}")).unwrap(),
        })
        .next()
        .unwrap();
    assert_eq!(map.holders(&other, 0)[0], NodeId(0));
    assert_eq!(stand.holds(1, Shared, &key), "1 granted");
    assert_eq!(stand.holds(2, Shared, &key), "2 granted");
    assert_eq!(stand.submits(&write(1, 1, &other)), "1 committed", "that is of no lease");
    assert_eq!(stand.submits(&write(3, 1, &key)), "1 recall, 2 recall");
    assert_eq!(stand.holds(4, Shared, &key), "4 waits", "the transaction comes first");
    assert_eq!(stand.gives_back(1), "");
    assert_eq!(stand.submits(&read_and_write(5, &key, &other)), "5 committed", "it only looks");
    assert_eq!(stand.gives_back(2), "4 granted, 3 committed");
    assert_eq!(stand.submits(&write(4, 1, &key)), "4 committed", "its own keeps nobody off");
}

#[test]
fn who_looks_at_what_another_holds_to_itself_waits_and_its_holder_writes_meanwhile() {
    let (mut stand, key, _) = stand(1);
    assert_eq!(stand.holds(1, Exclusive, &key), "1 granted");
    assert_eq!(stand.reads(1, &key), "1 read");
    assert_eq!(stand.reads(2, &key), "1 recall");
    assert_eq!(stand.submits(&read_and_write(3, &key, &key)), "");
    let said = stand.submits(&write(1, 1, &key));
    assert_eq!(said, "1 committed, 3 Conflict", "what that one has read has changed since");
    assert_eq!(stand.gives_back(1), "2 read");
    assert_eq!(stand.reads(2, &key), "2 read");
}

#[test]
fn who_is_gone_keeps_nobody_off_for_longer_than_its_lease_lasts() {
    let (mut stand, key, _) = stand(1);
    assert_eq!(stand.holds(1, Exclusive, &key), "1 granted");
    assert_eq!(stand.submits(&write(2, 1, &key)), "1 recall");
    assert_eq!(stand.later(1), "1 recall");
    assert_eq!(stand.renews(1), "1 held", "it has not yet done what it has to");
    assert_eq!(stand.later(3), "1 recall, 1 recall, 1 recall");
    assert_eq!(stand.later(2), "2 committed");
}

/// C9: who holds the key may have to write what the one that waits has validated.
#[test]
fn who_is_kept_off_at_a_later_node_withdraws_what_it_had_validated() {
    let map = map(5);
    let mut stand = Stand::new(1, &map);
    stand.lease();
    let is_behind = |blob: &BlobName| map.holders(blob, 0)[0] == NodeId(0);
    let first = Some(key_of(&map, 0)).filter(is_behind).unwrap();
    let key = key_of(&map, 1);
    let mut transaction = Transaction::clone(&write(2, 1, &first));
    transaction.blobs.extend(write(2, 1, &key).blobs.iter().cloned());
    let transaction = Arc::new(transaction);
    let chain = map.chain(&transaction, &Ends::new()).unwrap();
    assert_eq!(chain.position(NodeId(1)), Some(1));
    assert_eq!(stand.holds(1, Shared, &key), "1 granted");
    let attempt = Attempt { epoch: map.epoch, number: 0, coordinator: NodeId(0) };
    let (begun, highest) = (Timestamp::ZERO, Timestamp { clock: 5, ..Timestamp::ZERO });
    let (known, usages) = (None, Vec::new());
    let forward =
        commit::Message::Forward { transaction, chain, attempt, begun, highest, known, usages };
    let (from, body) = (Address::Node(NodeId(0)), Body::Commit(forward));
    let incarnation = map.incarnation(NodeId(0)).unwrap();
    let envelope = Envelope { epoch: map.epoch, incarnation, from, body };
    assert_eq!(stand.done(Event::Receive(envelope)), "1 recall, node 0 withdrawn");
    assert_eq!(stand.gives_back(1), "node 0 again");
}

/// K3: what the process before gave may be held yet.
#[test]
fn a_new_authority_lets_nobody_in_before_what_its_predecessor_gave_is_over() {
    let first = map(5);
    let key = key_of(&first, 0);
    let second = first.changed(&Change::Down(NodeId(0))).unwrap();
    let NodeId(heir) = second.holders(&key, 0)[0];
    let mut stand = Stand::new(heir, &first);
    stand.lease();
    stand.learn(&second);
    stand.lease();
    assert_eq!(stand.reads(1, &key), "");
    assert_eq!(stand.later(grace_us(true) / 1_000_000), "");
    assert_eq!(stand.later(1), "1 read");
    assert_eq!(stand.reads(1, &key), "1 read");
}

#[test]
fn a_replica_hands_reads_to_who_knows_of_leases() {
    let map = map(3);
    let key = key_of(&map, 0);
    let mut stand = Stand::new(1, &map);
    stand.lease();
    assert_eq!(stand.reads(1, &key), "node 0 asked");
}

/// A lease that is given while a transaction is on its way would be of what changes just then.
#[test]
fn while_something_may_still_change_a_key_nobody_gets_a_lease_of_it() {
    let (mut stand, key, _) = stand(3);
    assert_eq!(stand.submits(&write(2, 1, &key)), "node 1 forward");
    assert_eq!(stand.holds(1, Shared, &key), "1 waits");
}

#[test]
fn without_the_rule_nobody_is_kept_off() {
    let (mut stand, key, _) = stand(1);
    stand.member.break_rule(Rule::K2);
    assert_eq!(stand.holds(1, Exclusive, &key), "1 granted");
    assert_eq!(stand.submits(&write(2, 1, &key)), "2 committed");
    assert_eq!(stand.reads(2, &key), "2 read");
}

#[test]
fn in_a_keyspace_that_is_not_guarded_leases_keep_nobody_off() {
    let map = super::stand::map(1);
    let mut stand = Stand::new(0, &map);
    stand.lease();
    let key = key_of(&map, 0);
    assert_eq!(stand.holds(1, Exclusive, &key), "1 granted");
    assert_eq!(stand.submits(&write(2, 1, &key)), "2 committed");
    assert_eq!(stand.reads(2, &key), "2 read");
}
