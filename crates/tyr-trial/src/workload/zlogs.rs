//! Logs of `tyr-zlog`: several clients append, read, take positions that they never write, and
//! leave in peace or die with the sequencer.
//!
//! Half of the clients call the methods that are installed in the store, the others those in their
//! program. New logs come into use all the time, with objects so small that a log goes on in others
//! every few appends. Nothing is trimmed, so the history has every entry.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tyr::{Keyspace, Scan, Tyr};
use tyr_client::block_on;
use tyr_types::{Error, ErrorKind, Result};
use tyr_zlog::{Entry, Log, Methods, Opening, Options, Policy};

use super::{PAUSE, Stage};
use crate::client::connection::TIMEOUT;
use crate::client::place;
use crate::history::{Moment, Scribe, Step};
use crate::random::Random;

/// Logs in use at a time.
const WINDOW: u64 = 2;

/// Values written before the window moves by one.
const VALUES_PER_STEP: u64 = 120;

/// Positions before the tail from which a reader begins.
const BACK: u64 = 20;

/// How long the last readings are tried.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who reads everything once more; no other client has this number.
const LAST_CLIENT: u64 = 0xffff;

/// What a client has open.
#[derive(Default)]
pub struct Shelf {
    connected: Option<(Tyr, Vec<Keyspace>)>,
    open: BTreeMap<u64, Log>,
}

impl Shelf {
    fn connected(&mut self, stage: &Stage) -> Result<&(Tyr, Vec<Keyspace>)> {
        if self.connected.is_none() {
            let address = stage.puppets.addresses.join(",");
            let store = block_on(Tyr::connect_options().timeout(TIMEOUT).connect(address))?;
            let keyspaces = stage.puppets.keyspaces.iter();
            let keyspaces = keyspaces.map(|name| block_on(store.keyspace(name)));
            let keyspaces = keyspaces.collect::<Result<_>>()?;
            self.connected = Some((store, keyspaces));
        }
        self.connected.as_ref().ok_or_else(|| Error::unavailable("there is no connection"))
    }

    /// The log of this number, opened, and made if there is none.
    fn log(&mut self, stage: &Stage, client: u64, number: u64) -> Result<Log> {
        if let Some(log) = self.open.get(&number) {
            return Ok(log.clone());
        }
        let (store, keyspaces) = self.connected(stage)?;
        let name = name(number);
        let keyspace = keyspaces[place(&name, keyspaces.len())].name().to_owned();
        let opening = || opening(client);
        let log = match block_on(Log::open_as(store, &keyspace, &name, opening())) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let options = Options { keyspace, width: 2, slots: 16, ..Options::default() };
                match block_on(Log::create(store, &name, &options)) {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                    _ => {}
                }
                block_on(Log::open_as(store, &options.keyspace, &name, opening()))?
            }
            found => found?,
        };
        self.open.insert(number, log.clone());
        Ok(log)
    }
}

fn opening(client: u64) -> Opening {
    let methods = if client.is_multiple_of(2) { Methods::Installed } else { Methods::Native };
    let time = Duration::from_millis(100);
    Opening {
        policy: Policy::Quota { positions: 5, time },
        lease: Duration::from_secs(1),
        holder: format!("client {client}"),
        methods,
        ..Opening::default()
    }
}

/// One operation of a client.
pub(super) fn act(
    stage: &Stage,
    client: u64,
    shelf: &mut Shelf,
    scribe: &mut Scribe,
    random: &mut Random,
) -> Result<()> {
    let newest = newest(stage);
    // Those that are not in use any more are left, so that their objects rest.
    shelf.open.retain(|number, _| *number >= newest);
    let number = newest + random.below(WINDOW);
    let log = shelf.log(stage, client, number)?;
    match random.below(20) {
        0..12 => append(stage, &log, scribe),
        // A hole, which somebody fills.
        12 => block_on(log.next_position()).map(drop),
        13..18 => {
            let from = block_on(log.tail())?.saturating_sub(BACK);
            read(&log, scribe, "read", from)
        }
        18 => {
            shelf.open.remove(&number);
            block_on(log.close())
        }
        _ => {
            shelf.open.remove(&number);
            Ok(())
        }
    }
}

/// Reads all of each, and tells which blobs there are.
pub(super) fn finish(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    let mut shelf = Shelf::default();
    for number in 0..newest(stage) + WINDOW {
        let begun = Instant::now();
        while let Err(error) = finish_one(stage, &mut shelf, scribe, number) {
            if begun.elapsed() > PATIENCE {
                return Err(error);
            }
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}

fn finish_one(stage: &Stage, shelf: &mut Shelf, scribe: &mut Scribe, number: u64) -> Result<()> {
    let log = shelf.log(stage, LAST_CLIENT, number)?;
    read(&log, scribe, "final", 0)?;
    for prefix in [format!("{}\0", log.name()), format!("{}/", log.name())] {
        let page = block_on(log.keyspace().scan_page(&Scan::new().prefix(&prefix).keys_only()))?;
        let keys = page.entries.iter().map(|it| String::from_utf8_lossy(it.key.as_bytes()));
        stage.found.lock().extend(keys.map(|key| key.into_owned()));
    }
    Ok(())
}

/// The keys of all blobs that were found in the end.
pub(super) fn keys(stage: &Stage) -> Vec<String> {
    stage.found.lock().iter().cloned().collect()
}

fn newest(stage: &Stage) -> u64 {
    stage.written() / VALUES_PER_STEP
}

fn name(number: u64) -> String {
    format!("zlog-{number}")
}

fn append(stage: &Stage, log: &Log, scribe: &mut Scribe) -> Result<()> {
    let value = stage.value();
    let step = |at| Step::Placed { key: log.name().to_owned(), value, at };
    scribe.record("append", Moment::Strict, vec![step(None)], |steps| {
        let position = block_on(log.append(value.to_le_bytes().to_vec()))?;
        steps[0] = step(Some(position));
        Ok(())
    })
}

/// Reads from a position to the end.
pub(crate) fn read(log: &Log, scribe: &mut Scribe, operation: &str, from: u64) -> Result<()> {
    let step = |seen| Step::Positions { key: log.name().to_owned(), from, seen };
    scribe.record(operation, Moment::Strict, vec![step(None)], |steps| {
        let mut reader = log.reader(from);
        let mut seen = Vec::new();
        loop {
            let entries = block_on(reader.next())?;
            if entries.is_empty() {
                break;
            }
            for entry in &entries {
                seen.push((entry.position, value(entry)?));
            }
        }
        steps[0] = step(Some(seen));
        Ok(())
    })
}

fn value(entry: &Entry) -> Result<u64> {
    let bytes = entry.data.as_ref().try_into();
    bytes.map(u64::from_le_bytes).map_err(|_| {
        Error::corrupt(format!("{} bytes at position {}", entry.data.len(), entry.position))
    })
}
