//! What tests of several crates need: stores of each kind, nodes in this process, and addresses
//! that nobody else is given.
//!
//! Only tests depend on this crate. [`Opened`] and [`Store`] are stores of a test's own, in this
//! process or as a cluster of three nodes. That cluster is one for all tests of a process, since
//! forming one takes seconds: each test has keyspaces of its own there. What is about files stays
//! with the embedded kind. [`Cluster::form`] makes one whose nodes are started in another way, and
//! [`form_secure`] one with TLS and users.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod address;
mod cluster;
mod secure;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use tyr::KeyspaceConfig;
use tyr::blocking::{Keyspace, Tyr};

pub use address::free_address;
pub use cluster::Cluster;
pub use secure::{SECURE_DOMAIN, form_secure};

/// What a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A folder, opened in this process.
    Embedded,
    /// Three nodes in this process, reached over sockets.
    Cluster,
}

/// The kinds that there are: every test that is not about files runs on each.
pub fn stores() -> [Kind; 2] {
    [Kind::Embedded, Kind::Cluster]
}

/// A store of some kind.
pub struct Opened {
    /// What it is.
    pub kind: Kind,
    /// A program that uses it.
    pub tyr: Tyr,
    /// Tells the keyspaces of tests apart that share a cluster.
    number: u64,
    place: Place,
}

enum Place {
    Folder(tempfile::TempDir),
    Cluster(&'static Cluster),
}

impl Opened {
    /// An empty store.
    pub fn new(kind: Kind) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        println!("a store of kind {kind:?}");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (tyr, place) = match kind {
            Kind::Embedded => {
                let folder = tempfile::tempdir().unwrap();
                (Tyr::open(folder.path()).unwrap(), Place::Folder(folder))
            }
            Kind::Cluster => {
                let cluster = Cluster::of_process();
                (cluster.connect(), Place::Cluster(cluster))
            }
        };
        Self { kind, tyr, number, place }
    }

    /// The name that the test's keyspace `name` has here.
    pub fn name(&self, name: &str) -> String {
        match self.kind {
            Kind::Embedded => name.to_owned(),
            Kind::Cluster => format!("{name}-{}", self.number),
        }
    }

    /// Makes the test's keyspace `name`.
    pub fn create(&self, name: &str, config: KeyspaceConfig) -> Keyspace {
        self.tyr.create_keyspace(&self.name(name), config).unwrap()
    }

    /// The cluster, if it is one.
    pub fn cluster(&self) -> Option<&'static Cluster> {
        match &self.place {
            Place::Folder(_) => None,
            Place::Cluster(cluster) => Some(cluster),
        }
    }

    /// The folder of an embedded store.
    pub fn folder(&self) -> &Path {
        match &self.place {
            Place::Folder(folder) => folder.path(),
            Place::Cluster(_) => panic!("a cluster has more than one folder"),
        }
    }

    /// Another program that uses the same store; the embedded kind takes only one, so there it is
    /// the same.
    pub fn other(&self) -> Tyr {
        match &self.place {
            Place::Folder(_) => self.tyr.clone(),
            Place::Cluster(cluster) => cluster.connect(),
        }
    }

    /// Closes the store and opens it again; of a cluster, the connection to it.
    #[must_use]
    pub fn reopen(self) -> Self {
        let Self { kind, tyr, number, place } = self;
        tyr.close().unwrap();
        let tyr = match &place {
            Place::Folder(folder) => Tyr::open(folder.path()).unwrap(),
            Place::Cluster(cluster) => cluster.connect(),
        };
        Self { kind, tyr, number, place }
    }
}

/// A store with one keyspace.
pub struct Store {
    /// The store.
    pub opened: Opened,
    /// The keyspace.
    pub keyspace: Keyspace,
}

impl Store {
    /// An empty store, with an empty keyspace.
    pub fn new(kind: Kind, config: KeyspaceConfig) -> Self {
        let opened = Opened::new(kind);
        let keyspace = opened.create("test", config);
        Self { opened, keyspace }
    }

    /// The program that uses it.
    pub fn tyr(&self) -> &Tyr {
        &self.opened.tyr
    }

    /// The same after [`Opened::reopen`].
    #[must_use]
    pub fn reopen(self) -> Self {
        let Self { opened, keyspace } = self;
        drop(keyspace);
        let opened = opened.reopen();
        let keyspace = opened.tyr.keyspace(&opened.name("test")).unwrap();
        Self { opened, keyspace }
    }
}
