//! Leases of keys and groups among the threads of this process (K1, K7).
//!
//! The same table as in a cluster, with one difference: whoever holds a lease lives as long as the
//! store, so that nothing is renewed, and nothing is over before it is given back. Who waits for no
//! more than some time is woken by a thread, which is there from the first such wait on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tyr_protocol::Abort;
use tyr_protocol::key_lease::{Ask, Message, Table, Wish};
use tyr_runtime::lease_state::LeaseState;
use tyr_types::limits::{LEASE_DURATION_MAX, LEASES_OF_CLIENT_MAX};
use tyr_types::{Error, ErrorKind, LeaseMode, Leased, Result};

use crate::EmbeddedStore;

/// The one client that there is.
const CLIENT: u64 = 0;

/// When every lease is given: no time passes in the table.
const NOW_US: u64 = 0;

/// The leases of a store.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    inner: Mutex<Inner>,
    /// Somebody waits for no longer than before, or the store closes.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    table: Table,
    leases: u64,
    /// What the holders know, and those who wait.
    holders: BTreeMap<u64, Holder>,
    /// Until when some wait.
    deadlines: BTreeSet<(Instant, u64)>,
    /// Wakes them.
    thread: Option<JoinHandle<()>>,
    is_closed: bool,
}

/// Who holds a lease, or waits for it.
struct Holder {
    state: LeaseState,
    /// `None` once it is held.
    waiting: Option<oneshot::Sender<Result<()>>>,
    deadline: Option<Instant>,
}

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Holder({:?}, {:?})", self.state, self.deadline)
    }
}

/// A lease of a key or a group. Dropping it gives it back.
#[derive(Debug)]
pub struct EmbeddedLease {
    store: Arc<EmbeddedStore>,
    lease: u64,
    state: LeaseState,
}

impl EmbeddedLease {
    /// What is known of it.
    pub fn state(&self) -> &LeaseState {
        &self.state
    }
}

impl Drop for EmbeddedLease {
    fn drop(&mut self) {
        self.state.lose();
        self.store.inner.leases.give_back(self.lease);
    }
}

/// A lease that is waited for. Dropping it lets others go first.
#[derive(Debug)]
pub struct AwaitedLease {
    /// `None` once it is told.
    lease: Option<EmbeddedLease>,
    told: oneshot::AsyncReceiver<Result<()>>,
}

impl Future for AwaitedLease {
    type Output = Result<EmbeddedLease>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let told = Pin::new(&mut self.told).poll(context);
        told.map(|told| {
            told.unwrap_or_else(|_| Err(Error::unavailable("the store is closed")))?;
            Ok(self.lease.take().expect("it is told once"))
        })
    }
}

impl EmbeddedStore {
    /// A lease of a key or a group. `wait` is how long to wait where others are in the way; `None`
    /// for not at all.
    ///
    /// # Errors
    /// `InvalidArgument` for what is no group of its keyspace; `Unavailable` when there are too
    /// many, or the store is closed. The answer: `Conflict` when others are in the way for as long
    /// as is waited.
    pub fn lease(
        self: &Arc<Self>,
        of: Leased,
        mode: LeaseMode,
        wait: Option<Duration>,
    ) -> Result<AwaitedLease> {
        let leases = &self.inner.leases;
        let keyspace = of.keyspace();
        let placed_by = {
            let entries = self.inner.keyspaces.look();
            entries.get(keyspace).map(|entry| entry.info().config.placed_by).unwrap_or_default()
        };
        if let Leased::Group(group) = &of {
            placed_by.check_group(group.key.as_bytes())?;
        }
        let (waiting, told) = oneshot::channel();
        let state = LeaseState::default();
        let mut inner = leases.inner.lock();
        if inner.is_closed {
            return Err(Error::unavailable("the store is closed"));
        }
        if inner.holders.len() >= LEASES_OF_CLIENT_MAX {
            return Err(Error::unavailable(format!(
                "{LEASES_OF_CLIENT_MAX} leases are held or waited for; give some back"
            )));
        }
        inner.leases += 1;
        let lease = inner.leases;
        let deadline = wait.and_then(|wait| Instant::now().checked_add(wait));
        if let Some(deadline) = deadline {
            inner.deadlines.insert((deadline, lease));
            self.wake_in_time(&mut inner)?;
        }
        let holder = Holder { state: state.clone(), waiting: Some(waiting), deadline };
        inner.holders.insert(lease, holder);
        let wish = if wait.is_some() { Wish::Wait } else { Wish::Try };
        let duration_us = LEASE_DURATION_MAX.as_micros() as u64;
        inner.table.place(keyspace, placed_by);
        let ask = Ask { client: CLIENT, lease, of, mode, duration_us, sent_us: NOW_US, wish };
        let mut said = Vec::new();
        if let Err(abort) = inner.table.ask(NOW_US, ask, true, &mut said) {
            inner.end_wait(lease, Err(abort.into()));
        }
        inner.tell(said);
        drop(inner);
        let lease = EmbeddedLease { store: Arc::clone(self), lease, state };
        Ok(AwaitedLease { lease: Some(lease), told: told.into_future() })
    }

    /// Sees to it that who waits until some time is woken then.
    fn wake_in_time(&self, inner: &mut Inner) -> Result<()> {
        self.inner.leases.changed.notify_all();
        if inner.thread.is_some() {
            return Ok(());
        }
        let store = Arc::clone(&self.inner);
        let thread = std::thread::Builder::new()
            .name("tyr-leases".to_owned())
            .spawn(move || store.leases.wake())
            .map_err(|error| {
                Error::new(ErrorKind::Unavailable, "cannot start thread tyr-leases")
                    .with_source(error)
            })?;
        inner.thread = Some(thread);
        Ok(())
    }
}

impl Leases {
    /// The store closes: nothing is held or waited for any more.
    pub fn close(&self) {
        let thread = {
            let mut inner = self.inner.lock();
            inner.is_closed = true;
            inner.table = Table::default();
            for holder in std::mem::take(&mut inner.holders).into_values() {
                holder.state.lose(); // Those who wait hear that nobody will answer.
            }
            inner.deadlines.clear();
            self.changed.notify_all();
            inner.thread.take()
        };
        if let Some(thread) = thread {
            let _ = thread.join(); // A panic there has been reported.
        }
    }

    fn give_back(&self, lease: u64) {
        let mut inner = self.inner.lock();
        inner.end_wait(lease, Err(Error::unavailable("nobody waits for it")));
        inner.holders.remove(&lease);
        let mut said = Vec::new();
        inner.table.give_back(NOW_US, (CLIENT, lease), |_| true, &mut said);
        inner.tell(said);
    }

    /// Wakes those whose time is over, until the store closes.
    fn wake(&self) {
        let mut inner = self.inner.lock();
        while !inner.is_closed {
            let now = Instant::now();
            match inner.deadlines.first().copied() {
                None => self.changed.wait(&mut inner),
                Some((deadline, lease)) if deadline <= now => {
                    let abort = Abort::new(ErrorKind::Conflict, STILL_HELD);
                    inner.end_wait(lease, Err(abort.into()));
                }
                Some((deadline, _)) => drop(self.changed.wait_until(&mut inner, deadline)),
            }
        }
    }
}

impl Inner {
    /// Those whom the table says something to hear it.
    fn tell(&mut self, said: Vec<(u64, Message)>) {
        for (_, message) in said {
            match message {
                Message::Granted { lease, .. } => self.end_wait(lease, Ok(())),
                Message::Recall { lease } => {
                    if let Some(holder) = self.holders.get(&lease) {
                        holder.state.recall();
                    }
                }
                Message::Waits { .. }
                | Message::Renewed { .. }
                | Message::Ask { .. }
                | Message::AskGroup { .. }
                | Message::Renew { .. }
                | Message::GiveBack { .. } => {}
            }
        }
    }

    /// Who waits for it is answered, if somebody still does.
    fn end_wait(&mut self, lease: u64, answer: Result<()>) {
        let Some(holder) = self.holders.get_mut(&lease) else { return };
        if let Some(deadline) = holder.deadline.take() {
            self.deadlines.remove(&(deadline, lease));
        }
        if let Some(waiting) = holder.waiting.take() {
            let _ = waiting.send(answer); // It may have gone.
        }
    }
}

const STILL_HELD: &str = "others held leases that exclude this one for as long as it was waited \
                          for; try again";

#[cfg(test)]
mod tests {
    use tyr_runtime::waiting::{block_on, block_on_within};
    use tyr_types::{BlobName, Key, KeyspaceId};

    use super::*;
    use crate::Options;

    const LONG: Option<Duration> = Some(Duration::from_secs(600));

    fn store() -> (tempfile::TempDir, Arc<EmbeddedStore>) {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), Options::default()).unwrap();
        (folder, store)
    }

    fn lease(store: &Arc<EmbeddedStore>, wait: Option<Duration>) -> AwaitedLease {
        let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("a").unwrap() };
        store.lease(Leased::Key(blob), LeaseMode::Exclusive, wait).unwrap()
    }

    #[test]
    fn the_next_in_line_gets_it_when_it_is_dropped_and_the_holder_hears_of_it() {
        let (_folder, store) = store();
        let first = block_on(lease(&store, None)).unwrap();
        assert_eq!(block_on(lease(&store, None)).unwrap_err().kind(), ErrorKind::Conflict);
        assert!(!first.state().is_recalled(), "who does not wait recalls nothing");
        let gone = lease(&store, LONG);
        let mut second = lease(&store, LONG);
        block_on(first.state().recalled());
        assert!(block_on_within(Pin::new(&mut second), Duration::ZERO).is_none());
        drop(gone);
        drop(first);
        let second = block_on(second).unwrap();
        assert!(second.state().is_held() && !second.state().is_recalled());
    }

    #[test]
    fn who_waits_until_some_time_waits_no_longer_and_others_do() {
        let (_folder, store) = store();
        let first = block_on(lease(&store, None)).unwrap();
        let long = lease(&store, LONG);
        let short = lease(&store, Some(Duration::from_millis(1)));
        let error = block_on(short).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains("as long as it was waited"), "{error}");
        drop(first);
        assert!(block_on(long).is_ok());
    }

    #[test]
    fn what_is_held_or_waited_for_ends_with_the_store() {
        let (_folder, store) = store();
        let held = block_on(lease(&store, None)).unwrap();
        let waiting = lease(&store, LONG);
        store.close().unwrap();
        assert!(!held.state().is_held());
        block_on(held.state().lost());
        assert_eq!(block_on(waiting).unwrap_err().kind(), ErrorKind::Unavailable);
    }
}
