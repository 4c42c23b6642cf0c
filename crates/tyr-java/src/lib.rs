//! The native half of Týr for Java. Programs use the package `io.github.tyrstore`, whose Java is in
//! `java/src/main`; the guide to it is `docs/guide/java.md`.
//!
//! Reading order: Java's calls come in through the [`border`], each as a [`call`] of an operation
//! of [`op`]. What Java holds are numbers, each the [`handle`] of a [`store`], a [`keyspace`], a
//! [`snapshot`] or a [`transaction`], which make a future of the public crate of the call. What
//! takes more than a key and numbers is read by [`packed`]. A [`front`] has the future done: the
//! calling thread waits for it, or it is started, and its [`answer`], or [`failure`], taken later.
//!
//! ```text
//!   Java ──> border ──> store, keyspace, … ──> front ──┬── waits here ───────> Answer, Failure
//!                                                      └── queue: taken later ──> the same
//! ```
//!
//! No thread of Týr runs Java: answers are taken by a thread of Java's. Only [`border`] knows
//! Java's objects; all else is plain values. It adds no meaning to the public crate.

mod answer;
mod border;
mod call;
mod failure;
mod front;
mod handle;
mod keyspace;
mod op;
mod packed;
mod snapshot;
mod store;
mod transaction;
