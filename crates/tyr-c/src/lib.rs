//! `libtyr`: Týr for C, and through it for every language that can call C.
//!
//! What a program includes is `include/tyr.h`, made of this crate's sources; the guide to it is
//! `docs/guide/c.md`. Reading order: an [`object`] is what a handle stands for, [`handle`] the
//! table from one to the other, which finds out what is no handle any more. A [`failure`] is what
//! goes wrong, and [`border`] keeps panics and forked children away from it. On these stands
//! [`abi`], the functions of the header, each a line or two over the public crate, and the only
//! place that touches memory of the program.
//!
//! It knows `tyr` alone, and adds no meaning: what a call does and promises is said there.

pub mod abi;
mod border;
mod failure;
mod handle;
mod object;
