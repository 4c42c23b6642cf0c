//! What a call by the name of a class runs: one of this program, or the version that is installed.

use std::sync::Arc;
use std::time::Instant;

use tyr::blocking::{Keyspace, Tyr};
use tyr::{Error, ErrorKind, Result};
use tyr_class::{Class, MethodKind};

use crate::catalog::Catalog;
use crate::kept::Kept;
use crate::loaded::Loaded;
use crate::record::ClassRecord;

/// The classes of a store. Clones share what was compiled.
#[derive(Clone)]
pub(crate) struct Library {
    pub catalog: Catalog,
    pub loaded: Arc<Loaded>,
    kept: Kept,
}

impl Library {
    pub fn of(store: &Tyr) -> Self {
        Self { catalog: Catalog::of(store), loaded: Arc::default(), kept: Kept::default() }
    }

    /// The class that calls run in this keyspace: nothing that was replaced, disabled or retired
    /// before, as far as whoever did that was told that it is done.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name; `PermissionDenied` when it is not enabled in the
    /// keyspace; `Unavailable` when the service metadata cannot be read.
    pub fn class(&self, keyspace: &Keyspace, name: &str) -> Result<Arc<dyn Class>> {
        if let Some(native) = self.loaded.native(name) {
            return Ok(native);
        }
        if !self.catalog.is_of_cluster() {
            return self.permitted(keyspace, name, &self.catalog.find(name)?.record);
        }
        if let Some(record) = self.kept.get(name, Instant::now())
            && let Ok(class) = self.permitted(keyspace, name, &record)
        {
            return Ok(class);
        }
        // What it does not permit may have been added since.
        self.kept.watch(self.catalog.metadata());
        let record = self.kept.ask(name, Instant::now, || self.catalog.find(name))?;
        self.permitted(keyspace, name, &record)
    }

    /// The class of a record, if it may be called in this keyspace.
    fn permitted(
        &self,
        keyspace: &Keyspace,
        name: &str,
        record: &ClassRecord,
    ) -> Result<Arc<dyn Class>> {
        let keyspace = keyspace.name();
        if !record.keyspaces.contains(keyspace) {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                format!(
                    "class {name} is not enabled in keyspace {keyspace}: `tyr class enable {name} \
                     {keyspace}` does that"
                ),
            ));
        }
        let version = record.current(name)?;
        Ok(self.loaded.version(name, version, || self.catalog.script(name, version))?)
    }

    /// Whether a method was a query when its class was last called here. It may be otherwise by
    /// now.
    pub fn was_query(&self, class: &str, method: &str) -> bool {
        let known = self.loaded.last(class);
        known.is_some_and(|class| kind(&*class, method) == Some(MethodKind::Query))
    }
}

/// What a method of this class may do; `None` when it has none of this name.
pub(crate) fn kind(class: &dyn Class, method: &str) -> Option<MethodKind> {
    let info = class.info();
    Some(info.methods()[info.method(method).ok()?].kind)
}
