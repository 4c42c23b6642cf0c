//! What a transaction has of what was uploaded ahead of it (U1).

use tyr_types::ErrorKind;

use super::Commit;
use super::record::{Record, Slot};
use super::validate::Validation;
use crate::abort::Abort;
use crate::rule::Rule;
use crate::upload::pieces::Lack;
use crate::upload::wanted;
use crate::view::View;

/// Why a transaction aborts whose pieces nobody has (U4).
pub const LACKING: &str = "a piece that was uploaded ahead is at no node that is to have it: it \
                           was dropped, or is older than a day; upload it again";

/// The texts of other aborts for what was uploaded ahead (U1).
const OTHER_PIECE: &str = "a piece is not the one that was uploaded under its name, or was \
                           uploaded for another chunk; upload it for where it is to lie";
const TAKEN_PIECE: &str = "a piece is of one transaction, and another in flight refers to it; try \
                           again when that is over, or upload the piece once more";

impl Commit {
    /// It has the pieces that it refers to, as far as they are here and no other has them (U1).
    pub(super) fn claim_pieces(&mut self, slot: Slot, view: &impl View) {
        let record = &self.records[slot];
        let hop = &record.chain.hops()[record.position];
        let wanted = wanted(&record.transaction, hop, |keyspace| view.chunk_size(keyspace));
        if !wanted.is_empty() {
            let records = &self.records;
            let is_in_flight = |id| records.slot(id).is_some();
            self.pieces.claim(record.transaction.id, &wanted, is_in_flight);
        }
    }
}

impl<V: View> Validation<'_, V> {
    /// U1: it is validated only where every byte of it is that will lie there.
    pub(super) fn lacking(&self, record: &Record) -> Option<Abort> {
        if !self.rules.hold(Rule::U1) {
            return None;
        }
        let (id, hop) = (record.transaction.id, &record.chain.hops()[record.position]);
        let all = wanted(&record.transaction, hop, |keyspace| self.view.chunk_size(keyspace));
        all.iter().find_map(|want| {
            let (kind, reason) = match self.pieces.lack(id, want)? {
                Lack::Missing => (ErrorKind::Unavailable, LACKING),
                Lack::Other => (ErrorKind::InvalidArgument, OTHER_PIECE),
                Lack::Taken => (ErrorKind::Unavailable, TAKEN_PIECE),
            };
            Some(Abort::at(want.blob, kind, reason))
        })
    }
}
