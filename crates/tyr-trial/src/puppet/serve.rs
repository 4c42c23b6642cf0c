//! What a puppet's process runs: orders from its input, one after the other, until that ends.

use std::io::{BufRead, Read, Write};
use std::time::Duration;

use clap::Args;
use tyr::blocking::{Keyspace, Lock, Transaction, Tyr};
use tyr::{Committed, LeaseOptions};
use tyr_types::{Error, ErrorKind, OperationId, Result};

use super::files::Files;
use super::logs::Logs;
use super::{Answer, Order, payload};
use crate::client::connection::TIMEOUT;
use crate::client::{ASKS, place};
use crate::history::How;

/// What a puppet is told when it starts.
#[derive(Args, Debug)]
pub struct PuppetArguments {
    /// Where nodes of the cluster are reached, with commas.
    #[arg(long)]
    at: String,
    /// The keyspaces that blobs are spread over, with commas.
    #[arg(long, value_delimiter = ',')]
    keyspaces: Vec<String>,
    /// How long a call may take.
    #[arg(long, default_value_t = TIMEOUT.as_millis() as u64)]
    timeout_ms: u64,
}

/// Does what its input says until that ends.
///
/// # Errors
/// `Unavailable` when its input or output breaks; `InvalidArgument` for lines that are no orders.
pub fn serve(arguments: &PuppetArguments) -> Result<()> {
    let mut client = None;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| Error::io("a puppet's orders", error))?;
        let order = serde_json::from_str::<Order>(&line);
        let order = order.map_err(|error| Error::invalid(format!("{error} in {line}")))?;
        let done = match &mut client {
            Some(client) => Client::follow(client, order),
            None => Client::connect(arguments)
                .and_then(|connected| client.insert(connected).follow(order)),
        };
        answer(&done).map_err(|error| Error::io("a puppet's answers", error))?;
    }
    Ok(())
}

fn answer(done: &Result<Vec<u64>>) -> std::io::Result<()> {
    let line = serde_json::to_string(&Answer::of(done)).expect("numbers and texts are JSON");
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// The client of this process.
struct Client {
    store: Tyr,
    keyspaces: Vec<Keyspace>,
    lock: Option<Lock>,
    logs: Logs,
    files: Files,
}

impl Client {
    fn connect(arguments: &PuppetArguments) -> Result<Self> {
        let timeout = Duration::from_millis(arguments.timeout_ms);
        let store = Tyr::connect_options().timeout(timeout).connect_blocking(&arguments.at)?;
        let keyspaces = arguments.keyspaces.iter().map(|name| store.keyspace(name));
        let keyspaces = keyspaces.collect::<Result<_>>()?;
        let (logs, files) = Default::default();
        Ok(Self { store, keyspaces, lock: None, logs, files })
    }

    fn keyspace(&self, key: &str) -> &Keyspace {
        &self.keyspaces[place(key, self.keyspaces.len())]
    }

    fn follow(&mut self, order: Order) -> Result<Vec<u64>> {
        let number = match order {
            Order::Log { order } => {
                return self.logs.follow(&self.store, &self.keyspaces[0], order);
            }
            Order::File { order } => self.files.follow(&self.store, order),
            Order::Lock { key, lasts_ms, wait_ms } => {
                self.lock = None;
                let (lasts, wait) =
                    (Duration::from_millis(lasts_ms), Duration::from_millis(wait_ms));
                let options = LeaseOptions::exclusive().duration(lasts).wait(wait);
                let lock = self.keyspace(&key).lock(key, &options)?;
                Ok(self.lock.insert(lock).token())
            }
            Order::Held => Ok(self.lock.as_ref().is_some_and(Lock::is_held).into()),
            Order::Fenced { key, value } => self.append_held(&key, value, true),
            Order::Unfenced { key, value } => self.append_held(&key, value, false),
            Order::Unlock => self.lock.take().ok_or_else(no_lock)?.unlock().map(|()| 0),
            Order::Upload { key, value, len, how, at } => {
                let (bytes, offset) = (payload(value, len), 8 * at);
                let mut transaction = self.store.begin();
                let keyspace = self.keyspace(&key);
                let id = match how {
                    How::Whole => transaction.put(keyspace, key, bytes),
                    How::Over => transaction.write(keyspace, key, offset, bytes),
                    How::Expected => transaction.append_at(keyspace, key, offset, bytes),
                    How::End => transaction.append(keyspace, key, bytes),
                }?;
                Ok(self.commit(transaction)?.offset(id).unwrap_or(offset))
            }
            Order::Half { key, value, len } => {
                let half = Half { bytes: payload(value, len), at: 0 };
                let sent = self.keyspace(&key).put_reader(&key, half)?;
                Err(Error::corrupt(format!("{sent} bytes were put that had no end")))
            }
            Order::Delete { key } => {
                let mut transaction = self.store.begin();
                transaction.delete(self.keyspace(&key), key)?;
                self.commit(transaction).map(|_| 0)
            }
        };
        number.map(|number| vec![number])
    }

    fn append_held(&self, key: &str, value: u64, is_fenced: bool) -> Result<u64> {
        let lock = self.lock.as_ref().ok_or_else(no_lock)?;
        let mut transaction = self.store.begin();
        if is_fenced {
            transaction.fence(lock)?;
        }
        let record = [lock.token().to_le_bytes(), value.to_le_bytes()].concat();
        let id: OperationId = transaction.append(self.keyspace(key), key, record)?;
        let offset = self.commit(transaction)?.offset(id);
        offset.ok_or_else(|| Error::corrupt("an append without its offset"))
    }

    /// Commits it; asks again when the outcome is unknown (F4).
    fn commit(&self, transaction: Transaction) -> Result<Committed> {
        let mut done = transaction.commit();
        for _ in 0..ASKS {
            let Err(error) = &done else { break };
            if error.kind() != ErrorKind::TimedOut {
                break;
            }
            match self.store.outcome(error) {
                // It has no transaction that could be asked for.
                Err(other) if other.kind() == ErrorKind::InvalidArgument => break,
                told => done = told,
            }
        }
        done
    }
}

fn no_lock() -> Error {
    Error::invalid("this puppet has no lock: order one first")
}

/// A payload that answers when half of it was taken, and then has no more and no end.
struct Half {
    bytes: Vec<u8>,
    at: usize,
}

impl Read for Half {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let half = &self.bytes[self.at..self.bytes.len() / 2];
        if half.is_empty() {
            answer(&Ok(vec![self.at as u64]))?;
            loop {
                std::thread::park();
            }
        }
        let len = half.len().min(buffer.len());
        buffer[..len].copy_from_slice(&half[..len]);
        self.at += len;
        Ok(len)
    }
}
