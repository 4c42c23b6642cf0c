//! Makes calls as it is told, for `cargo xtask steady` and `call-costs`: `caller FOLDER CACHE_MIB
//! SEED` opens a store, says "ready", and answers each line of its input, "KIND COUNT", with "done"
//! when it has made so many calls of this kind.
//!
//! What it does, others do in their languages, and are compared with it: `caller.c` and
//! `caller.cpp` of `crates/tyr-c`, `Caller.java` of `crates/tyr-java`, `caller.py` of
//! `crates/tyr-python`.

use std::env;
use std::io::{self, BufRead, Write};

use futures_util::future::{AbortHandle, Abortable, join_all};
use tokio::runtime::Runtime;
use tyr::blocking::{Keyspace, Tyr};
use tyr::{Durability, Error, ErrorKind, KeyspaceConfig, Number, Result, Scan, Transform};

/// Of the kinds that are measured: blobs in memory.
const BLOBS: usize = 1000;
const READ: u64 = 800;
const OPERATIONS: usize = 6;
const UNDER_WAY: usize = 32;
const LARGE: usize = 4 << 20;

/// Of the mix: few keys, so that calls meet.
const KEYS: u64 = 256;
const PAYLOAD_MAX: u64 = 4096;
const LOG_MAX: u64 = 64 << 10;

struct Caller {
    tyr: Tyr,
    memory: Keyspace,
    buffered: Keyspace,
    runtime: Runtime,
    random: u64,
    keys: Vec<String>,
    others: Vec<String>,
    large: Vec<u8>,
}

fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [folder, cache_mib, seed] = words.as_slice() else {
        return Err(Error::invalid("say FOLDER CACHE_MIB SEED"));
    };
    let mut caller = Caller::new(folder, number(cache_mib)?, number(seed)?)?;
    println!("ready");
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| Error::invalid(error.to_string()))?;
        let (kind, count) = line.split_once(' ').unwrap_or((&line, ""));
        caller.obey(kind, number(count)? as usize)?;
        println!("done");
        io::stdout().flush().map_err(|error| Error::invalid(error.to_string()))?;
    }
    caller.tyr.close()
}

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::invalid(format!("\"{text}\" is no number")))
}

/// `None` where it is not there.
fn if_there<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

fn one() -> Transform {
    Transform::add(Number::U64(1))
}

impl Caller {
    fn new(folder: &str, cache_mib: u64, seed: u64) -> Result<Self> {
        let tyr = Tyr::options().cache_bytes(cache_mib << 20).open_blocking(folder)?;
        let of = |durability| KeyspaceConfig { durability, ..KeyspaceConfig::default() };
        let caller = Self {
            memory: tyr.create_keyspace("memory", of(Durability::Memory))?,
            buffered: tyr.create_keyspace("buffered", of(Durability::Buffered))?,
            tyr,
            runtime: Runtime::new().map_err(|error| Error::invalid(error.to_string()))?,
            random: seed | 1,
            keys: (0..BLOBS).map(|at| format!("key {at}")).collect(),
            others: (0..BLOBS).map(|at| format!("other {at}")).collect(),
            large: vec![0; LARGE],
        };
        for key in &caller.keys {
            caller.memory.put(key, vec![7; 4096])?;
        }
        caller.memory.put("large", caller.large.clone())?;
        Ok(caller)
    }

    fn obey(&mut self, kind: &str, count: usize) -> Result<()> {
        match kind {
            "read" => self.read(count),
            "put" => self.put(count),
            "transaction" => self.transact(count),
            "async" => self.read_beside(count),
            "large" => self.read_large(count),
            "mix" => self.mix(count),
            other => Err(Error::invalid(format!("there are no calls of the kind \"{other}\""))),
        }
    }

    fn read(&self, count: usize) -> Result<()> {
        for at in 0..count {
            assert_eq!(self.memory.read(&self.keys[at % BLOBS], 1024, READ)?.len(), READ as usize);
        }
        Ok(())
    }

    /// Of bytes that are the program's, as others have them too: they are copied.
    fn put(&self, count: usize) -> Result<()> {
        let data = [1; 100];
        (0..count).try_for_each(|at| self.memory.put(&self.others[at % BLOBS], data.to_vec()))
    }

    fn transact(&self, count: usize) -> Result<()> {
        let data = [2; 100];
        for at in 0..count {
            let mut transaction = self.tyr.begin();
            for place in 0..OPERATIONS {
                let key = &self.others[(at + place) % BLOBS];
                transaction.put(&self.memory, key, data.to_vec())?;
            }
            transaction.commit()?;
        }
        Ok(())
    }

    fn read_beside(&self, count: usize) -> Result<()> {
        let memory = self.memory.clone().into_async();
        let read_some = async |some: usize| {
            for at in 0..some {
                let read = memory.read(&self.keys[at % BLOBS], 1024, READ).await?;
                assert_eq!(read.len(), READ as usize);
            }
            Ok(())
        };
        let all = (0..UNDER_WAY).map(|at| read_some((count + at) / UNDER_WAY));
        self.runtime.block_on(join_all(all)).into_iter().collect()
    }

    /// Into memory of its own, which Rust's API leaves to the program.
    fn read_large(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let read = self.memory.read("large", 0, LARGE as u64)?;
            self.large.copy_from_slice(&read);
        }
        Ok(())
    }

    fn next(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % below
    }

    fn any_key(&mut self) -> String {
        let at = self.next(KEYS);
        self.keys[at as usize].clone()
    }

    fn payload(&mut self) -> Vec<u8> {
        vec![3; self.next(PAYLOAD_MAX) as usize]
    }

    fn mix(&mut self, count: usize) -> Result<()> {
        let mut made = 0;
        while made < count {
            if self.next(16) == 0 {
                made += self.start_some()?;
            } else {
                self.wait_for_one()?;
                made += 1;
            }
        }
        Ok(())
    }

    fn wait_for_one(&mut self) -> Result<()> {
        let (key, other, payload) = (self.any_key(), self.any_key(), self.payload());
        let (kind, offset, data) = (self.next(10), self.next(2000), self.buffered.clone());
        match kind {
            0 | 1 => drop(if_there(data.read(&key, offset, READ))?),
            2 => drop(if_there(data.get(&key))?),
            3 => data.put(&key, payload)?,
            4 => drop(data.delete(&key)?),
            5 => {
                if data.append("log", payload)? > LOG_MAX {
                    data.truncate("log", 0)?;
                }
            }
            6 => drop(data.apply("n", 0, one())?),
            7 => drop(data.scan_page(&Scan::new().limit(20))?),
            8 => drop(if_there(self.tyr.snapshot()?.get(&data, &key))?),
            _ => {
                let transacted = self.tyr.transact(|transaction| {
                    transaction.put(&data, &other, payload.clone())?;
                    transaction.stat(&data, &key)
                });
                if_there(transacted)?;
            }
        }
        Ok(())
    }

    /// Calls beside each other, some of which are dropped before they are over.
    fn start_some(&mut self) -> Result<usize> {
        let count = 1 + self.next(UNDER_WAY as u64) as usize;
        let data = self.buffered.clone().into_async();
        let calls: Vec<_> = (0..count)
            .map(|_| {
                let (key, payload, kind) = (self.any_key(), self.payload(), self.next(6));
                let (abort, registration) = AbortHandle::new_pair();
                if self.next(4) == 0 {
                    self.runtime.spawn(async move { abort.abort() });
                }
                let data = &data;
                let call = async move {
                    match kind {
                        0 => data.get(&key).await.map(drop),
                        1 => data.put(&key, payload).await,
                        2 => data.delete(&key).await.map(drop),
                        3 => data.apply("n", 0, one()).await.map(drop),
                        4 => data.scan_page(&Scan::new().limit(20)).await.map(drop),
                        _ => data.read(&key, 0, PAYLOAD_MAX).await.map(drop),
                    }
                };
                Abortable::new(call, registration)
            })
            .collect();
        for answer in self.runtime.block_on(join_all(calls)).into_iter().flatten() {
            if_there(answer)?;
        }
        Ok(count)
    }
}
