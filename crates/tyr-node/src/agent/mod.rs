//! The storage agent: what makes things durable and keeps memory small.
//!
//! Of an embedded node, two threads: [`committer`] syncs the log for all who wait, together;
//! [`folder`] moves recent operations into the base, lets old versions, log segments and cached
//! bytes go, and syncs what nobody waits for. Of a node of a cluster, whose chunks and log are
//! `tyr-engine`'s, [`keeper`] does what the folder does.

pub(crate) mod committer;
pub(crate) mod folder;
pub(crate) mod keeper;
pub(crate) mod marker;
