//! Methods of objects and requests to seats, for threads.

use tyr_runtime::waiting::block_on;
use tyr_types::{Bytes, MethodAnswer, Result};

use super::Keyspace;
use crate::key::ToKey;

impl Keyspace {
    /// Has a method run by the node that the blob is at: see [`crate::Keyspace::call_method`].
    ///
    /// # Errors
    /// As [`crate::Keyspace::call_method`].
    pub fn call_method(
        &self,
        key: impl ToKey,
        class: &str,
        method: &str,
        input: Bytes,
    ) -> Result<Option<MethodAnswer>> {
        let keyspace = crate::Keyspace::from_blocking(self.clone());
        block_on(keyspace.call_method(key, class, method, input))
    }

    /// Asks a seat at the node that has it: see [`crate::Keyspace::ask_seat`].
    ///
    /// # Errors
    /// As [`crate::Keyspace::ask_seat`].
    pub fn ask_seat(
        &self,
        key: impl ToKey,
        class: &str,
        method: &str,
        input: Bytes,
    ) -> Result<Option<MethodAnswer>> {
        let keyspace = crate::Keyspace::from_blocking(self.clone());
        block_on(keyspace.ask_seat(key, class, method, input))
    }
}
