//! Letting go of files without a name: of those that are closed, and of those of programs that are
//! gone.
//!
//! ```text
//!   the last name goes ──► orphan, of all sessions that may have the file open
//!                            │ each lets go of it: at once, or when it is closed there
//!                            ▼
//!                          of nobody ──► deleted
//! ```
//!
//! A program that uses a file system holds a lock, its *session*. Who gets another's lock knows
//! that its program is gone.

use std::collections::BTreeSet;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::io::Errno;
use tyr::{ErrorKind, LeaseOptions, Number, Scan, Transform};

use super::driver::absent_is_none;
use super::store::{FileSystem, Shared};
use crate::error::{Error, Result};
use crate::layout::key::{self, Blob, Role, Space};
use crate::layout::orphan;
use crate::options::AccessTimes;
use crate::plan::known::{Others, named};
use crate::plan::orphan::{Reap, Release};

/// How often it is looked for files whose last name others have taken.
const TENDED_EVERY: Duration = Duration::from_secs(2);

/// After how many of these looks it is looked for programs that are gone.
const ENDED_EVERY: u32 = 15;

impl FileSystem {
    /// Deletes a file without a name, a part at a time.
    fn reap(&self, number: u64) -> Result<()> {
        while !self.run(&Reap { number })? {}
        Ok(())
    }

    /// This session does not use a file without a name any more. It goes with the last that does.
    fn release(&self, number: u64) -> Result<()> {
        match self.run(&Release { number, session: self.shared.session })? {
            true => self.reap(number),
            false => Ok(()),
        }
    }

    /// A file lost its last name: it is let go of now, or when it is closed.
    pub(crate) fn orphaned(&self, number: u64) -> Result<()> {
        if self.bundle.is_some() {
            self.bundle()?.orphaned(number);
            return Ok(());
        }
        match self.shared.opens.orphaned(number) {
            true => self.release(number),
            false => Ok(()),
        }
    }

    /// A file is closed. If it has no name it is let go of.
    pub(super) fn closed(&self, number: u64) -> Result<()> {
        match self.shared.opens.close(number) {
            true => self.release(number),
            false => Ok(()),
        }
    }

    /// Lets go of files whose last name another program has taken, and which are not open here. It
    /// happens by itself every two seconds.
    ///
    /// # Errors
    /// `EIO` when the store does not answer.
    pub fn tend_orphans(&self) -> Result<()> {
        for (number, sessions) in self.orphans()? {
            if sessions.contains(&self.shared.session) {
                self.orphaned(number)?;
            }
        }
        Ok(())
    }

    /// Does so from now on, until the file system is closed.
    pub(super) fn start_tending(&self) -> Result<()> {
        let (sender, receiver) = channel();
        let shared = Arc::downgrade(&self.shared);
        let tend = move || {
            let mut round = 0_u32;
            while receiver.recv_timeout(TENDED_EVERY) == Err(RecvTimeoutError::Timeout) {
                round = round.wrapping_add(1);
                tend(&shared, round.is_multiple_of(ENDED_EVERY));
            }
        };
        let started = std::thread::Builder::new().name("tyr-fs-orphans".to_owned()).spawn(tend);
        started.map_err(|error| Error::new(Errno::AGAIN, format!("no thread is left: {error}")))?;
        *self.shared.tended.lock() = Some(sender);
        Ok(())
    }

    /// Ends the sessions of programs that are gone, and lets go of their orphans.
    pub(super) fn end_sessions(&self) -> Result<()> {
        // Orphans first: whoever has one of them had a session before.
        let orphans = self.orphans()?;
        let sessions = self.sessions()?;
        for (number, holders) in orphans {
            if holders.iter().all(|session| !sessions.contains(session)) {
                self.reap(number)?;
            }
        }
        Ok(())
    }

    /// Files without a name, and whose they are.
    fn orphans(&self) -> Result<Vec<(u64, Vec<u64>)>> {
        let scan = Scan::new().prefix(key::orphans()).first_bytes(tyr::limits::SCAN_RANGE_LEN_MAX);
        let mut orphans = Vec::new();
        for page in self.shared.meta.scan_pages(&scan) {
            for entry in page?.entries {
                let blob = Blob { space: Space::Meta, key: entry.key };
                let sessions = named(&blob, orphan::decode(&entry.bytes))?;
                if let Role::Orphan(number) = blob.parse()? {
                    orphans.push((number, sessions));
                }
            }
        }
        Ok(orphans)
    }

    /// The sessions of programs that are there. Others are ended.
    fn sessions(&self) -> Result<BTreeSet<u64>> {
        let meta = &self.shared.meta;
        let mut sessions = BTreeSet::from([self.shared.session]);
        for session in self.shared.listed_sessions()? {
            if sessions.contains(&session) {
                continue;
            }
            let key = Blob::session(session).key;
            let lock = match meta.lock(&key, &LeaseOptions::exclusive().no_wait()) {
                Ok(lock) => lock,
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    sessions.insert(session);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let mut transaction = self.shared.tyr.begin();
            transaction.fence(&lock)?;
            transaction.delete(meta, &key)?;
            let more = Transform::add(Number::U64(1));
            transaction.apply(meta, &Blob::session_changes().key, 0, more)?;
            match transaction.commit() {
                // Another program ends it.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                committed => drop(committed?),
            }
        }
        Ok(sessions)
    }
}

/// Looks after the orphans of a file system that is still open.
fn tend(shared: &Weak<Shared>, with_sessions: bool) {
    let Some(shared) = shared.upgrade() else { return };
    let (user, access_times, bundle) = (None, AccessTimes::Never, None);
    let files = FileSystem { shared, user, access_times, bundle };
    let ended = if with_sessions { files.end_sessions() } else { Ok(()) };
    if let Err(error) = ended.and_then(|()| files.tend_orphans()) {
        tracing::debug!(%error, "files without a name are looked after a little later");
    }
}

impl Shared {
    /// The sessions that are listed, whether their programs are there or not.
    fn listed_sessions(&self) -> Result<Vec<u64>> {
        let mut sessions = Vec::new();
        for found in self.meta.scan_iter(&key::sessions()) {
            let blob = Blob { space: Space::Meta, key: found?.0 };
            if let Role::Session(session) = blob.parse()? {
                sessions.push(session);
            }
        }
        Ok(sessions)
    }

    /// The sessions of other programs, as they were found last, or anew.
    pub(super) fn others(&self, is_anew: bool) -> Result<Others> {
        let mut known = self.others.lock();
        if let Some(others) = known.as_ref().filter(|_| !is_anew) {
            return Ok(others.clone());
        }
        // How many there are first: whoever begins behind that is noticed by the transaction.
        let changes =
            absent_is_none(self.meta.get(&Blob::session_changes().key))?.unwrap_or_default();
        let mut sessions = self.listed_sessions()?;
        sessions.retain(|session| *session != self.session);
        let others = Others { changes, sessions };
        *known = Some(others.clone());
        Ok(others)
    }
}
