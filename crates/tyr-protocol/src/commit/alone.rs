//! The whole commit of a transaction whose chain is this node, when nothing is in its way.
//!
//! This is `Submit`, `Persisted` and the decision of [`Commit::step`] in one call, for the store
//! that validates, logs and applies without giving anyone else a turn. A property test runs both
//! side by side. It must stay the inlined form of the same rules, not become rules of its own.

use tyr_types::{ErrorKind, Timestamp, Transaction};

use super::Commit;
use super::listed::check_listing;
use super::validate::{STALE, look};
use crate::abort::Abort;
use crate::rule::{Rule, Rules};
use crate::view::View;

impl Commit {
    /// Commits a transaction whose chain is this node, at once.
    ///
    /// `None` when another transaction is in flight on one of its blobs: then [`Commit::step`] it.
    /// Otherwise the commit timestamp, or why it aborts. The caller makes the transaction durable
    /// and applies it before it calls this machine again: nothing of it is remembered here.
    pub fn commit_alone(
        &mut self,
        now_us: u64,
        transaction: &Transaction,
        view: &impl View,
    ) -> Option<Result<Timestamp, Abort>> {
        if !self.records.is_empty() && self.has_company(transaction) {
            return None;
        }
        debug_assert!(self.moved.is_empty(), "it runs between steps, not in one");
        if transaction.is_conditional()
            && let Err(abort) = hold(self.rules, transaction, view)
        {
            return Some(Err(abort));
        }
        let at = self.clock.next(now_us, self.node.0);
        debug_assert!(
            self.clock < at,
            "C3: above all that was seen, so it is applied in order (C6)"
        );
        self.clock = at;
        Some(Ok(at))
    }

    /// Whether a transaction that is not applied yet, or waits, claims something of a blob of this
    /// one.
    fn has_company(&self, transaction: &Transaction) -> bool {
        let written = transaction.blobs.iter().map(|entry| &entry.blob);
        let mut blobs = written.chain(transaction.reads.iter().map(|read| &read.blob));
        blobs.any(|blob| {
            let claims = self.in_flight.claims(blob).iter();
            claims.map(|claim| &self.records[claim.slot]).any(|record| !record.is_applied())
        }) || self.has_listed_company(transaction)
    }
}

/// C1 where nothing is in flight: the reads are not stale, the conditions hold.
fn hold(rules: Rules, transaction: &Transaction, view: &impl View) -> Result<(), Abort> {
    for read in transaction.reads.iter().filter(|_| rules.hold(Rule::C1)) {
        if let Some(listed) = &read.listed {
            check_listing(rules, read, listed, view)?;
            continue;
        }
        if view.newest_overlapping(&read.blob, read.range, read.is_attributes) > read.at {
            return Err(Abort::at(&read.blob, ErrorKind::Conflict, STALE));
        }
    }
    for (index, entry) in (0..).zip(&transaction.blobs) {
        look(rules, index, entry, view, true, |footprint, visit| visit(footprint))?;
    }
    Ok(())
}
