//! Process tests: real nodes under faults, and histories that are checked twice.
//!
//! ```text
//!   fault ──► cluster ──► processes on a fabric
//!                              ▲
//!   workload ──► client ───────┤
//!       │ ├────► puppet ───────┤
//!       │ └────► worker ───────┘
//!       │
//!       └──► history ──► check (ours), porcupine (somebody else's) ──► report
//! ```
//!
//! The simulator finds what is wrong with the protocols; this finds what is wrong with sockets,
//! disks, clocks, threads and the order in which a node starts and stops. Reading order:
//! [`cluster`], [`fabric`], [`fault`] are what is done; [`workload`], [`client`], [`puppet`],
//! [`worker`], [`history`] what is asked; [`check`], [`replicas`], [`report`] what it comes to;
//! [`run`] puts them together, [`ledger`] kills clients, [`arrays`] has clients with libraries of
//! others between, [`single`] has tests of one thing each.
//! `docs/internals/trial.md` tells more.

pub mod arrays;
pub mod check;
pub mod client;
pub mod cluster;
pub mod fabric;
pub mod fault;
pub mod history;
pub mod ledger;
mod lines;
pub mod node;
pub mod puppet;
pub mod random;
pub mod replicas;
pub mod report;
pub mod run;
pub mod single;
pub mod suite;
pub mod worker;
pub mod workload;
