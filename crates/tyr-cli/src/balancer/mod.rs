//! The balancer of seats: which policy there is, and the node that runs it.
//!
//! ```text
//!   tyr balancer install ──► installed: policies/balancer, with versions
//!   tyr serve ──► host: of all nodes one leads; each tick: loads ──► tyr-mantle ──► assignments
//! ```
//!
//! What a policy is, and what bounds it, is `tyr-mantle`'s; how a seat gets to its node is
//! `tyr-object`'s.

pub mod host;
pub mod installed;

/// What lines of the balancer in the cluster log begin with, behind the node that says them.
pub const LOG_MARK: &str = "balancer: ";
