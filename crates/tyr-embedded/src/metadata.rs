//! Service metadata of a store: the same value that the monitors of a cluster agree on, kept in the
//! index.
//!
//! ```text
//!   transaction ──plan──► rows, durable in the index ──install──► what is read ──► watches
//! ```
//!
//! It is read from the index at its first use, and is in memory from then on. What has changed is
//! seen when it is durable, and not before. Whoever has the store open may do everything: users are
//! a cluster's affair.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use tyr_metadata::{Actor, Entry, KeyChange, Path, Planned, Store, Transaction, guard, presence};
use tyr_runtime::clock;
use tyr_runtime::lease_state::LeaseState;
use tyr_store::base::{Base, MetadataRow, MetadataRows};
use tyr_types::{Error, Result};

use crate::EmbeddedStore;

/// Changes that a watch is told at once.
const CHANGES_MAX: usize = 256;

/// The service metadata. Lock order: changing, state, watches.
#[derive(Debug)]
pub(crate) struct Metadata {
    is_read_only: bool,
    /// Held by whoever changes it, over the write to disk too.
    changing: Mutex<()>,
    state: RwLock<State>,
    watches: Mutex<Watches>,
}

/// What is known of it.
#[derive(Debug, Default)]
enum State {
    /// Nobody has asked yet.
    #[default]
    Unread,
    Read(Store),
    /// A write failed: only opening anew finds out what the disk has.
    Unknown(String),
}

/// Who waits for changes.
#[derive(Debug, Default)]
struct Watches {
    next: u64,
    /// By their number; one each.
    wakers: BTreeMap<u64, Waker>,
}

impl State {
    fn read(&self) -> Result<&Store> {
        match self {
            Self::Read(store) => Ok(store),
            Self::Unread => unreachable!("it is read before anybody looks"),
            Self::Unknown(why) => Err(Error::unavailable(format!(
                "the service metadata could not be written, so it is not known what the disk has; \
                 open the store again: {why}"
            ))),
        }
    }
}

impl Metadata {
    /// Nothing is read yet.
    pub fn new(is_read_only: bool) -> Self {
        let (changing, state, watches) = Default::default();
        Self { is_read_only, changing, state, watches }
    }

    /// What there is, read from the index the first time; what was bound to whoever had the store
    /// open before is not there any more (M5).
    fn look(&self, base: &Base) -> Result<RwLockReadGuard<'_, State>> {
        let state = self.state.read();
        if !matches!(*state, State::Unread) {
            return Ok(state);
        }
        drop(state);
        let mut state = self.state.write();
        if matches!(*state, State::Unread) {
            let mut store = load(base.metadata()?)?;
            while let Some(planned) = removal(&store, None)? {
                if !self.is_read_only {
                    write(base, &planned)?;
                }
                store.install(planned);
            }
            *state = State::Read(store);
        }
        drop(state);
        Ok(self.state.read())
    }

    /// Whether it is in memory: then nobody who looks waits for the disk.
    fn is_read(&self) -> bool {
        !matches!(*self.state.read(), State::Unread)
    }

    /// Writes down what a transaction does, and makes it take effect.
    fn change(&self, base: &Base, transaction: &Transaction) -> Result<u64> {
        let _alone = self.changing.lock();
        let planned = {
            let state = self.look(base)?;
            let (store, actor) = (state.read()?, everything());
            store.plan(&actor, &guard::guarded(store, &actor, transaction)?)?
        };
        self.carry_out(base, planned)
    }

    /// Takes away what is bound to a presence.
    fn unbind(&self, base: &Base, id: u64) -> Result<()> {
        let _alone = self.changing.lock();
        loop {
            let Some(planned) = removal(self.look(base)?.read()?, Some(id))? else { return Ok(()) };
            self.carry_out(base, planned)?;
        }
    }

    fn carry_out(&self, base: &Base, planned: Planned) -> Result<u64> {
        if planned.entries.is_empty() {
            return Ok(planned.revision);
        }
        if let Err(error) = write(base, &planned) {
            *self.state.write() = State::Unknown(error.to_string());
            self.wake();
            return Err(error);
        }
        let mut state = self.state.write();
        let State::Read(store) = &mut *state else {
            unreachable!("only who changes it can lose it")
        };
        let revision = store.install(planned);
        drop(state);
        self.wake();
        Ok(revision)
    }

    /// Whoever waits looks again.
    pub fn wake(&self) {
        let wakers = std::mem::take(&mut self.watches.lock().wakers);
        wakers.into_values().for_each(Waker::wake);
    }
}

/// What takes away some of what is bound to a presence that is over, if anything is.
fn removal(store: &Store, only: Option<u64>) -> Result<Option<Planned>> {
    let removal = presence::removal(store, only);
    match removal.alterations.is_empty() {
        true => Ok(None),
        false => store.plan(&everything(), &removal).map(Some),
    }
}

/// Whoever has the store open may do everything that an administrator of a cluster may.
fn everything() -> Actor {
    Actor::User { name: String::new(), is_administrator: true }
}

fn load(rows: MetadataRows) -> Result<Store> {
    let MetadataRows { revision, rows } = rows;
    let entry = |(path, row): (Vec<u8>, MetadataRow)| {
        let MetadataRow { created, changed, value } = row;
        let path = String::from_utf8(path).ok().and_then(|path| Path::new(path).ok());
        let wrong = || Error::corrupt("index table meta: a key of the service metadata is no path");
        Ok((path.ok_or_else(wrong)?, Entry { value, created, changed }))
    };
    Store::restore(revision, rows.into_iter().map(entry).collect::<Result<_>>()?)
}

fn write(base: &Base, planned: &Planned) -> Result<()> {
    let row = |entry: &Entry| {
        let Entry { value, created, changed } = entry.clone();
        MetadataRow { created, changed, value }
    };
    let rows = planned.entries.iter();
    base.put_metadata(
        planned.revision,
        rows.map(|(path, entry)| (path.as_str().as_bytes(), entry.as_ref().map(row))),
    )
}

impl EmbeddedStore {
    /// Whether [`EmbeddedStore::metadata`] answers without waiting for the disk: all but the first
    /// time.
    pub fn is_metadata_read(&self) -> bool {
        self.inner.metadata.is_read()
    }

    /// What a key of the service metadata holds; `None` when there is no such key.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn metadata(&self, path: &Path) -> Result<Option<Entry>> {
        self.inner.check_open()?;
        let state = self.inner.metadata.look(self.inner.store.base())?;
        Ok(state.read()?.get(path.as_str()).cloned())
    }

    /// Entries whose keys begin with `prefix` and come after `after`, in order, at most so many;
    /// and the revision that they are of.
    ///
    /// # Errors
    /// As [`EmbeddedStore::metadata`].
    pub fn list_metadata(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<(Path, Entry)>, u64)> {
        self.inner.check_open()?;
        let state = self.inner.metadata.look(self.inner.store.base())?;
        let store = state.read()?;
        Ok((store.list(&everything(), prefix, after, limit), store.revision()))
    }

    /// Makes a transaction on the service metadata take effect, durably, or none of it; the
    /// revision afterwards.
    ///
    /// # Errors
    /// As [`Store::plan`]; `PermissionDenied` when the store is read-only; `Unavailable` when the
    /// disk refuses.
    pub fn change_metadata(&self, transaction: &Transaction) -> Result<u64> {
        self.inner.check_writable()?;
        self.inner.metadata.change(self.inner.store.base(), transaction)
    }

    /// A presence in this process: what is bound to it goes when it is dropped, and when the store
    /// is opened again after it was not.
    ///
    /// # Errors
    /// `PermissionDenied` when the store is read-only; `Unavailable` when it is closed.
    pub fn presence(self: &Arc<Self>) -> Result<EmbeddedPresence> {
        self.inner.check_writable()?;
        let (id, state) = (clock::random_u64(), LeaseState::default());
        Ok(EmbeddedPresence { store: Arc::clone(self), id, state })
    }

    /// What changes in the service metadata under a prefix, after a revision.
    pub fn watch_metadata(self: &Arc<Self>, prefix: String, after: u64) -> MetadataWatch {
        let mut watches = self.inner.metadata.watches.lock();
        let number = watches.next;
        watches.next += 1;
        drop(watches);
        MetadataWatch { store: Arc::clone(self), number, prefix, seen: after }
    }
}

/// A presence in this process. Dropping it ends it.
#[derive(Debug)]
pub struct EmbeddedPresence {
    store: Arc<EmbeddedStore>,
    id: u64,
    state: LeaseState,
}

impl EmbeddedPresence {
    /// Whether it is there.
    pub fn state(&self) -> &LeaseState {
        &self.state
    }

    /// Makes a transaction take effect, of which what is put is bound to it; the revision.
    ///
    /// # Errors
    /// As [`EmbeddedStore::change_metadata`]; `NotFound` when it is over.
    pub fn bind(&self, transaction: &Transaction) -> Result<u64> {
        if !self.state.is_held() {
            return Err(Error::not_found("this presence was ended; begin another"));
        }
        self.store.change_metadata(&presence::bind(transaction, self.id)?)
    }

    /// Ends it: what is bound to it is gone afterwards.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses: it goes when the store is opened again.
    pub fn end(&self) -> Result<()> {
        self.state.lose();
        self.store.inner.check_writable()?;
        self.store.inner.metadata.unbind(self.store.inner.store.base(), self.id)
    }
}

impl Drop for EmbeddedPresence {
    fn drop(&mut self) {
        if self.state.is_held() {
            // What stays goes when the store is opened again.
            let _ = self.end();
        }
    }
}

/// A watch of the service metadata. Dropping it ends it.
#[derive(Debug)]
pub struct MetadataWatch {
    store: Arc<EmbeddedStore>,
    /// By which it is woken.
    number: u64,
    prefix: String,
    /// Everything up to this revision has been told.
    seen: u64,
}

impl MetadataWatch {
    /// What has changed since, and up to which revision that is everything; waits for something.
    /// Nothing is lost when the future is dropped before it is ready.
    ///
    /// # Errors
    /// `SnapshotTooOld` when what changed is not remembered any more: list anew, and watch from
    /// that revision. `Unavailable` when the store is closed.
    pub async fn next(&mut self) -> Result<(Vec<KeyChange>, u64)> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<(Vec<KeyChange>, u64)>> {
        let inner = &self.store.inner;
        // Before it looks: what comes in between wakes it.
        inner.metadata.watches.lock().wakers.insert(self.number, context.waker().clone());
        let looked = inner.check_open().and_then(|()| {
            let state = inner.metadata.look(inner.store.base())?;
            let store = state.read()?;
            store.history().after(&self.prefix, self.seen, store.revision(), CHANGES_MAX)
        });
        if let Ok((changes, revision)) = &looked {
            debug_assert!(self.seen <= *revision, "a watch goes on, never back");
            self.seen = *revision;
            if changes.is_empty() {
                return Poll::Pending;
            }
        }
        Poll::Ready(looked)
    }
}

impl Drop for MetadataWatch {
    fn drop(&mut self) {
        self.store.inner.metadata.watches.lock().wakers.remove(&self.number);
    }
}
