//! How the store of the kill test is opened, the same in parent and child.

use std::path::Path;
use std::process::Command;

use tyr::blocking::{Keyspace, Tyr};
use tyr::{Durability, KeyspaceConfig, Options, Result};

/// The keyspace that everything is in.
pub const KEYSPACE: &str = "ledger";

/// What differs between runs.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub durability: Durability,
    pub is_compressed: bool,
    pub is_versioned: bool,
    /// Whether a child folds more than once in its short life.
    pub is_folding: bool,
}

/// Small bounds.
pub fn options() -> Options {
    tyr::Tyr::options().fold_log_bytes(8 << 10).cache_bytes(8 << 20)
}

impl Setup {
    /// Tells a child.
    pub fn tell(self, command: &mut Command) {
        command
            .env("TYR_KILL_TEST_DURABILITY", self.durability.name())
            .env("TYR_KILL_TEST_COMPRESSED", self.is_compressed.to_string())
            .env("TYR_KILL_TEST_VERSIONED", self.is_versioned.to_string())
            .env("TYR_KILL_TEST_FOLDING", self.is_folding.to_string());
    }

    /// What the parent told.
    pub fn from_environment() -> Self {
        let get = |name: &str| std::env::var(format!("TYR_KILL_TEST_{name}")).unwrap();
        Self {
            durability: Durability::parse(&get("DURABILITY")).unwrap(),
            is_compressed: get("COMPRESSED").parse().unwrap(),
            is_versioned: get("VERSIONED").parse().unwrap(),
            is_folding: get("FOLDING").parse().unwrap(),
        }
    }

    /// Opens the store, or makes it.
    pub fn open(self, path: &Path) -> Result<Tyr> {
        let options = options();
        match self.is_folding {
            true => options.open_blocking(path),
            false => options.fold_log_bytes(1 << 30).open_blocking(path),
        }
    }

    /// The keyspace, made if it is missing.
    pub fn keyspace(self, tyr: &Tyr) -> Result<Keyspace> {
        if let Ok(keyspace) = tyr.keyspace(KEYSPACE) {
            return Ok(keyspace);
        }
        let config = KeyspaceConfig {
            durability: self.durability,
            is_compressed: self.is_compressed,
            is_multi_versioned: self.is_versioned,
            ..KeyspaceConfig::default()
        };
        tyr.create_keyspace(KEYSPACE, config)
    }
}
