//! Who hands out positions.
//!
//! A sequencer gives each position of a term once. Whether the counter behind it is in this
//! program, or asked for over the network, is its own affair.

use std::fmt;

use futures_util::future::BoxFuture;
use tyr::Result;

/// A position that nobody else is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// The position.
    pub position: u64,
    /// The term of the counter that it is of: only in a view of this term it may be written.
    pub term: u64,
}

/// Positions that follow each other, and nobody else is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first.
    pub first: Given,
    /// How many there are.
    pub count: u64,
    /// The token of who gives them.
    pub token: u64,
}

impl Run {
    /// Takes the first of them; `None` when none is left.
    pub fn take(&mut self) -> Option<Given> {
        let given = self.first;
        self.count = self.count.checked_sub(1)?;
        self.first.position += 1;
        Some(given)
    }
}

/// Hands out the positions of a log.
pub trait Sequencer: Send + Sync + fmt::Debug {
    /// The next position. Dropping the future, or not writing the position, leaves a hole.
    fn next(&self) -> BoxFuture<'_, Result<Given>>;

    /// Leaves the log as somebody who goes in peace does: who comes next need not recover it.
    fn close(&self) -> BoxFuture<'_, Result<()>>;
}
