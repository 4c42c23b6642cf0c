//! The store's words for a change of the model.

use tyr::blocking::{Keyspace, Transaction};
use tyr::{Committed, OperationId};

use super::reference::{Answer, Change};

pub fn perform(keyspace: &Keyspace, key: &[u8], change: &Change) -> tyr::Result<Answer> {
    let done = |()| Answer::Done;
    match change.clone() {
        Change::Create => keyspace.create(key).map(done),
        Change::Put(data) => keyspace.put(key, data).map(done),
        Change::PutReader(data) => keyspace.put_reader(key, &*data).map(Answer::Len),
        Change::Write(offset, data) => keyspace.write(key, offset, data).map(done),
        Change::Append(data) => keyspace.append(key, data).map(Answer::Offset),
        Change::AppendReader(data) => keyspace.append_reader(key, &*data).map(Answer::Offset),
        Change::AppendAt(at, data) => keyspace.append_at(key, at, data).map(Answer::Offset),
        Change::Truncate(len) => keyspace.truncate(key, len).map(done),
        Change::Clear(offset, len) => keyspace.clear(key, offset, len).map(done),
        Change::Delete => keyspace.delete(key).map(Answer::Existed),
        Change::Apply(at, transform) => keyspace.apply(key, at, transform).map(Answer::Value),
        Change::Swap(at, old, new) => keyspace.compare_and_swap(key, at, old, new).map(done),
        Change::Compare(..)
        | Change::CompareNumber(..)
        | Change::ExpectAbsent
        | Change::ExpectPresent => unreachable!("a condition alone is for transactions"),
    }
}

pub fn add(
    transaction: &mut Transaction,
    keyspace: &Keyspace,
    key: &[u8],
    change: &Change,
) -> tyr::Result<OperationId> {
    match change.clone() {
        Change::Create => transaction.create(keyspace, key),
        Change::Put(data) => transaction.put(keyspace, key, data),
        Change::Write(offset, data) => transaction.write(keyspace, key, offset, data),
        Change::Append(data) => transaction.append(keyspace, key, data),
        Change::AppendAt(at, data) => transaction.append_at(keyspace, key, at, data),
        Change::Truncate(len) => transaction.truncate(keyspace, key, len),
        Change::Clear(offset, len) => transaction.clear(keyspace, key, offset, len),
        Change::Delete => transaction.delete(keyspace, key),
        Change::Apply(offset, transform) => transaction.apply(keyspace, key, offset, transform),
        Change::Compare(offset, data) => transaction.compare(keyspace, key, offset, data),
        Change::CompareNumber(offset, relation, value) => {
            transaction.compare_number(keyspace, key, offset, relation, value)
        }
        Change::ExpectAbsent => transaction.expect_absent(keyspace, key),
        Change::ExpectPresent => transaction.expect_present(keyspace, key),
        Change::PutReader(_) | Change::AppendReader(_) | Change::Swap(..) => {
            unreachable!("transactions have no such operation")
        }
    }
}

pub fn answer(committed: &Committed, id: OperationId, change: &Change) -> Answer {
    let (offset, value, existed) =
        (committed.offset(id), committed.value(id), committed.existed(id));
    match (offset, value, existed) {
        (None, None, None) => Answer::Done,
        (Some(offset), None, None) => Answer::Offset(offset),
        (None, Some(value), None) => Answer::Value(value),
        (None, None, Some(existed)) => Answer::Existed(existed),
        several => panic!("{change:?} answered {several:?}"),
    }
}
