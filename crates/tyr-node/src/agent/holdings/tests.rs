//! What a node holds.
