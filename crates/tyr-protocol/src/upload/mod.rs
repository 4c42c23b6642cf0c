//! Pieces of payloads that are uploaded ahead of their transaction, or filled with what another
//! blob had (U1 to U5).
//!
//! ```text
//!   client ──Stage──► a holder ──Stage──► the other holders      each: extents, log
//!   client ◄─Staged── a holder ◄─Staged── the other holders      durable at all of them
//!   client ──Submit, which names the pieces──► chain
//!
//!   client ──Copy──► a holder ──Read at S──► a holder of the source      the rest is the same
//!   client ◄─Copied─ a holder
//! ```
//!
//! What a piece has in it never changes, so it does not matter when and by whom it is told: it is
//! no part of the order of transactions. A node validates a transaction only when it has every
//! piece that lies in its chunks (U1); then its log has them before the promise.
//!
//! [`message`] is what is said, [`pieces`] what a node has staged, [`mod@wanted`] which pieces of a
//! transaction a node has to have, [`content`] what there
//! is of them. The messages are worked off by `member::uploading` and
//! `member::copying`, a client's side is `session::staging`.
//!
//! It must not know where the bytes of a piece are: that is the store's affair.

pub mod content;
pub mod message;
pub mod pieces;
pub mod wanted;

use tyr_types::Bytes;

pub use self::content::with_content;
pub use self::message::{Message, PieceSource, StagedPiece};
pub use self::pieces::{Kept, Pieces};
pub use self::wanted::{Wanted, is_uploaded, wanted};

/// The sum by which the bytes of a piece are known ([`tyr_types::PieceRef::sum`]).
pub fn sum_of(bytes: &Bytes) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}
