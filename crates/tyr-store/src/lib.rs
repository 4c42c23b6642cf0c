//! Týr's store: transaction log, extents, index, recent operations.
