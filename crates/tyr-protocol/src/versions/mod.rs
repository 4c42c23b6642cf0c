//! Which versions are in use, who has to know, and what may go (V1..V4).
//!
//! Once written, a version is immutable; it is what readers saw while it was the newest, and what
//! a snapshot placed in that time still sees. A version is removed when nobody can ask for it.
//!
//! ```text
//!   snapshot begins, ends, times out ─► SnapshotTable (V1) ─► Usage (V2) ─► may_go (V3, V4)
//!                                        version manager      every node    every node
//! ```
//!
//! The parts: [`snapshots`] counts what is in use, [`usage`] is how that travels, [`removal`]
//! decides. None of them knows how versions are kept.

pub mod removal;
pub mod snapshots;
pub mod usage;

#[cfg(any(test, feature = "broken-rules"))]
pub use removal::may_go_without;
pub use removal::{Policy, Version, may_go, version_at};
pub use snapshots::{SnapshotId, SnapshotTable};
pub use usage::{MOMENTS_MAX, Usage};
