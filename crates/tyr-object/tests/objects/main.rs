//! Objects and classes as their users see them, on a store in this process and on a cluster of
//! three nodes.
//!
//! One binary, so that there is one cluster for all: each test has a keyspace of its own there, and
//! classes by names of its own.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod callers;
mod calls;
mod classes;
mod native;
mod place;
mod queue;
mod seats;
mod together;
