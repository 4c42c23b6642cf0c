//! The public API, in this process and on a cluster of three nodes: what each call answers.
//!
//! One binary, so that there is one cluster for all (see `tyr_testing`), and one program to link.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod blocking;
mod conditions;
mod copies;
mod futures;
mod guarded;
mod kept;
mod large;
mod leases;
mod listings;
mod locations;
mod metadata;
mod notices;
mod presence;
mod stamps;
mod usage;
mod watches;
