//! A disk in memory that loses power.

/// A disk in memory.
#[derive(Default)]
pub struct SimulatedDisk {}
