//! The query router: where a request goes, and how it gets there.
//!
//! On one node everything is here, so routing is looking up the keyspace ([`keyspaces`]). Between
//! nodes, and between clients and nodes, requests and answers travel by the [`network`]; what comes
//! in passes the [`gate`], which asks [`access`] who may do what, [`quota`] how much of it,
//! and [`room`] whether memory has room for it.

pub mod access;
pub(crate) mod gate;
mod keyspaces;
pub mod network;
pub mod quota;
pub(crate) mod room;

pub use self::keyspaces::KeyspaceEntry;
pub(crate) use self::keyspaces::{Entries, Keyspaces};
