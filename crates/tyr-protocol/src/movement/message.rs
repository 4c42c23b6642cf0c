//! What a recipient and the authorities say to each other.

use tyr_types::Timestamp;

use super::copy::ChunkCopy;
use super::summary::Summary;
use crate::commit::Remembered;
use crate::movement::ChunkName;

/// What a recipient and the authorities say to each other. The copies themselves are asked for by
/// [`crate::message::Body::Read`].
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// To an authority: which chunks are you the authority of and am I a recipient of?
    List {
        /// After this one, in the order of names.
        after: Option<ChunkName>,
    },
    /// The answer, a page of it.
    Listed {
        /// What the question said.
        after: Option<ChunkName>,
        /// The chunks, ascending; perhaps none though there are more.
        chunks: Vec<ChunkName>,
        /// Where to ask on; `None` when that was all.
        next: Option<ChunkName>,
    },
    /// To a node that serves: what became of the transactions that you remember (F4)?
    Recall {
        /// Of those noted after this clock of yours.
        after: u64,
    },
    /// The answer, a page of it.
    Recalled {
        /// What the question said.
        after: u64,
        /// What became of them.
        outcomes: Vec<Remembered>,
        /// Where to ask on; `None` when that was all.
        next: Option<u64>,
    },
    /// To an authority, from a node that was declared down: which chunks are you the authority of
    /// and am I a recipient of, and which of them are as they were then (D5)?
    ListSince {
        /// Up to here the node has all that was committed of the chunks that it has.
        since: Timestamp,
        /// After this one, in the order of names.
        after: Option<ChunkName>,
    },
    /// The answer, a page of it.
    ListedSince {
        /// What the question said.
        since: Timestamp,
        /// What the question said.
        after: Option<ChunkName>,
        /// The chunks that were last changed then or before, ascending, with their versions.
        unchanged: Vec<(ChunkName, Timestamp)>,
        /// The others, ascending. Those that are on neither list are not there any more.
        changed: Vec<ChunkName>,
        /// Where to ask on; `None` when that was all.
        next: Option<ChunkName>,
    },
    /// The same question about a longer stretch, of which nearly nothing may have changed.
    Summarize {
        /// Up to here the node has all that was committed of the chunks that it has.
        since: Timestamp,
        /// After this one, in the order of names.
        after: Option<ChunkName>,
    },
    /// The answer.
    Summarized {
        /// What the question said.
        since: Timestamp,
        /// What the question said.
        after: Option<ChunkName>,
        /// Of the chunks that were last changed then or before.
        unchanged: Summary,
        /// The others, ascending.
        changed: Vec<ChunkName>,
        /// Where to ask on; `None` when that was all.
        next: Option<ChunkName>,
    },
    /// The answer to a read that is a copy.
    Copied {
        /// The number of the read.
        read: u64,
        /// The chunk.
        chunk: ChunkName,
        /// What it holds.
        copy: ChunkCopy,
    },
}
