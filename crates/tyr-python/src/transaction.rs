//! Transactions: lent to one call at a time, committed or rolled back once.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tyr::{Bytes, Error, OperationId, limits};

use crate::border::Held;
use crate::call::Front;
use crate::error::Result;
use crate::input::{Count, Data, Key};
use crate::keyspace::Keyspace;
use crate::lease::Lock;
use crate::listing::{Page, ScanWords};
use crate::number::{Stat, Transform, Version, number, number_type, relation};
use crate::operation::{Committed, Operation};
use crate::store::Shared;

/// Where a transaction is: here, lent to a call, or over.
#[derive(Debug)]
pub struct Slot {
    state: Mutex<State>,
    committed: OnceLock<tyr::Committed>,
}

#[derive(Debug)]
enum State {
    Open(Box<tyr::Transaction>),
    Lent,
    Over(&'static str),
}

const IN_USE: &str =
    "another call is using this transaction: one at a time may, so wait for that one";

fn over(why: &str) -> Error {
    Error::invalid(format!("this transaction {why}: begin another"))
}

impl Slot {
    fn new(transaction: tyr::Transaction) -> Arc<Self> {
        let state = Mutex::new(State::Open(Box::new(transaction)));
        Arc::new(Self { state, committed: OnceLock::new() })
    }

    /// What its operations answered, once it has committed.
    pub fn committed(&self) -> Option<&tyr::Committed> {
        self.committed.get()
    }

    /// Does with it, where it is, what takes no time.
    fn with<T>(&self, work: impl FnOnce(&mut tyr::Transaction) -> T) -> Result<T> {
        match &mut *self.state.lock() {
            State::Open(transaction) => Ok(work(transaction)),
            State::Lent => Err(Error::invalid(IN_USE).into()),
            State::Over(why) => Err(over(why).into()),
        }
    }

    /// Takes it out, and leaves `left` there.
    fn take(&self, left: State) -> Result<Box<tyr::Transaction>> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, left) {
            State::Open(transaction) => Ok(transaction),
            State::Lent => {
                *state = State::Lent;
                Err(Error::invalid(IN_USE).into())
            }
            State::Over(why) => {
                *state = State::Over(why);
                Err(over(why).into())
            }
        }
    }

    /// Ends it, if it has not ended.
    fn end(&self, why: &'static str) -> Option<Box<tyr::Transaction>> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, State::Over(why)) {
            State::Open(transaction) => Some(transaction),
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
    transaction: Option<Box<tyr::Transaction>>,
}

impl Deref for Lent {
    type Target = tyr::Transaction;

    fn deref(&self) -> &tyr::Transaction {
        self.transaction.as_ref().expect("it is there until the call is over")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut tyr::Transaction {
        self.transaction.as_mut().expect("it is there until the call is over")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut state = self.slot.state.lock();
        match (&*state, self.transaction.take()) {
            (State::Lent, Some(transaction)) => *state = State::Open(transaction),
            // It was rolled back meanwhile.
            (State::Open(_) | State::Over(_), transaction) => {
                drop(state);
                drop(transaction);
            }
            (State::Lent, None) => {}
        }
    }
}

/// Operations on any blobs of a store that take effect together or not at all.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Transaction {
    shared: Held<Arc<Shared>>,
    front: Front,
    slot: Held<Arc<Slot>>,
    /// Whether `transact` commits it.
    is_lent: bool,
}

impl Transaction {
    /// A transaction of a store.
    pub fn new(
        shared: &Arc<Shared>,
        front: &Front,
        inner: tyr::Transaction,
        is_lent: bool,
    ) -> Self {
        let slot = Held::new(Slot::new(inner));
        Self { shared: Held::new(Arc::clone(shared)), front: front.clone(), slot, is_lent }
    }

    /// Takes it back from the body of `transact`; nothing, if the body has left a call of it under
    /// way elsewhere.
    pub fn take_back(&self) -> Option<tyr::Transaction> {
        self.slot.end("was that of a body that is over").map(|it| *it)
    }

    fn lend(&self) -> Result<Lent> {
        let transaction = Some(self.slot.take(State::Lent)?);
        Ok(Lent { slot: Arc::clone(&self.slot), transaction })
    }

    /// Gathers an operation with so many bytes of payload.
    ///
    /// Python's lock is given up only for a payload that is written at once: else all is done in
    /// memory, sooner than another thread could have the lock.
    fn gather(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        payload_len: usize,
        add: impl FnOnce(&mut tyr::Transaction, &tyr::Keyspace) -> tyr::Result<OperationId> + Send,
    ) -> Result<Operation> {
        let inner = keyspace.get().of(&self.shared)?;
        let id = if payload_len < limits::EXTENT_PAYLOAD_MIN {
            self.slot.with(|transaction| add(transaction, inner))?
        } else {
            let mut lent = self.lend()?;
            keyspace.py().detach(move || add(&mut lent, inner))
        };
        Ok(Operation::new(&self.slot, id?))
    }

    /// Reads, and makes what was read Python's.
    fn read_with<T: Send + 'static, F: Future<Output = tyr::Result<T>> + Send + 'static>(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        begin: impl FnOnce(Lent, tyr::Keyspace) -> F,
        finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Result<Py<PyAny>> {
        let inner = keyspace.get().of(&self.shared)?.clone();
        let lent = self.lend()?;
        Ok(self.front.run(keyspace.py(), begin(lent, inner), finish)?)
    }

    fn is_ours(&self) -> Result<()> {
        self.shared.check()?;
        if self.is_lent {
            let text = "transact ends this transaction: return from the function to commit it, or \
                        raise an exception to roll it back";
            return Err(Error::invalid(text).into());
        }
        Ok(())
    }

    fn finish(&self, py: Python<'_>) -> Result<Py<PyAny>> {
        self.is_ours()?;
        let transaction = self.slot.take(State::Over("was committed"))?;
        let slot = Arc::clone(&self.slot);
        let commit = async move {
            let committed = transaction.commit().await?;
            Ok(slot.committed.get_or_init(|| committed).clone())
        };
        Ok(self.front.run(py, commit, |py, committed| Committed(committed).into_py_any(py))?)
    }
}

fn bytes(py: Python<'_>, bytes: Bytes) -> PyResult<Py<PyAny>> {
    Ok(PyBytes::new(py, &bytes).into_any().unbind())
}

#[pymethods]
impl Transaction {
    fn create(&self, keyspace: &Bound<'_, Keyspace>, key: Key) -> Result<Operation> {
        self.gather(keyspace, 0, |it, keyspace| it.create(keyspace, key.0))
    }

    fn put(&self, keyspace: &Bound<'_, Keyspace>, key: Key, data: Data) -> Result<Operation> {
        self.gather(keyspace, data.0.len(), |it, keyspace| it.put(keyspace, key.0, data.0))
    }

    fn write(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: Key,
        offset: Count,
        data: Data,
    ) -> Result<Operation> {
        self.gather(keyspace, data.0.len(), |it, keyspace| {
            it.write(keyspace, key.0, offset.0, data.0)
        })
    }

    #[pyo3(signature = (keyspace, key, data, *, at=None))]
    fn append(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: Key,
        data: Data,
        at: Option<Count>,
    ) -> Result<Operation> {
        self.gather(keyspace, data.0.len(), |it, keyspace| match at {
            Some(at) => it.append_at(keyspace, key.0, at.0, data.0),
            None => it.append(keyspace, key.0, data.0),
        })
    }

    fn truncate(&self, keyspace: &Bound<'_, Keyspace>, key: Key, size: Count) -> Result<Operation> {
        self.gather(keyspace, 0, |it, keyspace| it.truncate(keyspace, key.0, size.0))
    }

    fn clear(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: Key,
        offset: Count,
        length: Count,
    ) -> Result<Operation> {
        self.gather(keyspace, 0, |it, keyspace| it.clear(keyspace, key.0, offset.0, length.0))
    }

    fn delete(&self, keyspace: &Bound<'_, Keyspace>, key: Key) -> Result<Operation> {
        self.gather(keyspace, 0, |it, keyspace| it.delete(keyspace, key.0))
    }

    fn apply(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: Key,
        offset: Count,
        transform: &Bound<'_, Transform>,
    ) -> Result<Operation> {
        let transform = transform.get().0;
        self.gather(keyspace, 0, |it, keyspace| it.apply(keyspace, key.0, offset.0, transform))
    }

    fn compare(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: Key,
        offset: Count,
        expected: Data,
    ) -> Result<Operation> {
        self.gather(keyspace, 0, |it, keyspace| it.compare(keyspace, key.0, offset.0, expected.0))
    }

    #[allow(clippy::too_many_arguments, reason = "they are those of the public crate")]
    fn compare_number(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: Key,
        offset: Count,
        relation: &str,
        r#type: &str,
        value: &Bound<'_, PyAny>,
    ) -> Result<Operation> {
        let relation = self::relation(relation)?;
        let value = number(number_type(r#type)?, value)?;
        self.gather(keyspace, 0, |it, keyspace| {
            it.compare_number(keyspace, key.0, offset.0, relation, value)
        })
    }

    fn expect_absent(&self, keyspace: &Bound<'_, Keyspace>, key: Key) -> Result<Operation> {
        self.gather(keyspace, 0, |it, keyspace| it.expect_absent(keyspace, key.0))
    }

    fn expect_present(&self, keyspace: &Bound<'_, Keyspace>, key: Key) -> Result<Operation> {
        self.gather(keyspace, 0, |it, keyspace| it.expect_present(keyspace, key.0))
    }

    fn expect_version(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: Key,
        version: &Bound<'_, Version>,
    ) -> Result<()> {
        let inner = keyspace.get().of(&self.shared)?;
        Ok(self.slot.with(|it| it.expect_version(inner, key.0, version.get().0))??)
    }

    /// Adds the condition that none of these bytes was changed after that version.
    fn assume(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: Key,
        offset: Count,
        length: Count,
        version: &Bound<'_, Version>,
    ) -> Result<()> {
        let (inner, version) = (keyspace.get().of(&self.shared)?, version.get().0);
        Ok(self.slot.with(|it| it.assume(inner, key.0, offset.0, length.0, version))??)
    }

    /// Adds the condition that nobody has got the lock since.
    fn fence(&self, lock: &Bound<'_, Lock>) -> Result<Operation> {
        let fence = |lock: &tyr::Lock| self.slot.with(|it| it.fence(lock));
        let id = lock.get().with(&self.shared, fence)??;
        Ok(Operation::new(&self.slot, id?))
    }

    fn read(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: Key,
        offset: Count,
        length: Count,
    ) -> Result<Py<PyAny>> {
        let (key, offset, length) = (key.0, offset.0, length.0);
        let begin = move |mut lent: Lent, keyspace: tyr::Keyspace| async move {
            lent.read(&keyspace, key, offset, length).await
        };
        self.read_with(keyspace, begin, bytes)
    }

    fn get(&self, keyspace: &Bound<'_, Keyspace>, key: Key) -> Result<Py<PyAny>> {
        let begin = move |mut lent: Lent, keyspace: tyr::Keyspace| async move {
            lent.get(&keyspace, key.0).await
        };
        self.read_with(keyspace, begin, bytes)
    }

    fn stat(&self, keyspace: &Bound<'_, Keyspace>, key: Key) -> Result<Py<PyAny>> {
        let begin = move |mut lent: Lent, keyspace: tyr::Keyspace| async move {
            lent.stat(&keyspace, key.0).await
        };
        self.read_with(keyspace, begin, |py, stat| Stat(stat).into_py_any(py))
    }

    #[pyo3(signature = (keyspace, **words))]
    fn scan_page(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        words: Option<ScanWords>,
    ) -> Result<Py<PyAny>> {
        let scan = words.unwrap_or_default().0;
        let begin = move |mut lent: Lent, keyspace: tyr::Keyspace| async move {
            lent.scan_page(&keyspace, &scan).await
        };
        self.read_with(keyspace, begin, |py, page| Page::new(py, page)?.into_py_any(py))
    }

    fn copy(
        &self,
        source: &Bound<'_, Keyspace>,
        source_key: Key,
        target: &Bound<'_, Keyspace>,
        target_key: Key,
    ) -> Result<Py<PyAny>> {
        let into = target.get().of(&self.shared)?;
        let copy =
            tyr::BlobCopy::new(source.get().of(&self.shared)?, source_key.0, into, target_key.0)?;
        let begin = move |mut lent: Lent, _| async move { lent.copy(&copy).await };
        self.read_with(source, begin, |py, copied| copied.into_py_any(py))
    }

    /// Commits it; everything takes effect at once, or nothing.
    fn commit(&self, py: Python<'_>) -> Result<Py<PyAny>> {
        self.finish(py)
    }

    /// Takes everything back. One that is over stays as it is.
    fn rollback(&self, py: Python<'_>) -> Result<()> {
        self.is_ours()?;
        let ended = self.slot.end("was rolled back");
        py.detach(|| drop(ended));
        Ok(())
    }

    /// Whether it can still gather and read.
    #[getter]
    fn is_open(&self) -> bool {
        !matches!(*self.slot.state.lock(), State::Over(_))
    }

    fn __enter__(this: Py<Self>) -> Result<Py<Self>> {
        this.get().is_ours()?;
        Ok(this)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        class: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<bool> {
        self.front.check_blocking("this transaction", "with")?;
        match class.is_none() {
            true if self.is_open() => drop(self.finish(py)?),
            true => {}
            false => self.rollback(py)?,
        }
        Ok(false)
    }

    fn __repr__(&self) -> String {
        let state = match &*self.slot.state.lock() {
            State::Open(_) => "open",
            State::Lent => "in use",
            State::Over(why) => *why,
        };
        format!("<Transaction of {}: {state}>", self.shared.place())
    }
}
