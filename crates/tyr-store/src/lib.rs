//! Týr's store: transaction log, extents, index, recent operations.

pub mod base;
pub mod check;
pub mod disk;
pub mod extents;
pub mod index;
pub mod log;
pub mod recent;
pub mod store;
