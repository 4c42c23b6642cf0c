//! What clients do.

/// Something that clients do, with its own idea of what must come of it.
pub trait Workload {}
