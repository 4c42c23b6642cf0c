//! The functions of `tyr.h`, each a line or two over the public crate.
//!
//! [`memory`] and [`options`] read what a program hands over, [`number`] has numbers and
//! timestamps. Then the header's sections in its order: [`error`], [`store`], [`blob`],
//! [`transaction`] and what it answers when [`committed`], [`stamp`], [`snapshot`], [`kept`],
//! [`listing`], [`copying`], [`stream`], [`queue`] and the calls that end in one, [`started`] and
//! [`started_reads`]; [`lock`], [`watch`], [`metadata`].
//!
//! This is the border to memory that no compiler has checked, so `unsafe` is allowed here and
//! nowhere else. What every function relies on is the contract that the header states: a pointer is
//! NULL or good for the call; what `*_start` is lent is good until its completion. All the rest is
//! looked at. Handles are no pointers (see [`handle`](crate::handle)), so that a wrong one does no
//! harm.

#![allow(unsafe_code, reason = "C hands over pointers; the rest of the crate sees none")]
#![allow(unsafe_op_in_unsafe_fn, reason = "every function here has the header's contract")]
#![allow(clippy::missing_safety_doc, reason = "the header states it once, for all functions")]
#![allow(non_camel_case_types, reason = "they are the names that C knows")]

pub mod blob;
pub mod committed;
pub mod copying;
pub mod error;
pub mod kept;
pub mod listing;
pub mod lock;
pub mod memory;
pub mod metadata;
pub mod number;
pub mod options;
pub mod queue;
pub mod snapshot;
pub mod stamp;
pub mod started;
pub mod started_reads;
pub mod store;
pub mod stream;
pub mod transaction;
pub mod watch;

use std::ptr::without_provenance_mut;
use std::sync::Arc;

use crate::border::BORDER;
use crate::failure::Failure;
use crate::handle::HANDLES;
use crate::object::Kind;
use error::tyr_error;

/// Runs what a call does; NULL, or its error.
fn call(body: impl FnOnce() -> Result<(), Failure>) -> *mut tyr_error {
    without_provenance_mut(BORDER.pass(body))
}

/// The object of a handle.
fn of<T: Kind, O>(handle: *mut O) -> Result<Arc<T>, Failure> {
    HANDLES.get(handle.addr())
}

/// A handle for an object.
fn hand_out<T: Kind, O>(object: T) -> Result<*mut O, Failure> {
    HANDLES.add(object).map(without_provenance_mut)
}

/// Takes a handle back; NULL is none.
fn free<T: Kind, O>(handle: *mut O) -> *mut tyr_error {
    call(|| {
        if !handle.is_null() {
            drop(HANDLES.take::<T>(handle.addr())?);
        }
        Ok(())
    })
}
