//! A node that stands still past its lease, while the others go on without it (M3).
//!
//! It is the authority of a register. When it goes on, reads lie in its sockets that were sent
//! while it stood still: it looks at them before it has heard that it was declared down. It must
//! not answer them with the old value.

use std::time::{Duration, Instant};

use tyr_types::{Error, ErrorKind, KeyspaceConfig, NodeId, Result};

use super::Ground;
use crate::client::probe::{Probe, Told};
use crate::client::{Caller, connect, put, range, values};

/// How often it is paused.
const ROUNDS: u64 = 3;
/// Reads that wait for it.
const READS: usize = 40;
/// How long the others may take to go on.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many reads the paused node was asked, and how many it answered with an old value.
pub(super) fn stale_reads(ground: &Ground, broken: Option<&str>) -> Result<(usize, usize)> {
    let mut cluster = ground.cluster(3, broken)?;
    let caller = Caller::new(&connect(&cluster.office)?, "paused", &KeyspaceConfig::default())?;
    let (mut asked, mut stale) = (0, 0);
    for round in 0..ROUNDS {
        let (key, old, new) = (format!("register-{round}"), 2 * round + 1, 2 * round + 2);
        write(&caller, &key, old)?;
        let blob = caller.blob(&key);
        let map = cluster.office.map()?;
        let node = map.holders(&blob, 0).first().copied();
        let node = node.ok_or_else(|| Error::unavailable("nobody holds the register"))?;
        let probe = Probe::new(&cluster.office)?;
        probe.reach(node, PATIENCE)?;
        probe.read(node, &map, &blob, range(0, 1))?;
        cluster.process(node.0).pause();
        let begun = Instant::now();
        while write(&caller, &key, new).is_err() {
            if begun.elapsed() > PATIENCE {
                return Err(Error::unavailable("the others do not go on without the node"));
            }
        }
        let went_on = begun.elapsed().as_secs_f64();
        println!("node {} paused; the others wrote after {went_on:.1} s", node.0);
        let pending: Vec<_> = (0..READS)
            .map(|n| {
                // Some of them are under way when it goes on.
                if n == READS / 2 {
                    cluster.process(node.0).resume();
                }
                probe.ask(node, map.epoch, &blob, range(0, 1))
            })
            .collect();
        for read in pending {
            let (from, told) = read.told(Duration::from_secs(3));
            asked += 1;
            stale += usize::from(is_old(from, &told, old)?);
        }
        cluster.wait_until_whole(PATIENCE)?;
        if broken.is_none() {
            check_newest(&probe, &cluster, &caller, &key, (node, new))?;
        }
    }
    Ok((asked, stale))
}

fn is_old(from: Option<NodeId>, told: &Told, old: u64) -> Result<bool> {
    match told {
        Told::Bytes(bytes) => {
            let is_old = values(bytes)?.first() == Some(&old);
            if is_old {
                println!("stale: {from:?} answered {old}");
            }
            Ok(is_old)
        }
        Told::NotHere | Told::Refused(_) | Told::Silence => Ok(false),
    }
}

/// In the end the node has what the others wrote.
fn check_newest(
    probe: &Probe,
    cluster: &crate::cluster::Cluster,
    caller: &Caller,
    key: &str,
    (node, new): (NodeId, u64),
) -> Result<()> {
    let bytes = probe.read(node, &cluster.office.map()?, &caller.blob(key), range(0, 1))?;
    match values(&bytes)?.first() {
        Some(value) if *value == new => Ok(()),
        value => Err(Error::corrupt(format!("node {} has {value:?} and not {new}", node.0))),
    }
}

fn write(caller: &Caller, key: &str, value: u64) -> Result<()> {
    let mut deal = caller.begin();
    deal.add(key, put(value));
    match deal.commit() {
        // It is written again until it is known to be there.
        Err(error) if error.kind() == ErrorKind::TimedOut => Err(error),
        done => done,
    }
}
