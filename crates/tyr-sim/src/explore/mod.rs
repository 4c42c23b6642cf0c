//! All orders, instead of random ones: an exhaustive search of the smallest cluster in which the
//! commit protocol can go wrong.
//!
//! Three nodes, two blobs of a chunk each, up to three transactions, a crash. What runs are the
//! commit machines of a cluster as they are, each with a driver as small as can be ([`node`]); what
//! is chosen is what happens next: which message arrives, which record becomes durable, who goes
//! down, who hears of it. All choices are gone through.
//!
//! ```text
//!   Case ──► Explorer ──► World ──actions──► Action ──after──► World ──► .. ──► verdict
//!                           │                                    │
//!                           └── 3 node states, what is on its way, what clients know: numbers
//!                               of a Table, which does each step of each node state once
//! ```
//!
//! Reading order: [`case`] is what is explored, [`node`] a node, [`applied`] what it has applied,
//! [`table`] what was computed, [`world`] what can happen, [`clients`] what is asked and answered,
//! [`forgetting`] how all agree on what nobody needs, [`search`] the way through all of it,
//! [`verdict`] what must be so at the end; in every state of a node its invariants hold.
//! `docs/internals/explore.md` has what was found, and what the search does not see.
//!
//! It knows the machines by their events, effects and fingerprints only. Memory is what bounds a
//! search: some 50 bytes a state, and some KiB a node state.

mod applied;
pub mod case;
mod clients;
mod forgetting;
mod node;
mod search;
mod table;
#[cfg(test)]
mod tests;
mod verdict;
mod words;
mod world;

pub use self::case::Case;
pub use self::search::{Bounds, Findings, Violation, explore};
pub use self::world::Mishaps;
