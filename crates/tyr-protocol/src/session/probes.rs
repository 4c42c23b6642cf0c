//! Who is asked for a moment of everything: the authorities, as the map of an epoch has them; or,
//! in a cluster that is asked by blobs, one blob of each.
//!
//! It must not know what is asked.

use std::collections::BTreeSet;

use tyr_types::{BlobName, Epoch, Key, NodeId};

use crate::map::ClusterMap;

/// Names that are tried. An authority that none of them finds has less than a hundredth of the
/// places; what it acknowledged to others is missed if its clock is ahead of everybody's.
const TRIES: u64 = 512;

/// The authorities of the newest map that was asked for, and blobs of theirs.
#[derive(Debug, Default)]
pub(super) struct Probes {
    authorities: Option<(Epoch, BTreeSet<NodeId>)>,
    blobs: Option<(Epoch, Vec<BlobName>)>,
}

impl Probes {
    /// All nodes that are up and the authority of anything. Looking takes some milliseconds in a
    /// large cluster, once a map.
    pub fn authorities(&mut self, map: &ClusterMap) -> BTreeSet<NodeId> {
        match &self.authorities {
            Some((epoch, known)) if *epoch == map.epoch => known.clone(),
            Some(_) | None => {
                let mut found = map.authorities();
                // What one that is down acknowledged was of an older epoch than any answer.
                found.retain(|node| map.is_live(*node));
                self.authorities = Some((map.epoch, found.clone()));
                found
            }
        }
    }

    /// One blob of each authority that has a fair share of the places; whether there is such a blob
    /// does not matter.
    pub fn blobs(&mut self, map: &ClusterMap) -> Vec<BlobName> {
        match &self.blobs {
            Some((epoch, known)) if *epoch == map.epoch => known.clone(),
            Some(_) | None => {
                let found = one_of_each(map);
                self.blobs = Some((map.epoch, found.clone()));
                found
            }
        }
    }
}

fn one_of_each(map: &ClusterMap) -> Vec<BlobName> {
    let mut found = BTreeSet::<NodeId>::new();
    let mut blobs = Vec::new();
    for (id, _) in map.keyspaces.iter().filter(|(_, keyspace)| !keyspace.is_dropped) {
        for number in 0..TRIES {
            let key = Key::new(number.to_be_bytes()).expect("a key has 1 to 1,024 bytes");
            let blob = BlobName { keyspace: *id, key };
            let authority = map.holders(&blob, 0).first().copied();
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
            let blobs = Probes::default().blobs(&map);
            let asked: BTreeSet<_> = blobs.iter().map(|blob| map.holders(blob, 0)[0]).collect();
            assert_eq!((blobs.len(), asked.len()), (authorities, authorities));
            assert_eq!(Probes::default().authorities(&map), asked);
        }
    }

    #[test]
    fn without_a_keyspace_there_is_nothing_to_ask() {
        let map = ClusterMap::of(3, &[]);
        assert!(Probes::default().blobs(&map).is_empty());
        assert!(Probes::default().authorities(&map).is_empty());
    }
}
