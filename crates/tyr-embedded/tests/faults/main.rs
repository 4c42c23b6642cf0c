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

/// The seed of this run: `TYR_SEED` if it is set.
fn seed() -> u64 {
    let seed = match std::env::var("TYR_SEED") {
        Ok(text) => text.parse().expect("TYR_SEED is a number"),
        Err(_) => 20_261_121,
    };
    println!("seed {seed} (set TYR_SEED to it to repeat)");
    seed
}
