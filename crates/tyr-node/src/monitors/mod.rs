//! The cluster manager: what the nodes of a cluster agree on, and how (M1, M3).
//!
//! Reading order: [`metadata`] is what is agreed on, a plain value; [`consensus`] how several
//! monitors have the same.

pub mod consensus;
pub mod metadata;
pub mod refusal;
