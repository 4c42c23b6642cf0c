//! The real binary, end to end: every command, pipes, exit codes, signals.
//!
//! Each test has a store of its own in a folder of its own ([`shell`]). Nothing here uses the
//! libraries: what a user cannot see is not tested here.

mod blobs;
mod classes;
mod cluster;
mod demonstration;
mod exit_codes;
mod files;
mod lifecycle;
mod locks;
mod log;
mod loss;
mod membership;
mod metadata;
mod nodes;
mod seats;
mod secure;
mod serve;
mod shell;
mod snapshots;
mod start_page;
mod status;
mod telemetry;
mod telemetry_service;
mod transactions;
mod zlog;
