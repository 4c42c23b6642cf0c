//! What the clients of the test cluster do.

use std::collections::BTreeSet;

use tyr_types::{
    BlobOperations, Bytes, Existence, Expected, Number, Operation, Payload, Relation, Transaction,
    TransactionId, Transform,
};

use super::layout::{Layout, Object, SLOT, SLOTS, blob_name, slot_range};
use super::random::Random;
use super::state::State;
use crate::view::View;

/// Makes a transaction without reads. `peek` shows what is there about now, so that conditions
/// have a chance to hold.
pub fn transaction(
    random: &mut Random,
    layout: &Layout,
    id: u64,
    is_conditional: bool,
    peek: impl Fn(Object) -> State,
) -> Transaction {
    let all: Vec<u8> = (0..layout.blobs).collect();
    let count = random.pick(&[1, 1, 2, 3]);
    let mut blobs = Vec::new();
    for blob in random.sample(&all, count) {
        let mut operations = Vec::new();
        if is_conditional && random.percent(40) {
            operations.extend(condition(random, layout, id, blob, &peek));
        }
        for _ in 0..random.pick(&[1, 1, 1, 2]) {
            operations.push(match layout.is_log(blob) {
                true => log_write(random, id),
                false => slot_write(random, id),
            });
        }
        blobs.push(BlobOperations { blob: blob_name(blob), operations });
    }
    Transaction { id: TransactionId(u128::from(id)), blobs, reads: Vec::new() }
}

fn payload(id: u64, slots: u8) -> Payload {
    Payload::Inline(Bytes::from((id + 1).to_le_bytes().repeat(slots.into())))
}

fn slot_write(random: &mut Random, id: u64) -> Operation {
    let slot = random.below(SLOTS.into()) as u8;
    let count = (1 + random.below(3) as u8).min(SLOTS - slot);
    let range = slot_range(slot, count);
    match random.below(100) {
        0..60 => Operation::Write { offset: range.start, payload: payload(id, count) },
        60..85 => {
            let transform = Transform::add(Number::U64(id));
            Operation::Apply { offset: range.start, transform }
        }
        85..89 => Operation::Clear { range },
        89..93 => Operation::Truncate { len: range.start },
        93..97 => Operation::Replace { payload: payload(id, count) },
        _ => Operation::Delete,
    }
}

fn log_write(random: &mut Random, id: u64) -> Operation {
    let count = 1 + random.below(2) as u8;
    match random.below(100) {
        0..80 => Operation::Append { payload: payload(id, count), expected: None },
        80..88 => {
            let offset = random.below(12) as u64 * SLOT;
            Operation::Write { offset, payload: payload(id, count) }
        }
        88..95 => Operation::Truncate { len: random.below(12) as u64 * SLOT },
        95..98 => Operation::Replace { payload: payload(id, count) },
        _ => Operation::Delete,
    }
}

fn condition(
    random: &mut Random,
    layout: &Layout,
    id: u64,
    blob: u8,
    peek: &impl Fn(Object) -> State,
) -> Option<Operation> {
    if layout.is_log(blob) {
        let size = peek(Object::Log(blob)).stat(&blob_name(blob)).unwrap_or(0);
        return Some(Operation::Append { payload: payload(id, 1), expected: Some(size) });
    }
    if random.percent(20) {
        return Some(Operation::Create);
    }
    if random.percent(30) {
        let size = peek(Object::Attributes(blob)).stat(&blob_name(blob));
        return Some(Operation::Expect { existence: Existence::of(size) });
    }
    let slot = random.below(SLOTS.into()) as u8;
    let bytes = peek(Object::Slot(blob, slot)).slot(blob, slot);
    let expected = match random.percent(30) {
        true => Expected::Number {
            relation: Relation::GreaterOrEqual,
            value: Number::U64(u64::from_le_bytes(bytes)),
        },
        false => Bytes::copy_from_slice(&bytes).into(),
    };
    (bytes != [0; 8]).then(|| Operation::Compare { offset: slot_range(slot, 1).start, expected })
}

/// Some objects to read, all of one blob when `is_one_blob`.
pub fn objects(
    random: &mut Random,
    layout: &Layout,
    count: usize,
    is_one_blob: bool,
) -> Vec<Object> {
    let all = layout.objects();
    let first = random.pick(&all);
    let fits = |object: &&Object| !is_one_blob || object.blob() == first.blob();
    let rest: Vec<Object> = all.iter().filter(fits).copied().collect();
    let chosen: BTreeSet<Object> = random.sample(&rest, count).into_iter().collect();
    chosen.into_iter().collect()
}
