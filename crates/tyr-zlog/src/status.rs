//! What there is of a log.

use tyr::{ErrorKind, Result};

use crate::layout;
use crate::log::Log;

/// What there is of a log; see [`Log::status`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The first position that is not trimmed.
    pub begin: u64,
    /// The position behind the highest one that is written.
    pub tail: u64,
    /// The epoch of the newest view.
    pub epoch: u64,
    /// The epoch of the view with which the counter of positions began.
    pub term: u64,
    /// Stripes of objects.
    pub stripes: u64,
    /// Objects of a stripe.
    pub width: u64,
    /// Positions of an object.
    pub slots: u64,
    /// How often the sequencer was got, by anybody.
    pub token: u64,
    /// Who has the sequencer, or had it last; `None` when nobody had, or did not say.
    pub holder: Option<String>,
}

impl Log {
    /// What there is of the log.
    ///
    /// # Errors
    /// `NotFound` when the log was deleted; whatever the store answers.
    pub async fn status(&self) -> Result<Status> {
        let tail = self.tail().await?;
        let view = self.client.view();
        let lock = self.keyspace().inspect_lock(layout::lock_key(&self.client.name)?).await;
        let (token, holder) = match lock {
            Err(error) if error.kind() == ErrorKind::NotFound => (0, None),
            lock => {
                let lock = lock?;
                (lock.token, lock.holder)
            }
        };
        let last = view.runs.last().expect("a view has a run");
        Ok(Status {
            begin: view.begin,
            tail,
            epoch: view.epoch,
            term: view.term,
            stripes: view.runs.iter().map(|run| run.stripes).sum(),
            width: last.width,
            slots: last.slots,
            token,
            holder,
        })
    }
}
