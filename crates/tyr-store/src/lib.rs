//! Týr's store: transaction log, extents, index, recent operations.
//!
//! ```text
//!   store     opens, reads, writes and folds: all of this together
//!   check     verifies what is on disk │ recent   what is in memory
//!   base      blobs on disk, and the checkpoint that a replay begins with
//!   log │ extents │ index
//!   disk      files, of the machine or simulated
//! ```
//!
//! A folder uses those below it only. Reading order: [`disk`], [`log`], [`extents`], [`index`],
//! [`base`], [`recent`], [`store`], [`check`].

pub mod base;
pub mod check;
pub mod disk;
pub mod extents;
pub mod index;
pub mod log;
pub mod recent;
pub mod store;
