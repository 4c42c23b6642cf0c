//! What a user was promised, checked against what clients saw.
//!
//! ```text
//!   history ─┬─► answers: everything ended; acknowledged is applied, aborted is not; refusals
//!            │            are legitimate; reads repeat
//!            ├─► leases: held by one at a time
//!            ├─► notices: who watches gets them
//!            ├─► pieces: given back when they are used, dropped or late
//!            └─► timeline ─► replay ─┬─► unexplained: conditions, answers, reads at a timestamp
//!     applied ─────┘                 ├─► replicas: every holder, byte for byte
//!                                    ├─► fresh: read_many
//!                                    └─► place ─► order: strict serializability
//! ```
//!
//! [`history`] is what is checked; [`model`] is the truth about operations, stated once more. Every
//! check answers a sentence with names and times. None of them knows a workload, a message or a
//! machine, and each has tests with histories that it must find wrong.

pub mod answers;
pub mod fresh;
pub mod history;
pub mod leases;
pub mod model;
pub mod notices;
pub mod order;
pub mod pieces;
pub mod place;
pub mod replay;
pub mod replicas;
pub mod served;
#[cfg(test)]
mod tests;
pub mod timeline;

pub use self::answers::Allowed;
pub use self::history::{
    Answer, Attempted, Called, Deed, Entry, Fate, Found, HeardNotice, History, Holding, Listed,
    Noticed, Piece, Seen, WatchedSince,
};
pub use self::pieces::{Staged, pieces_are_given_back};
pub use self::replay::Replayed;
pub use self::replicas::{HeldChunk, Replica, Replicas};
pub use self::served::probes_are_served;
pub use self::timeline::{Applied, Timeline};

/// Checks a whole run; `replicas` when everything was mended in the end. Answers what is wrong, and
/// what is there in the end for the workloads to check.
pub fn check<'a>(
    history: &'a History,
    applied: &Applied,
    replicas: Option<&Replicas>,
    allowed: &Allowed,
) -> (Vec<String>, Replayed<'a>) {
    let mut wrong: Vec<String> = [
        answers::everything_ended(history),
        answers::effects_are_as_told(history, applied),
        answers::refusals_are_legitimate(history, allowed),
        answers::reads_repeat(history),
        leases::exclusive_leases_are_held_by_one(history),
        notices::notices_reach_who_watches(history),
    ]
    .into_iter()
    .filter_map(Result::err)
    .collect();
    let mut replayed = Replayed::new(Timeline::new(history, applied));
    wrong.append(&mut replayed.unexplained);
    wrong.extend(fresh::moments_are_fresh(&replayed).err());
    let order = place::place(&replayed).and_then(|reads| order::has_no_circle(&replayed, &reads));
    wrong.extend(order.err());
    if let Some(replicas) = replicas {
        wrong.extend(replicas::replicas_are_equal(&replayed, replicas).err());
    }
    (wrong, replayed)
}
