//! Listing blobs: every node is asked for those that it is the authority of, and the answers are
//! merged (Q1).
//!
//! ```text
//!   keys after K, at S ─► all nodes that take part ─► merged up to where the first of them ended
//! ```
//!
//! All of them answer by one placement, so each blob is in the answer of one node. What a node
//! answers at S it would answer again: who has answered is not asked twice while chunks stay where
//! they are.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use tyr_protocol::message::{Asked, Body, Envelope, ListRequest, ListedBlob};
use tyr_types::{Bytes, Error, Key, KeyspaceId, NodeId, Result, Stat, Timestamp};

use super::Client;
use tyr_runtime::clock;

/// After how long a node is asked again: a message may have been lost.
const AGAIN: Duration = Duration::from_secs(1);

/// A node that does not list just now is asked again after so long.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a page may take in all.
const PAGE_MAX: Duration = Duration::from_secs(30);

const _: () = {
    assert!(PAUSE.as_millis() < AGAIN.as_millis(), "who must be asked anew is, first");
    assert!(AGAIN.as_millis() < PAGE_MAX.as_millis(), "who did not hear it is asked again");
};

/// A page of blobs, and whether there are none behind.
pub type Page = (Vec<(Key, Stat)>, bool);

/// Blobs of one node, and whether those are all.
type Listed = (Vec<ListedBlob>, bool);

/// What a node said.
enum Said {
    Listed(Listed),
    Refused(Error),
    /// It has no lease, or another map.
    NotHere,
}

/// Questions without an answer; bounded by the pages that are asked for at once.
#[derive(Default)]
pub(super) struct Listings {
    next: Mutex<u64>,
    open: Mutex<HashMap<u64, oneshot::Sender<Said>, RandomState>>,
}

/// A question to one node; dropping it closes it.
struct Question {
    node: NodeId,
    number: u64,
    answer: oneshot::Receiver<Said>,
    listings: Arc<Listings>,
}

impl Drop for Question {
    fn drop(&mut self) {
        self.listings.open.lock().remove(&self.number);
    }
}

/// What became of some questions.
#[derive(Default)]
struct Round {
    answers: Vec<Listed>,
    /// Who has to be asked anew.
    elsewhere: Vec<NodeId>,
    /// Who has not answered.
    open: Vec<Question>,
}

impl Listings {
    /// A new question.
    fn open(self: &Arc<Self>, node: NodeId) -> Question {
        let (sender, answer) = oneshot::channel();
        let number = {
            let mut next = self.next.lock();
            *next += 1;
            // Apart from the numbers of reads, for refusals name either; and from those of a copy
            // of this client, as theirs are.
            u64::MAX - (*next << 20 | clock::random_u64() >> 44)
        };
        debug_assert!(number > u64::MAX / 2, "reads count from below: {number}");
        let before = self.open.lock().insert(number, sender);
        debug_assert!(before.is_none(), "each question has a number of its own");
        Question { node, number, answer, listings: Arc::clone(self) }
    }

    /// Takes the answers out of what came in; the rest is for the session.
    pub fn take(&self, envelope: Envelope) -> Option<Envelope> {
        let is_open = |number: &u64| self.open.lock().contains_key(number);
        let (number, said) = match envelope.body {
            Body::Keys { number, keys, is_end } => (number, Said::Listed((keys, is_end))),
            Body::Refused { read, abort } if is_open(&read) => {
                (read, Said::Refused(Error::new(abort.kind, abort.reason.into_owned())))
            }
            Body::NotUnderstood { asked: Asked::Read(read), level } if is_open(&read) => {
                let text = format!(
                    "a node does not understand the question: it speaks feature levels up to \
                     {level}, and is of an older release; upgrade it"
                );
                (read, Said::Refused(Error::unavailable(text)))
            }
            Body::NotHere(Asked::Read(number)) if is_open(&number) => (number, Said::NotHere),
            _ => return Some(envelope),
        };
        if let Some(sender) = self.open.lock().remove(&number) {
            // Nobody waits any more.
            let _ = sender.send(said);
        }
        None
    }
}

impl Client {
    /// The first `limit` blobs of a keyspace whose keys begin with `prefix` and come after `after`,
    /// in order, exactly as they were at `at`, or as they are now if there is none; and whether
    /// those are all.
    ///
    /// # Errors
    /// `SnapshotTooOld` when what was there then is not known any more; `PermissionDenied`;
    /// `Unavailable` when not all nodes answer in time.
    pub async fn list(
        &self,
        keyspace: KeyspaceId,
        prefix: &[u8],
        after: Option<&Key>,
        limit: usize,
        at: Option<Timestamp>,
    ) -> Result<Page> {
        let request = ListRequest {
            number: 0,
            keyspace,
            prefix: Bytes::copy_from_slice(prefix),
            after: after.map(|key| Bytes::copy_from_slice(key.as_bytes())),
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            at,
        };
        let until = Instant::now() + PAGE_MAX;
        loop {
            if let Some(answers) = self.list_by_one_placement(&request, until).await? {
                return merge(answers, limit);
            }
            if Instant::now() > until {
                let text = "data moved again and again while it was listed; try again";
                return Err(Error::unavailable(text));
            }
        }
    }

    /// The answers of all nodes that list some of it; `None` when chunks have changed places
    /// meanwhile.
    async fn list_by_one_placement(
        &self,
        request: &ListRequest,
        until: Instant,
    ) -> Result<Option<Vec<Listed>>> {
        let map = self.map();
        map.check_whole(request.keyspace)?;
        let (mut answers, mut open) = (Vec::new(), Vec::new());
        let listers = map.listers(request.keyspace, &request.prefix);
        let mut unasked: Vec<NodeId> = listers.to_vec();
        while !unasked.is_empty() || !open.is_empty() {
            open.extend(unasked.drain(..).map(|node| self.listings.open(node)));
            self.put(&open, request);
            let round = wait(open, AGAIN).await?;
            answers.extend(round.answers);
            (open, unasked) = (round.open, round.elsewhere);
            self.fetch_map(map.live().filter(|node| !open.is_empty() && !is_among(&open, *node)));
            if self.map().moved != map.moved {
                self.withdraw(&open);
                return Ok(None);
            }
            if Instant::now() > until && !(open.is_empty() && unasked.is_empty()) {
                self.withdraw(&open);
                let (missing, all) = (open.len() + unasked.len(), listers.len());
                return Err(Error::unavailable(format!(
                    "{missing} of {all} nodes did not list their blobs in time; try again"
                )));
            }
        }
        debug_assert_eq!(answers.len(), listers.len(), "each of them has answered, once");
        Ok((self.map().moved == map.moved).then_some(answers))
    }

    fn put(&self, questions: &[Question], request: &ListRequest) {
        let numbers: BTreeMap<NodeId, u64> =
            questions.iter().map(|question| (question.node, question.number)).collect();
        debug_assert_eq!(numbers.len(), questions.len(), "a node is asked one question at a time");
        let nodes: Vec<NodeId> = numbers.keys().copied().collect();
        self.driver.say(&nodes, |node| {
            Body::ListKeys(ListRequest { number: numbers[&node], ..request.clone() })
        });
    }

    /// Who does not answer may be gone: the others know.
    fn fetch_map(&self, nodes: impl Iterator<Item = NodeId>) {
        self.driver.say(&nodes.collect::<Vec<_>>(), |_| Body::FetchMap);
    }

    /// Nobody waits for these any more.
    fn withdraw(&self, questions: &[Question]) {
        for question in questions {
            self.driver.say(&[question.node], |_| Body::CancelRead { read: question.number });
        }
    }
}

fn is_among(questions: &[Question], node: NodeId) -> bool {
    questions.iter().any(|question| question.node == node)
}

/// What is answered to these within `patience`.
async fn wait(questions: Vec<Question>, patience: Duration) -> Result<Round> {
    let until = Instant::now() + patience;
    let waited = blocking::unblock(move || {
        let mut round = Round::default();
        for question in questions {
            match question.answer.recv_deadline(until) {
                Ok(Said::Listed(listed)) => round.answers.push(listed),
                Ok(Said::Refused(error)) => return Err(error),
                Ok(Said::NotHere) => round.elsewhere.push(question.node),
                Err(_) => round.open.push(question),
            }
        }
        if !round.elsewhere.is_empty() {
            std::thread::sleep(PAUSE);
        }
        Ok(round)
    });
    waited.await
}

/// The answers as one, up to where the first node's page ended.
fn merge(answers: Vec<Listed>, limit: usize) -> Result<Page> {
    let ended = answers.iter().filter(|(_, is_end)| !is_end);
    let horizon = ended.filter_map(|(blobs, _)| blobs.last().map(|blob| blob.key.clone())).min();
    let is_end = answers.iter().all(|(_, is_end)| *is_end);
    let mut all: Vec<ListedBlob> = answers.into_iter().flat_map(|(blobs, _)| blobs).collect();
    all.retain(|blob| horizon.as_ref().is_none_or(|last| blob.key <= *last));
    all.sort_unstable_by(|left, right| left.key.cmp(&right.key));
    let is_end = is_end && all.len() <= limit;
    all.truncate(limit);
    let blobs: Result<Vec<(Key, Stat)>> = all
        .into_iter()
        .map(|ListedBlob { key, size, version }| Ok((Key::new(key)?, Stat { size, version })))
        .collect();
    Ok((blobs?, is_end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(keys: &[&'static str], is_end: bool) -> Listed {
        let blob = |key: &&'static str| ListedBlob {
            key: Bytes::from_static(key.as_bytes()),
            size: key.len() as u64,
            version: Timestamp::ZERO,
        };
        (keys.iter().map(blob).collect(), is_end)
    }

    fn merged(answers: Vec<Listed>, limit: usize) -> (Vec<String>, bool) {
        let (blobs, is_end) = merge(answers, limit).unwrap();
        (blobs.iter().map(|(key, _)| key.to_string()).collect(), is_end)
    }

    #[test]
    fn pages_are_merged_up_to_where_the_first_of_them_ended() {
        let answers = vec![page(&["a", "d", "e"], true), page(&["b", "c"], false)];
        assert_eq!(merged(answers, 2), (vec!["a".to_owned(), "b".to_owned()], false));
        let answers = vec![page(&["b", "d"], true), page(&["a", "c"], false)];
        assert_eq!(merged(answers, 5).0, ["a", "b", "c"]);
        let answers = vec![page(&["a"], true), page(&[], true)];
        assert_eq!(merged(answers, 5), (vec!["a".to_owned()], true));
    }
}
