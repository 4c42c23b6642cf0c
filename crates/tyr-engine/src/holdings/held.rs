//! Whatever an engine has its member's chunks in: holdings, or somebody who watches them.

use tyr_protocol::member;

use super::Holdings;

/// What an engine has its member's chunks in.
pub trait Held: member::Store {
    /// The chunks.
    fn holdings(&self) -> &Holdings;

    /// The same, to be changed.
    fn holdings_mut(&mut self) -> &mut Holdings;
}

impl Held for Holdings {
    fn holdings(&self) -> &Holdings {
        self
    }

    fn holdings_mut(&mut self) -> &mut Holdings {
        self
    }
}
