//! The client: adds to counters, writes, reads, and asks again until it is answered.

use std::sync::Arc;

use tyr_types::{
    BlobOperations, ByteRange, Bytes, Number, Operation, Payload, Transaction, TransactionId,
    Transform,
};

use super::{BLOBS, CHUNKS, Happening, World, blob};
use crate::chain::Ends;
use crate::commit::Decision;
use crate::commit::recovery::NEVER_BEGUN;
use crate::member::ChunkName;
use crate::member::tests::shelf::{CHUNK, Content, SLOTS};
use crate::message::{Address, Body, Envelope, ReadRequest};
use crate::read::Kind;

/// The client's number.
pub const CLIENT: u64 = 7;

/// A client's transaction.
pub struct Call {
    pub transaction: Arc<Transaction>,
    pub begun_us: u64,
    pub is_retry: bool,
    pub answer: Option<Decision>,
}

/// What is committed anew gets an id so far from the first.
const ANEW: u64 = 1_000;

/// Whether a transaction was closed because nobody had it when it was asked about.
pub fn is_never_begun(decision: &Decision) -> bool {
    match decision {
        Decision::Abort(abort) => abort.reason == NEVER_BEGUN,
        Decision::Commit(_) => false,
    }
}

/// A direct read of a client.
pub struct Look {
    pub chunk: ChunkName,
    pub asked_us: u64,
    pub begun_us: u64,
    pub answer: Option<Content>,
}

impl World {
    pub(super) fn client_envelope(&self, body: Body) -> Envelope {
        Envelope { epoch: self.map.epoch, incarnation: 0, from: Address::Client(CLIENT), body }
    }

    pub(super) fn submit(&mut self, id: TransactionId) {
        if !self.calls.contains_key(&id) {
            let transaction = Arc::new(self.transaction(id));
            let (begun_us, is_retry, answer) = (self.now_us, false, None);
            self.calls.insert(id, Call { transaction, begun_us, is_retry, answer });
        }
        let call = self.calls.get_mut(&id).expect("it was just put in");
        if call.answer.is_some() {
            return;
        }
        let (transaction, begun_us, is_retry) =
            (Arc::clone(&call.transaction), call.begun_us, call.is_retry);
        call.is_retry = true;
        self.at(300_000, Happening::Submit(id));
        let ends = Ends::new();
        if let Ok(chain) = self.map.chain(&transaction, &ends) {
            let head = chain.hops()[0].node;
            let settled = 0;
            let body = Body::Submit { transaction, ends, begun_us, is_retry, settled };
            let envelope = self.client_envelope(body);
            self.send(Address::Node(head), envelope);
        }
    }

    /// Adds to some counters, and writes its own number somewhere.
    pub(super) fn transaction(&mut self, id: TransactionId) -> Transaction {
        let mut blobs: Vec<u8> = (0..BLOBS).collect();
        blobs = self.random.sample(&blobs, 1 + id.0 as usize % 3);
        blobs.sort_unstable();
        let blobs = blobs.into_iter().map(|number| {
            let chunk = self.random.below(CHUNKS as usize) as u64;
            let offset = |slot: u64| chunk * CHUNK + slot * 8;
            let transform = Transform::add(Number::U64(1));
            let payload = Payload::Inline(Bytes::copy_from_slice(&(id.0 as u64).to_le_bytes()));
            let operations = vec![
                Operation::Apply { offset: offset(0), transform },
                Operation::Write { offset: offset(1 + id.0 as u64 % (SLOTS - 1)), payload },
            ];
            BlobOperations { blob: blob(number), operations }
        });
        Transaction { id, blobs: blobs.collect(), reads: vec![] }
    }

    pub(super) fn look(&mut self, read: u64) {
        if !self.looks.contains_key(&read) {
            let number = self.random.below(BLOBS.into()) as u8;
            let chunk = (blob(number), self.random.below(CHUNKS as usize) as u64);
            let (asked_us, begun_us) = (0, self.now_us);
            self.looks.insert(read, Look { chunk, asked_us, begun_us, answer: None });
        }
        let look = self.looks.get_mut(&read).expect("it was just put in");
        if look.answer.is_some() {
            return;
        }
        look.asked_us = self.now_us;
        let (blob, chunk) = look.chunk.clone();
        self.at(300_000, Happening::Read(read));
        let holders = self.map.holders(&blob, chunk);
        if holders.is_empty() {
            return;
        }
        let to = self.random.pick(&holders);
        let range = ByteRange { start: chunk * CHUNK, end: chunk * CHUNK + SLOTS * 8 };
        let (asker, kind) = (Address::Client(CLIENT), Kind::Direct);
        let (is_attributes, is_copy) = (false, false);
        let request = ReadRequest { read, asker, blob, range, is_attributes, kind, is_copy };
        let envelope = self.client_envelope(Body::Read(request));
        self.send(Address::Node(to), envelope);
    }

    pub(super) fn client(&mut self, Envelope { body, .. }: Envelope) {
        match body {
            Body::Reply { id, decision, outcomes, .. } => {
                let call = self.calls.get_mut(&id).expect("only what was asked is answered");
                // Answers are lost only with all that held the chunk when it was applied.
                let adds = call.transaction.blobs.len();
                assert!(outcomes.len() <= adds, "an add answers once: {id:?} {outcomes:?}");
                self.complete_answers += usize::from(outcomes.len() == adds);
                match &call.answer {
                    None => {
                        let is_anew = is_never_begun(&decision);
                        call.answer = Some(decision);
                        if is_anew {
                            // As a session does: the same again, under another id (F12).
                            let sequence = id.0 as u64 + ANEW;
                            let id = TransactionId::new(CLIENT, sequence);
                            self.at(0, Happening::Submit(id));
                        }
                    }
                    Some(answer) => assert_eq!(*answer, decision, "one outcome: {id:?}"),
                }
            }
            Body::Part(part) => {
                let look = self.looks.get_mut(&part.read).expect("only what was asked");
                if look.answer.is_none() {
                    let numbers = part.bytes.chunks_exact(8);
                    let mut content = Content::default();
                    for (slot, bytes) in content.iter_mut().zip(numbers) {
                        *slot = u64::from_le_bytes(bytes.try_into().unwrap());
                    }
                    look.answer = Some(content);
                }
            }
            Body::NewerMap(_) | Body::NotHere(_) | Body::Refused { .. } => {}
            other => panic!("clients are not told {other:?}"),
        }
    }
}
