//! Calls under way, for programs in languages that cannot await a future of Rust.
//!
//! A program starts a call with a tag of its own and goes on. When there is an answer, a
//! [`Completion`] with that tag lies in the [`Queue`], and the queue's descriptor is readable, so
//! that it fits into `epoll`, libuv or the event loop of Python. No thread of Týr ever runs code of
//! the program: the program comes and takes.
//!
//! ```text
//!   start(tag, call) ──> polled once, here ──┬──> answered ─────────────────┐
//!                                            └──> later, by our worker ─────┤
//!   cancel(tag) ────────────────────────────────> withdrawn ────────────────┤
//!                                                                           v
//!   take(most, wait) <────────────────── descriptor() is readable <──── completions
//! ```
//!
//! Most calls that memory can answer have their completion when `start` returns. The others are
//! driven by one thread of the queue, [`worker`]. Nothing here knows what is asked for, or in which
//! language.

mod bell;
mod queue;
mod worker;

pub use queue::{CALLS_MAX, Completion, Failure, Queue};
