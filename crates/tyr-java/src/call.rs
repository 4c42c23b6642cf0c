//! A call of Java's, as plain values.

use std::sync::Arc;

use crate::answer::Answer;
use crate::failure::Failure;
use crate::front::Front;
use crate::handle::HANDLES;
use crate::keyspace::Keyspace;
use crate::snapshot::Snapshot;
use crate::store::{self, Store};
use crate::transaction::Transaction;
use crate::{op, packed};

/// A call. What an operation has no use for is zero, or empty.
pub struct Call<'a> {
    /// What is asked for.
    pub op: i32,
    /// The handle of what is asked.
    pub handle: i64,
    /// The handle of the keyspace, where something else is asked.
    pub keyspace: i64,
    /// The blob's key.
    pub key: Vec<u8>,
    /// An offset, a size, a handle or half of a version.
    pub a: i64,
    /// A length, a handle or half of a version.
    pub b: i64,
    /// What is to be written, or something packed.
    pub data: Vec<u8>,
    /// What is to be written besides, or something packed.
    pub more: Vec<u8>,
    /// How the answer reaches the program.
    pub front: Front<'a>,
}

impl Call<'_> {
    /// Has it done. Answers nothing when the answer is to be taken later.
    ///
    /// # Errors
    /// What it fails with, as far as that is known.
    pub fn run(self) -> Result<Option<Answer>, Failure> {
        match self.op {
            op::OPEN => store::open(self),
            op::CONNECT => store::connect(self),
            op::CLOSE..op::CREATE => HANDLES.get::<Store>(self.handle)?.call(self),
            op::CREATE..op::SNAPSHOT_READ => HANDLES.get::<Keyspace>(self.handle)?.call(self),
            op::SNAPSHOT_READ..op::TXN_CREATE => HANDLES.get::<Snapshot>(self.handle)?.call(self),
            op::TXN_CREATE..=op::TXN_ROLLBACK => {
                HANDLES.get::<Transaction>(self.handle)?.call(self)
            }
            other => Err(packed::unknown("call", &other.to_string())),
        }
    }

    /// The blob's key.
    ///
    /// # Errors
    /// `InvalidArgument` when it is empty or too long.
    pub fn key(&self) -> Result<tyr::Key, Failure> {
        Ok(tyr::Key::new(&self.key)?)
    }

    /// The keyspace.
    ///
    /// # Errors
    /// `State` when it is closed.
    pub fn keyspace(&self) -> Result<Arc<Keyspace>, Failure> {
        HANDLES.get(self.keyspace)
    }
}
