//! What a node needs of the store below it.

use tyr_types::{BlobName, Bytes, Outcome, PieceContent, PieceId, Result, Timestamp, Transaction};

use crate::chain::Chain;
use crate::commit::Outcomes;
use crate::map::ClusterMap;
use crate::movement::{ChunkCopy, ChunkName};
use crate::upload::StagedPiece;
use crate::versions::Usage;
use crate::view::View;

/// What the operations of a transaction on a blob answer when a chunk's base has come: its
/// timestamp, and each operation's number with its answer.
pub type LateAnswers = (Timestamp, Vec<(usize, Outcome)>);

/// A chunk of which something is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalChunk {
    /// Which.
    pub name: ChunkName,
    /// The last transaction that changed it; perhaps a later one, never an earlier. Zero where that
    /// is not known: of a chunk that is only awaited, or only kept for what it was.
    pub version: Timestamp,
    /// Whether it holds anything now: of the first chunk, whether there is the blob.
    pub exists: bool,
}

/// The applied state of a node. Nothing here fails and nothing waits: the log has it already.
pub trait Store: View {
    /// Does what `transaction` writes to the pieces of `chain` that this node holds; answers what
    /// its operations there answer. All replicas answer the same, so that no answer is lost with a
    /// node.
    ///
    /// What overlaps comes in the order of the timestamps. Only on a chunk whose base is
    /// [awaited](Store::await_base) it comes in any order, and is laid aside, without answers,
    /// until the base is installed. What is at or below an installed base is in it, and is dropped.
    /// Nothing else comes twice.
    ///
    /// Of what was uploaded ahead it looks up the pieces that lie here, by their names; those of
    /// what is in a base already may be gone.
    fn apply(&mut self, transaction: &Transaction, chain: &Chain, at: Timestamp) -> Outcomes;

    /// The same for what was applied here, by a node that keeps some chunks as they are and gets
    /// the others anew: only what a base is awaited for is laid aside, and all else stays.
    fn apply_to_awaited(&mut self, transaction: &Transaction, chain: &Chain, at: Timestamp);

    /// The chunk's base is still to come: what is applied to it waits. Nothing changes for a chunk
    /// whose base was installed or is awaited.
    fn await_base(&mut self, chunk: &ChunkName);

    /// The chunk is here as it was at `complete_to`, and whether that still stands is to be seen;
    /// or it is absent, perhaps since later, and comes as a copy or is to have an empty base. What
    /// is applied to it waits, as if its base was [awaited](Store::await_base), until it is
    /// [confirmed](Store::confirm), which an absent one never is, or [installed](Store::install) in
    /// place of what is here. Nothing changes for a chunk that is awaited.
    fn await_confirmation(&mut self, chunk: &ChunkName, complete_to: Timestamp);

    /// What is here of the chunk is its base at `complete_to`. What was laid aside above that goes
    /// on top of it, and answers, as when a base is installed.
    fn confirm(&mut self, chunk: &ChunkName, complete_to: Timestamp) -> Vec<LateAnswers>;

    /// No base is awaited any more: what was laid aside goes, and so does all that is known of
    /// transactions and readers. Chunks stay as they are.
    fn stop_awaiting(&mut self);

    /// The chunk as far as it is here; without what waits.
    fn local_chunk(&self, chunk: &ChunkName) -> LocalChunk;

    /// Whether the chunk's base is still to come, or to be confirmed.
    fn is_awaited(&self, chunk: &ChunkName) -> bool;

    /// The chunk as it was elsewhere at `copy.at`, or a piece of it. With the last piece the base
    /// is there, and what was laid aside above `copy.at` goes on top of it: what each of that
    /// answers now comes back, by its timestamp, with the number of each operation on the blob.
    ///
    /// When the log is read again over a base that is of a later moment, a copy that is in the base
    /// already, because the base is of `copy.at` or later, changes nothing.
    fn install(&mut self, chunk: &ChunkName, copy: &ChunkCopy) -> Vec<LateAnswers>;

    /// This node does not hold the chunk any more. Nothing of it is left.
    fn release(&mut self, chunk: &ChunkName);

    /// A piece is uploaded ahead of its transaction: its content is kept under its name, until
    /// [`Store::unstage`]. The same again changes nothing.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or refuses; then nothing is kept.
    fn keep_piece(&mut self, staged: &StagedPiece, content: &PieceContent) -> Result<()>;

    /// These pieces are not needed any more. What [`Store::apply`] made part of a chunk stays.
    fn unstage(&mut self, ids: &[PieceId]);

    /// What there is of a piece that is staged, as the log has it.
    fn staged_content(&self, id: PieceId) -> PieceContent;

    /// The bytes of a piece that is staged; `None` when they cannot be read.
    fn staged_bytes(&self, id: PieceId) -> Option<Bytes>;

    /// Nothing of anything is left, of pieces neither.
    fn clear(&mut self);

    /// The chunks of which something is here, also those awaited, in order, after `after`; at most
    /// `limit`.
    fn held(&self, after: Option<&ChunkName>, limit: usize) -> Vec<ChunkName>;

    /// The same, and chunks of which there is nothing any more but what they were at kept moments;
    /// with their versions.
    fn held_or_kept(&self, after: Option<&ChunkName>, limit: usize) -> Vec<LocalChunk>;

    /// The chunks that have changed after `at`, or are [awaited](Store::is_awaited), in any order,
    /// with their versions; perhaps others with them, or some twice. `None` when that cannot be
    /// told without a walk over all that is here.
    fn held_above(&self, at: Timestamp) -> Option<Vec<LocalChunk>>;

    /// What was current at the kept moments of this map stays from now on, at no others, and comes
    /// with copies (V7). Nothing that was committed above one of them was applied before.
    fn keep(&mut self, map: &ClusterMap);

    /// Where somebody reads a blob (V2): what was current at no such moment may go (V3).
    fn usage(&mut self, blob: &BlobName, usage: &Usage);

    /// As of when that was told last of this blob; `None` if it never was, or is forgotten.
    fn usage_as_of(&self, blob: &BlobName) -> Option<Timestamp>;
}
