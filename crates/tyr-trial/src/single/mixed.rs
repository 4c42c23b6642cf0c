//! Programs of two releases in one cluster, of which the later has one more operation: the nodes
//! are upgraded one after the other while clients of both releases work.
//!
//! What both know goes on all the time. The new operation is refused in words, with the nodes that
//! do not have it, until the last of them is upgraded; then it works. A node that goes back to the
//! older program then is refused by name.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tyr_protocol::wire::{LEVEL, LEVEL_KNOWN};
use tyr_types::{
    Error, ErrorKind, KeyspaceConfig, Number, Operation, Result, Transform, TransformKind,
};

use super::Ground;
use crate::client::{Caller, append, connect_speaking, range, values};
use crate::cluster::{Cluster, PATIENCE, Program};

/// Nodes of the cluster.
const NODES: u16 = 3;
/// The later release's operation.
const LATER: TransformKind = TransformKind::Nand;
/// What it does, from these bits.
const BITS: u64 = 0b1100;

pub(super) fn run(ground: &Ground) -> Result<String> {
    // Only our own node speaks as another release.
    let ground = Ground { program: Program::own()?, ..ground.clone() };
    let mut cluster = ground.cluster(NODES, None)?;
    let config = KeyspaceConfig::default();
    let older = Caller::new(&connect_speaking(LEVEL, &cluster.control)?, "mixed", &config)?;
    let later = Caller::new(&connect_speaking(LEVEL_KNOWN, &cluster.control)?, "mixed", &config)?;
    let is_over = AtomicBool::new(false);
    let text = std::thread::scope(|scope| {
        let appending = [("older", &older), ("later", &later)].map(|(key, caller)| {
            let is_over = &is_over;
            scope.spawn(move || append_until(caller, key, is_over))
        });
        let text = upgrade(&mut cluster, &older, &later).and_then(|text| {
            let back = go_back(&mut cluster)?;
            use_it(&later, 1)?;
            Ok(format!("{text}; {back}"))
        });
        is_over.store(true, Ordering::Release);
        let mut text = text?;
        for thread in appending {
            let broke = || Error::unavailable("a client's thread panicked");
            let (count, longest) = thread.join().map_err(|_| broke())??;
            text = format!("{text}; {count} appends, the longest {:.2} s", longest.as_secs_f64());
        }
        Ok::<_, Error>(text)
    })?;
    // Clients of both releases see what both wrote.
    for caller in [&older, &later] {
        let seen = caller.read("bits", range(0, 1))?.unwrap_or_default();
        if values(&seen)? != [nand(nand(u64::MAX))] {
            return Err(Error::corrupt(format!("the new operation came to {seen:?}")));
        }
    }
    Ok(text)
}

/// Upgrades the nodes one after the other; before each the new operation is refused.
fn upgrade(cluster: &mut Cluster, older: &Caller, later: &Caller) -> Result<String> {
    let mut put = older.begin();
    put.add("bits", crate::client::put(u64::MAX));
    put.commit()?;
    for node in 0..NODES {
        refused(later, node)?;
        start_speaking(cluster, LEVEL_KNOWN, node)?;
        cluster.wait_until_whole(PATIENCE)?;
    }
    let begun = Instant::now();
    while cluster.control.map()?.level < LEVEL_KNOWN {
        if begun.elapsed() > PATIENCE {
            return Err(Error::unavailable("all nodes speak the new level, and it is not used"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let raised = begun.elapsed();
    use_it(later, 0)?;
    let used = begun.elapsed();
    Ok(format!(
        "refused in words {NODES} times; the level rose {:.2} s after the last node, the new \
         operation worked after {:.2} s",
        raised.as_secs_f64(),
        used.as_secs_f64()
    ))
}

/// Stops the node and starts it with a program that speaks this level.
fn start_speaking(cluster: &mut Cluster, level: u8, node: u16) -> Result<()> {
    let process = cluster.process(node);
    process.stop()?;
    process.level = Some(level);
    cluster.start(node)
}

fn nand(bits: u64) -> u64 {
    !(bits & BITS)
}

fn begin_later(caller: &Caller) -> Result<crate::client::Deal<'_>> {
    let transform = Transform::new(LATER, Number::U64(BITS))?;
    let mut deal = caller.begin();
    deal.add("bits", Operation::Apply { offset: 0, transform });
    Ok(deal)
}

/// The new operation is refused, and nodes from this one on are said to be behind.
fn refused(caller: &Caller, behind: u16) -> Result<()> {
    let Err(error) = begin_later(caller)?.commit() else {
        return Err(Error::corrupt(format!("node {behind} is of an older release, and it worked")));
    };
    let names: Vec<String> = (behind..NODES).map(|node| node.to_string()).collect();
    let is_named = error.message().contains(&format!("this needs feature level {LEVEL_KNOWN}"))
        && error.message().contains(&names.join(", "));
    match error.kind() == ErrorKind::Unavailable && is_named {
        true => Ok(()),
        false => Err(error.context("the refusal is another than expected")),
    }
}

/// The new operation takes effect, for the `count`-th time; the client may have to hear of the map.
fn use_it(caller: &Caller, count: u32) -> Result<()> {
    let expected = (0..=count).fold(u64::MAX, |bits, _| nand(bits));
    let begun = Instant::now();
    loop {
        let mut deal = begin_later(caller)?;
        match deal.commit() {
            Ok(()) if deal.sum(0) == Some(expected) => return Ok(()),
            Ok(()) => return Err(Error::corrupt(format!("it came to {:?}", deal.sum(0)))),
            Err(error) if begun.elapsed() > PATIENCE => return Err(error),
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(error),
        }
    }
}

/// A node whose program goes back is refused by name, and taken again when it is upgraded.
fn go_back(cluster: &mut Cluster) -> Result<String> {
    start_speaking(cluster, LEVEL, 0)?;
    let begun = Instant::now();
    let text = format!(
        "this cluster uses feature level {LEVEL_KNOWN}; this program speaks up to {LEVEL}: it is \
         of an older release; upgrade it"
    );
    while cluster.process(0).is_running() || !cluster.process(0).has_said(&text)? {
        if begun.elapsed() > PATIENCE {
            return Err(Error::corrupt(format!("a node of an older release does not say: {text}")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let process = cluster.process(0);
    process.kill();
    process.level = Some(LEVEL_KNOWN);
    cluster.start(0)?;
    cluster.wait_until_whole(PATIENCE)?;
    Ok("a node that went back was refused by name".to_owned())
}

/// Appends numbers until it is over; answers how many, and how long the longest took. Each is there
/// once in the end, in order, and none fails.
fn append_until(caller: &Caller, key: &str, is_over: &AtomicBool) -> Result<(u64, Duration)> {
    let (mut count, mut longest) = (0, Duration::ZERO);
    while !is_over.load(Ordering::Acquire) {
        let begun = Instant::now();
        let mut deal = caller.begin();
        deal.add(key, append(count));
        deal.commit().map_err(|error| error.context(format!("append {count} of {key}")))?;
        longest = longest.max(begun.elapsed());
        count += 1;
        std::thread::sleep(Duration::from_millis(2));
    }
    let seen = caller.read(key, range(0, count + 1))?.unwrap_or_default();
    match values(&seen)? == (0..count).collect::<Vec<u64>>() {
        true => Ok((count, longest)),
        false => Err(Error::corrupt(format!("{key} does not hold what was appended to it"))),
    }
}
