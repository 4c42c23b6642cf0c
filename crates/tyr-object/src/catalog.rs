//! Installed classes, in the service metadata of the store.
//!
//! ```text
//! classes/<name>            the record
//! classes/<name>/<number>   the script of a version that is not retired
//! ```
//!
//! Every change is one transaction, on condition that the record is what it was: who installs two
//! versions at once gets two versions. Who may write `classes/` may install (`access/classes/`).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tyr::blocking::{Metadata, Tyr};
use tyr::metadata::{Entry, Expected, Path, Transaction};
use tyr::{Error, ErrorKind, Result};

use crate::kept::{RECORDS_MAX, SETTLE};
use crate::record::{ClassRecord, VersionRecord, fingerprint};

/// Bytes of a script: all of the service metadata has 64 MiB.
pub(crate) const SCRIPT_LEN_MAX: usize = 256 << 10;

/// How often a change is tried again that met another one.
const TRIES_MAX: usize = 64;

/// Records that a listing asks for at once.
const PAGE: usize = 1_000;

/// What an installation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The name of the class.
    pub class: String,
    /// The version that calls run now.
    pub version: u32,
    /// Whether it is new: else that script was current already.
    pub is_new: bool,
}

/// A record as it was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub record: Arc<ClassRecord>,
    /// The revision of its last change.
    pub changed: u64,
}

/// The classes of a store. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    metadata: Metadata,
    /// Records as they were decoded last, by the names of their classes: one with thousands of
    /// versions takes longer than a call.
    decoded: Arc<Mutex<HashMap<String, Found>>>,
}

impl Catalog {
    pub fn of(store: &Tyr) -> Self {
        Self { metadata: store.metadata(), decoded: Arc::default() }
    }

    /// The service metadata that they are in.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Whether other programs know these classes, too.
    pub fn is_of_cluster(&self) -> bool {
        self.metadata.is_of_cluster()
    }

    /// Waits until nobody goes by a record that was replaced.
    fn settle(&self) {
        if self.is_of_cluster() {
            std::thread::sleep(SETTLE);
        }
    }

    /// A class.
    ///
    /// # Errors
    /// `NotFound`; `PermissionDenied`; `Unavailable` when the monitors do not answer.
    pub fn find(&self, class: &str) -> Result<Found> {
        self.look(class)?.ok_or_else(|| {
            Error::not_found(format!(
                "class {} is not installed; `tyr class list` shows those that are, `tyr class \
                 install FILE` installs one",
                class.escape_debug()
            ))
        })
    }

    /// All classes, by name.
    ///
    /// # Errors
    /// As [`Catalog::find`].
    pub fn list(&self) -> Result<Vec<(String, ClassRecord)>> {
        let mut all = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.metadata.list("classes/", after.as_deref(), PAGE)?;
            let Some((last, _)) = page.entries.last() else { return Ok(all) };
            after = Some(last.as_str().to_owned());
            for (path, entry) in &page.entries {
                let name = path.as_str().trim_start_matches("classes/");
                if !name.contains('/') {
                    all.push((name.to_owned(), ClassRecord::decode(name, &entry.value)?));
                }
            }
        }
    }

    /// The script of a version.
    ///
    /// # Errors
    /// `NotFound` when it was retired; `Corrupt` when it is another one; as [`Catalog::find`].
    pub fn script(&self, class: &str, version: &VersionRecord) -> Result<Vec<u8>> {
        let number = version.number;
        let found = self.metadata.get(&format!("classes/{class}/{number}"))?;
        let script = found.ok_or_else(|| {
            Error::not_found(format!("version {number} of class {class} was retired: call again"))
        })?;
        if fingerprint(&script.value) != version.sha256 {
            return Err(Error::corrupt(format!(
                "the script of version {number} of class {class} is not the one that was \
                 installed: install it anew"
            )));
        }
        Ok(script.value.to_vec())
    }

    /// Makes a script the version of a class that calls run; on a cluster, when this returns, no
    /// call begins any more with one that was current before.
    ///
    /// # Errors
    /// `InvalidArgument` when it is too long; as [`Catalog::find`].
    pub fn install(&self, class: &str, script: &[u8]) -> Result<Installed> {
        if script.len() > SCRIPT_LEN_MAX {
            return Err(Error::invalid(format!(
                "the script has {} bytes, and at most {SCRIPT_LEN_MAX} (256 KiB) can be installed: \
                 part it into classes",
                script.len()
            )));
        }
        let installed = self.change(class, true, |record, transaction| {
            let added = record.add(script)?;
            let version =
                Installed { class: class.to_owned(), version: added.number, is_new: added.is_new };
            if !added.is_new {
                return Ok((version, None));
            }
            let path = Path::new(format!("classes/{class}/{}", added.number))?;
            Ok((version, Some(transaction.put(path, script.to_vec()))))
        })?;
        // The first replaces nothing. One that is current already may have been made so just now.
        if installed.version > 1 {
            self.settle();
        }
        Ok(installed)
    }

    /// The version of a class that calls run, if it has this script.
    ///
    /// # Errors
    /// As [`Catalog::find`].
    pub fn current(&self, class: &str, script: &[u8]) -> Result<Option<Installed>> {
        let Some(Found { record, .. }) = self.look(class)? else { return Ok(None) };
        let current = record.current.and_then(|number| record.version(number));
        let found = current.filter(|it| it.sha256 == fingerprint(script));
        let (class, is_new) = (class.to_owned(), false);
        Ok(found.map(|it| Installed { class, version: it.number, is_new }))
    }

    /// Lets a class be called in a keyspace, or not any more; answers whether that is new. When
    /// this returns no call begins any more that may not.
    ///
    /// # Errors
    /// As [`Catalog::find`].
    pub fn set_enabled(&self, class: &str, keyspace: &str, is_enabled: bool) -> Result<bool> {
        let is_new = self.change(class, false, |record, transaction| {
            let is_new = match is_enabled {
                true => record.keyspaces.insert(keyspace.to_owned()),
                false => record.keyspaces.remove(keyspace),
            };
            Ok((is_new, is_new.then_some(transaction)))
        })?;
        if !is_enabled {
            self.settle();
        }
        Ok(is_new)
    }

    /// Retires a version, and removes its script. When this returns no call begins any more with
    /// it.
    ///
    /// # Errors
    /// `NotFound` when there is no such version; as [`Catalog::find`].
    pub fn retire(&self, class: &str, number: u32) -> Result<()> {
        self.change(class, false, |record, transaction| {
            record.retire(class, number)?;
            let path = Path::new(format!("classes/{class}/{number}"))?;
            Ok(((), Some(transaction.delete(path))))
        })?;
        self.settle();
        Ok(())
    }

    /// Changes a record, again when somebody else did meanwhile. `change` answers the rest of the
    /// transaction, or `None` when nothing is to be done.
    fn change<T>(
        &self,
        class: &str,
        may_begin: bool,
        mut change: impl FnMut(&mut ClassRecord, Transaction) -> Result<(T, Option<Transaction>)>,
    ) -> Result<T> {
        let path = Path::new(format!("classes/{class}"))?;
        for _ in 0..TRIES_MAX {
            let found = if may_begin { self.look(class)? } else { Some(self.find(class)?) };
            let (mut record, expected) = match found {
                Some(found) => {
                    (ClassRecord::clone(&found.record), Expected::Revision(found.changed))
                }
                None => (ClassRecord::default(), Expected::Absent),
            };
            let transaction = Transaction::new().when(path.clone(), expected);
            let (answer, transaction) = change(&mut record, transaction)?;
            let Some(transaction) = transaction else { return Ok(answer) };
            let written = transaction.put(path.clone(), record.encode());
            match self.metadata.transact(written) {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                done => return done.map(|_| answer),
            }
        }
        Err(Error::new(
            ErrorKind::Conflict,
            format!("class {class} is changed by others again and again: try again"),
        ))
    }

    /// A class, if it is there.
    fn look(&self, class: &str) -> Result<Option<Found>> {
        let entry = self.metadata.get(&format!("classes/{class}"))?;
        let found = entry.map(|entry| self.decode(class, &entry));
        found.transpose()
    }

    /// The record in an entry.
    fn decode(&self, class: &str, entry: &Entry) -> Result<Found> {
        let decoded = self.decoded.lock().get(class).cloned();
        if let Some(found) = decoded.filter(|found| found.changed == entry.changed) {
            return Ok(found);
        }
        let record = Arc::new(ClassRecord::decode(class, &entry.value)?);
        let found = Found { record, changed: entry.changed };
        let mut decoded = self.decoded.lock();
        if decoded.len() >= RECORDS_MAX && !decoded.contains_key(class) {
            decoded.clear();
        }
        decoded.insert(class.to_owned(), found.clone());
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_decoded_once_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Catalog::of(&Tyr::open(folder.path()).unwrap());
        catalog.install("register", b"return 1").unwrap();
        let [first, second] = [(); 2].map(|()| catalog.find("register").unwrap().record);
        assert!(Arc::ptr_eq(&first, &second));
        assert!(catalog.set_enabled("register", "objects", true).unwrap());
        let changed = catalog.find("register").unwrap().record;
        assert!(changed.keyspaces.contains("objects") && !first.keyspaces.contains("objects"));
    }

    #[test]
    fn records_that_are_kept_have_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Catalog::of(&Tyr::open(folder.path()).unwrap());
        let entry = Entry { value: b"{\"versions\":[]}"[..].into(), created: 1, changed: 1 };
        for class in 0..RECORDS_MAX + 2 {
            catalog.decode(&format!("class-{class}"), &entry).unwrap();
        }
        assert!(catalog.decoded.lock().len() <= RECORDS_MAX);
        assert_eq!(catalog.decode("class-0", &entry).unwrap().changed, 1);
    }
}
