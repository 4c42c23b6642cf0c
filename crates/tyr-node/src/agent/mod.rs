//! The storage agent: what makes things durable and keeps memory small.
//!
//! Of an embedded node, two threads: [`committer`] syncs the log for all who wait, together;
//! [`folder`] moves recent operations into the base, lets old versions, log segments and cached
//! bytes go, and syncs what nobody waits for. Of a node of a cluster: [`holdings`] are the chunks
//! that it holds, [`journal`] is its log, [`keeper`] does for them what the folder does, and
//! [`tally`] is what of them counts towards quotas.

pub(crate) mod committer;
pub(crate) mod folder;
pub(crate) mod holdings;
pub(crate) mod journal;
pub(crate) mod keeper;
pub(crate) mod tally;
