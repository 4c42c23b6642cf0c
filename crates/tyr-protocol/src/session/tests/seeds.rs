//! The session among nodes that answer truly, over a network that loses, doubles and reorders.

use std::collections::BTreeMap;

use super::*;
use crate::rule::Rule;
use crate::test_cluster::random::Random;

/// Blobs that nobody writes: their bytes, and how many of each chunk are held; the rest is zeros.
struct Blobs(BTreeMap<BlobName, (Vec<u8>, Vec<u64>)>);

impl Blobs {
    fn random(random: &mut Random) -> Self {
        let mut blobs = BTreeMap::new();
        for key in ["a", "b", "c"] {
            let size = below(random, 5 * CHUNK) + 1;
            let mut bytes: Vec<u8> = (0..size).map(|_| below(random, 255) as u8 + 1).collect();
            let mut held = Vec::new();
            for chunk in bytes.chunks_mut(CHUNK as usize) {
                let len = match below(random, 3) {
                    0 => below(random, chunk.len() as u64),
                    _ => chunk.len() as u64,
                };
                chunk[len as usize..].fill(0);
                held.push(len);
            }
            blobs.insert(blob(key), (bytes, held));
        }
        Self(blobs)
    }

    fn bytes(&self, want: &Want) -> &[u8] {
        let Some((bytes, _)) = self.0.get(&want.blob) else { return &[] };
        let start = bytes.len().min(want.range.start as usize);
        let end = bytes.len().min(want.range.end as usize);
        &bytes[start..end]
    }

    /// What a node answers.
    fn answer(&self, node: NodeId, request: &ReadRequest) -> Body {
        let at = match request.kind {
            Kind::Direct => None,
            Kind::Whole | Kind::First => Some(time(50 + u64::from(node.0))),
            Kind::At(at) | Kind::Layout(at) => Some(at),
            Kind::Clock => Some(time(60 + u64::from(node.0))),
        };
        let ByteRange { start, end } = request.range;
        let (mut bytes, mut size) = (Bytes::new(), None);
        if let Some((all, held)) = self.0.get(&request.blob) {
            size = Some(all.len() as u64);
            let chunk = start / CHUNK;
            let until = chunk * CHUNK + held.get(chunk as usize).copied().unwrap_or(0);
            if start < until.min(end) {
                bytes = Bytes::copy_from_slice(&all[start as usize..until.min(end) as usize]);
            }
        }
        let (version, clock) = (time(40), time(1_000_000));
        let size = (request.is_attributes || start < CHUNK).then_some(size);
        Body::Part(ReadPart {
            read: request.read,
            range: request.range,
            at,
            version,
            bytes,
            size,
            clock,
        })
    }
}

/// A run: the client, the nodes, and what is on its way.
struct Run {
    random: Random,
    blobs: Blobs,
    client: Client,
    to_nodes: Vec<(NodeId, Body)>,
    to_client: Vec<(NodeId, Body)>,
    is_faulty: bool,
    wanted: BTreeMap<CallId, Vec<Want>>,
    /// What was decided, once for each transaction, and when it was said to have begun.
    decided: BTreeMap<TransactionId, (Timestamp, u64)>,
    /// What was answered wrongly.
    wrong: Vec<String>,
}

fn below(random: &mut Random, bound: u64) -> u64 {
    random.below(bound as usize) as u64
}

impl Run {
    fn below(&mut self, bound: u64) -> u64 {
        below(&mut self.random, bound)
    }

    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let blobs = Blobs::random(&mut random);
        Self {
            random,
            blobs,
            client: Client::new(),
            to_nodes: Vec::new(),
            to_client: Vec::new(),
            is_faulty: true,
            wanted: BTreeMap::new(),
            decided: BTreeMap::new(),
            wrong: Vec::new(),
        }
    }

    fn want(&mut self) -> Want {
        let key = ["a", "b", "c", "absent"][self.below(4) as usize];
        if self.below(8) == 0 {
            return Want::stat(blob(key));
        }
        let start = self.below(5 * CHUNK);
        let end = match self.below(4) {
            0 => start + self.below(50) + 1,
            1 => tyr_types::limits::BLOB_SIZE_MAX,
            _ => start + self.below(3 * CHUNK) + 1,
        };
        Want::bytes(blob(key), range(start, end))
    }

    fn call(&mut self) {
        let (what, wants) = match self.below(4) {
            0 => (Call::Commit { blobs: vec![append("a", 8)], reads: vec![] }, vec![]),
            1 => {
                let wants: Vec<Want> = (0..self.below(5)).map(|_| self.want()).collect();
                (Call::ReadMany { wants: wants.clone() }, wants)
            }
            _ => {
                let want = self.want();
                let places =
                    [Place::Newest, Place::Transaction, Place::Snapshot, Place::At(time(45))];
                let place = places[self.below(4) as usize];
                (Call::Read { want: want.clone(), place }, vec![want])
            }
        };
        let call = self.client.call(what);
        self.wanted.insert(call, wants);
    }

    /// Something happens.
    fn step(&mut self) {
        self.to_nodes.append(&mut self.client.sent);
        let is_lost = self.is_faulty && self.below(8) == 0;
        let is_doubled = self.is_faulty && self.below(8) == 0;
        match self.below(5) {
            0 | 1 if !self.to_nodes.is_empty() => {
                let index = self.below(self.to_nodes.len() as u64) as usize;
                let (node, body) = self.to_nodes.swap_remove(index);
                if is_doubled {
                    self.to_nodes.push((node, body.clone()));
                }
                if !is_lost {
                    self.handle(node, body);
                }
            }
            2 | 3 if !self.to_client.is_empty() => {
                let index = self.below(self.to_client.len() as u64) as usize;
                let (node, body) = self.to_client.swap_remove(index);
                if is_doubled {
                    self.to_client.push((node, body.clone()));
                }
                if !is_lost {
                    self.client.receive(node, body);
                }
            }
            _ => {
                let us = self.below(60_000);
                self.client.pass(us);
            }
        }
        self.check();
    }

    /// A node handles a message.
    fn handle(&mut self, node: NodeId, body: Body) {
        let is_unwilling = self.is_faulty && self.below(10) == 0;
        match body {
            Body::Read(request) => {
                let read = request.read;
                let holders = self.client.replicas_of(&request.blob, request.range.start / CHUNK);
                assert!(holders.contains(&node), "nodes are asked for what they hold");
                let answer = match (is_unwilling, self.below(2)) {
                    (true, 0) => Body::NotHere(Asked::Read(read)),
                    (true, _) => Body::Refused { read, abort: abort(ErrorKind::Unavailable) },
                    (false, _) => self.blobs.answer(node, &request),
                };
                self.to_client.push((node, answer));
            }
            Body::Submit { transaction, begun_us, settled, is_retry, .. } => {
                let id = transaction.id;
                assert!(id.0 as u64 >= settled, "what is asked for is not settled");
                if is_unwilling {
                    self.to_client.push((node, Body::NotHere(Asked::Transaction(id))));
                    return;
                }
                let new = (time(100 + self.decided.len() as u64), begun_us);
                let (at, first_us) = *self.decided.entry(id).or_insert(new);
                assert_eq!(begun_us, first_us, "a retry began when the first try did");
                assert!(at != new.0 || is_retry || new.1 == begun_us);
                let (decision, outcomes) = (Decision::Commit(at), Outcomes::new());
                let clock = time(1_000_000);
                self.to_client.push((node, Body::Reply { id, decision, outcomes, clock }));
            }
            Body::FetchMap => {
                let map = Body::NewerMap(self.client.session.map.clone());
                self.to_client.push((node, map));
            }
            _ => {}
        }
    }

    /// What was answered is true.
    fn check(&mut self) {
        for (call, answer) in std::mem::take(&mut self.client.done) {
            let wants = self.wanted.remove(&call).expect("a call is answered once");
            let seen = match answer {
                Answer::Read(seen) => vec![seen],
                Answer::Many { at, seen } => {
                    assert!(seen.iter().all(|seen| seen.at == Some(at)));
                    seen
                }
                Answer::Committed { transaction, at, .. } => {
                    assert_eq!(self.decided[&transaction.id].0, at, "as it was decided");
                    continue;
                }
                Answer::Page(_)
                | Answer::Leased { .. }
                | Answer::Watching { .. }
                | Answer::Notified(_)
                | Answer::Staged(_)
                | Answer::Moment { .. }
                | Answer::Ended
                | Answer::Aborted { .. }
                | Answer::Failed(_) => panic!("nothing fails for good here: {answer:?}"),
            };
            assert_eq!(seen.len(), wants.len());
            for (seen, want) in seen.iter().zip(&wants) {
                let size = self.blobs.0.get(&want.blob).map(|(bytes, _)| bytes.len() as u64);
                let is_short = (seen.bytes.len() as u64) < want.range.len();
                let is_known = seen.size.is_some() || !(is_short || want.is_attributes);
                let is_size = is_known && seen.size.is_none_or(|seen| seen == size);
                if !is_size || seen.bytes != self.blobs.bytes(want) {
                    self.wrong.push(format!("{want:?}: {} bytes", seen.bytes.len()));
                }
            }
        }
    }
}

impl Client {
    fn replicas_of(&self, blob: &BlobName, chunk: u64) -> Vec<NodeId> {
        self.session.map.holders(blob, chunk).to_vec()
    }
}

/// Runs until everything is answered; what was wrong.
fn run(seed: u64, broken: Option<Rule>) -> Vec<String> {
    println!("seed {seed}");
    let mut run = Run::new(seed);
    run.client.session.rules.broken = broken;
    for _ in 0..30 {
        run.call();
        for _ in 0..run.below(30) {
            run.step();
        }
    }
    run.is_faulty = false;
    let mut steps = 0;
    while !run.client.session.is_empty() {
        run.step();
        steps += 1;
        assert!(steps < 50_000, "everything ends: {:?}", run.client.session.calls);
    }
    run.check();
    assert!(run.wanted.is_empty(), "every call is answered");
    assert_eq!(run.client.session.due_us(), None);
    run.wrong
}

#[test]
fn whatever_the_network_does_every_call_is_answered_once_and_truly() {
    for seed in 0..300 {
        assert_eq!(run(seed, None), [""; 0]);
    }
}

/// R7.
#[test]
fn without_asking_whether_it_is_a_hole_or_the_end_answers_are_wrong() {
    let wrong = |seed| run(seed, Some(Rule::R7)).into_iter().next().map(|wrong| (seed, wrong));
    let (seed, wrong) = (0..20).find_map(wrong).expect("somebody misses R7");
    println!("without R7: noticed at seed {seed}: {wrong}");
}
