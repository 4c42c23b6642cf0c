//! The metadata as Raft's state machine: what is committed is applied here, in the same order at
//! every monitor.
//!
//! It lies in memory; a restart begins with the newest snapshot, and the log brings the rest.
//! Others read it through [`Committed`], which also tells them that something new is there.

use std::io::Cursor;
use std::sync::Arc;

use openraft::impls::BasicNode;
use openraft::storage::{RaftSnapshotBuilder, RaftStateMachine};
use openraft::{
    AnyError, EntryPayload, OptionalSend, Snapshot as RaftSnapshot, StorageIOError,
    StoredMembership,
};
use parking_lot::{RwLock, RwLockReadGuard};
use tokio::sync::watch;
use tyr_store::disk::Disk;
use tyr_types::{Error, Result};

use super::snapshot::{self, Meta, Snapshot};
use super::types::{Command, Entry, LogId, Reply, StorageError, TypeConfig};
use tyr_metadata::Store;

/// What has been applied.
#[derive(Clone, Default)]
struct State {
    last: Option<LogId>,
    membership: StoredMembership<u64, BasicNode>,
    store: Store,
}

/// The metadata as this monitor has it applied: what was committed, perhaps not all of it yet.
/// Clones are the same.
#[derive(Clone)]
pub struct Committed {
    state: Arc<RwLock<State>>,
    revisions: watch::Receiver<u64>,
}

impl Committed {
    /// The metadata. Not to be held while waiting for anything.
    pub fn read(&self) -> impl std::ops::Deref<Target = Store> + '_ {
        RwLockReadGuard::map(self.state.read(), |state| &state.store)
    }

    /// Changes with every revision.
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.revisions.clone()
    }
}

/// Raft's state machine.
pub struct Machine {
    disk: Arc<dyn Disk>,
    state: Arc<RwLock<State>>,
    revisions: watch::Sender<u64>,
    /// The newest snapshot, as it is on disk; kept as bytes to be sent.
    snapshot: Arc<RwLock<Option<Snapshot>>>,
}

impl Machine {
    /// What the newest snapshot on this disk holds, or nothing.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged; `Unavailable` when the disk fails.
    pub fn open(disk: Arc<dyn Disk>) -> Result<Self> {
        let found = snapshot::load(&*disk)?;
        let state = match &found {
            Some(found) => state_of(found)?,
            None => State::default(),
        };
        let (revisions, _) = watch::channel(state.store.revision());
        let (state, snapshot) = (Arc::new(RwLock::new(state)), Arc::new(RwLock::new(found)));
        Ok(Self { disk, state, revisions, snapshot })
    }

    /// For those who read.
    pub fn committed(&self) -> Committed {
        let revisions = self.revisions.subscribe();
        Committed { state: Arc::clone(&self.state), revisions }
    }

    fn tell(&self) {
        let revision = self.state.read().store.revision();
        // So logs tell the moment of a commit from the news of it.
        tracing::debug!(revision, "applied");
        let before = self.revisions.send_replace(revision);
        debug_assert!(before <= revision, "revisions only grow");
    }
}

fn state_of(snapshot: &Snapshot) -> Result<State> {
    let store = Store::from_image(&snapshot.image)?;
    let Meta { last_log_id, last_membership, .. } = snapshot.meta.clone();
    Ok(State { last: last_log_id, membership: last_membership, store })
}

/// A snapshot as Raft hands it on.
fn handed(snapshot: &Snapshot) -> RaftSnapshot<TypeConfig> {
    let data = Box::new(Cursor::new(snapshot.image.clone()));
    RaftSnapshot { meta: snapshot.meta.clone(), snapshot: data }
}

/// Saves a snapshot where waiting for the disk holds nobody up.
async fn save(disk: Arc<dyn Disk>, snapshot: Snapshot) -> Result<Snapshot> {
    let saved =
        tokio::task::spawn_blocking(move || snapshot::save(&*disk, &snapshot).map(|()| snapshot));
    saved.await.map_err(|error| {
        Error::unavailable("the thread that writes the monitors' snapshot ended").with_source(error)
    })?
}

fn failed(error: &Error) -> StorageError {
    StorageIOError::write_snapshot(None, AnyError::error(error)).into()
}

/// Makes a snapshot of one moment.
pub struct Builder {
    disk: Arc<dyn Disk>,
    state: State,
    snapshot: Arc<RwLock<Option<Snapshot>>>,
}

impl RaftSnapshotBuilder<TypeConfig> for Builder {
    async fn build_snapshot(&mut self) -> Result<RaftSnapshot<TypeConfig>, StorageError> {
        let last_log_id = self.state.last;
        let revision = self.state.store.revision();
        let id = last_log_id.map_or_else(|| "0".to_owned(), |it| format!("{it}-{revision}"));
        let last_membership = self.state.membership.clone();
        let meta = Meta { last_log_id, last_membership, snapshot_id: id };
        debug_assert!(meta.last_membership.log_id() <= &meta.last_log_id, "it was applied");
        let snapshot = Snapshot { meta, image: self.state.store.image() };
        let saved = save(Arc::clone(&self.disk), snapshot).await.map_err(|it| failed(&it))?;
        let snapshot = handed(&saved);
        *self.snapshot.write() = Some(saved);
        Ok(snapshot)
    }
}

impl RaftStateMachine<TypeConfig> for Machine {
    type SnapshotBuilder = Builder;

    async fn applied_state(
        &mut self,
    ) -> Result<(Option<LogId>, StoredMembership<u64, BasicNode>), StorageError> {
        let state = self.state.read();
        Ok((state.last, state.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Reply>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut replies = Vec::new();
        for entry in entries {
            let mut state = self.state.write();
            debug_assert!(state.last < Some(entry.log_id), "entries are applied in order, once");
            state.last = Some(entry.log_id);
            replies.push(match entry.payload {
                EntryPayload::Blank => Reply::Nothing,
                EntryPayload::Membership(membership) => {
                    state.membership = StoredMembership::new(Some(entry.log_id), membership);
                    Reply::Nothing
                }
                EntryPayload::Normal(Command { actor, transaction }) => {
                    match state.store.apply(&actor, &transaction) {
                        Ok(revision) => {
                            debug_assert_eq!(state.store.revision(), revision, "it is the newest");
                            Reply::Done(revision)
                        }
                        Err(error) => Reply::Refused(error.into()),
                    }
                }
            });
        }
        self.tell();
        Ok(replies)
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        let (disk, snapshot) = (Arc::clone(&self.disk), Arc::clone(&self.snapshot));
        // Values are shared, so this copies the tree alone.
        let state = self.state.read().clone();
        Builder { disk, state, snapshot }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &Meta,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        let snapshot = Snapshot { meta: meta.clone(), image: snapshot.into_inner() };
        let state = state_of(&snapshot).map_err(|error| failed(&error))?;
        let saved = save(Arc::clone(&self.disk), snapshot).await.map_err(|it| failed(&it))?;
        *self.state.write() = state;
        *self.snapshot.write() = Some(saved);
        self.tell();
        Ok(())
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> Result<Option<RaftSnapshot<TypeConfig>>, StorageError> {
        Ok(self.snapshot.read().as_ref().map(handed))
    }
}
