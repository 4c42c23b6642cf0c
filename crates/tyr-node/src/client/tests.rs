//! The client against nodes that a test plays, and against nodes that run in this process.

mod cluster;
mod copies;
mod format;
mod joining;
mod listings;
mod quota;
mod script;
mod trace;
