//! One of three nodes is killed: every blob is read and written soon after, and for good.

use std::time::{Duration, Instant};

use tyr_types::{Error, KeyspaceConfig, Result};

use super::Ground;
use crate::client::{Caller, append, connect, range, values};
use crate::cluster::{Cluster, PATIENCE};

/// Blobs that are read and written.
const BLOBS: u64 = 30;
/// What it is to take.
const GOAL: Duration = Duration::from_secs(5);
/// What it may take where others keep the machine busy.
const TAKES_MAX: Duration = Duration::from_secs(10);

pub(super) fn run(ground: &Ground) -> Result<String> {
    let mut cluster = ground.cluster(3, None)?;
    let caller = Caller::new(&connect(&cluster.control)?, "gone", &KeyspaceConfig::default())?;
    write_all(&caller, 0)?;
    let mut texts = Vec::new();
    for node in 0..3 {
        let leader = cluster.leader() == Some(node);
        texts.push(lose(&mut cluster, &caller, node, leader)?);
    }
    Ok(texts.join("\n"))
}

fn lose(cluster: &mut Cluster, caller: &Caller, node: u16, is_leader: bool) -> Result<String> {
    let round = u64::from(node) + 1;
    let begun = Instant::now();
    cluster.process(node).kill();
    read_all(caller, round)?;
    let read = begun.elapsed();
    write_all(caller, round)?;
    let written = begun.elapsed();
    let again = Instant::now();
    read_all(caller, round + 1)?;
    let steady = again.elapsed();
    cluster.start(node)?;
    let whole = cluster.wait_until_whole(PATIENCE)?;
    let text = format!(
        "without node {node}{}: all read after {:.2} s, written after {:.2} s, read again in \
         {:.2} s; back after {:.2} s",
        if is_leader { ", which led," } else { "" },
        read.as_secs_f64(),
        written.as_secs_f64(),
        steady.as_secs_f64(),
        whole.as_secs_f64()
    );
    match written {
        written if written <= GOAL => Ok(text),
        written if written <= TAKES_MAX => Ok(format!("{text}; THE GOAL OF {GOAL:?} IS MISSED")),
        _ => Err(Error::unavailable(format!("{text}; the goal is {GOAL:?}"))),
    }
}

/// All at once, as many clients would.
fn write_all(caller: &Caller, round: u64) -> Result<()> {
    at_once(|blob| {
        let mut deal = caller.begin();
        deal.add(&format!("blob-{blob}"), append(round));
        deal.commit()
    })
}

fn read_all(caller: &Caller, rounds: u64) -> Result<()> {
    at_once(|blob| {
        let bytes = caller.read(&format!("blob-{blob}"), range(0, 100))?;
        let found = values(&bytes.unwrap_or_default())?;
        let expected: Vec<u64> = (0..rounds).collect();
        match found == expected {
            true => Ok(()),
            false => {
                let text = format!("blob-{blob} holds {found:?} and not {expected:?}");
                Err(Error::corrupt(text))
            }
        }
    })
}

fn at_once(work: impl Fn(u64) -> Result<()> + Sync) -> Result<()> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..BLOBS).map(|blob| scope.spawn(move || work(blob))).collect();
        threads.into_iter().try_for_each(|thread| {
            let broke = || Error::unavailable("a client's thread panicked");
            thread.join().map_err(|_| broke())?
        })
    })
}
