//! Commands about a cluster as a whole: how it is, its nodes, its users, its quotas, and what
//! is lost.
//!
//! They ask the monitors by the control plane ([`connection`]); what a node knows of itself they
//! ask the node in the same way ([`reports`]). Keyspaces and blobs are the affair of the ordinary
//! commands.

mod connection;
mod health;
pub mod loss;
pub mod node;
mod question;
pub mod quota;
mod reports;
pub mod status;
pub mod user;

pub use connection::Connection;
