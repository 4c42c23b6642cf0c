//! A call under way, of which the answer comes later.

use tyr::Bytes;
use tyr_class::Failure;

use crate::host::{Answered, lost};

/// A call that was begun. Dropping it does not end the call.
#[derive(Debug)]
pub struct Begun(pub(crate) Answered);

impl Begun {
    /// What it answers.
    ///
    /// # Errors
    /// As [`blocking::Classes::call`](crate::blocking::Classes::call).
    pub async fn answer(self) -> Result<Bytes, Failure> {
        self.0.await.unwrap_or_else(|_| Err(lost().into()))
    }

    /// The same, for threads.
    ///
    /// # Errors
    /// As there.
    pub fn wait(self) -> Result<Bytes, Failure> {
        self.0.recv().unwrap_or_else(|_| Err(lost().into()))
    }
}
