//! Týr's store: transaction log, extents, pages, index, recent operations.
//!
//! ```text
//!   store     opens, reads, writes and folds: all of this together
//!   check     verifies what is on disk │ recent   what is in memory
//!   base      blobs on disk, and the checkpoint that a replay begins with
//!   log │ extents │ pages │ index
//!   disk      files, of the machine or simulated
//! ```
//!
//! A folder uses those below it only. Reading order: [`disk`], [`log`], [`extents`], [`pages`],
//! [`index`], [`base`], [`recent`], [`store`], [`check`].

pub mod base;
pub mod check;
pub mod disk;
pub mod extents;
pub mod index;
pub mod log;
pub mod pages;
pub mod recent;
pub mod store;
