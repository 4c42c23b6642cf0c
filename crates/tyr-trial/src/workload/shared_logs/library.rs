//! The logs that a client has open, and what it knows of them.

use std::collections::{BTreeMap, VecDeque};

use tyr::{Keyspace, Tyr};
use tyr_client::block_on;
use tyr_log::{Cut, Delivery, Group, Log, Options, Position, SEGMENT_BYTES_MIN, Start};
use tyr_types::{Error, ErrorKind, Result, Timestamp};

use super::Stage;
use super::following::Follower;
use crate::client::connection::TIMEOUT;
use crate::client::place;
use crate::history::{Did, Entry, Place, Step};

/// Cuts and positions of a log that a client remembers.
const REMEMBERED: usize = 6;

/// A log, opened.
pub struct Shelf {
    /// Its name.
    pub name: String,
    /// The log.
    pub log: Log,
    /// Consumers that pop.
    pub pops: Group,
    /// Consumers that take and acknowledge.
    pub takes: Group,
    /// Consumers that do something with what they fetch.
    pub works: Group,
    /// What was taken and not acknowledged yet.
    pub lent: VecDeque<(u64, Delivery)>,
    /// Where readers were, or could begin.
    pub cuts: VecDeque<Cut>,
    /// Where entries are, or will be.
    pub positions: VecDeque<Position>,
    /// Who follows it; not before it was decided whether anybody is to.
    pub follower: Option<Option<Follower>>,
}

/// What a client has open.
#[derive(Default)]
pub struct Library {
    connected: Option<(Tyr, Vec<Keyspace>)>,
    open: BTreeMap<u64, Shelf>,
    followers: Vec<Follower>,
    client: u64,
    numbers: u64,
}

impl Library {
    /// Connects, if it is not connected yet.
    pub fn connect(&mut self, stage: &Stage, client: u64) -> Result<()> {
        if self.connected.is_some() {
            return Ok(());
        }
        let address = stage.puppets.addresses.join(",");
        let store = block_on(Tyr::connect_options().timeout(TIMEOUT).connect(address))?;
        let keyspaces = stage.puppets.keyspaces.iter();
        let keyspaces = keyspaces.map(|name| block_on(store.keyspace(name)));
        self.connected = Some((store.clone(), keyspaces.collect::<Result<_>>()?));
        self.client = client;
        Ok(())
    }

    /// The store.
    pub fn store(&self) -> Result<&Tyr> {
        self.connected().map(|(store, _)| store)
    }

    /// The keyspace of a key.
    pub fn keyspace(&self, key: &str) -> Result<&Keyspace> {
        self.connected().map(|(_, keyspaces)| &keyspaces[place(key, keyspaces.len())])
    }

    fn connected(&self) -> Result<&(Tyr, Vec<Keyspace>)> {
        self.connected.as_ref().ok_or_else(|| Error::invalid("connect first"))
    }

    /// A number that no client has given to anything else.
    pub fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.client << 32 | self.numbers
    }

    /// The first log that is open and comes before this one.
    pub fn before(&self, number: u64) -> Option<u64> {
        self.open.first_key_value().map(|(open, _)| *open).filter(|open| *open < number)
    }

    /// The log of this number, opened, and made if there is none.
    pub fn shelf(&mut self, number: u64) -> Result<&mut Shelf> {
        if !self.open.contains_key(&number) {
            let shelf = self.opened(number)?;
            self.open.insert(number, shelf);
        }
        self.open.get_mut(&number).ok_or_else(|| super::closed(number))
    }

    /// The client is done with a log. What it has taken of it is not acknowledged.
    pub fn close(&mut self, number: u64) {
        let follower = self.open.remove(&number).and_then(|shelf| shelf.follower.flatten());
        self.followers.extend(follower);
    }

    /// Everybody who follows, or has followed, a log for this client.
    pub fn followers(self) -> impl Iterator<Item = Follower> {
        let open = self.open.into_values().filter_map(|shelf| shelf.follower.flatten());
        self.followers.into_iter().chain(open)
    }

    fn opened(&self, number: u64) -> Result<Shelf> {
        let (store, name) = (self.store()?, name(number));
        let keyspace = self.keyspace(&name)?.name();
        let log = match block_on(Log::open_in(store, keyspace, &name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let options = Options { keyspace: keyspace.to_owned(), ..options(number) };
                match block_on(Log::create(store, &name, &options)) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        block_on(Log::open_in(store, keyspace, &name))?
                    }
                    made => made?,
                }
            }
            found => found?,
        };
        let group = |name| block_on(log.group(name, &Start::Oldest));
        let (pops, takes, works) = (group("pops")?, group("takes")?, group("works")?);
        Ok(Shelf {
            name,
            pops,
            takes,
            works,
            log,
            lent: VecDeque::new(),
            cuts: VecDeque::new(),
            positions: VecDeque::new(),
            follower: None,
        })
    }
}

impl Shelf {
    /// What is done to it, for the history.
    pub fn step(&self, did: Did) -> Step {
        Step::SharedLog { log: self.name.clone(), did }
    }

    /// Remembers where a reader was.
    pub fn remember(&mut self, cut: &Cut) {
        self.cuts.push_back(cut.clone());
        if self.cuts.len() > REMEMBERED {
            self.cuts.pop_front();
        }
        cut.positions().iter().for_each(|position| self.remember_position(*position));
    }

    /// Remembers where an entry is, or will be.
    pub fn remember_position(&mut self, position: Position) {
        self.positions.push_back(position);
        if self.positions.len() > REMEMBERED {
            self.positions.pop_front();
        }
    }
}

/// The name of a log: it says of which kind it is.
pub fn name(number: u64) -> String {
    let kind = match number % 3 {
        0 => "one",
        1 => "several",
        _ => "strict",
    };
    format!("{kind}-{number}")
}

/// The keys of what is written with entries of a log: by who appends, and by who works on them.
pub fn lists(log: &str) -> [String; 2] {
    [format!("ledger-{log}"), format!("worked-{log}")]
}

fn options(number: u64) -> Options {
    let (partitions, is_strict) = match number % 3 {
        0 => (1, false),
        1 => (3, false),
        _ => (2, true),
    };
    Options { partitions, is_strict, segment_bytes: Some(SEGMENT_BYTES_MIN), ..Options::default() }
}

/// An entry's data: its value, and some bytes that it says.
pub fn data(value: u64, padding: u64) -> Vec<u8> {
    let mut data = value.to_le_bytes().to_vec();
    data.resize(data.len() + padding as usize, value as u8);
    data
}

/// An entry as a history has it.
pub fn entry(entry: &tyr_log::Entry) -> Result<Entry> {
    let value = entry.data.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let is_whole = |value: &u64| entry.data[8..].iter().all(|byte| *byte == *value as u8);
    let value = value.filter(is_whole).ok_or_else(|| {
        Error::corrupt(format!("what is at {} is not what anybody appends", entry.position))
    })?;
    let (at, stamp) = (at(entry.position), digits(entry.stamp));
    Ok(Entry { value, at, stamp, number: entry.number })
}

/// Entries as a history has them.
pub fn entries(entries: &[tyr_log::Entry]) -> Result<Vec<Entry>> {
    entries.iter().map(entry).collect()
}

/// A position as a history has it.
pub fn at(position: Position) -> Place {
    let Position { partition, segment, offset, index } = position;
    [partition.into(), segment, offset, index.into()]
}

/// A cut as a history has it.
pub fn places(cut: &Cut) -> Vec<Place> {
    cut.positions().iter().map(|position| at(*position)).collect()
}

/// A timestamp as digits that sort as timestamps do.
pub fn digits(at: Timestamp) -> String {
    at.to_stamp()[..14].iter().map(|byte| format!("{byte:02x}")).collect()
}
