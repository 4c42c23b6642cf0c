//! Chunks that move: the recipient's copies (docs/design.md, section 10).
//!
//! When a node joins or returns, or another leaves for good, the map gives chunks a *recipient*: a
//! node that is in every chain of the chunk and is the authority of nothing. What was there before
//! it gets by copy, and **a copy is a read**: the recipient asks the chunk's authority, under an
//! epoch at or after that of the move, for the chunk as a whole. The authority waits for what was
//! in flight on arrival, takes its clock S, and answers the chunk at S.
//!
//! ```text
//!   recipient ──List──► every node that serves      which chunks are to come
//!   recipient ◄─Listed─ ...
//!   recipient ──Recall──► every node that serves    what became of transactions
//!   recipient ◄─Recalled─ ...
//!   recipient ──Read(Whole, is_copy)──► authority   a few at a time
//!   recipient ◄─Copied(chunk at S)────── authority
//!   Install: the base is the copy; what chains brought above S lies on it, the rest is in it
//!   everything listed and heard of is installed ──CaughtUp──► monitors
//! ```
//!
//! Why nothing is missing. A transaction above S was validated at the authority after the copy was
//! asked for, or waited for what is at or below S; in either case at an epoch in which the
//! recipient is in the chain, or it was in flight on arrival and is in the copy. And every chunk is
//! heard of: what was applied before the move is listed, since an authority lists only when nothing
//! older than the move is in flight there; what came later passed the recipient, and it copies
//! every chunk that it hears of. The copy of a chunk that nobody wrote is empty.
//!
//! A holder also answers for what it holds: which transactions took effect in it, for those who ask
//! again (F3, F4). A copy does not say; so the recipient asks every node that serves what it
//! remembers, and has that durable before it has caught up. Otherwise a transaction whose chain is
//! replaced node by node would be run twice. As with lists, nobody answers while something older
//! than the move is in flight there.
//!
//! The parts: [`copy`] is what travels, [`message`] what is said, [`recipient`] the machine that
//! gets everything, which is told [`event`]s and answers [`effect`]s, [`summary`] says in short
//! what somebody has, [`scrub`] compares what holders have and puts it right. None of them knows
//! how chunks are kept.

pub mod copy;
pub mod effect;
pub mod event;
pub mod message;
pub mod recipient;
pub mod scrub;
pub mod summary;
#[cfg(test)]
mod tests;

pub use self::copy::{ChunkCopy, ChunkName, ChunkVersion, PieceLengths};
pub use self::effect::Effect;
pub use self::event::Event;
pub use self::message::Message;
pub use self::recipient::{Progress, Recipient};
pub use self::summary::Summary;
