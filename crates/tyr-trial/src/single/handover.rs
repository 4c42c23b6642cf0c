//! How long a seat takes from one node to another, and how long who asks it all the time waits.
//!
//! ```text
//!   move ──► assignment written ──► left, with its state ──► taken: the token of its lock grows
//!   client:  next · next · next ─────── waits ───────────────► next · next
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr::Tyr;
use tyr_client::block_on;
use tyr_object::{SeatDirectory, SeatMode, SeatName};
use tyr_types::{BlobName, Error, NodeId, Result};
use tyr_zlog::{Log, Opening, Options, Sequencing};

use super::{Extent, Ground, Times, is_passing};
use crate::cluster::{Cluster, PATIENCE};

/// The keyspace, the log in it, and the seat of its sequencer.
const KEYSPACE: &str = "moved";
const LOG: &str = "orders";
const SEAT: &str = "moved/orders%00lock";

/// The longest that a request may take: as long as one is let wait.
const REQUEST_MAX: Duration = Duration::from_secs(30);

/// Who asks waits so long between two requests.
const PACE: Duration = Duration::from_millis(1);

pub(super) fn run(_ground: &Ground, cluster: &mut Cluster, extent: Extent) -> Result<String> {
    let (moves, rest) = match extent {
        Extent::Full => (200, Duration::from_millis(300)),
        Extent::Brief => (2, Duration::from_millis(50)),
    };
    let address = cluster.control.addresses().join(",");
    let store = block_on(Tyr::connect_options().timeout(REQUEST_MAX).connect(address))?;
    let options = Options { keyspace: KEYSPACE.to_owned(), ..Options::default() };
    block_on(Log::create(&store, LOG, &options))?;
    let opening = Opening { sequencing: Sequencing::Asked, ..Opening::default() };
    let log = block_on(Log::open_as(&store, KEYSPACE, LOG, opening))?;
    block_on(log.append("first"))?;
    let way = Way { log, directory: SeatDirectory::of(&store.blocking()), name: SEAT.parse()? };
    let nodes = cluster.numbers();
    way.wait(|| Ok(way.directory.list()?.nodes.len() == nodes.len()))?;
    let mut texts = Vec::new();
    for (mode, told) in [(SeatMode::Client, "client mode"), (SeatMode::Proxy, "proxy mode")] {
        texts.push(format!("{told}: {}", way.go(&nodes, mode, moves, rest)?));
    }
    if extent == Extent::Full {
        for (mode, told) in [(SeatMode::Client, "client mode"), (SeatMode::Proxy, "proxy mode")] {
            texts.push(format!("{told}: {}", way.lose(cluster, mode)?));
        }
    }
    Ok(texts.join("\n"))
}

struct Way {
    log: Log,
    directory: SeatDirectory,
    name: SeatName,
}

impl Way {
    /// Moves the seat so often; answers what that took.
    fn go(&self, nodes: &[u16], mode: SeatMode, moves: usize, rest: Duration) -> Result<String> {
        let (is_over, asked) = (AtomicBool::new(false), Mutex::new(Asked::default()));
        std::thread::scope(|scope| {
            let client = scope.spawn(|| self.ask(&is_over, &asked));
            let moved = self.go_round(nodes, mode, moves, rest, &asked);
            is_over.store(true, Ordering::Release);
            let broke = || Error::unavailable("a thread panicked");
            client.join().map_err(|_| broke())??;
            moved
        })
    }

    fn go_round(
        &self,
        nodes: &[u16],
        mode: SeatMode,
        moves: usize,
        rest: Duration,
        asked: &Mutex<Asked>,
    ) -> Result<String> {
        let (mut taken, mut waited, mut usual) = (Times::default(), Times::default(), vec![]);
        for step in 0..moves {
            asked.lock().took.clear();
            let before = self.token()?;
            let begun = Instant::now();
            self.directory.move_to(&self.name, nodes[step % nodes.len()], mode, "a trial")?;
            // It may be there already, if it is the first that it goes to.
            if step > 0 {
                self.wait(|| Ok(self.token()? > before))?;
                taken.extend([begun.elapsed()]);
            }
            std::thread::sleep(rest);
            let mut asked = asked.lock();
            if step > 0 {
                waited.extend(asked.took.iter().copied().max());
            }
            usual.append(&mut asked.took);
        }
        let mut all = Times::default();
        all.extend(usual);
        let failed = asked.lock().failed;
        Ok(format!(
            "another has it {taken} after the call; a client that asks all the time waits {waited} \
             once, else {all}; {failed} requests failed"
        ))
    }

    /// The node that has the seat, and is not that of its key, is killed: no request fails but one
    /// that is under way, and those that come meanwhile wait until another has it.
    fn lose(&self, cluster: &mut Cluster, mode: SeatMode) -> Result<String> {
        let seat = BlobName { keyspace: self.log.keyspace().id(), key: self.name.key()? };
        let home = cluster.control.map()?.holders(&seat, 0).first().copied();
        let node = cluster.numbers().into_iter().find(|node| home != Some(NodeId(*node)));
        let node = node.ok_or_else(|| Error::unavailable("there is one node alone"))?;
        self.directory.move_to(&self.name, node, mode, "a trial")?;
        block_on(self.log.next_position())?;
        self.wait(|| {
            let listing = self.directory.list()?;
            Ok(listing.find(&self.name).is_some_and(|(at, _)| at == node))
        })?;
        let (is_over, asked) = (AtomicBool::new(false), Mutex::new(Asked::default()));
        let text = std::thread::scope(|scope| {
            let client = scope.spawn(|| self.ask(&is_over, &asked));
            let token = self.token()?;
            cluster.process(node).kill();
            let taken = self.wait(|| Ok(self.token()? > token));
            std::thread::sleep(Duration::from_millis(200));
            is_over.store(true, Ordering::Release);
            let broke = || Error::unavailable("a thread panicked");
            client.join().map_err(|_| broke())??;
            taken?;
            let Asked { took, failed } = &*asked.lock();
            let waited = took.iter().max().map_or(0.0, Duration::as_secs_f64);
            let text =
                format!("its node was killed: requests waited {waited:.2} s, {failed} failed");
            // What is under way at that moment may have been done, and says so.
            match *failed <= 1 {
                true => Ok(text),
                false => Err(Error::corrupt(text)),
            }
        })?;
        cluster.start(node)?;
        cluster.wait_until_whole(PATIENCE)?;
        self.wait(|| Ok(self.directory.list()?.nodes.len() == cluster.numbers().len()))?;
        Ok(text)
    }

    /// Asks all the time.
    fn ask(&self, is_over: &AtomicBool, asked: &Mutex<Asked>) -> Result<()> {
        while !is_over.load(Ordering::Acquire) {
            let begun = Instant::now();
            match block_on(self.log.next_position()) {
                Ok(_) => asked.lock().took.push(begun.elapsed()),
                Err(error) if is_passing(&error) => asked.lock().failed += 1,
                Err(error) => return Err(error),
            }
            std::thread::sleep(PACE);
        }
        Ok(())
    }

    fn token(&self) -> Result<u64> {
        let key = self.name.key()?;
        Ok(block_on(self.log.keyspace().inspect_lock(key))?.token)
    }

    fn wait(&self, is_so: impl Fn() -> Result<bool>) -> Result<()> {
        let begun = Instant::now();
        while !is_so()? {
            if begun.elapsed() > PATIENCE {
                return Err(Error::unavailable("the seat does not go where it is to be"));
            }
            std::thread::sleep(Duration::from_micros(300));
        }
        Ok(())
    }
}

/// What came of requests since somebody looked.
#[derive(Default)]
struct Asked {
    took: Vec<Duration>,
    failed: u64,
}
