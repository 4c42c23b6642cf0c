//! Leases: who may serve now, and when a new map takes effect (M3, M4).
//!
//! A node serves, validates and answers only while it holds a lease from the monitors, for it may
//! be cut off and not know that the others have gone on without it. The lease is what makes a
//! change safe that takes something from a node: the map takes effect once the node said that it
//! stopped using the old one, or cannot hold a lease any more.
//!
//! ```text
//!    node: Holder                                  monitors: Grants
//!      │ ── Renew (sent at t) ────────────────────────► │ lease until now + 1.1 durations
//!      │ ◄───────────────────────────────── Granted ─── │
//!    held until t + duration                            │
//!      │ ◄─ Prepare: a map that takes something away ── │ a planned change
//!      │ ── Prepared: stopped using the old one ──────► │ waits for all, or their leases' end
//!      │ ◄──────────────────────────────── Effective ── │
//! ```
//!
//! Each counts by a clock of its own that does not jump; the node from before it asked, the
//! monitors from after, with a tenth on top for clocks that run at different speeds.
//!
//! Reading order: [`config`], then [`holder`], the node's side; [`event`] and [`effect`] are what
//! goes in and out of [`grants`], the monitors' side; [`node_info`] is what those know of a node,
//! [`pending`] a change that waits. Renewals carry [`crate::commit::OutcomeRetention`] both ways,
//! for the memory of outcomes (F10).
//!
//! This module must not know how monitors agree among themselves: [`Grants`] is a plain value that
//! they may put under any consensus.

pub mod config;
pub mod effect;
pub mod event;
pub mod grants;
pub mod holder;
mod invariants;
mod level;
pub mod node_info;
mod pending;
mod proposal;
#[cfg(test)]
mod tests;

pub use self::config::LeaseConfig;
pub use self::effect::Effect;
pub use self::event::Event;
pub use self::grants::Grants;
pub use self::holder::{Holder, Renewal};
pub use self::node_info::NodeInfo;
