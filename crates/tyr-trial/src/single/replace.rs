//! A node is lost for good, and another takes its place: how long until everything is there three
//! times again, and how fast that goes.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tyr_protocol::map::{Change, Membership};
use tyr_types::{KeyspaceConfig, NodeId, Operation, Payload, Result};

use super::Ground;
use crate::client::{Caller, connect};
use crate::replicas::{Compared, compare};

/// Blobs, and bytes of each: 64 MiB together.
const BLOBS: u64 = 64;
const BLOB_LEN: u64 = 1 << 20;
/// The longest it may take.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) fn run(ground: &Ground) -> Result<String> {
    let mut cluster = ground.cluster(3, None)?;
    let config = KeyspaceConfig { chunk_size: 1 << 18, ..KeyspaceConfig::default() };
    let caller = Caller::new(&connect(&cluster.control)?, "replace", &config)?;
    for blob in 0..BLOBS {
        let bytes = vec![blob as u8 + 1; BLOB_LEN as usize];
        let payload = Payload::Inline(Bytes::from(bytes));
        let mut deal = caller.begin();
        deal.add(&key(blob), Operation::Replace { payload });
        deal.commit()?;
    }
    cluster.process(2).kill();
    let begun = Instant::now();
    cluster.forget(2);
    cluster.add(3, true)?;
    cluster.start(3)?;
    cluster.wait_until(3, Membership::In, PATIENCE)?;
    let joined = begun.elapsed();
    cluster.control.propose(Change::Remove(NodeId(2)))?;
    cluster.wait_until(2, Membership::Out, PATIENCE)?;
    let whole = begun.elapsed();
    let keys: Vec<String> = (0..BLOBS).map(key).collect();
    let mut compared = Compared::default();
    compare(&cluster.control, &caller, &keys, config.chunk_size, &mut compared)?;
    let mib = (BLOBS * BLOB_LEN) as f64 / f64::from(1 << 20);
    Ok(format!(
        "the new node has its share after {:.1} s, all is there three times after {:.1} s: \
         {:.1} MiB/s; {compared}",
        joined.as_secs_f64(),
        whole.as_secs_f64(),
        mib / whole.as_secs_f64()
    ))
}

fn key(blob: u64) -> String {
    format!("blob-{blob}")
}
