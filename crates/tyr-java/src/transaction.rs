//! Transactions: lent to one call at a time, committed or rolled back once.

use std::mem::replace;
use std::sync::Arc;

use parking_lot::Mutex;
use tyr::{Bytes, OperationId};

use crate::answer::{Answer, version_of};
use crate::call::Call;
use crate::failure::Failure;
use crate::op;
use crate::packed::{self, count, unknown};
use crate::store::{Store, bytes};

/// Operations on any blobs of a store that take effect together or not at all.
#[derive(Debug)]
pub struct Transaction {
    store: Arc<Store>,
    slot: Arc<Slot>,
    /// Whether `transact` commits it.
    is_lent: bool,
}

/// Where a transaction is: here, lent to a call, or over.
#[derive(Debug)]
struct Slot(Mutex<State>);

#[derive(Debug)]
enum State {
    Open(Box<Open>),
    Lent,
    Over(&'static str),
}

/// A transaction with what it has gathered.
#[derive(Debug)]
struct Open {
    transaction: tyr::Transaction,
    operations: Vec<OperationId>,
}

const IN_USE: &str =
    "another call is using this transaction: one at a time may, so wait for that one";

impl Slot {
    /// Takes it out, and leaves `left` there.
    fn take(&self, left: State) -> Result<Box<Open>, Failure> {
        let mut state = self.0.lock();
        match replace(&mut *state, left) {
            State::Open(open) => Ok(open),
            State::Lent => {
                *state = State::Lent;
                Err(Failure::State(IN_USE.to_owned()))
            }
            State::Over(why) => {
                *state = State::Over(why);
                Err(Failure::State(format!("this transaction {why}: begin another")))
            }
        }
    }

    /// Ends it, if it has not ended.
    fn end(&self, why: &'static str) -> Option<Box<Open>> {
        let mut state = self.0.lock();
        match replace(&mut *state, State::Over(why)) {
            State::Open(open) => Some(open),
            State::Lent => None,
            State::Over(before) => {
                *state = State::Over(before);
                None
            }
        }
    }
}

/// A transaction that a call has. When the call is over, or was cancelled, it goes back.
struct Lent {
    slot: Arc<Slot>,
    open: Option<Box<Open>>,
}

impl Lent {
    fn open(&mut self) -> &mut Open {
        self.open.as_mut().expect("it is there until the call is over")
    }

    fn transaction(&mut self) -> &mut tyr::Transaction {
        &mut self.open().transaction
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut state = self.slot.0.lock();
        match (&*state, self.open.take()) {
            (State::Lent, Some(open)) => *state = State::Open(open),
            // It was rolled back meanwhile.
            (State::Open(_) | State::Over(_), open) => {
                drop(state);
                drop(open);
            }
            (State::Lent, None) => {}
        }
    }
}

impl Transaction {
    /// A transaction of a store.
    pub fn new(store: &Arc<Store>, transaction: tyr::Transaction) -> Self {
        let open = Box::new(Open { transaction, operations: Vec::new() });
        let slot = Arc::new(Slot(Mutex::new(State::Open(open))));
        Self { store: Arc::clone(store), slot, is_lent: false }
    }

    /// One that `transact` lends to a function.
    pub fn lent(store: &Arc<Store>, transaction: tyr::Transaction) -> Self {
        Self { is_lent: true, ..Self::new(store, transaction) }
    }

    /// Takes it back from a function, with what it has gathered; nothing, if the function has left
    /// a call of it under way elsewhere.
    pub fn take_back(&self) -> Option<(tyr::Transaction, Vec<OperationId>)> {
        let open = self.slot.end("was that of a function that is over")?;
        Some((open.transaction, open.operations))
    }

    fn lend(&self) -> Result<Lent, Failure> {
        let open = Some(self.slot.take(State::Lent)?);
        Ok(Lent { slot: Arc::clone(&self.slot), open })
    }

    /// Has a call of it done.
    pub fn call(&self, call: Call<'_>) -> Result<Option<Answer>, Failure> {
        self.store.check()?;
        match call.op {
            op::TXN_COMMIT => self.commit(call),
            op::TXN_ROLLBACK => {
                self.is_ours()?;
                drop(self.slot.end("was rolled back"));
                Ok(Some(Answer::Nothing))
            }
            op::TXN_COPY => {
                let (copy, mut lent) = (self.store.copy_of(&call)?, self.lend()?);
                let copying = async move { lent.transaction().copy(&copy).await };
                call.front.run(async move { Ok(Answer::number(copying.await?)) })
            }
            op::TXN_READ | op::TXN_GET | op::TXN_STAT | op::TXN_SCAN => self.read(call),
            _ => self.gather(call).map(Some),
        }
    }

    fn is_ours(&self) -> Result<(), Failure> {
        if self.is_lent {
            let text = "transact ends this transaction: return from the function to commit it, or \
                        throw an exception to roll it back";
            return Err(Failure::State(text.to_owned()));
        }
        Ok(())
    }

    fn commit(&self, call: Call<'_>) -> Result<Option<Answer>, Failure> {
        self.is_ours()?;
        let open = self.slot.take(State::Over("was committed"))?;
        call.front.run(async move {
            let operations = open.operations;
            match open.transaction.commit().await {
                Ok(committed) => Ok(Answer::Packed(packed::committed(&committed, &operations))),
                Err(error) => Err(Failure::Commit(error, operations)),
            }
        })
    }

    fn read(&self, call: Call<'_>) -> Result<Option<Answer>, Failure> {
        let keyspace = call.keyspace()?.of(&self.store)?.clone();
        if call.op == op::TXN_SCAN {
            let (scan, mut lent) = (packed::scan(&call.data)?, self.lend()?);
            return call.front.run(async move {
                let page = lent.transaction().scan_page(&keyspace, &scan).await?;
                Ok(Answer::Packed(packed::page(&page)))
            });
        }
        let (key, offset, len) = (call.key()?, count(call.a)?, count(call.b)?);
        let mut lent = self.lend()?;
        match call.op {
            op::TXN_READ => call.front.run(async move {
                Ok(bytes(lent.transaction().read(&keyspace, key, offset, len).await?))
            }),
            op::TXN_GET => call
                .front
                .run(async move { Ok(bytes(lent.transaction().get(&keyspace, key).await?)) }),
            _ => call.front.run(async move {
                Ok(Answer::stat(lent.transaction().stat(&keyspace, key).await?))
            }),
        }
    }

    /// Gathers an operation; answers its place among those of the transaction.
    fn gather(&self, call: Call<'_>) -> Result<Answer, Failure> {
        let keyspace = call.keyspace()?;
        let (of, key) = (keyspace.of(&self.store)?, call.key()?);
        let mut lent = self.lend()?;
        let it = lent.transaction();
        if call.op == op::TXN_EXPECT_VERSION {
            it.expect_version(of, key, version_of(call.a, call.b))?;
            return Ok(Answer::Nothing);
        }
        let offset = count(call.a)?;
        let id = match call.op {
            op::TXN_CREATE => it.create(of, key),
            op::TXN_PUT => it.put(of, key, Bytes::from(call.data)),
            op::TXN_WRITE => it.write(of, key, offset, Bytes::from(call.data)),
            op::TXN_APPEND => it.append(of, key, Bytes::from(call.data)),
            op::TXN_APPEND_AT => it.append_at(of, key, offset, Bytes::from(call.data)),
            op::TXN_TRUNCATE => it.truncate(of, key, offset),
            op::TXN_CLEAR => it.clear(of, key, offset, count(call.b)?),
            op::TXN_DELETE => it.delete(of, key),
            op::TXN_APPLY => it.apply(of, key, offset, packed::transform(&call.data)?),
            op::TXN_COMPARE => it.compare(of, key, offset, Bytes::from(call.data)),
            op::TXN_COMPARE_NUMBER => {
                let (relation, value) = packed::relation(&call.data)?;
                it.compare_number(of, key, offset, relation, value)
            }
            op::TXN_EXPECT_ABSENT => it.expect_absent(of, key),
            op::TXN_EXPECT_PRESENT => it.expect_present(of, key),
            other => return Err(unknown("transaction", &other.to_string())),
        }?;
        let operations = &mut lent.open().operations;
        operations.push(id);
        Ok(Answer::number(operations.len() as i64 - 1))
    }
}
