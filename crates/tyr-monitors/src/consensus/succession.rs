//! A leader that stops is followed at once, and not when the others have missed it: leadership
//! transfer (Ongaro's thesis on Raft, section 3.10). The library has none, so it is made of what it
//! has.
//!
//! ```text
//!   leader    nothing more is written ─► another has all there is ─► Succeed ─► that one
//!   that one  votes for itself in the next term ─► Succession, its vote request ─► all
//!   each      still follows that leader? lets go of it ─► answers the vote request, as always
//! ```
//!
//! Who follows a leader that it hears of refuses votes. Letting go of it is what Raft does with any
//! message of a later term: the term is taken over, durably, and who leads in an earlier one is
//! obeyed no more. That is no vote. Whether the candidate has all that is needed is looked at after
//! it, by the same rules as ever, so whatever is lost, comes twice or comes late, there is at most
//! one leader a term, and who leads has all that was committed.

use std::sync::Arc;

use openraft::raft::{AppendEntriesRequest, VoteRequest};
use openraft::storage::RaftLogStorage;
use openraft::{CommittedLeaderId, LogId, Vote};
use parking_lot::Mutex;

use super::log::LogStore;
use super::types::{Raft, StorageError};

/// An entry of no log. Raft takes over the term of a message before it looks whether it has what
/// the message goes on from; with this it has not, and does nothing else.
const NOWHERE: u64 = u64::MAX - 1;

/// The vote of a leader that has asked this monitor to follow it, if one has. Clones are the same.
#[derive(Clone, Default)]
pub struct Succession(Arc<Mutex<Option<Vote<u64>>>>);

impl Succession {
    /// The leader of this vote wants this monitor to follow it: it does if it has heard of nobody
    /// else since.
    ///
    /// # Errors
    /// When Raft has stopped here.
    pub async fn begin(&self, raft: &Raft, leader: Vote<u64>) -> Result<(), String> {
        let own = raft.with_raft_state(|it| *it.vote_ref()).await;
        if own.map_err(|error| error.to_string())? != leader || !leader.is_committed() {
            return Ok(());
        }
        *self.0.lock() = Some(leader);
        raft.trigger().elect().await.map_err(|error| error.to_string())
    }

    /// Whom the candidate of this request follows by that one's own wish; it is asked for once, in
    /// the term after it.
    pub fn followed_by(&self, request: &VoteRequest<u64>) -> Option<Vote<u64>> {
        let leader = (*self.0.lock())?;
        let is_next = request.vote.leader_id.term == leader.leader_id.term + 1;
        is_next.then_some(leader)
    }
}

/// Has a monitor that led and starts again lead no more until it is elected anew; answers whether
/// it led.
///
/// Raft would have it go on in the same term, and take for current what it knows to be committed.
/// After a restart that is what its snapshot has, which may be less than it has answered before:
/// only the first entry of a term of its own, once committed, says that all before it is.
///
/// # Errors
/// When the disk refuses.
pub async fn resign(log: &LogStore, monitor: u64) -> Result<bool, StorageError> {
    let mut log = log.clone();
    let vote = log.read_vote().await?;
    let Some(vote) = vote.filter(|vote| vote.is_committed()) else { return Ok(false) };
    let was_leading = vote.leader_id.voted_for() == Some(monitor);
    if was_leading {
        log.save_vote(&Vote::new(vote.leader_id.term, monitor)).await?;
    }
    Ok(was_leading)
}

/// Lets go of the leader of this vote, if this monitor still follows it: the candidate of `request`
/// has been asked by it to follow.
///
/// # Errors
/// When Raft has stopped here.
pub async fn let_go(
    raft: &Raft,
    leader: Vote<u64>,
    request: &VoteRequest<u64>,
) -> Result<(), String> {
    let own = raft.with_raft_state(|it| *it.vote_ref()).await;
    if own.map_err(|error| error.to_string())? != leader || request.vote.is_committed() {
        return Ok(());
    }
    let nowhere = LogId::new(CommittedLeaderId::new(request.vote.leader_id.term, 0), NOWHERE);
    let message = AppendEntriesRequest {
        vote: request.vote,
        prev_log_id: Some(nowhere),
        entries: Vec::new(),
        leader_commit: None,
    };
    let answered = raft.append_entries(message).await;
    answered.map(drop).map_err(|error| error.to_string())
}
