//! Listing keys: every node is asked what it holds, and the answers are merged.
//!
//! ```text
//!   keys after K ─► all nodes that take part ─► merged up to where the first of them ended
//! ```
//!
//! Whoever holds a blob's first chunk lists it, from when it was written until a fold after it was
//! deleted, so that everything acknowledged before is in the answers of those who were asked, and
//! what there is at a moment shows when the attributes are read then. All nodes of one map must
//! answer, and have a lease then: in between chunks may have gone from one that had not been asked
//! yet to one that had.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use tyr_protocol::message::{Asked, Body, Envelope};
use tyr_types::{Bytes, Error, Key, KeyspaceId, NodeId, Result};

use super::Client;

/// How long a node may take; then all are asked again, by the newest map.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// How long a page may take in all.
const PAGE_MAX: Duration = Duration::from_secs(30);

/// A page of keys, and whether there are none behind.
pub type Page = (Vec<Key>, bool);

/// What a node answered.
type Listed = Result<(Vec<Bytes>, bool)>;

/// Questions without an answer; bounded by the pages that are asked for at once.
#[derive(Debug, Default)]
pub(super) struct Listings {
    next: Mutex<u64>,
    open: Mutex<HashMap<u64, oneshot::Sender<Listed>, RandomState>>,
}

impl Listings {
    /// A new question.
    fn open(&self) -> (u64, oneshot::Receiver<Listed>) {
        let (sender, receiver) = oneshot::channel();
        let number = {
            let mut next = self.next.lock();
            *next += 1;
            // Apart from the numbers of reads, for refusals name either.
            u64::MAX - *next
        };
        self.open.lock().insert(number, sender);
        (number, receiver)
    }

    fn close(&self, number: u64) {
        self.open.lock().remove(&number);
    }

    /// Takes the answers out of what came in; the rest is for the session.
    pub fn take(&self, envelope: Envelope) -> Option<Envelope> {
        let (number, listed) = match envelope.body {
            Body::Keys { number, keys, is_end } => (number, Ok((keys, is_end))),
            Body::Refused { read, abort } if self.open.lock().contains_key(&read) => {
                (read, Err(Error::new(abort.kind, abort.reason.into_owned())))
            }
            Body::NotUnderstood { asked: Asked::Read(read), level }
                if self.open.lock().contains_key(&read) =>
            {
                let text = format!(
                    "a node does not understand the question: it speaks feature levels up to \
                     {level}, and is of an older release; upgrade it"
                );
                (read, Err(Error::unavailable(text)))
            }
            _ => return Some(envelope),
        };
        if let Some(sender) = self.open.lock().remove(&number) {
            // Nobody waits any more.
            let _ = sender.send(listed);
        }
        None
    }
}

impl Client {
    /// Keys that begin with `prefix` and come after `after`, in order, and whether those are all.
    /// Some may be of blobs that are not there at any moment that one reads at.
    ///
    /// # Errors
    /// `PermissionDenied`; `Unavailable` when not all nodes answer in time.
    pub async fn keys(
        &self,
        keyspace: KeyspaceId,
        prefix: &[u8],
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Page> {
        let begun = Instant::now();
        loop {
            let map = self.map();
            let nodes: Vec<NodeId> = map.live().collect();
            let asked: BTreeMap<NodeId, _> =
                nodes.iter().map(|node| (*node, self.listings.open())).collect();
            self.driver.say(&nodes, |node| Body::ListKeys {
                number: asked[&node].0,
                keyspace,
                prefix: Bytes::copy_from_slice(prefix),
                after: after.map(|key| Bytes::copy_from_slice(key.as_bytes())),
                limit: u32::try_from(limit).unwrap_or(u32::MAX),
            });
            let answers = self.gather(asked.into_values().collect()).await?;
            if answers.len() == nodes.len() && self.map().moved == map.moved {
                return merge(answers, limit);
            }
            if begun.elapsed() > PAGE_MAX {
                return Err(Error::unavailable(format!(
                    "{} of {} nodes answered in time; try again",
                    answers.len(),
                    nodes.len()
                )));
            }
        }
    }

    /// The answers that come in time.
    async fn gather(
        &self,
        asked: Vec<(u64, oneshot::Receiver<Listed>)>,
    ) -> Result<Vec<(Vec<Bytes>, bool)>> {
        let until = Instant::now() + ANSWER_MAX;
        let listings = Arc::clone(&self.listings);
        let gathered = blocking::unblock(move || {
            let mut answers = Vec::new();
            for (number, receiver) in asked {
                match receiver.recv_deadline(until) {
                    Ok(listed) => answers.push(listed),
                    Err(_) => listings.close(number),
                }
            }
            answers
        });
        gathered.await.into_iter().collect()
    }
}

/// The answers as one, up to where the first node's page ended.
fn merge(answers: Vec<(Vec<Bytes>, bool)>, limit: usize) -> Result<Page> {
    let ended = answers.iter().filter(|(_, is_end)| !is_end);
    let horizon = ended.filter_map(|(keys, _)| keys.last().cloned()).min();
    let is_end = answers.iter().all(|(_, is_end)| *is_end);
    let all: BTreeSet<Bytes> = answers.into_iter().flat_map(|(keys, _)| keys).collect();
    let seen = all.into_iter().filter(|key| horizon.as_ref().is_none_or(|last| key <= last));
    let keys: Result<Vec<Key>> = seen.map(Key::new).collect();
    let mut keys = keys?;
    let is_end = is_end && keys.len() <= limit;
    keys.truncate(limit);
    Ok((keys, is_end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(keys: &[&'static str], is_end: bool) -> (Vec<Bytes>, bool) {
        (keys.iter().map(|key| Bytes::from_static(key.as_bytes())).collect(), is_end)
    }

    fn merged(answers: Vec<(Vec<Bytes>, bool)>, limit: usize) -> (Vec<String>, bool) {
        let (keys, is_end) = merge(answers, limit).unwrap();
        (keys.iter().map(ToString::to_string).collect(), is_end)
    }

    #[test]
    fn pages_are_merged_up_to_where_the_first_of_them_ended() {
        let answers = vec![page(&["a", "d", "e"], true), page(&["b", "c"], false)];
        assert_eq!(merged(answers, 2), (vec!["a".to_owned(), "b".to_owned()], false));
        let answers = vec![page(&["a", "d"], true), page(&["a", "c"], false)];
        assert_eq!(merged(answers, 5).0, ["a", "c"]);
        let answers = vec![page(&["a"], true), page(&[], true)];
        assert_eq!(merged(answers, 5), (vec!["a".to_owned()], true));
    }
}
