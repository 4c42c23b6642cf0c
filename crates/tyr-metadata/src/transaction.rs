//! What is asked of the service metadata: conditions and alterations, all or nothing.

use bytes::Bytes;
use tyr_types::{Error, Result};

use super::Path;
use super::limits::{TRANSACTION_BYTES_MAX, TRANSACTION_STEPS_MAX, VALUE_LEN_MAX};

/// What a key must be like for a transaction to take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Expected {
    /// It was last changed in this revision.
    Revision(u64),
    /// There is no such key.
    Absent,
    /// There is such a key.
    Present,
}

/// A condition on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Condition {
    /// The key.
    pub path: Path,
    /// What it must be like.
    pub expected: Expected,
}

/// What is done to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Alteration {
    /// It gets this value, whether it was there or not.
    Put {
        /// The key.
        path: Path,
        /// The value.
        value: Bytes,
    },
    /// It is taken away; does nothing if it was not there.
    Delete {
        /// The key.
        path: Path,
    },
}

impl Alteration {
    /// The key.
    pub fn path(&self) -> &Path {
        match self {
            Self::Put { path, .. } | Self::Delete { path } => path,
        }
    }

    /// The value that it gets.
    pub fn value(&self) -> Option<&Bytes> {
        match self {
            Self::Put { value, .. } => Some(value),
            Self::Delete { .. } => None,
        }
    }
}

/// Conditions and alterations: if all conditions hold, all alterations take effect in one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Transaction {
    /// What must hold.
    pub conditions: Vec<Condition>,
    /// What is done, in order: the last one of a key counts.
    pub alterations: Vec<Alteration>,
}

impl Transaction {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also requires that the key is like this.
    #[must_use]
    pub fn when(mut self, path: Path, expected: Expected) -> Self {
        self.conditions.push(Condition { path, expected });
        self
    }

    /// Also gives the key this value.
    #[must_use]
    pub fn put(mut self, path: Path, value: impl Into<Bytes>) -> Self {
        self.alterations.push(Alteration::Put { path, value: value.into() });
        self
    }

    /// Also takes the key away.
    #[must_use]
    pub fn delete(mut self, path: Path) -> Self {
        self.alterations.push(Alteration::Delete { path });
        self
    }

    /// Bytes of its keys and values.
    pub fn bytes(&self) -> usize {
        let conditions = self.conditions.iter().map(|it| it.path.as_str().len());
        let alterations = self
            .alterations
            .iter()
            .map(|it| it.path().as_str().len() + it.value().map_or(0, |value| value.len()));
        conditions.chain(alterations).sum()
    }

    /// Checks that it keeps the bounds.
    ///
    /// # Errors
    /// `InvalidArgument` with the bound.
    pub fn check(&self) -> Result<()> {
        let steps = self.conditions.len() + self.alterations.len();
        if steps > TRANSACTION_STEPS_MAX {
            return Err(Error::invalid(format!(
                "a metadata transaction has at most {TRANSACTION_STEPS_MAX} conditions and \
                 changes, this one has {steps}"
            )));
        }
        let values = self.alterations.iter().filter_map(Alteration::value);
        if let Some(value) = values.into_iter().find(|value| value.len() > VALUE_LEN_MAX) {
            return Err(Error::invalid(format!(
                "a metadata value has at most {VALUE_LEN_MAX} bytes, this one has {}; put large \
                 things into blobs",
                value.len()
            )));
        }
        if self.bytes() > TRANSACTION_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a metadata transaction has at most {TRANSACTION_BYTES_MAX} bytes, this one has {}",
                self.bytes()
            )));
        }
        Ok(())
    }
}
