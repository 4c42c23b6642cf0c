//! A client's presence: what is bound to it goes when the client does (M5).
//!
//! One task renews it, a third of its time after the last renewal, for whatever is bound to it. The
//! client counts from when it asked, and takes it for over when that time has passed without an
//! answer, before anybody else does.

use std::fmt;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tyr_control::MetadataClient;
use tyr_control::presence::{Presence as Question, check_ttl};
use tyr_metadata::Transaction;
use tyr_runtime::clock;
use tyr_runtime::lease_state::LeaseState;
use tyr_types::{Error, ErrorKind, Result};

use super::Client;
use super::answer::closed;
use super::control::Asked;

/// After a renewal that had no answer the next comes so soon.
const AGAIN: Duration = Duration::from_millis(200);

/// A presence. Dropping it ends it.
pub struct Presence {
    monitors: MetadataClient,
    /// Where the monitors are asked.
    runtime: Handle,
    id: u64,
    state: LeaseState,
    renewing: AbortHandle,
}

impl fmt::Debug for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Presence({:016x}, {:?})", self.id, self.state)
    }
}

impl Client {
    /// A presence that is over when nothing was heard of this client for so long, or it is dropped.
    ///
    /// # Errors
    /// `InvalidArgument` for a time that is not 1 to 60 s; `QuotaExceeded` when too many are there;
    /// `Unavailable` when the monitors do not answer, or are of an older release.
    pub async fn presence(&self, ttl: Duration) -> Result<Presence> {
        check_ttl(ttl)?;
        self.control.presence(ttl).await
    }
}

impl Presence {
    /// Begins one, on the runtime that this is called on.
    ///
    /// # Errors
    /// As [`Client::presence`].
    pub(super) async fn begin(monitors: MetadataClient, ttl: Duration) -> Result<Self> {
        let id = clock::random_u64();
        let ttl_ms = u32::try_from(ttl.as_millis()).expect("it is at most a minute");
        let asked = Instant::now();
        monitors.presence(Question::Begin { id, ttl_ms }).await?;
        let state = LeaseState::default();
        state.hold_until((asked + ttl).into_std());
        let runtime = Handle::current();
        let renewing = renew(monitors.clone(), id, ttl, asked + ttl, state.clone());
        let renewing = runtime.spawn(renewing).abort_handle();
        Ok(Self { monitors, runtime, id, state, renewing })
    }

    /// Whether it is there, as far as this process knows.
    pub fn state(&self) -> &LeaseState {
        &self.state
    }

    /// Conditions and changes, all or nothing, of which what is put is bound to it; the revision.
    ///
    /// # Errors
    /// As [`Client::change_metadata`]; `NotFound` when it is over.
    pub fn bind(&self, transaction: Transaction) -> Asked<u64> {
        self.ask(Question::Bind { id: self.id, transaction })
    }

    /// Ends it: what is bound to it is gone when this answers.
    ///
    /// # Errors
    /// `Unavailable` when the monitors do not answer: it is over after its time.
    pub fn end(&self) -> Asked<u64> {
        self.renewing.abort();
        self.state.lose();
        self.ask(Question::End { id: self.id })
    }

    fn ask(&self, question: Question) -> Asked<u64> {
        let monitors = self.monitors.clone();
        let asked = self.runtime.spawn(async move { monitors.presence(question).await });
        Box::pin(async move { asked.await.unwrap_or_else(|_| Err(closed())) })
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if !self.renewing.is_finished() {
            // Where nobody answers it is over after its time.
            drop(self.end());
        }
    }
}

/// Renews a presence until it is over.
async fn renew(
    monitors: MetadataClient,
    id: u64,
    ttl: Duration,
    mut until: Instant,
    state: LeaseState,
) {
    let mut next = until - ttl + ttl / 3;
    loop {
        tokio::time::sleep_until(next.min(until)).await;
        let asked = Instant::now();
        let renewed = monitors.presence(Question::Renew { id });
        let renewed = match tokio::time::timeout_at(until, renewed).await {
            Ok(renewed) => renewed,
            Err(_) => Err(Error::unavailable("nobody answered in time")),
        };
        match renewed {
            Ok(_) => {
                until = asked + ttl;
                state.hold_until(until.into_std());
                next = asked + ttl / 3;
            }
            Err(error) if error.kind() == ErrorKind::NotFound || Instant::now() >= until => {
                tracing::warn!(%error, "a presence is over: what is bound to it goes");
                state.lose();
                return;
            }
            Err(_) => next = Instant::now() + AGAIN,
        }
    }
}
