//! What a user was promised, checked against what clients saw.

pub mod history;

pub use history::{Answer, Attempted, Deed, Entry, Fate, Found, History, Seen, Wanted};
