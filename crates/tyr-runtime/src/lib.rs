//! What all that runs in Týr has from its machine: the clock and chance, which thread goes first,
//! what is done again and again, and answers that come later.
//!
//! Below this crate the same calls give the same results on every run; here is what gives them
//! time. An embedded store, a client and a node of a cluster stand on it alike, so it must not know
//! any of them: no socket, no disk.
//!
//! Reading order: [`clock`], [`priority`], [`cache`] and [`marking`] are the machine's; [`ticket`]
//! is how threads wait, with [`waiting`], [`lease_state`] what a holder knows of its lease,
//! [`watch_state`] what a watcher is to be told,
//! [`statistics`] what is counted for them, [`repeats`] what is logged no more than now and then.

#[cfg(feature = "broken-rules")]
pub mod broken;
pub mod cache;
pub mod clock;
pub mod lease_state;
pub mod marking;
pub mod priority;
pub mod repeats;
pub mod statistics;
pub mod ticket;
pub mod waiting;
pub mod watch_state;
