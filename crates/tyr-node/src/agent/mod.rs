//! The storage agent: the two threads that make things durable and keep memory small.
//!
//! [`committer`] syncs the log for all who wait, together. [`folder`] moves recent operations into
//! the base, lets old versions, log segments and cached bytes go, and syncs what nobody waits for.

pub(crate) mod committer;
pub(crate) mod folder;
