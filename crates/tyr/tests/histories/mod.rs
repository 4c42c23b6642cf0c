//! Histories: what many threads did to a store and what it answered, and whether that can be.
//!
//! ```text
//!   workload ──records──> history ──> checker ──> anomalies, each with the cycle that proves it
//! ```
//!
//! Reading order: [`history`] (what is recorded), [`checker`] (pure), [`stage`] (a store with many
//! threads on it), then the workloads.

pub mod bank;
pub mod checker;
pub mod counters;
pub mod history;
pub mod lists;
pub mod log;
pub mod registers;
pub mod stage;
