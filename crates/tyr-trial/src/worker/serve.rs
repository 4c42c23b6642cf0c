//! The worker in Rust, on the public crate: blocking calls, or futures that are polled here.

use std::io::{BufRead, Write};

use clap::Args;
use tyr::blocking::Transaction;
use tyr::{
    ByteRange, Bytes, Committed, Key, Keyspace, KeyspaceConfig, Number, ReadRequest, Transform, Tyr,
};
use tyr_client::block_on;
use tyr_types::{Error, ErrorKind, OperationId, Result};

use super::order::{self, Change, Order, Told, Wanted, What};

/// What a worker in Rust is told when it starts.
#[derive(Args, Debug)]
pub struct WorkerArguments {
    /// How it calls: blocking, started.
    mode: String,
    /// The cluster's address, or a folder.
    place: String,
    /// The keyspaces.
    keyspaces: Vec<String>,
}

/// Does what its input says until that ends.
///
/// # Errors
/// What connecting answers; `Unavailable` when its input or output breaks.
pub fn serve(arguments: &WorkerArguments) -> Result<()> {
    let is_started = match &*arguments.mode {
        "blocking" => false,
        "started" => true,
        _ => return Err(Error::invalid("a worker's mode is blocking or started")),
    };
    let store = match arguments.place.starts_with("tyr://") {
        true => block_on(Tyr::connect(&arguments.place))?,
        false => block_on(Tyr::open(&arguments.place))?,
    };
    let found = |name: &String| match block_on(store.keyspace(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            block_on(store.create_keyspace(name, KeyspaceConfig::default()))
        }
        found => found,
    };
    let keyspaces = arguments.keyspaces.iter().map(found).collect::<Result<_>>()?;
    let mut client =
        Client { is_started, store, keyspaces, open: None, open_of: Vec::new(), last: None };
    let mut out = std::io::stdout().lock();
    let mut say = |line: &str| {
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        written.map_err(|error| Error::io("a worker's answers", error))
    };
    say(&order::answer(&Ok(Vec::new())))?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| Error::io("a worker's orders", error))?;
        let done = Order::parse(&line).and_then(|order| client.follow(order));
        say(&order::answer(&done))?;
    }
    Ok(())
}

struct Client {
    is_started: bool,
    store: Tyr,
    keyspaces: Vec<Keyspace>,
    open: Option<Transaction>,
    /// The changes of the last commit: what answers a number, and as which operation.
    open_of: Vec<(OperationId, bool)>,
    /// Why nobody knows what became of the last commit.
    last: Option<Error>,
}

impl Client {
    fn follow(&mut self, order: Order) -> Result<Vec<Told>> {
        match order {
            Order::Read(wanted) => self.read(&wanted),
            Order::Size { keyspace, key } => self.size(keyspace, &key),
            Order::Many(wanted) => self.many(&wanted),
            Order::Snapshot(wanted) => self.snapshot(&wanted),
            Order::Begin => {
                self.open = Some(self.store.begin().into_blocking());
                Ok(Vec::new())
            }
            Order::In(wanted) => self.read_in(&wanted),
            Order::Commit(changes) => self.commit(changes),
            Order::Outcome => self.outcome(),
        }
    }

    fn keyspace(&self, place: usize) -> Result<&Keyspace> {
        self.keyspaces.get(place).ok_or_else(|| Error::invalid("no such keyspace"))
    }

    fn read(&self, wanted: &Wanted) -> Result<Vec<Told>> {
        let Wanted { key, start, len, .. } = wanted;
        let keyspace = self.keyspace(wanted.keyspace)?;
        let read = match self.is_started {
            true => block_on(keyspace.read(key, *start, *len)),
            false => keyspace.as_blocking().read(key, *start, *len),
        };
        Ok(vec![told(read)?])
    }

    fn size(&self, keyspace: usize, key: &str) -> Result<Vec<Told>> {
        let keyspace = self.keyspace(keyspace)?;
        let stat = match self.is_started {
            true => block_on(keyspace.stat(key)),
            false => keyspace.as_blocking().stat(key),
        };
        match stat {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(vec![Told::Number(0)]),
            stat => Ok(vec![Told::Number(stat?.size)]),
        }
    }

    fn many(&self, wanted: &[Wanted]) -> Result<Vec<Told>> {
        let request = |it: &Wanted| {
            let keyspace = self.keyspace(it.keyspace)?.clone();
            let range = ByteRange { start: it.start, end: it.start + it.len };
            Ok(ReadRequest { keyspace, key: Key::new(&it.key)?, range })
        };
        let requests = wanted.iter().map(request).collect::<Result<Vec<_>>>()?;
        let found = match self.is_started {
            true => block_on(self.store.read_many(&requests)),
            false => self.store.blocking().read_many(&requests),
        };
        Ok(found?.into_iter().map(|bytes| bytes.map_or(Told::Absent, Told::Bytes)).collect())
    }

    fn snapshot(&self, wanted: &[Wanted]) -> Result<Vec<Told>> {
        let snapshot = match self.is_started {
            true => block_on(self.store.snapshot()),
            false => self.store.blocking().snapshot().map(tyr::blocking::Snapshot::into_async),
        }?;
        let read = |it: &Wanted| {
            let keyspace = self.keyspace(it.keyspace)?;
            told(match self.is_started {
                true => block_on(snapshot.read(keyspace, &it.key, it.start, it.len)),
                false => {
                    let snapshot = snapshot.as_blocking();
                    snapshot.read(keyspace.as_blocking(), &it.key, it.start, it.len)
                }
            })
        };
        wanted.iter().map(read).collect()
    }

    fn read_in(&mut self, wanted: &Wanted) -> Result<Vec<Told>> {
        let none = || Error::invalid("no transaction was begun");
        let mut open = self.open.take().ok_or_else(none)?;
        let keyspace = self.keyspace(wanted.keyspace)?.clone();
        let Wanted { key, start, len, .. } = wanted;
        let (open, read) = match self.is_started {
            true => {
                let mut started = open.into_async();
                let read = block_on(started.read(&keyspace, key, *start, *len));
                (started.into_blocking(), read)
            }
            false => {
                let read = open.read(keyspace.as_blocking(), key, *start, *len);
                (open, read)
            }
        };
        self.open = Some(open);
        Ok(vec![told(read)?])
    }

    fn commit(&mut self, changes: Vec<Change>) -> Result<Vec<Told>> {
        let open = self.open.take();
        let mut open = open.unwrap_or_else(|| self.store.begin().into_blocking());
        self.open_of.clear();
        for Change { keyspace, key, what } in changes {
            let keyspace = self.keyspace(keyspace)?.as_blocking().clone();
            let (id, is_number) = match what {
                What::Append(bytes) => (open.append(&keyspace, key, bytes)?, true),
                What::Put(bytes) => (open.put(&keyspace, key, bytes)?, false),
                What::Compare(bytes) => (open.compare(&keyspace, key, 0, bytes)?, false),
                What::Add(more) => {
                    let add = Transform::add(Number::U64(more));
                    (open.apply(&keyspace, key, 0, add)?, true)
                }
            };
            self.open_of.push((id, is_number));
        }
        let committed = match self.is_started {
            true => block_on(open.into_async().commit()),
            false => open.commit(),
        };
        self.ended(committed)
    }

    fn outcome(&mut self) -> Result<Vec<Told>> {
        let none = || Error::invalid("the outcome of the last commit is known");
        let error = self.last.take().ok_or_else(none)?;
        let committed = match self.is_started {
            true => block_on(self.store.outcome(&error)),
            false => self.store.blocking().outcome(&error),
        };
        self.ended(committed)
    }

    fn ended(&mut self, committed: Result<Committed>) -> Result<Vec<Told>> {
        let committed = match committed {
            Ok(committed) => committed,
            Err(error) => {
                let text = Error::new(error.kind(), error.to_string());
                self.last = (error.kind() == ErrorKind::TimedOut).then_some(error);
                return Err(text);
            }
        };
        let told = |(id, is_number): &(OperationId, bool)| match is_number {
            true => committed.offset(*id).or_else(|| sum(committed.value(*id)?)),
            false => None,
        };
        let all = self.open_of.iter().map(|it| told(it).map_or(Told::Done, Told::Number));
        Ok(all.collect())
    }
}

/// Nothing but these numbers is added to here.
fn sum(number: Number) -> Option<u64> {
    if let Number::U64(sum) = number { Some(sum) } else { None }
}

fn told(read: Result<Bytes>) -> Result<Told> {
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Told::Absent),
        read => Ok(Told::Bytes(read?)),
    }
}
