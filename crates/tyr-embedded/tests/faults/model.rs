//! Transactions that follow from a seed, and what the first so many of them leave.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tyr_embedded::{EmbeddedStore, Held, KeyspaceEntry};
use tyr_runtime::ticket::Ticket;
use tyr_store::disk::simulated::chance::Chance;
use tyr_store::recent::block::BLOCK_SIZE;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Durability, Key, KeyspaceConfig, KeyspaceName,
    Number, Operation, Payload, Result, Scan, ScanEntry, Timestamp, Transaction, Transform,
    TransformKind, limits,
};

use super::machine::Machine;

/// Transactions in flight at a time.
const WINDOW: usize = 6;

/// The keyspaces; everything in the last is gone after a restart.
const KEYSPACES: [&str; 3] = ["main", "other", "memory"];
const MEMORY: usize = 2;

/// The blob that counts transactions: 8 bytes each.
const COUNT: Place = (0, "count");

/// The blob that is overwritten here and there, and how long it is.
const TABLE: Place = (0, "table");
const TABLE_LEN: u64 = 120_000;

/// A blob: which keyspace, which key.
type Place = (usize, &'static str);

/// The blobs after some transaction.
type Blobs = BTreeMap<Place, Arc<Vec<u8>>>;

/// What one transaction does to one blob.
#[derive(Clone, Debug)]
enum Step {
    Append(Vec<u8>),
    Add(u64, u64),
    Put(Vec<u8>),
    Write(u64, Vec<u8>),
    Truncate(u64),
    Delete,
}

/// The transactions and what they leave.
pub struct Model {
    transactions: Vec<Vec<(Place, Step)>>,
    /// After none, one, two, ... transactions.
    states: Vec<Blobs>,
}

impl Model {
    /// The first `count` transactions of this seed.
    pub fn new(seed: u64, count: u64) -> Self {
        let mut chance = Chance::new(seed);
        let transactions: Vec<_> = (1..=count).map(|number| steps(number, &mut chance)).collect();
        let mut states = vec![Blobs::new()];
        for steps in &transactions {
            let mut blobs = states.last().unwrap().clone();
            for (place, step) in steps {
                play(*place, step, &mut blobs);
            }
            states.push(blobs);
        }
        Self { transactions, states }
    }

    /// How many transactions there are.
    pub fn len(&self) -> u64 {
        self.transactions.len() as u64
    }

    /// Whether transaction `number` writes to the other keyspace.
    fn is_across(&self, number: u64) -> bool {
        self.transactions[number as usize - 1].iter().any(|((keyspace, _), _)| *keyspace == 1)
    }

    /// Checks that the store, just opened, holds what some number of transactions leave, at least
    /// `least`; answers how many. `None` when a keyspace is not there.
    pub fn verify(&self, node: &Arc<EmbeddedStore>, least: u64, context: &str) -> Option<u64> {
        self.compare(node, least, &|keyspace| keyspace != MEMORY, context, &content)
    }

    /// Checks that the store holds what exactly these many transactions leave, all in this life.
    pub fn verify_running(&self, node: &Arc<EmbeddedStore>, count: u64, context: &str) {
        assert_eq!(
            self.compare(node, count, &|_| true, context, &content),
            Some(count),
            "{context}"
        );
    }

    /// Checks that a kept snapshot holds what these many transactions leave, or some number of
    /// them, all in this life; answers how many.
    pub fn verify_kept(
        &self,
        node: &Arc<EmbeddedStore>,
        at: Timestamp,
        count: Option<u64>,
        chance: &mut Chance,
        context: &str,
    ) -> u64 {
        self.compare_kept(node, at, count, chance, &|_| true, context)
    }

    /// The same in a later life.
    pub fn verify_kept_after(
        &self,
        node: &Arc<EmbeddedStore>,
        at: Timestamp,
        count: Option<u64>,
        chance: &mut Chance,
        context: &str,
    ) -> u64 {
        self.compare_kept(node, at, count, chance, &|keyspace| keyspace != MEMORY, context)
    }

    fn compare_kept(
        &self,
        node: &Arc<EmbeddedStore>,
        at: Timestamp,
        count: Option<u64>,
        chance: &mut Chance,
        is_kept: &dyn Fn(usize) -> bool,
        context: &str,
    ) -> u64 {
        let limit = 1 + chance.below(8) as usize;
        let read = |node: &Arc<EmbeddedStore>, keyspace: &KeyspaceEntry, context: &str| {
            kept_content(node, keyspace, at, limit, context)
        };
        let found = self.compare(node, count.unwrap_or(0), is_kept, context, &read);
        let found = found.expect("keyspaces are made before anything is kept");
        assert!(count.is_none_or(|count| count == found), "{context}: {found}, not {count:?}");
        found
    }

    fn compare(
        &self,
        node: &Arc<EmbeddedStore>,
        least: u64,
        is_kept: &dyn Fn(usize) -> bool,
        context: &str,
        read: &Reading<'_>,
    ) -> Option<u64> {
        let mut found = BTreeMap::new();
        for (number, name) in KEYSPACES.into_iter().enumerate() {
            let keyspace = node.keyspace(&KeyspaceName::new(name).unwrap()).ok()?;
            for (key, bytes) in read(node, &keyspace, context) {
                found.insert((number, key), bytes);
            }
        }
        let count = found.get(&(COUNT.0, COUNT.1.to_owned())).map_or(0, |count| count.len() / 8);
        let range = least as usize..self.states.len();
        assert!(range.contains(&count), "{context}: {count} transactions, not {range:?}");
        let expected = self.states[count].iter().filter(|((keyspace, _), _)| is_kept(*keyspace));
        let expected: BTreeMap<_, _> =
            expected.map(|((number, key), bytes)| ((*number, (*key).to_owned()), bytes)).collect();
        let (listed, wanted): (Vec<_>, Vec<_>) =
            (found.keys().collect(), expected.keys().collect());
        assert_eq!(listed, wanted, "{context}: the blobs after {count} transactions");
        for (place, bytes) in found {
            let wanted = expected[&place];
            assert_eq!(bytes.len(), wanted.len(), "{context}: size of {place:?} after {count}");
            if let Some(at) = (0..wanted.len()).find(|at| bytes[*at] != wanted[*at]) {
                panic!("{context}: byte {at} of {place:?} after {count} transactions");
            }
        }
        Some(count as u64)
    }
}

/// How everything in a keyspace is read.
type Reading<'r> = dyn Fn(&Arc<EmbeddedStore>, &KeyspaceEntry, &str) -> Vec<(String, Bytes)> + 'r;

/// Everything in a keyspace at a kept moment, so many blobs a page.
fn kept_content(
    node: &Arc<EmbeddedStore>,
    keyspace: &KeyspaceEntry,
    at: Timestamp,
    limit: usize,
    context: &str,
) -> Vec<(String, Bytes)> {
    let failed = |error| panic!("{context}: keyspace {}: {error}", keyspace.info().name);
    let mut next = Some(Scan::new().limit(limit).first_bytes(10));
    let mut all = Vec::new();
    while let Some(scan) = next {
        let page = node.scan_kept(keyspace, &scan, at).unwrap_or_else(failed);
        next = scan.resumed(&page);
        for ScanEntry { key, stat, bytes: first } in page.entries {
            let stat = stat.expect("a scan of more than keys has sizes");
            let name = BlobName { keyspace: keyspace.info().id, key };
            let range = ByteRange { start: 0, end: stat.size };
            let read = node.read_kept(keyspace, &name, range, at);
            let (attributes, bytes) = read
                .unwrap_or_else(|error| panic!("{context}: {error}"))
                .unwrap_or_else(|| panic!("{context}: {name} is listed but absent"));
            assert_eq!(attributes.stat(), Some(stat), "{context}: {name}");
            assert!(bytes.starts_with(&first) && first.len() == bytes.len().min(10), "{context}");
            let stretches = node.stretches_kept(keyspace, &name, range, at).unwrap().unwrap().1;
            let is_known = |byte: u64| stretches.resume.is_none_or(|resume| byte < resume);
            let is_written =
                |byte: u64| stretches.written.iter().any(|it| it.start <= byte && byte < it.end);
            let hidden = (0..stat.size)
                .find(|byte| bytes[*byte as usize] != 0 && is_known(*byte) && !is_written(*byte));
            assert_eq!(hidden, None, "{context}: {name} has a byte in a hole");
            all.push((name.key.to_string(), bytes));
        }
    }
    all
}

/// Everything in a keyspace.
fn content(
    node: &Arc<EmbeddedStore>,
    keyspace: &KeyspaceEntry,
    context: &str,
) -> Vec<(String, Bytes)> {
    let failed = |error| panic!("{context}: keyspace {}: {error}", keyspace.info().name);
    let snapshot = node.snapshot().unwrap();
    snapshot.settle().unwrap();
    let scan = Scan::new().limit(limits::SCAN_LIMIT_MAX);
    let listed = node.scan(keyspace, &scan, snapshot.at());
    let read = |ScanEntry { key, stat, .. }: ScanEntry| {
        let stat = stat.expect("a scan of more than keys has sizes");
        let name = BlobName { keyspace: keyspace.info().id, key };
        let range = ByteRange { start: 0, end: stat.size };
        let answer = node.read(keyspace, &name, range, Timestamp::MAX).unwrap_or_else(failed);
        let (_, bytes) = answer.unwrap_or_else(|| panic!("{context}: {name} is listed but absent"));
        (name.key.to_string(), bytes)
    };
    let listed = listed.unwrap_or_else(|error| panic!("{context}: {error}"));
    listed.entries.into_iter().map(read).collect()
}

fn steps(number: u64, chance: &mut Chance) -> Vec<(Place, Step)> {
    let large = ["large/0", "large/1", "large/2"];
    let mut steps = vec![(COUNT, Step::Append(number.to_le_bytes().to_vec()))];
    steps.push(((0, "sum"), Step::Add(8 * chance.below(3), number)));
    steps.extend(table_steps(number, chance).into_iter().map(|step| (TABLE, step)));
    if chance.one_in(3) {
        let (offset, len) = (chance.below(40_000), chance.below(4000));
        steps.push(((0, "scratch"), Step::Write(offset, bytes(chance, len))));
    }
    if chance.one_in(8) {
        steps.push(((0, "scratch"), Step::Truncate(chance.below(50_000))));
    }
    if chance.one_in(5) {
        let (offset, len) = (chance.below(30_000), 33_000 + chance.below(20_000));
        steps.push(((0, "scratch"), Step::Write(offset, bytes(chance, len))));
    }
    if chance.one_in(4) {
        let len = 33_000 + chance.below(40_000);
        let place = (chance.below(2) as usize, large[chance.below(3) as usize]);
        steps.push((place, Step::Put(bytes(chance, len))));
    }
    if chance.one_in(6) {
        steps.push(((chance.below(2) as usize, large[chance.below(3) as usize]), Step::Delete));
    }
    if chance.one_in(5) {
        steps.push(((1, "sum"), Step::Add(0, number)));
        let len = chance.below(700);
        steps.push(((1, "small"), Step::Put(bytes(chance, len))));
    }
    if chance.one_in(5) {
        steps.push(((MEMORY, "passing"), Step::Append(vec![1; 100])));
    }
    steps
}

/// Overwrites here and there, so that folds take the blob in parts; and numbers, some of which lie
/// on both sides of where a part may end.
fn table_steps(number: u64, chance: &mut Chance) -> Vec<Step> {
    let mut steps = Vec::new();
    if number == 1 {
        steps.push(Step::Write(0, bytes(chance, TABLE_LEN)));
    } else if chance.one_in(2) {
        steps.push(Step::Write(chance.below(TABLE_LEN - 4_000), bytes(chance, 3_000)));
    }
    let block = 1 + chance.below(TABLE_LEN / BLOCK_SIZE);
    steps.push(Step::Add(block * BLOCK_SIZE - 12 + chance.below(16), chance.any()));
    steps
}

fn bytes(chance: &mut Chance, len: u64) -> Vec<u8> {
    let is_random = chance.one_in(2);
    let word = chance.any();
    let words = (0..len.div_ceil(8)).map(|_| if is_random { chance.any() } else { word });
    let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    bytes.truncate(len as usize);
    bytes
}

fn play(place: Place, step: &Step, blobs: &mut Blobs) {
    if let Step::Delete = step {
        blobs.remove(&place);
        return;
    }
    let blob = Arc::make_mut(blobs.entry(place).or_default());
    match step {
        Step::Append(bytes) => blob.extend(bytes),
        Step::Add(offset, more) => {
            let (start, end) = (*offset as usize, *offset as usize + 8);
            blob.resize(blob.len().max(end), 0);
            let old = u64::from_le_bytes(blob[start..end].try_into().unwrap());
            blob[start..end].copy_from_slice(&old.wrapping_add(*more).to_le_bytes());
        }
        Step::Put(bytes) => blob.clone_from(bytes),
        Step::Write(offset, bytes) => {
            let (start, end) = (*offset as usize, *offset as usize + bytes.len());
            blob.resize(blob.len().max(end), 0);
            blob[start..end].copy_from_slice(bytes);
        }
        Step::Truncate(len) => blob.resize(*len as usize, 0),
        Step::Delete => unreachable!("handled above"),
    }
}

/// An acknowledgement that power loss must not take back.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// The disk had done so many operations when it was given.
    pub operations: u64,
    /// So many transactions are there from then on.
    pub transactions: u64,
}

/// Submits transactions, several at a time.
pub struct Writer<'a> {
    node: &'a Arc<EmbeddedStore>,
    machine: &'a Machine,
    model: &'a Model,
    durability: Durability,
    keyspaces: [Arc<KeyspaceEntry>; 3],
    chance: Chance,
    next: u64,
    in_flight: VecDeque<(u64, Ticket)>,
    promises: Vec<Promise>,
}

impl<'a> Writer<'a> {
    /// Goes on after the first `done` transactions. The main keyspace has this durability, the
    /// other one `Sync`.
    pub fn new(
        node: &'a Arc<EmbeddedStore>,
        machine: &'a Machine,
        model: &'a Model,
        durability: Durability,
        done: u64,
    ) -> Result<Self> {
        let durabilities = [durability, Durability::Sync, Durability::Memory];
        let keyspaces = [0, 1, 2].map(|number| {
            let name = KeyspaceName::new(KEYSPACES[number]).unwrap();
            let config = KeyspaceConfig {
                durability: durabilities[number],
                is_multi_versioned: number != 1,
                is_compressed: number == 1,
                ..KeyspaceConfig::default()
            };
            node.keyspace(&name).or_else(|_| node.create_keyspace(&name, &config))
        });
        let [main, other, memory] = keyspaces;
        let promise = Promise { operations: machine.operations(), transactions: done };
        Ok(Self {
            node,
            machine,
            model,
            durability,
            keyspaces: [main?, other?, memory?],
            chance: Chance::new(done),
            next: done + 1,
            in_flight: VecDeque::new(),
            promises: vec![promise],
        })
    }

    /// Submits up to `count` transactions, with folds in between.
    pub fn run(&mut self, count: u64) -> Result<()> {
        let end = (self.next + count).min(self.model.len() + 1);
        while self.next < end {
            let ticket = self.submit()?;
            self.in_flight.push_back((self.next, ticket));
            self.next += 1;
            if self.chance.one_in(15) {
                self.node.fold()?;
            }
            while self.in_flight.len() >= WINDOW {
                self.wait()?;
            }
        }
        Ok(())
    }

    /// Submits the next transaction and waits for it; after an error it is the next one still.
    pub fn run_one(&mut self) -> Result<()> {
        self.submit()?.wait()?;
        self.next += 1;
        Ok(())
    }

    /// Waits for the rest; answers what was promised when, in order.
    pub fn end(mut self) -> Result<Vec<Promise>> {
        while !self.in_flight.is_empty() {
            self.wait()?;
        }
        Ok(self.promises)
    }

    fn wait(&mut self) -> Result<()> {
        let Some((number, ticket)) = self.in_flight.pop_front() else { return Ok(()) };
        ticket.wait()?;
        if self.durability == Durability::Sync || self.model.is_across(number) {
            let operations = self.machine.operations();
            self.promises.push(Promise { operations, transactions: number });
        }
        Ok(())
    }

    fn submit(&self) -> Result<Ticket> {
        let mut leases = Vec::new();
        let mut blobs: Vec<BlobOperations> = Vec::new();
        for ((number, key), step) in &self.model.transactions[self.next as usize - 1] {
            let keyspace = &self.keyspaces[*number];
            let mut payload = |bytes: &[u8]| -> Result<Payload> {
                if bytes.len() < limits::EXTENT_PAYLOAD_MIN {
                    return Ok(Payload::Inline(Bytes::copy_from_slice(bytes)));
                }
                let lease = self.node.upload(keyspace, bytes)?;
                let extent = lease.extent();
                leases.push(lease);
                Ok(Payload::Extents(vec![extent]))
            };
            let operation = match step {
                Step::Append(bytes) => {
                    Operation::Append { payload: payload(bytes)?, expected: None }
                }
                Step::Add(offset, more) => {
                    let transform = Transform::new(TransformKind::Add, Number::U64(*more))?;
                    Operation::Apply { offset: *offset, transform }
                }
                Step::Put(bytes) => Operation::Replace { payload: payload(bytes)? },
                Step::Write(offset, bytes) => {
                    Operation::Write { offset: *offset, payload: payload(bytes)? }
                }
                Step::Truncate(len) => Operation::Truncate { len: *len },
                Step::Delete => Operation::Delete,
            };
            let blob = BlobName { keyspace: keyspace.info().id, key: Key::new(key)? };
            match blobs.iter_mut().find(|entry| entry.blob == blob) {
                Some(entry) => entry.operations.push(operation),
                None => blobs.push(BlobOperations { blob, operations: vec![operation] }),
            }
        }
        let id = self.node.next_transaction_id();
        let transaction = Transaction { id, blobs, reads: Vec::new() };
        Ok(self.node.commit(transaction, Held { leases, ..Held::default() }))
    }
}
