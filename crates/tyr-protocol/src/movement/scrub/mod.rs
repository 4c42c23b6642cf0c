//! Scrubbing: replicas are compared in the background, and put right (D4).
//!
//! ```text
//!   names ─► Due ─► Settling at S ─► Reading at S, everywhere ─┬─ the same ─► the next stretch
//!                        ▲                                     ├─ differs, long ─► a part of it
//!                        └──────── Repairing, a second ◄───────┴─ differs, short: Rewrite
//! ```
//!
//! The authority of a chunk compares it in *stretches*. It takes its clock S, waits until what was
//! in flight then is shown everywhere, as a rule, and has every holder, itself among them, read the
//! stretch at S (R5). Where something differs, the stretch is compared again in short ones, and of
//! those that differ the right bytes are *written anew*: by a transaction that read them at S and
//! writes them where they were. Its chain has every replica, and it commits only if nothing newer
//! was written there (C1): so it changes nothing where the bytes are right, puts them right where
//! they are not, and loses nothing that was committed, whatever else happens meanwhile. Then the
//! stretch is compared once more.
//!
//! The parts: [`comparison`] says what is right; [`finding`] is what people are told; [`event`] is
//! what goes in and out; [`stretch`] some bytes on their way; [`scrubber`] the machine. None of
//! them knows how chunks are kept, nor who else reads and writes.

pub mod comparison;
pub mod event;
pub mod finding;
pub mod scrubber;
mod stretch;
#[cfg(test)]
mod tests;

pub use self::comparison::{Comparison, Repair};
pub use self::event::{Answer, Effect, Event, ScrubConfig, ScrubCounts};
pub use self::finding::{Finding, What};
pub use self::scrubber::{Scrubber, is_repair};
