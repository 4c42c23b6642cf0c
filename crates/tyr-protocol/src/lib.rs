//! Týr's protocols as pure machines: a client's side, and all that a node of a cluster decides.
//!
//! A machine is fed events and answers effects. It has no clock, socket, disk, thread or random
//! source: the driver passes the time in, executes the effects in order and feeds what comes of
//! them back. The node does so with sockets and disks, the simulator under faults, so that what is
//! tested is what runs. An embedded store is a cluster of one: the same machines, with a chain of
//! one.
//!
//! ```text
//!   a user's calls                                                            a node's driver
//!        │                                                                      ▲ log, store
//!   session ── envelopes (wire) ──► member ─┬─► commit   (C1..C9)  ─► versions  (V1..V4)
//!   routes by map                   who     │     └ its recovery (F1..F14)
//!                                   hears   ├─► read     (R1..R7)
//!                                   what    ├─► movement (D1..D4)
//!                                           └─► lease    (M3, M4) ◄──► the monitors' Grants
//!                                        map: who is there, what lies where
//! ```
//!
//! Reading order: [`chain`] says which nodes a transaction passes and what each holds of it,
//! [`footprint`] what an operation touches, [`view`] what a machine may ask of the applied state.
//! Then [`commit`] and [`read`], of which an embedded store is made, with [`versions`]. Then what a
//! cluster has beside: the feature [`level`] in use, the [`map`], the commit machine's
//! [`commit::recovery`], [`lease`], [`key_lease`], [`key_watch`], [`movement`], [`upload`]; the two
//! machines that put them together, [`member`] and [`session`]; what they say to each other,
//! [`message`], and as bytes, [`wire`]. Each page of `docs/internals` of the same name states the
//! rules in full.
//!
//! A folder uses those below it, never one above; the files beside the folders lie below all of
//! them, but for [`message`], which puts together what each has to say:
//!
//! ```text
//!   wire
//!   member │ session
//!   movement │ lease │ key_lease │ key_watch
//!   read
//!   commit
//!   map │ versions │ upload
//! ```
//!
//! This crate must not know how anything is stored.

pub mod abort;
pub mod chain;
pub mod commit;
pub mod footprint;
pub mod key_lease;
pub mod key_watch;
pub mod lease;
pub mod level;
pub mod map;
pub mod member;
pub mod message;
pub mod movement;
pub mod read;
pub mod session;
pub mod upload;
pub mod versions;
pub mod view;
pub mod wire;

mod queue;
mod rule;

#[cfg(test)]
mod test_cluster;

pub use abort::Abort;
pub use chain::{Chain, Ends, Hop, Part, Piece};
pub use commit::Commit;
pub use footprint::Footprint;
pub use read::Reads;
#[cfg(feature = "broken-rules")]
pub use rule::Rule;
pub use versions::SnapshotTable;
pub use view::View;
