//! What the machine does from here on depends on this, and on nothing else: for a search that
//! wants to know whether it was in a state before.
//!
//! Two machines of one node with the same fingerprint answer the same events with the same effects,
//! but for the words of an abort. So what is only compared is written down as its rank (arrivals)
//! or distance (the clock of `Tick`), and what nobody asks is left out: how often something was
//! counted; and of when outcomes were noted only which floors let them go (F10) is written down.
//! The structs are taken apart by name, so that whoever adds a field has to decide about it here.

use std::hash::{Hash, Hasher};

use super::event::Decision;
use super::in_flight::Claim;
use super::memory::Entry;
use super::outcomes::Outcomes;
use super::record::Record;
use super::recovery::{Inquiry, Known, Recovery};
use super::{Commit, Placed};
use crate::chain::{Chain, Hop, Part, Piece};

impl Commit {
    /// Feeds all that the machine will ever do depends on to `hasher`, the same for the same; for
    /// a search over all orders of events that wants to know where it has been.
    ///
    /// Exact as long as the clock of `Tick` moves by less than [`super::OUTCOME_WINDOW_US`] in all,
    /// the monitors were heard before there was anything to remember, and `floors`, ascending, are
    /// all that they may ever tell (F10).
    pub fn fingerprint(&self, floors: &[u64], hasher: &mut impl Hasher) {
        let Self {
            node,
            clock,
            records,
            in_flight: _, // By record, below.
            shared: _,    // Counted from the records.
            arrivals: _,  // A record's is above those of the ones before, whatever it is.
            woken,
            is_resuming,
            moved: _,   // Empty between steps.
            waiting: _, // Found among the records.
            recovery,
            pieces: _, // None is uploaded in a search.
            rules: _,  // The same in the whole search.
        } = self;
        (node, clock, is_resuming).hash(hasher);
        for (slot, record) in records.iter() {
            slot.hash(hasher);
            self.hash_record(record, hasher);
        }
        records.free().hash(hasher);
        let mut arrivals: Vec<_> =
            records.iter().map(|(slot, record)| (record.arrival, slot)).collect();
        arrivals.sort_unstable();
        for (arrival, slot) in arrivals {
            (slot, woken.get(&arrival)).hash(hasher);
        }
        self.hash_claims(hasher);
        if let Some(recovery) = recovery {
            self.hash_recovery(recovery, floors, hasher);
        }
    }

    fn hash_record(&self, record: &Record, hasher: &mut impl Hasher) {
        let Record {
            transaction,
            chain,
            position,
            attempt,
            entered_in,
            begun,
            arrival: _, // Its rank is with the others'.
            state,
            highest,
            known,
            placed,
            unstable,
            is_writing_here,
            is_watched,
            unanchored,
            is_anchored,
            is_behind,
            is_passed,
            is_restored,
            heard,
            outcomes,
            answers,
            abort,
            touched_us,
            asked,
            is_heard,
            // What they say can be found out again.
            blocker: _,
            holds_up: _,
            waits_for: _,
            holds_back: _,
        } = record;
        (transaction.id, position, attempt, entered_in, begun).hash(hasher);
        hash_chain(chain, hasher);
        (state, highest, known).hash(hasher);
        placed.iter().for_each(|Placed { index, offset }| (index, offset).hash(hasher));
        (unstable, is_writing_here, is_watched, unanchored).hash(hasher);
        (is_anchored, is_behind, is_passed, is_restored, is_heard, asked, heard).hash(hasher);
        hash_outcomes(outcomes, hasher);
        hash_outcomes(answers, hasher);
        abort.as_ref().map(|abort| abort.kind).hash(hasher);
        self.elapsed_since(*touched_us).hash(hasher);
    }

    fn hash_claims(&self, hasher: &mut impl Hasher) {
        let mut blobs: Vec<_> = self.in_flight.iter().collect();
        blobs.sort_unstable_by(|left, right| left.0.cmp(right.0));
        for (blob, claims) in blobs {
            (blob, claims.len()).hash(hasher);
            for Claim { slot, kind, footprint, chunks, authority } in claims.iter() {
                let ranges = [footprint.range, chunks.range].map(|range| (range.start, range.end));
                (slot, kind, ranges, footprint.is_attributes, authority).hash(hasher);
            }
        }
    }

    fn hash_recovery(&self, recovery: &Recovery, floors: &[u64], hasher: &mut impl Hasher) {
        let Recovery {
            map,
            memory,
            inquiries,
            untold,
            has_one_authority,
            elapsed_us: _, // What it is compared with is taken from it.
            past: _,       // Of minutes, which no search takes.
            has_heard: _,  // From the beginning on.
            done_to_us,
            window_us,
            slowest: _, // Only told.
            owed,
            crowd: _,   // Counted anew with each tick.
            singles: _, // Follows from the map.
        } = recovery;
        (map.as_ref().map(|map| map.epoch), has_one_authority).hash(hasher);
        (done_to_us, window_us, owed, memory.floor()).hash(hasher);
        untold.iter().map(|(_, slot)| slot).for_each(|slot| slot.hash(hasher));
        let mut entries: Vec<_> = memory.iter().collect();
        entries.sort_unstable_by_key(|(id, _)| **id);
        for (id, entry) in entries {
            let Entry { attempt, finished_in, outcome, answers, is_closed, .. } = entry;
            (id, attempt, finished_in, is_closed, entry.goes_with(floors)).hash(hasher);
            hash_outcomes(answers, hasher);
            if let Some((decision, outcomes)) = outcome {
                hash_decision(decision, hasher);
                hash_outcomes(outcomes, hasher);
            }
        }
        for (id, inquiry) in inquiries.iter() {
            let Inquiry {
                attempt,
                promised,
                turn,
                transaction: _, // It has this id.
                begun,
                is_question,
                closing,
                chains,
                waiting,
                reports,
                began_us,
                rounds,
            } = inquiry;
            (id, attempt, promised, waiting, rounds, reports.len(), chains.len()).hash(hasher);
            turn.hash(hasher);
            (begun, is_question, closing.as_ref().map(|abort| abort.kind)).hash(hasher);
            chains.iter().for_each(|chain| hash_chain(chain, hasher));
            for (node, known) in reports {
                node.hash(hasher);
                hash_known(known, hasher);
            }
            self.elapsed_since(*began_us).hash(hasher);
        }
    }

    fn elapsed_since(&self, then_us: u64) -> u64 {
        let elapsed_us = self.recovery.as_ref().map_or(0, |recovery| recovery.elapsed_us);
        elapsed_us.saturating_sub(then_us)
    }
}

fn hash_chain(chain: &Chain, hasher: &mut impl Hasher) {
    (chain.ends(), chain.hops().len()).hash(hasher);
    for Hop { node, part } in chain.hops() {
        node.hash(hasher);
        match part {
            Part::Whole => usize::MAX.hash(hasher),
            Part::Pieces(pieces) => {
                pieces.len().hash(hasher);
                for Piece { blob, range, is_attributes, is_written, authority } in pieces {
                    (blob, range.start, range.end).hash(hasher);
                    (is_attributes, is_written, authority).hash(hasher);
                }
            }
        }
    }
}

fn hash_known(known: &Known, hasher: &mut impl Hasher) {
    std::mem::discriminant(known).hash(hasher);
    match known {
        Known::Nothing | Known::Forgotten => {}
        Known::Validated { attempt, proposal, chain } => {
            (attempt, proposal).hash(hasher);
            hash_chain(chain, hasher);
        }
        Known::Committed { at, ends } => (at, ends).hash(hasher),
        Known::Aborted(abort) => abort.kind.hash(hasher),
    }
}

fn hash_decision(decision: &Decision, hasher: &mut impl Hasher) {
    match decision {
        Decision::Commit(at) => (true, at).hash(hasher),
        Decision::Abort(abort) => (false, abort.kind).hash(hasher),
    }
}

/// Answers hold numbers, and those floats; their text is as good.
fn hash_outcomes(outcomes: &Outcomes, hasher: &mut impl Hasher) {
    match outcomes.is_empty() {
        true => 0_u8.hash(hasher),
        false => format!("{outcomes:?}").hash(hasher),
    }
}
