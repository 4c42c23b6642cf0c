//! A node on a machine that loses power, fills up and fails, at any moment that a test chooses.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod failed_sync;
mod full_disk;
mod index;
mod kept;
mod kept_snapshots;
mod machine;
mod model;
mod power_loss;
