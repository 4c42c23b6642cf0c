//! Letting go of files without a name: of this program's when they are closed, and of those of
//! programs that are gone.
//!
//! A program that uses a file system holds a lock, its *session*. Who gets another's lock knows
//! that its program is gone.

use std::collections::BTreeSet;

use tyr::{ErrorKind, LeaseOptions, Scan};

use super::store::FileSystem;
use crate::error::Result;
use crate::layout::key::{self, Blob, Role, Space};
use crate::layout::orphan;
use crate::plan::known::named;
use crate::plan::orphan::Reap;

impl FileSystem {
    /// Deletes a file without a name, a part at a time.
    pub(super) fn reap(&self, number: u64) -> Result<()> {
        while !self.run(&Reap { number })? {}
        Ok(())
    }

    /// A file lost its last name: it goes now, or when it is closed.
    pub(super) fn orphaned(&self, number: u64) -> Result<()> {
        match self.shared.opens.orphaned(number) {
            true => self.reap(number),
            false => Ok(()),
        }
    }

    /// A file is closed. If it has no name it goes.
    pub(super) fn closed(&self, number: u64) -> Result<()> {
        match self.shared.opens.close(number) {
            true => self.reap(number),
            false => Ok(()),
        }
    }

    /// Ends the sessions of programs that are gone, and lets go of their orphans.
    pub(super) fn end_sessions(&self) -> Result<()> {
        // Orphans first: whoever has one of them had a session before.
        let orphans = self.orphans()?;
        let sessions = self.sessions()?;
        for (number, _) in orphans.iter().filter(|(_, session)| !sessions.contains(session)) {
            self.reap(*number)?;
        }
        Ok(())
    }

    /// Files without a name, and whose they are.
    fn orphans(&self) -> Result<Vec<(u64, u64)>> {
        let scan = Scan::new().prefix(key::orphans()).first_bytes(8);
        let mut orphans = Vec::new();
        for page in self.shared.meta.scan_pages(&scan) {
            for entry in page?.entries {
                let blob = Blob { space: Space::Meta, key: entry.key };
                let session = named(&blob, orphan::decode(&entry.bytes))?;
                if let Role::Orphan(number) = blob.parse()? {
                    orphans.push((number, session));
                }
            }
        }
        Ok(orphans)
    }

    /// The sessions of programs that are there. Others are ended.
    fn sessions(&self) -> Result<BTreeSet<u64>> {
        let meta = &self.shared.meta;
        let mut sessions = BTreeSet::from([self.shared.session]);
        for found in meta.scan_iter(&key::sessions()) {
            let blob = Blob { space: Space::Meta, key: found?.0 };
            let Role::Session(session) = blob.parse()? else { continue };
            if sessions.contains(&session) {
                continue;
            }
            let lock = match meta.lock(&blob.key, &LeaseOptions::exclusive().no_wait()) {
                Ok(lock) => lock,
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    sessions.insert(session);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let mut transaction = self.shared.tyr.begin();
            transaction.fence(&lock)?;
            transaction.delete(meta, &blob.key)?;
            match transaction.commit() {
                // Another program ends it.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                committed => drop(committed?),
            }
        }
        Ok(sessions)
    }
}
