//! What a user was promised, checked against what clients saw.

/// What clients did and saw, in the order of the calls.
#[derive(Debug, Default)]
pub struct History {}
