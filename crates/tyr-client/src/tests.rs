//! The client against nodes that a test plays.

mod calls;
mod script;
