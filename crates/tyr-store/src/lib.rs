//! Týr's store: transaction log, extents, index, recent operations.

pub mod base;
pub mod disk;
pub mod extents;
pub mod index;
pub mod recent;
