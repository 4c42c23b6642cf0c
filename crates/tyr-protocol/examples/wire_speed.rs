//! How long a message takes to become bytes and back: a transaction of the monitoring store.
//!
//! `cargo run --release -p tyr-protocol --example wire_speed`. Six blobs: eight transforms of eight
//! bytes on each of five, 100 bytes appended to the sixth; a chain of three nodes that all hold
//! all of it.
#![allow(clippy::disallowed_methods, reason = "it measures; the crate itself has no clock")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use bytes::Buf;
use tyr_protocol::commit::{Attempt, Message};
use tyr_protocol::message::{Address, Body, Envelope};
use tyr_protocol::wire::{self, Outgoing};
use tyr_protocol::{Chain, Ends, Hop, Part, Piece};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Epoch, Key, KeyspaceId, NodeId, Number, Operation,
    Payload, Result, Timestamp, Transaction, TransactionId, Transform,
};

/// Messages of one measurement.
const COUNT: u32 = 200_000;
/// Measurements; the best counts, the others were disturbed.
const ROUNDS: usize = 7;

fn main() -> Result<()> {
    for transforms in [1, 8] {
        let envelope = forward(transforms)?;
        let mut outgoing = Outgoing::new();
        wire::encode(&envelope, &mut outgoing)?;
        let frame = outgoing.take_bytes();
        let encoding = best(|| {
            wire::encode(black_box(&envelope), &mut outgoing)?;
            outgoing.advance(outgoing.remaining());
            Ok(())
        })?;
        let decoding = best(|| {
            black_box(wire::decode(black_box(&frame))?);
            Ok(())
        })?;
        println!(
            "forward, 5 blobs x {transforms} transforms + 1 append: {} bytes, encode {encoding:.0} \
             ns, decode {decoding:.0} ns",
            frame.len()
        );
    }
    Ok(())
}

/// Nanoseconds that `work` takes, in the best round.
fn best(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..COUNT {
            work()?;
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(COUNT));
    }
    Ok(best)
}

fn forward(transforms: u64) -> Result<Envelope> {
    let keys = ["site/farm/node17", "site/farm", "site", "region/east", "job/4711", "raw/17"];
    let names = keys.iter().map(|key| {
        let keyspace = KeyspaceId(3);
        Key::new(key).map(|key| BlobName { keyspace, key })
    });
    let names = names.collect::<Result<Vec<_>>>()?;
    let add = |place| {
        let transform = Transform::add(Number::F64(1.5));
        Operation::Apply { offset: 8 * place, transform }
    };
    let payload = Payload::Inline(Bytes::from(vec![7; 100]));
    let append = Operation::Append { payload, expected: None };
    let mut operations: Vec<Vec<Operation>> =
        (0..5).map(|_| (0..transforms).map(add).collect()).collect();
    operations.push(vec![append]);
    let blobs = names.iter().cloned().zip(operations);
    let blobs = blobs.map(|(blob, operations)| BlobOperations { blob, operations }).collect();
    let at = Timestamp { epoch: Epoch(4), clock: 1_700_000_000_000_000, node: 1 };
    let piece = |blob: &BlobName| Piece {
        blob: blob.clone(),
        range: ByteRange { start: 0, end: 64 << 20 },
        is_attributes: true,
        is_written: true,
        authority: NodeId(1),
    };
    let hop = |node: u16| Hop {
        node: NodeId(node),
        part: Part::Pieces(names.iter().map(piece).collect()),
    };
    let chain = Chain::new(vec![hop(1), hop(2), hop(3)], Ends::new())?;
    let id = TransactionId::new(0x0123_4567_89AB_CDEF, 42);
    let body = Body::Commit(Message::Forward {
        transaction: Arc::new(Transaction { id, blobs, reads: Vec::new() }),
        chain,
        attempt: Attempt { epoch: Epoch(4), number: 0, coordinator: NodeId(1) },
        begun: at,
        highest: at,
        known: None,
        usages: Vec::new(),
    });
    Ok(Envelope { epoch: Epoch(4), incarnation: 1, from: Address::Node(NodeId(1)), body })
}
