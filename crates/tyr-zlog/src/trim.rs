//! Trimming: what is before a position goes, and whole stripes give their space back.
//!
//! ```text
//!   view: begin ──► trim what is before it in its own stripe ──► delete the stripes before ──►
//!   view without them
//! ```
//!
//! Interrupted anywhere, the next one to trim goes on.

use std::sync::Arc;

use blocking::unblock;
use tyr::{Error, ErrorKind, Result, Scan, Tyr};

use crate::class::{Fields, Refusal};
use crate::client::{Client, no_log};
use crate::layout;
use crate::log::Log;
use crate::name::Name;
use crate::view::{Stripe, View};

/// Objects that are deleted in one transaction.
const STEP: usize = 64;

/// How far trimming is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Stripes deleted.
    pub stripes: u64,
    /// Stripes still to be deleted.
    pub left: u64,
}

impl Log {
    /// Forgets all before a position; whole stripes of objects give their space back. `progress` is
    /// told how far it is, and ends it by an error: what is begun then, the next one goes on with.
    ///
    /// # Errors
    /// `InvalidArgument` for a position behind the tail; what `progress` answers; whatever the
    /// store answers.
    pub async fn trim(
        &self,
        before: u64,
        mut progress: impl FnMut(Trimmed) -> Result<()>,
    ) -> Result<Trimmed> {
        let tail = self.tail().await?;
        if before > tail {
            return Err(Error::invalid(format!(
                "log {} ends at {tail}, so nothing is before {before} yet: trim before {tail} at \
                 most",
                self.name()
            )));
        }
        let wanted = move |view: &View| (view.begin < before).then(|| view.trimmed(before));
        let view = self.on_thread(move |client| client.propose(wanted)).await?;
        // The last stripe stays, even where all of it is before.
        let kept = view.stripe_of(view.begin).or_else(|| view.stripes_backwards().next());
        if let Some(stripe) = kept {
            self.on_thread(move |client| client.trim_in(stripe, &view)).await?;
        }
        let gone: Vec<Stripe> = self.client.view().gone().collect();
        let mut trimmed = Trimmed { stripes: 0, left: gone.len() as u64 };
        progress(trimmed)?;
        for stripe in &gone {
            let stripe = *stripe;
            self.on_thread(move |client| client.delete_stripe(stripe)).await?;
            trimmed = Trimmed { stripes: trimmed.stripes + 1, left: trimmed.left - 1 };
            progress(trimmed)?;
        }
        if let Some(last) = gone.last().copied() {
            // No more than was deleted here goes from the view.
            let wanted = move |view: &View| {
                let is_left = view.gone().any(|it| it.number <= last.number);
                is_left.then(|| view.without_before(last.end()))
            };
            self.on_thread(move |client| client.propose(wanted)).await?;
        }
        Ok(trimmed)
    }

    async fn on_thread<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Client) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let client = Arc::clone(&self.client);
        unblock(move || act(&client)).await
    }

    /// Deletes a log: entries and all. Its head goes first, so that nobody takes half of a log for
    /// one; if it is interrupted, space stays taken until a log of this name is deleted again. The
    /// sequencer's lock stays, so that nobody who had it before passes for its holder.
    ///
    /// # Errors
    /// `NotFound` when there is nothing of it; whatever the store answers.
    pub async fn delete(store: &Tyr, keyspace: &str, name: &str) -> Result<()> {
        let name = Name::new(name)?;
        let keyspace = store.keyspace(keyspace).await?;
        let mut transaction = store.begin();
        let existed = transaction.delete(&keyspace, layout::head_key(&name)?)?;
        transaction.delete(&keyspace, layout::counter_key(&name)?)?;
        let mut is_there = transaction.commit().await?.existed(existed) == Some(true);
        loop {
            let prefix = layout::objects_prefix(&name);
            let scan = Scan::new().prefix(&prefix).keys_only().limit(STEP);
            let page = keyspace.scan_page(&scan).await?;
            if page.entries.is_empty() {
                break;
            }
            is_there = true;
            let mut transaction = store.begin();
            for entry in &page.entries {
                transaction.delete(&keyspace, &entry.key)?;
            }
            transaction.commit().await?;
        }
        if is_there { Ok(()) } else { Err(no_log(&name, keyspace.name())) }
    }
}

impl Client {
    /// Marks what is before the view's begin in its own stripe.
    fn trim_in(&self, stripe: Stripe, view: &View) -> Result<()> {
        for column in 0..stripe.width {
            let first = stripe.first + column;
            let count = view.begin.saturating_sub(first).div_ceil(stripe.width);
            if count == 0 {
                continue;
            }
            let key = self.object(stripe, column)?;
            let mut epoch = view.epoch;
            loop {
                let call = crate::client::object_call("trim", Fields::of([epoch, first, count]));
                match self.classes.call(&self.keyspace, &key, &call) {
                    Ok(_) => break,
                    Err(failure) => match Refusal::of(&failure) {
                        Some(Refusal::Stale) => epoch = self.refresh()?.epoch,
                        // Somebody trims further, and has deleted it.
                        Some(Refusal::NoObject) => return Ok(()),
                        _ => return Err(failure.into()),
                    },
                }
            }
        }
        Ok(())
    }

    /// Deletes the objects of a stripe. It may be that somebody has.
    fn delete_stripe(&self, stripe: Stripe) -> Result<()> {
        let mut transaction = self.store.begin();
        for column in 0..stripe.width {
            transaction.delete(&self.keyspace, self.object(stripe, column)?)?;
        }
        match transaction.commit() {
            Err(error) if error.kind() == ErrorKind::Conflict => self.delete_stripe(stripe),
            done => done.map(drop),
        }
    }
}
