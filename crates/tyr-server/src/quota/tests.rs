//! Quotas as a gate asks them.

use std::time::Duration;

use tyr_store::store::OpenedNode;
use tyr_types::{
    BlobOperations, Bytes, Epoch, Key, KeyspaceConfig, Operation, Payload, TransactionId,
};

use super::*;
use tyr_gossip::Rumour;

const ONE: KeyspaceId = KeyspaceId(1);
const TWO: KeyspaceId = KeyspaceId(2);

struct Stage {
    quotas: Arc<Quotas>,
    map: ClusterMap,
    now: Instant,
    _folder: tempfile::TempDir,
}

impl Stage {
    /// Node 0 of three that hold everything, with two keyspaces.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let OpenedNode { store, .. } =
            Store::open_node(folder.path(), &mut |_, _, _| Ok(())).unwrap();
        let quotas = Quotas::new(NodeId(0), store, Arc::default());
        let map = ClusterMap::of(3, &[KeyspaceConfig::default(), KeyspaceConfig::default()]);
        quotas.learn(Arc::new(map.clone()));
        Self { quotas, map, now: Instant::now(), _folder: folder }
    }

    fn limit(&self, quota: Quota) {
        self.quotas.update(ONE, Some(quota));
    }

    /// What counts at this node.
    fn count(&self, blobs: u64, bytes: u64) {
        self.quotas.tally.advance(ONE, None, None, KeyspaceUsage { blobs, bytes, operations: 0 });
    }

    /// Node `node` told this.
    fn heard(node: u16, blobs: u64, bytes: u64) -> Heard {
        let totals = BTreeMap::from([(ONE, KeyspaceUsage { blobs, bytes, operations: 0 })]);
        let rumour = Rumour { totals, ..Rumour::default() };
        Heard { node: NodeId(node), incarnation: 1, rumour, age_us: 0 }
    }

    fn admit(&self, blobs: Vec<BlobOperations>) -> Result<()> {
        let transaction = Transaction { id: TransactionId::new(1, 1), blobs, reads: Vec::new() };
        self.quotas.admit(&transaction, || self.now)
    }

    fn refusal(&self, blobs: Vec<BlobOperations>) -> String {
        let error = self.admit(blobs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
        error.message().to_owned()
    }

    fn read(&self) -> bool {
        self.quotas.admit_read(ONE, || self.now).is_ok()
    }
}

fn doing(keyspace: KeyspaceId, key: &str, operation: Operation) -> BlobOperations {
    let blob = BlobName { keyspace, key: Key::new(key).unwrap() };
    BlobOperations { blob, operations: vec![operation] }
}

fn append(keyspace: KeyspaceId, key: &str, len: usize) -> BlobOperations {
    let payload = Payload::Inline(Bytes::from(vec![0; len]));
    doing(keyspace, key, Operation::Append { payload, expected: None })
}

#[test]
fn what_would_exceed_the_bytes_is_refused_with_keyspace_limit_use_and_advice() {
    let stage = Stage::new();
    stage.limit(Quota { bytes: Some(1000), ..Quota::default() });
    stage.count(5, 400);
    stage.quotas.hear(&[Stage::heard(1, 3, 300), Stage::heard(2, 2, 250)]);
    stage.admit(vec![append(ONE, "a", 50)]).unwrap();
    let text = stage.refusal(vec![append(ONE, "a", 30), append(ONE, "b", 21)]);
    let name = stage.map.keyspaces[&ONE].name.to_string();
    for part in [
        format!("keyspace {name} "),
        "quota of 1000 bytes".to_owned(),
        "950 are used".to_owned(),
        "would add 51".to_owned(),
        format!("tyr keyspace quota {name} --bytes"),
    ] {
        assert!(text.contains(&part), "{part} in {text}");
    }
    stage.admit(vec![append(TWO, "a", 5000)]).unwrap();
    let both = vec![append(TWO, "a", 1), append(ONE, "a", 51)];
    assert!(stage.refusal(both).contains(&name), "of two keyspaces one is full");
}

#[test]
fn a_full_keyspace_lets_in_what_makes_room_and_what_adds_nothing() {
    let stage = Stage::new();
    stage.limit(Quota { bytes: Some(10), blobs: Some(1), ..Quota::default() });
    stage.count(3, 100);
    stage.admit(vec![doing(ONE, "a", Operation::Delete)]).unwrap();
    let compare = Operation::Compare { offset: 0, expected: Bytes::new().into() };
    stage.admit(vec![doing(ONE, "a", compare)]).unwrap();
    assert!(stage.refusal(vec![doing(ONE, "a", Operation::Create)]).contains("1 blobs"));
    stage.count(0, 0);
    stage.admit(vec![append(ONE, "a", 10)]).unwrap();
}

#[test]
fn only_nodes_that_are_up_count() {
    let stage = Stage::new();
    stage.limit(Quota { blobs: Some(10), ..Quota::default() });
    let rumours = [Stage::heard(1, 6, 0), Stage::heard(2, 4, 0), Stage::heard(7, 9, 0)];
    stage.quotas.hear(&rumours);
    assert_eq!(stage.quotas.reports()[0].blobs, 10);
    stage.refusal(vec![append(ONE, "a", 1)]);
    let mut map = stage.map.clone();
    map.epoch = Epoch(map.epoch.0 + 1);
    map.nodes.get_mut(&NodeId(2)).unwrap().state = NodeState::Down;
    stage.quotas.learn(Arc::new(map));
    stage.quotas.hear(&rumours);
    assert_eq!(stage.quotas.reports()[0].blobs, 6);
    stage.admit(vec![append(ONE, "a", 1)]).unwrap();
}

#[test]
fn a_node_grants_its_part_of_the_operations() {
    let mut stage = Stage::new();
    stage.limit(Quota { operations: Some(30), ..Quota::default() });
    assert_eq!((0..20).filter(|_| stage.read()).count(), 10, "a third, a second at once");
    let text = stage.refusal(vec![append(ONE, "a", 1)]);
    assert!(text.contains("30 operations a second") && text.contains("one of 3"), "{text}");
    stage.admit(vec![append(TWO, "a", 1)]).unwrap();
    stage.now += Duration::from_millis(500);
    stage.admit(vec![append(ONE, "a", 1), append(ONE, "b", 1), append(ONE, "c", 1)]).unwrap();
    assert_eq!((0..20).filter(|_| stage.read()).count(), 2, "a transaction counts its blobs");
}

#[test]
fn a_node_that_is_asked_for_everything_grants_everything() {
    let mut stage = Stage::new();
    stage.limit(Quota { operations: Some(30), ..Quota::default() });
    stage.quotas.counted(stage.now);
    assert_eq!((0..40).filter(|_| stage.read()).count(), 10, "nobody knows yet who is asked");
    stage.now += Duration::from_secs(1);
    assert_eq!(stage.quotas.counted(stage.now)[&ONE].operations, 40);
    stage.now += Duration::from_secs(1);
    assert_eq!((0..40).filter(|_| stage.read()).count(), 30);
}

#[test]
fn what_is_refused_for_one_keyspace_costs_the_other_nothing() {
    let stage = Stage::new();
    for keyspace in [ONE, TWO] {
        let quota = Quota { operations: Some(3), ..Quota::default() };
        stage.quotas.update(keyspace, Some(quota));
    }
    stage.admit(vec![append(TWO, "a", 1)]).unwrap();
    stage.refusal(vec![append(ONE, "a", 1), append(TWO, "a", 1)]);
    stage.admit(vec![append(ONE, "a", 1)]).unwrap();
}

#[test]
fn without_a_quota_any_more_everything_is_let_in() {
    let stage = Stage::new();
    stage.limit(Quota { bytes: Some(0), operations: Some(0), ..Quota::default() });
    assert!(!stage.read() && stage.admit(vec![append(ONE, "a", 1)]).is_err());
    stage.quotas.retain(|keyspace| keyspace == TWO);
    assert!(stage.read() && stage.admit(vec![append(ONE, "a", 1)]).is_ok());
    stage.limit(Quota { bytes: Some(0), ..Quota::default() });
    stage.quotas.update(ONE, None);
    assert!(stage.admit(vec![append(ONE, "a", 1)]).is_ok());
    assert!(stage.quotas.reports().is_empty() && stage.quotas.counted(stage.now).is_empty());
}
