//! A node that stands still past its lease, while the others go on without it (M3).
//!
//! It is the authority of a register. While it stands still it is cut off from the others, so that
//! it does not hear that it was declared down when it goes on; clients reach it, and their reads
//! lie in its sockets. It must not answer them with the old value: only its lease can tell it.

use std::time::{Duration, Instant};

use tyr_types::{Error, KeyspaceConfig, NodeId, Result};

use super::Ground;
use crate::client::probe::{Probe, Told};
use crate::client::{Caller, connect, put, range, values};
use crate::cluster::Cluster;
use crate::fabric::End;

/// How often it is paused.
const ROUNDS: u64 = 3;
/// Reads that wait for it.
const READS: usize = 40;
/// How long the others may take to go on.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many reads the paused node was asked, and how many it answered with an old value.
pub(super) fn stale_reads(ground: &Ground, broken: Option<&str>) -> Result<(usize, usize)> {
    let mut cluster = ground.cluster(3, broken)?;
    let caller = Caller::new(&connect(&cluster.control)?, "paused", &KeyspaceConfig::default())?;
    let (mut asked, mut stale) = (0, 0);
    for round in 0..ROUNDS {
        let (key, old, new) = (format!("register-{round}"), 2 * round + 1, 2 * round + 2);
        write(&caller, &key, old)?;
        let blob = caller.blob(&key);
        let map = cluster.control.map()?;
        let node = map.holders(&blob, 0).first().copied();
        let node = node.ok_or_else(|| Error::unavailable("nobody holds the register"))?;
        let probe = Probe::new(&cluster.control)?;
        probe.reach(node, PATIENCE)?;
        probe.read(node, &cluster.control, &blob, range(0, 1))?;
        cluster.process(node.0).pause();
        cut_off(&cluster, node, true)?;
        let begun = Instant::now();
        wait_until_down(&cluster, node)?;
        // One who never spoke with the node: it finds no write in its sockets that reads wait for.
        let other = Caller::new(&connect(&cluster.control)?, "paused", &KeyspaceConfig::default())?;
        write(&other, &key, new)?;
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
            let (_, told) = read.told(Duration::from_secs(3));
            asked += 1;
            stale += usize::from(is_old(&told, old)?);
        }
        cut_off(&cluster, node, false)?;
        cluster.wait_until_whole(PATIENCE)?;
        if broken.is_none() {
            check_newest(&probe, &cluster, &caller, &key, node, new)?;
        }
    }
    Ok((asked, stale))
}

/// Nothing passes between the node and the others, or it does again.
fn cut_off(cluster: &Cluster, node: NodeId, is_cut: bool) -> Result<()> {
    let one = End::Node(node.0);
    let others = cluster.numbers().into_iter().filter(|other| *other != node.0).map(End::Node);
    others
        .flat_map(|other| [(one, other), (other, one)])
        .try_for_each(|(from, to)| cluster.fabric.cut(from, to, is_cut))
}

fn is_old(told: &Told, old: u64) -> Result<bool> {
    match told {
        Told::Bytes(bytes) => Ok(values(bytes)?.first() == Some(&old)),
        Told::NotHere | Told::Refused(_) | Told::Silence => Ok(false),
    }
}

/// In the end the node has what the others wrote.
fn check_newest(
    probe: &Probe,
    cluster: &Cluster,
    caller: &Caller,
    key: &str,
    node: NodeId,
    new: u64,
) -> Result<()> {
    let bytes = probe.read(node, &cluster.control, &caller.blob(key), range(0, 1))?;
    match values(&bytes)?.first() {
        Some(value) if *value == new => Ok(()),
        value => Err(Error::corrupt(format!("node {} has {value:?} and not {new}", node.0))),
    }
}

fn wait_until_down(cluster: &Cluster, node: NodeId) -> Result<()> {
    let begun = Instant::now();
    while cluster.control.map().is_ok_and(|map| map.is_live(node)) {
        if begun.elapsed() > PATIENCE {
            return Err(Error::unavailable("the others do not go on without the node"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn write(caller: &Caller, key: &str, value: u64) -> Result<()> {
    let mut deal = caller.begin();
    deal.add(key, put(value));
    deal.commit()
}
