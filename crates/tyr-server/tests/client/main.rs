//! Clients against nodes that run in this process.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod cluster;
mod copies;
mod format;
mod joining;
mod kept;
mod leases;
mod listings;
mod quota;
mod trace;
mod usage;
mod versions;
