//! Raft's messages, carried by the control plane as bytes that it does not look into.
//!
//! Raft sends again what was not taken. To a monitor that cannot be reached it does so after
//! pauses, which [`pauses`] makes longer and longer; after any other failure at once. So all
//! failures are of the first kind: a monitor that is stopping answers quickly, and nothing but
//! failures.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use openraft::Vote;
use openraft::error::{InstallSnapshotError, RPCError, RaftError, RemoteError, Unreachable};
use openraft::impls::BasicNode;
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use serde::{Deserialize, Serialize};
use tyr_types::{Error, NodeId, Result};

use super::log::is_dense;
use super::succession::{self, Succession};
use super::types::{Raft, TypeConfig};
use tyr_control::{Answer, Peers, Question, Request};

/// How long Raft waits after the first failure: a message or two that are lost hold up nothing.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// How long it waits at most. A monitor that is back is heard of within this, long before it would
/// call an election.
const PAUSE_MAX: Duration = Duration::from_millis(500);

const _: () = assert!(PAUSE_MIN.as_millis() > 0 && PAUSE_MIN.as_millis() < PAUSE_MAX.as_millis());

/// The pauses between attempts to send to a monitor, from the first failure on.
fn pauses() -> impl Iterator<Item = Duration> + Send {
    std::iter::successors(Some(PAUSE_MIN), |pause| Some((*pause * 2).min(PAUSE_MAX)))
}

/// What one monitor asks of another.
#[derive(Serialize, Deserialize)]
enum Call {
    Append(AppendEntriesRequest<TypeConfig>),
    Vote(VoteRequest<u64>),
    Snapshot(InstallSnapshotRequest<TypeConfig>),
    /// The leader of this vote stops, and wants to be followed by who is asked.
    Succeed(Vote<u64>),
    /// A vote request of who was told so.
    Succession {
        leader: Vote<u64>,
        request: VoteRequest<u64>,
    },
}

/// What it answers.
#[derive(Serialize, Deserialize)]
enum Returned {
    Append(AppendEntriesResponse<u64>),
    Vote(VoteResponse<u64>),
    Snapshot(InstallSnapshotResponse<u64>),
    /// The pieces of a snapshot do not follow each other: from the start, please.
    Mismatch(InstallSnapshotError),
    /// It was heard.
    Heard,
}

fn encoded(value: &impl Serialize) -> Bytes {
    postcard::to_stdvec(value).expect("plain values can be written").into()
}

/// What this monitor answers to another one.
///
/// # Errors
/// `InvalidArgument` when it is no such question; `Unavailable` when Raft has stopped here.
pub async fn answer(raft: &Raft, succession: &Succession, call: &[u8]) -> Result<Bytes> {
    let call = postcard::from_bytes(call)
        .map_err(|error| Error::invalid("no message of Raft").with_source(error))?;
    let stopped = |error: String| Error::unavailable(format!("Raft has stopped here: {error}"));
    let returned = match call {
        Call::Append(request) => {
            check_entries(&request)?;
            let response = raft.append_entries(request).await;
            Returned::Append(response.map_err(|error| stopped(error.to_string()))?)
        }
        Call::Vote(request) => {
            let response = raft.vote(request).await;
            Returned::Vote(response.map_err(|error| stopped(error.to_string()))?)
        }
        Call::Succeed(leader) => {
            succession.begin(raft, leader).await.map_err(stopped)?;
            Returned::Heard
        }
        Call::Succession { leader, request } => {
            succession::let_go(raft, leader, &request).await.map_err(stopped)?;
            let response = raft.vote(request).await;
            Returned::Vote(response.map_err(|error| stopped(error.to_string()))?)
        }
        Call::Snapshot(request) => match raft.install_snapshot(request).await {
            Ok(response) => Returned::Snapshot(response),
            Err(RaftError::APIError(mismatch)) => Returned::Mismatch(mismatch),
            Err(RaftError::Fatal(error)) => return Err(stopped(error.to_string())),
        },
    };
    Ok(encoded(&returned))
}

/// Refuses entries that do not follow each other, and the one that they are said to follow: in the
/// journal they would pass for damage when it is opened the next time.
fn check_entries(request: &AppendEntriesRequest<TypeConfig>) -> Result<()> {
    let AppendEntriesRequest { prev_log_id, entries, .. } = request;
    let before = prev_log_id.map(|it| it.index);
    match entries.first().is_none_or(|first| first.log_id.index.checked_sub(1) == before)
        && is_dense(entries)
    {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "{} entries of Raft's log after {before:?} do not follow each other",
            entries.len()
        ))),
    }
}

/// Where a node is now, if anybody knows better than Raft.
pub type Whereabouts = Arc<dyn Fn(NodeId) -> Option<String> + Send + Sync>;

/// Makes Raft's ways to other monitors.
#[derive(Clone)]
pub struct Network {
    /// The connections.
    pub peers: Peers,
    /// Where nodes are.
    pub whereabouts: Whereabouts,
    /// Whether this monitor was asked to follow a leader.
    pub succession: Succession,
}

impl Network {
    /// Asks the monitor at this address to follow the leader of this vote. By a program that does
    /// not know of it nothing is done.
    pub async fn hand_over(&self, address: &str, leader: Vote<u64>) {
        let request = Request::Raft(encoded(&Call::Succeed(leader)));
        let question = Question { actor: None, is_handed_on: false, patience_ms: 0, request };
        // Whether it does so shows.
        _ = self.peers.call(address, question).await;
    }
}

/// Raft's way to one other monitor.
pub struct Link {
    network: Network,
    target: u64,
    address: String,
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Link;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Link {
        Link { network: self.clone(), target, address: node.addr.clone() }
    }
}

type Failure<E = openraft::error::Infallible> = RPCError<u64, BasicNode, RaftError<u64, E>>;

impl Link {
    async fn call<E: std::error::Error>(&self, call: &Call) -> Result<Returned, Failure<E>> {
        let node = u16::try_from(self.target).ok().map(NodeId);
        let address = node.and_then(|node| (self.network.whereabouts)(node));
        let address = address.unwrap_or_else(|| self.address.clone());
        let request = Request::Raft(encoded(call));
        // Raft gives up by itself, after a time of its own.
        let question = Question { actor: None, is_handed_on: false, patience_ms: 0, request };
        match self.network.peers.call(&address, question).await {
            Ok(Answer::Raft(bytes)) => {
                postcard::from_bytes(&bytes).map_err(|error| unreachable(error.to_string()))
            }
            Ok(other) => Err(unreachable(format!("answered by {other:?}"))),
            Err(error) => Err(unreachable(error.text())),
        }
    }
}

/// A failure after which Raft pauses.
fn unreachable<E: std::error::Error>(why: String) -> Failure<E> {
    RPCError::Unreachable(Unreachable::new(&openraft::AnyError::error(why)))
}

fn unexpected<E: std::error::Error>() -> Failure<E> {
    unreachable("the answer is to another question".to_owned())
}

impl RaftNetwork<TypeConfig> for Link {
    fn backoff(&self) -> Backoff {
        Backoff::new(pauses())
    }

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, Failure> {
        match self.call(&Call::Append(rpc)).await? {
            Returned::Append(response) => Ok(response),
            Returned::Vote(_) | Returned::Snapshot(_) | Returned::Mismatch(_) | Returned::Heard => {
                Err(unexpected())
            }
        }
    }

    async fn install_snapshot(
        &mut self,
        rpc: InstallSnapshotRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, Failure<InstallSnapshotError>> {
        match self.call(&Call::Snapshot(rpc)).await? {
            Returned::Snapshot(response) => Ok(response),
            Returned::Mismatch(mismatch) => {
                let source = RaftError::APIError(mismatch);
                Err(RPCError::RemoteError(RemoteError::new(self.target, source)))
            }
            Returned::Append(_) | Returned::Vote(_) | Returned::Heard => Err(unexpected()),
        }
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<u64>,
        _option: RPCOption,
    ) -> Result<VoteResponse<u64>, Failure> {
        let call = match self.network.succession.followed_by(&rpc) {
            Some(leader) => Call::Succession { leader, request: rpc },
            None => Call::Vote(rpc),
        };
        match self.call(&call).await? {
            Returned::Vote(response) => Ok(response),
            Returned::Append(_)
            | Returned::Snapshot(_)
            | Returned::Mismatch(_)
            | Returned::Heard => Err(unexpected()),
        }
    }
}

#[cfg(test)]
mod tests {
    use openraft::entry::RaftEntry;
    use openraft::{CommittedLeaderId, LogId};

    use super::super::types::Entry;
    use super::*;

    #[test]
    fn entries_that_do_not_follow_each_other_are_refused() {
        let id = |index| LogId::new(CommittedLeaderId::new(1, 1), index);
        let request = |before: Option<u64>, entries: &[u64]| AppendEntriesRequest {
            vote: Vote::new(1, 1),
            prev_log_id: before.map(id),
            entries: entries.iter().map(|index| Entry::new_blank(id(*index))).collect(),
            leader_commit: None,
        };
        for (before, entries) in [(None, vec![0, 1]), (Some(4), vec![5, 6, 7]), (Some(4), vec![])] {
            check_entries(&request(before, &entries)).unwrap();
        }
        for (before, entries) in [
            (None, vec![1]),
            (Some(4), vec![4, 5]),
            (Some(4), vec![6]),
            (Some(4), vec![5, 7]),
            (Some(u64::MAX - 1), vec![u64::MAX, 0]),
        ] {
            let error = check_entries(&request(before, &entries)).unwrap_err();
            assert_eq!(error.kind(), tyr_types::ErrorKind::InvalidArgument, "{error}");
        }
    }

    #[test]
    fn pauses_grow_to_their_bound_and_stay_there() {
        let pauses: Vec<Duration> = pauses().take(20).collect();
        assert_eq!(pauses[0], PAUSE_MIN);
        assert!(
            pauses.windows(2).all(|two| two[0] < two[1] || two == [PAUSE_MAX; 2]),
            "{pauses:?}"
        );
        assert_eq!(pauses[19], PAUSE_MAX);
    }
}
