//! Object classes: named methods that run beside one blob, atomically.
//!
//! [`map`] has the keys and values that a blob can have beside its bytes, [`limits`] every bound.

pub mod limits;
pub mod map;

pub use limits::Limits;
pub use map::{Map, Region};
