//! Strict serializability of lists, by the circles of who came before whom.
//!
//! The same files check the embedded store's threads; they know neither of them.

#[path = "../../../tyr/tests/histories/checker/mod.rs"]
#[allow(missing_docs, reason = "its fields say by their names what they are")]
pub mod checker;
#[path = "../../../tyr/tests/histories/history.rs"]
#[allow(missing_docs, dead_code, reason = "of its recorder only the words are used here")]
pub mod history;
