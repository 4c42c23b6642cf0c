//! The moment of a snapshot: a timestamp that everything acknowledged before is at or below.
//!
//! Whoever acknowledged a transaction was the authority of what it wrote, and has moved its clock
//! past it (C8). So it is the highest of the authorities' clocks. Each is asked for by the name of
//! a blob that it is the authority of; whether there is such a blob does not matter.
//!
//! It must not know how clocks are asked for: that is a read of many blobs (R6).

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tyr_protocol::map::ClusterMap;
use tyr_protocol::session::Want;
use tyr_types::{BlobName, Epoch, Key, NodeId, Result, Timestamp};

use super::Client;

/// Names that are tried. An authority that none of them finds has less than a hundredth of the
/// places; what it acknowledged to others is missed if its clock is ahead of everybody's.
const TRIES: u64 = 512;

/// One blob of each authority, as the map of an epoch has it.
#[derive(Debug, Default)]
pub(super) struct AuthorityProbes(Mutex<Option<(Epoch, Vec<BlobName>)>>);

impl Client {
    /// A timestamp that everything acknowledged before is at or below, and everything that this
    /// client begins after it is above. `None` when there is no keyspace.
    ///
    /// # Errors
    /// `Unavailable` when an authority does not answer in time.
    pub async fn moment(&self) -> Result<Option<Timestamp>> {
        let map = self.map();
        let blobs = self.probes.blobs(&map);
        debug_assert!(blobs.len() <= map.nodes.len(), "an authority is a node");
        if blobs.is_empty() {
            return Ok(None);
        }
        let wants = blobs.into_iter().map(Want::stat).collect();
        let (at, _) = self.read_many(wants).answer().await?;
        Ok(Some(at))
    }
}

impl AuthorityProbes {
    fn blobs(&self, map: &ClusterMap) -> Vec<BlobName> {
        let mut known = self.0.lock();
        match &*known {
            Some((epoch, blobs)) if *epoch == map.epoch => blobs.clone(),
            Some(_) | None => {
                let blobs = one_of_each(map);
                debug_assert!(
                    blobs.iter().all(|blob| map.keyspaces.contains_key(&blob.keyspace)),
                    "what is asked for is there"
                );
                *known = Some((map.epoch, blobs.clone()));
                blobs
            }
        }
    }
}

/// One blob of each authority that has a fair share of the places.
fn one_of_each(map: &ClusterMap) -> Vec<BlobName> {
    let mut found = BTreeSet::<NodeId>::new();
    let mut blobs = Vec::new();
    for (id, _) in map.keyspaces.iter().filter(|(_, keyspace)| !keyspace.is_dropped) {
        for number in 0..TRIES {
            let key = Key::new(number.to_be_bytes()).expect("a key has 1 to 1,024 bytes");
            let blob = BlobName { keyspace: *id, key };
            let authority = map.holders(&blob, 0).first().copied();
            // What an authority that is down acknowledged was of an older epoch than any answer.
            let authority = authority.filter(|node| map.is_live(*node));
            if authority.is_some_and(|node| found.insert(node)) {
                blobs.push(blob);
            }
        }
    }
    debug_assert_eq!(blobs.len(), found.len(), "one blob for each authority");
    blobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use tyr_types::KeyspaceConfig;

    #[test]
    fn every_authority_of_some_share_is_asked_once() {
        for (nodes, authorities) in [(1, 1), (3, 1), (4, 2), (7, 5)] {
            let map = ClusterMap::of(nodes, &[KeyspaceConfig::default()]);
            let blobs = one_of_each(&map);
            let asked: BTreeSet<_> = blobs.iter().map(|blob| map.holders(blob, 0)[0]).collect();
            assert_eq!((blobs.len(), asked.len()), (authorities, authorities));
        }
    }

    #[test]
    fn without_a_keyspace_there_is_nothing_to_ask() {
        assert!(one_of_each(&ClusterMap::of(3, &[])).is_empty());
    }
}
