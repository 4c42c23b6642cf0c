//! Those who speak no protocol of ours call at every node, while clients work: nobody is disturbed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tyr_types::{Error, Result};

use super::Ground;
use crate::check;
use crate::client::{Caller, connect};
use crate::history::{Book, Kind};
use crate::random::Random;
use crate::workload::{Stage, Workload};

const LASTS: Duration = Duration::from_secs(12);
/// Connections that say nothing, at each node.
const HALF_OPEN: usize = 100;
/// The longest that clients may wait for anything.
const PAUSE_MAX: Duration = Duration::from_secs(2);

pub(super) fn run(ground: &Ground) -> Result<String> {
    let mut cluster = ground.cluster(3, None)?;
    let book = Arc::new(Book::create(&ground.folder.join("history.jsonl"))?);
    let workload = Workload::Lists;
    let caller = Caller::new(&connect(&cluster.control)?, workload.name(), &workload.config())?;
    let mut stage = Stage::new(workload, caller, &book, 1);
    stage.pace = Duration::from_millis(5);
    let addresses = cluster.control.addresses().to_vec();
    let calls = std::thread::scope(|scope| {
        (0..2).for_each(|client| {
            drop(scope.spawn({
                let stage = &stage;
                move || stage.play(client)
            }))
        });
        let calls = disturb(&addresses);
        stage.is_over.store(true, Ordering::Release);
        calls
    });
    stage.finish()?;
    let events = book.events()?;
    let times: Vec<u64> =
        events.iter().filter(|event| event.kind == Kind::Ok).map(|event| event.at_us).collect();
    let pause = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(u64::MAX);
    let mut wrong = check::check(&events).anomalies;
    let failed = events.iter().filter(|event| event.kind == Kind::Fail).count();
    wrong.extend(cluster.dead().iter().map(|node| format!("node {node} ended by itself")));
    if pause > PAUSE_MAX.as_micros() as u64 {
        wrong.push(format!("clients waited for {pause} us"));
    }
    let text = format!(
        "{calls} calls of strangers; {} operations, {failed} failed, the longest pause {:.2} s",
        times.len(),
        pause as f64 / 1e6
    );
    match wrong.is_empty() {
        true => Ok(text),
        false => Err(Error::corrupt(format!("{text}; {}", wrong.join("; ")))),
    }
}

/// Calls at all addresses for a while; answers how often.
fn disturb(addresses: &[String]) -> u64 {
    let (begun, mut random) = (Instant::now(), Random::of(1, "strangers", 0));
    let (mut calls, mut open) = (0, Vec::new());
    for address in addresses {
        open.extend((0..HALF_OPEN).filter_map(|_| TcpStream::connect(address).ok()));
    }
    while begun.elapsed() < LASTS {
        for address in addresses {
            let Ok(mut stream) = TcpStream::connect(address) else { continue };
            calls += 1;
            // What a stranger meets is the stranger's affair.
            let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
            let said = words(&mut random);
            let _ = stream.write_all(&said);
            let _ = stream.read(&mut [0; 256]);
            if random.below(4) == 0 && open.len() < 3 * HALF_OPEN {
                open.push(stream);
            }
        }
    }
    calls + open.len() as u64
}

/// What strangers say.
fn words(random: &mut Random) -> Vec<u8> {
    let noise = |random: &mut Random, len| (0..len).map(|_| random.any() as u8).collect();
    match random.below(7) {
        0 => Vec::new(),
        1 => b"GET / HTTP/1.1\r\nHost: tyr\r\n\r\n".to_vec(),
        2 => b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        3 => b"SSH-2.0-OpenSSH_9.6\r\n".to_vec(),
        4 => {
            let len = random.below(60_000);
            noise(random, len)
        }
        // Begins as we do.
        5 => [&b"TYR-CTRL"[..], &noise(random, 500)].concat(),
        _ => [&b"TYR"[..], &noise(random, 100)].concat(),
    }
}
