//! The commands on blobs, keyspaces and service metadata, the cluster log among it, one file a
//! family.
//!
//! Each file holds the arguments of its commands and what they do. What they share is how a blob is
//! named ([`blob`]) where its bytes come from ([`source`]), and how a command runs while something
//! is held ([`held`]).

pub mod arithmetic;
pub mod balancer;
pub mod blob;
pub mod check;
pub mod class;
pub mod completions;
pub mod copying;
pub mod events;
pub mod fs;
mod fs_quota;
mod fs_view;
pub mod held;
pub mod inspect;
pub mod keyspace;
pub mod listing;
pub mod locations;
pub mod lock;
pub mod metadata;
pub mod mount;
pub mod notify;
pub mod reading;
pub mod reference;
pub mod removal;
pub mod seat;
pub mod secret;
pub mod snapshot;
pub mod source;
pub mod stretches;
pub mod tree;
pub mod txn;
pub mod usage;
pub mod watch;
pub mod writing;
