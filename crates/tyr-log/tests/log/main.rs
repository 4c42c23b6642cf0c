//! A log as its users see it, on a store in this process and on a cluster of three nodes.
//!
//! One binary, so that there is one cluster for all: each test has a keyspace of its own there.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod appending;
mod concurrency;
mod consumers;
mod following;
mod gathering;
mod model;
mod place;
mod reading;
mod sealing;
mod strict;
mod trimming;
