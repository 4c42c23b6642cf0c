//! What a keyspace is created with, fixed for its life.

use std::fmt;

use crate::error::{Error, Result};
use crate::id::KeyspaceId;
use crate::limits;
use crate::placed_by::PlacedBy;

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Once it is in memory. The keyspace is empty after a restart.
    Memory,
    /// Once the operating system has it: survives the death of the process, and, about a second
    /// later, the loss of power.
    Buffered,
    /// Once the disk has it: survives the loss of power. Many commits share one sync.
    #[default]
    Sync,
}

impl Durability {
    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Buffered => "buffered",
            Self::Sync => "sync",
        }
    }

    /// The durability of this name.
    ///
    /// # Errors
    /// `InvalidArgument` with the three names.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "memory" => Ok(Self::Memory),
            "buffered" => Ok(Self::Buffered),
            "sync" => Ok(Self::Sync),
            _ => Err(Error::invalid(format!(
                "durability is sync, buffered or memory, not \"{text}\""
            ))),
        }
    }
}

/// A keyspace's name: 1 to 64 of `a-z 0-9 _ . -`, starting with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyspaceName(String);

impl KeyspaceName {
    /// A name of this text.
    ///
    /// # Errors
    /// `InvalidArgument` with the allowed characters and length.
    pub fn new(text: &str) -> Result<Self> {
        let is_allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-".contains(&byte);
        let starts_well = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        if text.len() > limits::KEYSPACE_NAME_LEN_MAX
            || !starts_well
            || !text.bytes().all(is_allowed)
        {
            return Err(Error::invalid(format!(
                "a keyspace's name is 1 to {} of a-z 0-9 _ . - and starts with a letter or digit; \
                 \"{}\" is not",
                limits::KEYSPACE_NAME_LEN_MAX,
                text.escape_debug()
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyspaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a keyspace is created with. It stays as it is for the keyspace's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceConfig {
    /// Bytes of a chunk, a power of two from 4 KiB to 256 MiB. Default 64 MiB.
    pub chunk_size: u64,
    /// Replicas of each chunk, 1 to 9; capped by the number of nodes. Default 3.
    pub replication: u8,
    /// Live replicas that a write needs, 1 to `replication`; `None`, the default, for more than
    /// half of them. What has been created says how many that is.
    ///
    /// With fewer than that live, writes are refused as `Unavailable` and reads go on. With 1, what
    /// one replica alone acknowledged is lost with its disk.
    pub live_replicas_min: Option<u8>,
    /// Whether older versions stay for snapshots in use. Default true.
    pub is_multi_versioned: bool,
    /// When a commit is acknowledged. Default `Sync`.
    pub durability: Durability,
    /// Whether large payloads are compressed with lz4 on disk. Default false.
    pub is_compressed: bool,
    /// Which part of a key says where its blob lies. Default the whole key. In a store in a
    /// directory, where everything lies together, it changes nothing.
    pub placed_by: PlacedBy,
    /// Whether leases of its keys keep others off what they are of (K2). Default false.
    ///
    /// In such a keyspace a transaction that changes what other clients hold shared, or touches
    /// what another holds to itself, waits until they have given it back, or are gone: so who holds
    /// a lease can go by what it has read. Its leases last 3 seconds at most. In a store in a
    /// directory, where one process has them all, it changes nothing.
    pub is_guarded: bool,
}

/// A keyspace as it was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceInfo {
    /// Its number.
    pub id: KeyspaceId,
    /// Its name.
    pub name: KeyspaceName,
    /// What it was created with.
    pub config: KeyspaceConfig,
}

impl Default for KeyspaceConfig {
    fn default() -> Self {
        Self {
            chunk_size: limits::CHUNK_SIZE_DEFAULT,
            replication: 3,
            live_replicas_min: None,
            is_multi_versioned: true,
            durability: Durability::Sync,
            is_compressed: false,
            placed_by: PlacedBy::Key,
            is_guarded: false,
        }
    }
}

impl KeyspaceConfig {
    /// How many live replicas a write needs: what was set, or more than half of all.
    pub fn live_replicas_needed(&self) -> u8 {
        self.live_replicas_min.unwrap_or(self.replication / 2 + 1)
    }

    /// The same with all numbers said, as keyspaces have it.
    #[must_use]
    pub fn explicit(&self) -> Self {
        Self { live_replicas_min: Some(self.live_replicas_needed()), ..self.clone() }
    }

    /// What this one has otherwise than `wanted`, in words; `None` where they are the same.
    pub fn difference(&self, wanted: &Self) -> Option<String> {
        let versions = |many: bool| if many { "many" } else { "only the newest" };
        let compression = |is_compressed: bool| if is_compressed { "lz4" } else { "none" };
        let guard = |is_guarded: bool| if is_guarded { "by leases" } else { "by nothing" };
        let needed = Self::live_replicas_needed;
        let pairs = [
            ("chunk size", self.chunk_size.to_string(), wanted.chunk_size.to_string()),
            ("replication", self.replication.to_string(), wanted.replication.to_string()),
            ("live replicas min", needed(self).to_string(), needed(wanted).to_string()),
            (
                "versions",
                versions(self.is_multi_versioned).to_owned(),
                versions(wanted.is_multi_versioned).to_owned(),
            ),
            ("durability", self.durability.name().to_owned(), wanted.durability.name().to_owned()),
            (
                "compression",
                compression(self.is_compressed).to_owned(),
                compression(wanted.is_compressed).to_owned(),
            ),
            ("placed by", self.placed_by.to_string(), wanted.placed_by.to_string()),
            ("guarded", guard(self.is_guarded).to_owned(), guard(wanted.is_guarded).to_owned()),
        ];
        let differing = pairs.iter().filter(|(_, has, wants)| has != wants);
        let texts: Vec<String> =
            differing.map(|(what, has, wants)| format!("{what} {has}, not {wants}")).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    /// `InvalidArgument` with the allowed range.
    pub fn validate(&self) -> Result<()> {
        let (low, high) = (limits::CHUNK_SIZE_MIN, limits::CHUNK_SIZE_MAX);
        if !self.chunk_size.is_power_of_two() || !(low..=high).contains(&self.chunk_size) {
            return Err(Error::invalid(format!(
                "a chunk size is a power of two from {low} (4 KiB) to {high} (256 MiB) bytes, \
                 not {}",
                self.chunk_size
            )));
        }
        if !(1..=limits::REPLICATION_MAX).contains(&self.replication) {
            return Err(Error::invalid(format!(
                "replication is 1 to {}, not {}",
                limits::REPLICATION_MAX,
                self.replication
            )));
        }
        if !(1..=self.replication).contains(&self.live_replicas_needed()) {
            return Err(Error::invalid(format!(
                "live replicas are 1 to the replication factor {}, not {}",
                self.replication,
                self.live_replicas_needed()
            )));
        }
        if !self.placed_by.is_valid() {
            return Err(Error::invalid(format!(
                "keys are placed by 1 to {} of their first bytes, not {}",
                limits::PLACED_BY_LEN_MAX,
                self.placed_by
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_configuration_is_valid() {
        KeyspaceConfig::default().validate().unwrap();
    }

    #[test]
    fn a_write_needs_more_than_half_of_the_replicas_unless_set_otherwise() {
        for (replication, needed) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (9, 5)] {
            let config = KeyspaceConfig { replication, ..Default::default() };
            config.validate().unwrap();
            assert_eq!(config.live_replicas_needed(), needed);
            assert_eq!(config.explicit().live_replicas_min, Some(needed));
            let set = KeyspaceConfig { live_replicas_min: Some(1), ..config };
            assert_eq!(set.explicit(), set);
        }
        for wrong in [0, 4] {
            let config = KeyspaceConfig { live_replicas_min: Some(wrong), ..Default::default() };
            assert!(config.validate().unwrap_err().message().contains("not"), "{wrong}");
        }
    }

    #[test]
    fn what_differs_is_named_and_what_was_left_out_is_no_difference() {
        let known = KeyspaceConfig::default().explicit();
        assert_eq!(known.difference(&KeyspaceConfig::default()), None);
        let wanted = KeyspaceConfig {
            chunk_size: 4096,
            durability: Durability::Buffered,
            is_multi_versioned: false,
            ..Default::default()
        };
        let text = known.difference(&wanted).unwrap();
        assert_eq!(
            text,
            "chunk size 67108864, not 4096; versions many, not only the newest; durability sync, \
             not buffered"
        );
        let wanted = KeyspaceConfig { replication: 1, is_compressed: true, ..Default::default() };
        let text = known.difference(&wanted).unwrap();
        assert_eq!(
            text,
            "replication 3, not 1; live replicas min 2, not 1; compression none, not lz4"
        );
    }

    #[test]
    fn a_keyspace_that_is_guarded_is_another_than_one_that_is_not() {
        let known = KeyspaceConfig { is_guarded: true, ..Default::default() };
        let text = known.difference(&KeyspaceConfig::default()).unwrap();
        assert_eq!(text, "guarded by leases, not by nothing");
    }

    #[test]
    fn a_placement_by_more_bytes_than_there_may_be_is_refused() {
        let config = KeyspaceConfig { placed_by: PlacedBy::First(65), ..Default::default() };
        assert!(config.validate().unwrap_err().message().contains("first:65"));
    }

    #[test]
    fn a_chunk_size_of_three_is_refused_with_the_allowed_range() {
        let config = KeyspaceConfig { chunk_size: 3, ..Default::default() };
        let error = config.validate().unwrap_err();
        assert!(error.message().contains("4096"), "{error}");
        assert!(error.message().contains("268435456"), "{error}");
    }

    #[test]
    fn names_with_other_characters_are_refused() {
        for bad in ["", "Upper", "a b", "-a", "ä", &"x".repeat(65)] {
            assert!(KeyspaceName::new(bad).is_err(), "{bad}");
        }
        assert!(KeyspaceName::new("telemetry-2.raw_1").is_ok());
    }
}
