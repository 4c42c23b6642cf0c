//! Q1: a listing is a read at S of all blobs of a keyspace that this node is the authority of.
//!
//! The authority of a blob's first chunk knows of every transaction that makes or deletes it. The
//! listing moves the clock to S, so that nothing proposed from then on is at or below S, and waits
//! until what is in flight and may still be is applied. What there was at S does not change any
//! more after that, so that the store may be read at leisure, page by page.
//!
//! Like other reads it waits for one transaction at a time, the last of them, and looks again when
//! that has moved.

use tyr_types::{BlobName, ErrorKind, Timestamp};

use super::parked::{Parked, Wanted};
use super::{Effect, Listing, Reads, TOO_MANY};
use crate::abort::Abort;
use crate::commit::Commit;
use crate::rule::Rule;

impl Listing {
    /// Whether the blob is of those that are listed.
    pub(super) fn is_of(&self, blob: &BlobName) -> bool {
        blob.keyspace == self.keyspace && self.keys.contains(blob.key.as_bytes())
    }
}

impl Reads {
    pub(super) fn list(
        &mut self,
        listing: Listing,
        commit: &mut Commit,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(at) = listing.at {
            commit.observe(at); // R5: nothing proposed from now on is at or below it.
        }
        // Whatever was shown anywhere before is known here to be decided, at or below the clock
        // (C8, C9).
        let up_to = listing.at.unwrap_or(commit.snapshot_timestamp());
        let is_fixed = up_to <= commit.clock() || !commit.rules.hold(Rule::C8);
        debug_assert!(is_fixed, "R5: what is listed at {up_to} may still change");
        self.list_when_applied(listing, up_to, commit, effects);
    }

    /// Lists, or waits for something that may still be at or below `up_to`.
    pub(super) fn list_when_applied(
        &mut self,
        listing: Listing,
        up_to: Timestamp,
        commit: &mut Commit,
        effects: &mut Vec<Effect>,
    ) {
        let id = listing.id;
        let pending = match self.rules.hold(Rule::Q1) {
            true => commit.last_pending_where(up_to, |blob| listing.is_of(blob)),
            false => None,
        };
        let Some(pending) = pending else { return effects.push(Effect::List { id }) };
        let is_below = commit.pending_at(pending).is_some_and(|its| its <= up_to);
        debug_assert!(is_below, "R5: {pending:?} would never let the listing go on");
        if self.is_full(id) {
            let (kind, reason) = (ErrorKind::Unavailable, TOO_MANY);
            effects.push(Effect::Refuse { id, abort: Abort::new(kind, reason) });
            return;
        }
        self.park(id, Parked { wanted: Wanted::Listing(listing), up_to, pending }, commit);
    }
}
