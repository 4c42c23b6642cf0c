//! From transactions to chains.

use tyr_types::{
    BlobOperations, ByteRange, Bytes, Epoch, ErrorKind, Existence, Expected, KeyRange,
    KeyspaceConfig, Listed, Number, Operation, Payload, ReadCheck, Relation, Timestamp,
    Transaction, TransactionId, Transform,
};

use super::*;
use crate::chain::{Chain, Ends, Part, Piece};
use crate::level::LEVEL;
use crate::map::CHAIN_CHUNKS_MAX;

const CHUNK: u64 = 4096;

fn payload(len: u64) -> Payload {
    Payload::Inline(Bytes::from(vec![1; len as usize]))
}

fn write(offset: u64, len: u64) -> Operation {
    Operation::Write { offset, payload: payload(len) }
}

fn append(len: u64) -> Operation {
    Operation::Append { payload: payload(len), expected: None }
}

fn doing(blobs: &[(&str, &[Operation])]) -> Transaction {
    let entry = |(key, operations): &(&str, &[Operation])| BlobOperations {
        blob: blob(key),
        operations: operations.to_vec(),
    };
    let blobs = blobs.iter().map(entry).collect();
    Transaction { id: TransactionId::new(1, 1), blobs, reads: Vec::new() }
}

fn reading(key: &str, range: ByteRange, is_attributes: bool) -> Transaction {
    let read =
        ReadCheck { blob: blob(key), range, is_attributes, at: Timestamp::ZERO, listed: None };
    Transaction { reads: vec![read], ..doing(&[]) }
}

fn pieces(chain: &Chain) -> Vec<(NodeId, Piece)> {
    let mut all = Vec::new();
    for hop in chain.hops() {
        match &hop.part {
            Part::Pieces(pieces) => {
                all.extend(pieces.iter().map(|piece| (hop.node, piece.clone())));
            }
            Part::Whole => panic!("only a cluster of one has a whole chain"),
        }
    }
    all
}

/// The chunks of the chain, each with whether it is written; checked against the map.
fn chunks(map: &ClusterMap, chain: &Chain) -> Vec<(u64, bool)> {
    let mut found = BTreeSet::new();
    for (node, piece) in pieces(chain) {
        let chunk = piece.range.start / CHUNK;
        assert_eq!(piece.range, ByteRange { start: chunk * CHUNK, end: (chunk + 1) * CHUNK });
        assert_eq!(piece.is_attributes, chunk == 0);
        let placed = map.placement(&piece.blob, chunk).unwrap();
        assert_eq!(piece.authority, placed.holders[0]);
        let has_to_do = placed.holders.iter().chain(&placed.recipients).any(|it| *it == node);
        assert!(if piece.is_written { has_to_do } else { node == piece.authority });
        found.insert((piece.blob, chunk, piece.is_written));
    }
    for (name, chunk, is_written) in &found {
        let placed = map.placement(name, *chunk).unwrap();
        let expected = if *is_written { placed.holders.len() + placed.recipients.len() } else { 1 };
        let has = |(_, piece): &&(NodeId, Piece)| {
            piece.blob == *name && piece.range.start == chunk * CHUNK
        };
        assert_eq!(pieces(chain).iter().filter(has).count(), expected);
    }
    found.into_iter().map(|(_, chunk, is_written)| (chunk, is_written)).collect()
}

/// The chunks that these operations touch on a blob of `end` bytes.
fn touched(operations: &[Operation], end: u64) -> Vec<(u64, bool)> {
    let map = cluster(9);
    let chain = map.chain(&doing(&[("a", operations)]), &Ends::from_slice(&[(0, end)])).unwrap();
    chunks(&map, &chain)
}

fn written<const N: usize>(chunks: [u64; N]) -> Vec<(u64, bool)> {
    chunks.map(|chunk| (chunk, true)).into()
}

#[test]
fn a_write_touches_its_chunks_and_the_version_managers() {
    assert_eq!(touched(&[write(10, 20)], 0), written([0]));
    assert_eq!(touched(&[write(CHUNK, 2 * CHUNK)], 0), written([0, 1, 2]));
    assert_eq!(touched(&[write(3 * CHUNK - 1, 2)], 0), written([0, 2, 3]));
    assert_eq!(touched(&[write(9 * CHUNK, 0)], 0), written([0, 8]));
    let add = Operation::Apply { offset: 5 * CHUNK - 8, transform: Transform::add(Number::U64(1)) };
    assert_eq!(touched(&[add], 0), written([0, 4]));
    assert_eq!(touched(&[Operation::Create], 0), written([0]));
}

#[test]
fn an_append_touches_the_chunks_from_the_guessed_end_on() {
    assert_eq!(touched(&[append(10)], 0), written([0]));
    assert_eq!(touched(&[append(10)], 2 * CHUNK), written([0, 2]));
    assert_eq!(touched(&[append(CHUNK)], 2 * CHUNK + 5), written([0, 2, 3]));
    let expected = Operation::Append { payload: payload(1), expected: Some(7 * CHUNK) };
    assert_eq!(touched(&[expected], 2), written([0, 7]));
}

#[test]
fn operations_see_the_end_that_those_before_them_leave() {
    let delete = Operation::Delete;
    assert_eq!(touched(&[delete.clone(), append(5)], 2 * CHUNK), written([0, 1]));
    assert_eq!(touched(&[write(4 * CHUNK, 5), append(5)], 0), written([0, 4]));
    let truncate = Operation::Truncate { len: 5 * CHUNK };
    assert_eq!(touched(&[truncate, append(5)], 0), written([0, 5]));
    assert_eq!(touched(&[Operation::Create, append(5)], 3 * CHUNK), written([0]));
    assert_eq!(touched(&[write(2 * CHUNK, 1), delete], 0), written([0, 1, 2]));
}

/// Who has the chunk in which the blob ends from then on has to know.
#[test]
fn a_write_of_nothing_touches_the_chunk_before_it() {
    assert_eq!(touched(&[write(4 * CHUNK + 5, 0)], 0), written([0, 4]));
    assert_eq!(touched(&[write(4 * CHUNK, 0), append(5)], 0), written([0, 3, 4]));
    assert_eq!(touched(&[write(0, 0)], 0), written([0]));
}

#[test]
fn a_cut_touches_all_chunks_from_there_to_the_guessed_end() {
    assert_eq!(touched(&[Operation::Delete], 3 * CHUNK + 1), written([0, 1, 2, 3]));
    assert_eq!(touched(&[Operation::Delete], 0), written([0]));
    let cut = Operation::Truncate { len: 2 * CHUNK + 1 };
    assert_eq!(touched(&[cut], 4 * CHUNK), written([0, 2, 3]));
    let extend = Operation::Truncate { len: 9 * CHUNK };
    assert_eq!(touched(&[extend], 4 * CHUNK), written([0]));
    let replace = Operation::Replace { payload: payload(CHUNK + 1) };
    assert_eq!(touched(std::slice::from_ref(&replace), 0), written([0, 1]));
    assert_eq!(touched(&[replace], 3 * CHUNK), written([0, 1, 2]));
}

#[test]
fn a_condition_is_held_by_the_authority_alone() {
    let compare =
        |offset| Operation::Compare { offset, expected: Bytes::from_static(b"xyz").into() };
    assert_eq!(touched(&[compare(4 * CHUNK - 1)], 0), [(3, false), (4, false)]);
    assert_eq!(touched(&[compare(0), write(CHUNK, 1)], 0), written([0, 1]));
    assert_eq!(touched(&[compare(CHUNK), write(CHUNK, 1)], 0), written([0, 1]));
    assert_eq!(
        touched(&[compare(CHUNK), write(2 * CHUNK, 1)], 0),
        [(0, true), (1, false), (2, true)]
    );
    let number = |offset| {
        let expected = Expected::Number { relation: Relation::Less, value: Number::U32(9) };
        Operation::Compare { offset, expected }
    };
    assert_eq!(touched(&[number(4 * CHUNK - 4)], 0), [(3, false)], "a number is in one chunk");
    let in_two = doing(&[("a", &[number(4 * CHUNK - 3)])]);
    let abort = cluster(9).chain(&in_two, &Ends::new()).unwrap_err();
    assert_eq!(abort.kind, ErrorKind::InvalidArgument);
    assert!(abort.reason.contains("at a multiple of its size"), "{abort:?}");
    let of_nothing = Operation::Compare { offset: 7 * CHUNK, expected: Bytes::new().into() };
    assert_eq!(touched(&[of_nothing], 0), [(0, false)]);
    let expect = Operation::Expect { existence: Existence::Present };
    assert_eq!(touched(std::slice::from_ref(&expect), 3 * CHUNK), [(0, false)]);
    assert_eq!(touched(&[expect, write(CHUNK, 1)], 0), written([0, 1]));
}

#[test]
fn a_read_reaches_to_the_size_it_was_told_only_if_it_looked_at_the_size() {
    let map = cluster(9);
    let range = ByteRange { start: CHUNK, end: 5 * CHUNK };
    let chunks_of = |is_attributes, ends: &[(u32, u64)]| {
        let chain = map.chain(&reading("a", range, is_attributes), &Ends::from_slice(ends));
        chunks(&map, &chain.unwrap()).into_iter().map(|(chunk, _)| chunk).collect::<Vec<_>>()
    };
    assert_eq!(chunks_of(false, &[]), [1, 2, 3, 4]);
    assert_eq!(chunks_of(false, &[(0, 10)]), [1, 2, 3, 4]);
    assert_eq!(chunks_of(true, &[]), [0, 1, 2, 3, 4]);
    assert_eq!(chunks_of(true, &[(0, 2 * CHUNK + 1)]), [0, 1, 2]);
    assert_eq!(chunks_of(true, &[(0, 10)]), [0]);
}

#[test]
fn a_chain_is_sorted_and_every_node_computes_the_same() {
    let transaction =
        doing(&[("a", &[write(0, 9000)]), ("b", &[append(3)]), ("c", &[write(0, 1)])]);
    let map = after(&cluster(20), &[Change::Down(NodeId(3)), Change::Join(vec![newcomer(30)])]);
    let chain = map.chain(&transaction, &Ends::new()).unwrap();
    assert!(chain.hops().is_sorted_by_key(|hop| hop.node));
    chunks(&map, &chain);
    let mut elsewhere = ClusterMap {
        ring: crate::map::Ring::new(map.ring.members().clone()).unwrap(),
        ..map.clone()
    };
    elsewhere.keyspaces.values_mut().for_each(|it| it.is_dropped = true);
    assert_eq!(elsewhere.chain(&transaction, &Ends::new()).unwrap(), chain);
}

#[test]
fn a_cluster_of_one_has_a_chain_of_one() {
    let map = cluster(1);
    let transaction = doing(&[("a", &[Operation::Delete])]);
    let ends = Ends::from_slice(&[(0, 5_000_000)]);
    let chain = map.chain(&transaction, &ends).unwrap();
    assert!(chain.is_alone());
    chunks(&map, &chain);
    let grows = after(&map, &[Change::Join(vec![newcomer(1)])]);
    let chain = grows.chain(&transaction, &Ends::new()).unwrap();
    assert_eq!(chain.hops().len(), 2);
    assert!(map.chain(&doing(&[]), &Ends::new()).is_err());
}

/// H: in a cluster of any size.
#[test]
fn a_transaction_in_one_group_passes_the_replicas_of_one_blob() {
    for nodes in [4, 64, 256] {
        let config = KeyspaceConfig { placed_by: PlacedBy::UpTo(b'/'), ..replicated(3) };
        let map = ClusterMap::of(nodes, &[config, replicated(3)]);
        let keys: Vec<String> = (0..6).map(|number| format!("group/{number}")).collect();
        let operations = [write(0, 10)];
        let blobs: Vec<(&str, &[Operation])> =
            keys.iter().map(|key| (key.as_str(), &operations[..])).collect();
        let mut transaction = doing(&blobs);
        let chain = map.chain(&transaction, &Ends::new()).unwrap();
        assert_eq!(chain.hops().len(), 3, "{nodes} nodes");
        let authorities: BTreeSet<NodeId> =
            pieces(&chain).into_iter().map(|(_, piece)| piece.authority).collect();
        assert_eq!(authorities.len(), 1, "all have one authority");
        // Beside it, what the same keys are without groups.
        transaction.blobs.iter_mut().for_each(|entry| entry.blob.keyspace = KeyspaceId(2));
        let chain = map.chain(&transaction, &Ends::new()).unwrap();
        assert!(chain.hops().len() > 3, "{nodes} nodes");
    }
}

/// H, Q1: one node lists a group, if the prefix says which; none misses a blob.
#[test]
fn a_prefix_of_one_group_is_listed_by_the_authority_of_all_its_blobs() {
    let config = KeyspaceConfig { placed_by: PlacedBy::UpTo(b'/'), ..replicated(3) };
    let map = ClusterMap::of(40, &[config, replicated(3)]);
    let id = KeyspaceId(1);
    let mut authorities = BTreeSet::new();
    for group in 0..30 {
        let listers = map.listers(id, format!("{group}/x").as_bytes());
        for key in ["", "x", "xy/z"] {
            let holders = map.holders(&blob(&format!("{group}/{key}")), 0);
            assert_eq!(listers[..], holders[..1], "{group}/{key}");
        }
        authorities.extend(listers);
    }
    assert!(authorities.len() > 5, "groups spread: {authorities:?}");
    // Keys of several groups begin with this; and another keyspace has no groups.
    assert_eq!(map.listers(id, b"1").len(), 40);
    assert_eq!(map.listers(KeyspaceId(2), b"1/x").len(), 40);
}

/// H taken away: where blobs lie by their whole keys, who lists a group by its node misses most.
#[test]
fn without_h_the_node_that_lists_a_group_misses_blobs_of_it() {
    let grouped = KeyspaceConfig { placed_by: PlacedBy::UpTo(b'/'), ..replicated(3) };
    let [grouped, without] = [grouped, replicated(3)].map(|config| ClusterMap::of(40, &[config]));
    let listers = grouped.listers(KeyspaceId(1), b"group/");
    let missed = |map: &ClusterMap| {
        let keys = (0..30).map(|number| blob(&format!("group/{number}")));
        keys.filter(|key| map.holders(key, 0)[..1] != listers[..]).count()
    };
    assert_eq!(missed(&grouped), 0);
    assert!(missed(&without) > 20, "{} of 30 are missed", missed(&without));
}

/// H, Q3: whoever writes in the group passes that node, too.
#[test]
fn a_listing_is_validated_by_the_authority_of_its_group_and_no_more_than_one_is_listed() {
    let config = KeyspaceConfig { placed_by: PlacedBy::UpTo(b'/'), ..replicated(3) };
    let map = ClusterMap::of(40, &[config, replicated(3)]);
    let listing = |keyspace: u32, group: &str, keys: KeyRange| {
        let blob = BlobName { keyspace: KeyspaceId(keyspace), ..blob(group) };
        let listed = Listed { keys, is_keys_only: true };
        let reads = vec![ReadCheck::of_listing(blob, listed, Timestamp::ZERO)];
        map.chain(&Transaction { reads, ..doing(&[]) }, &Ends::new())
    };
    let all = || KeyRange::of(b"group/", None);
    let chain = listing(1, "group/", all()).unwrap();
    let writes = map.chain(&doing(&[("group/new", &[write(0, 10)])]), &Ends::new()).unwrap();
    assert_eq!(chain.hops().len(), 1);
    let authority = chain.hops()[0].node;
    assert!(pieces(&writes).iter().all(|(_, piece)| piece.authority == authority));
    let some = KeyRange { start: "group/k".into(), end: Some("group/x".into()) };
    assert_eq!(listing(1, "group/", some).unwrap(), chain);
    for (keyspace, group, keys) in [
        (1, "group/", KeyRange { start: "group/".into(), end: Some("grous".into()) }),
        (1, "group/", KeyRange::of(b"other/", None)),
        (1, "group", all()),
        (1, "group/a", all()),
        (2, "group/", all()),
    ] {
        let abort = listing(keyspace, group, keys.clone()).unwrap_err();
        assert_eq!(abort.kind, ErrorKind::InvalidArgument, "{keyspace} {group} {keys:?}");
        assert!(abort.reason.contains("of one group"), "{}", abort.reason);
    }
    let abort = listing(3, "group/", all()).unwrap_err();
    assert_eq!(abort.kind, ErrorKind::NotFound, "the keyspace was dropped");
}

#[test]
fn without_enough_holders_that_are_up_a_write_is_unavailable() {
    let config = KeyspaceConfig { replication: 3, ..KeyspaceConfig::default() };
    let map = ClusterMap::of(3, std::slice::from_ref(&config));
    let (writes, reads) = (doing(&[("a", &[append(1)])]), reading("a", ByteRange::from(0), true));
    let kind = |map: &ClusterMap, transaction| {
        map.chain(transaction, &Ends::from_slice(&[(0, 9)])).map_err(|abort| abort.kind)
    };
    let map = after(&map, &[Change::Down(NodeId(0))]);
    assert!(kind(&map, &writes).is_ok());
    let map = after(&map, &[Change::Down(NodeId(1))]);
    assert_eq!(kind(&map, &writes), Err(ErrorKind::Unavailable));
    assert!(kind(&map, &reads).is_ok());
    let alone = ClusterMap::of(1, std::slice::from_ref(&config));
    assert!(kind(&alone, &writes).is_ok(), "replicas are capped by the nodes there are");
}

#[test]
fn a_transaction_on_a_keyspace_that_does_not_exist_is_refused() {
    let mut transaction = doing(&[("a", &[append(1)])]);
    transaction.blobs[0].blob.keyspace = KeyspaceId(7);
    for map in [cluster(1), cluster(3)] {
        let abort = map.chain(&transaction, &Ends::new()).unwrap_err();
        assert_eq!(abort.kind, ErrorKind::NotFound);
    }
}

#[test]
fn a_chain_over_too_many_chunks_is_refused() {
    let map = cluster(3);
    let delete = doing(&[("a", &[Operation::Delete]), ("b", &[Operation::Delete])]);
    let kind = |ends: &[(u32, u64)]| {
        map.chain(&delete, &Ends::from_slice(ends)).map(drop).map_err(|abort| abort.kind)
    };
    let most = CHAIN_CHUNKS_MAX as u64 * CHUNK;
    assert_eq!(kind(&[(0, most + 1)]), Err(ErrorKind::InvalidArgument));
    assert_eq!(kind(&[(0, u64::MAX)]), Err(ErrorKind::InvalidArgument));
    assert_eq!(kind(&[(0, most / 2), (1, most / 2)]), Ok(()));
    assert_eq!(kind(&[(0, most / 2), (1, most / 2 + 1)]), Err(ErrorKind::InvalidArgument));
    let read = reading("a", ByteRange::ALL, false);
    assert!(map.chain(&read, &Ends::new()).is_err());
    let told = map.chain(&reading("a", ByteRange::ALL, true), &Ends::from_slice(&[(0, 5)]));
    assert!(told.is_ok());
}

/// F1.
#[test]
fn only_what_a_change_touches_is_affected_by_it() {
    let map = cluster(12);
    let names: Vec<String> = (0..60).map(|index| format!("{index}")).collect();
    let transactions: Vec<_> = names.iter().map(|key| doing(&[(key, &[append(1)])])).collect();
    let affected = |new: &ClusterMap| -> Vec<bool> {
        let one = |transaction: &Transaction| {
            let chain = map.chain(transaction, &Ends::new()).unwrap();
            new.is_affected(&chain, transaction, map.epoch)
        };
        transactions.iter().map(one).collect()
    };
    let holds = |node: u16| -> Vec<bool> {
        let one = |key: &String| map.holders(&blob(key), 0).contains(&NodeId(node));
        names.iter().map(one).collect()
    };
    let down = after(&map, &[Change::Down(NodeId(4))]);
    assert_eq!(affected(&down), holds(4));
    let started = Change::Return { node: NodeId(4), incarnation: 2, has_disk: true, level: LEVEL };
    assert_eq!(affected(&after(&map, std::slice::from_ref(&started))), holds(4));
    let returned = after(&down, &[started]);
    assert_eq!(affected(&returned), holds(4));
    let up = settled(&returned);
    assert_eq!(affected(&up), holds(4), "the same chain as before, but it was away");
    let joining = after(&map, &[Change::Join(vec![newcomer(12)])]);
    let moves = |key: &String| !joining.recipients(&blob(key), 0).is_empty();
    assert_eq!(affected(&joining), names.iter().map(moves).collect::<Vec<_>>());
    let keyspace_gone = after(&map, &[Change::DropKeyspace(KeyspaceId(1))]);
    assert!(affected(&keyspace_gone).iter().all(|it| !it));
}

/// F1.
#[test]
fn an_attempt_of_the_map_s_own_time_is_not_affected() {
    let map = after(&cluster(5), &[Change::Down(NodeId(0))]);
    let transaction = doing(&[("a", &[append(1)])]);
    let chain = map.chain(&transaction, &Ends::new()).unwrap();
    assert!(!map.is_affected(&chain, &transaction, map.epoch));
    let earlier = Epoch(map.epoch.0 - 1);
    assert!(!map.is_affected(&chain, &transaction, earlier), "nothing of it changed");
}

/// C4: a transform is computed where all of its bytes are.
#[test]
fn a_number_that_is_changed_in_place_lies_in_one_chunk() {
    let config = KeyspaceConfig { chunk_size: CHUNK, ..Default::default() };
    for nodes in [1, 4] {
        let map = ClusterMap::of(nodes, std::slice::from_ref(&config));
        let chain = |offset| {
            let add = Operation::Apply { offset, transform: Transform::add(Number::U32(1)) };
            map.chain(&doing(&[("a", &[add])]), &Ends::new()).map_err(|abort| abort.kind)
        };
        for offset in [0, 1, CHUNK - 4, CHUNK, 7 * CHUNK - 4] {
            assert!(chain(offset).is_ok(), "{offset}");
        }
        for offset in [CHUNK - 3, CHUNK - 1, 7 * CHUNK - 1] {
            assert_eq!(chain(offset), Err(ErrorKind::InvalidArgument), "{offset}");
        }
    }
}
