//! What is asked when everything was mended: each keyspace must serve again.
//!
//! No workload: nobody names it, and every run ends with it. It writes blobs of its own, alone and
//! together, reads them in every way, and reads what the run's clients left, in transactions too:
//! what hangs on a blob since something went wrong is found there.

use std::collections::{BTreeSet, VecDeque};

use tyr_protocol::session::Want;
use tyr_types::{BlobName, BlobOperations, ByteRange, KeyspaceId, Operation};

use super::{CELL, Space, Work, cell, on};
use crate::checker::{Deed, History};

/// Blobs of its own in a keyspace: as many as should lie on all nodes of most clusters.
const OWN: usize = 8;

/// Blobs of others that it looks at in a keyspace.
const OTHERS_MAX: usize = 24;

/// What a client asks of a keyspace, one after the other.
pub fn probe(keyspace: KeyspaceId, chunk_size: u64, history: &History) -> VecDeque<Work> {
    let space = Space::new(keyspace, chunk_size);
    let own: Vec<BlobName> = (0..OWN).map(|number| space.blob("probe", number)).collect();
    let first = ByteRange { start: 0, end: CELL };
    let want = |blob: &BlobName| Want::bytes(blob.clone(), first);
    let mut works: VecDeque<Work> =
        own.iter().map(|blob| Work::Commit(vec![written(blob, 1)])).collect();
    works.push_back(Work::Commit(own.iter().map(|blob| written(blob, 2)).collect()));
    works.extend(own.iter().map(|blob| Work::Read(want(blob))));
    works.push_back(Work::ReadMany(own.iter().map(want).collect()));
    works.push_back(Work::Snapshot { reads: own.iter().map(want).collect(), pause_us: 1_000 });
    for pair in own.chunks(2) {
        let blobs: Vec<BlobOperations> = pair.iter().map(|blob| written(blob, 3)).collect();
        let reads = pair.iter().map(want).collect();
        works.push_back(Work::Transact { reads, then: Box::new(move |_| blobs) });
    }
    let others = others(keyspace, history);
    works.extend(others.iter().map(|blob| Work::Read(Want::stat(blob.clone()))));
    for few in others.chunks(3) {
        let reads = few.iter().map(want).collect();
        works.push_back(Work::Transact { reads, then: Box::new(|_| Vec::new()) });
    }
    works
}

fn written(blob: &BlobName, number: u64) -> BlobOperations {
    on(blob, [Operation::Write { offset: 0, payload: cell(number) }])
}

/// Blobs of this keyspace that clients named, evenly taken from all of them.
fn others(keyspace: KeyspaceId, history: &History) -> Vec<BlobName> {
    let mut names: BTreeSet<&BlobName> = BTreeSet::new();
    for entry in &history.entries {
        names.extend(entry.seen().iter().map(|seen| &seen.want.blob));
        if let Deed::Transaction(attempted) = &entry.deed {
            names.extend(attempted.blobs.iter().map(|written| &written.blob));
        }
    }
    names.retain(|name| name.keyspace == keyspace);
    let step = names.len().div_ceil(OTHERS_MAX).max(1);
    names.into_iter().step_by(step).cloned().collect()
}
