//! The clients of a trial: the product's own, and one that asks a single node.
//!
//! [`connection`] gives the product's client a network and monitors; [`Caller`] is how workloads
//! use it: plain calls that block. Some of them a [`worker`](crate::worker) can do instead, which
//! [`played`] has do so. [`probe`] says what one node answers, without going elsewhere.

pub mod connection;
mod played;
pub mod probe;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tyr_client::{Client, Lease, Place, Seen, Unresolved, Want, block_on};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Error, ErrorKind, Key, KeyspaceConfig, KeyspaceId,
    KeyspaceName, Number, Operation, Outcome, Payload, ReadCheck, Result, Scan, ScanEntry,
    ScanPage, Timestamp, Transform,
};

pub use self::connection::{connect, connect_speaking};
use self::played::Played;
use crate::history::Head;
use crate::worker::Worker;

/// What parts the group from the rest of a key, in all keyspaces.
pub const DELIMITER: u8 = b'/';

/// How often an unknown outcome is asked for again.
pub(crate) const ASKS: u32 = 2;

/// A client with the keyspaces that a workload's blobs lie in: which one a blob's key says.
#[derive(Clone)]
pub struct Caller {
    client: Arc<Client>,
    keyspaces: Vec<KeyspaceId>,
    played: Option<Played>,
}

impl Caller {
    /// A caller of this keyspace, which is made if there is none.
    ///
    /// # Errors
    /// `Unavailable` when the monitors do not answer.
    pub fn new(client: &Arc<Client>, name: &str, config: &KeyspaceConfig) -> Result<Self> {
        Self::of_all(client, &[(name.to_owned(), config.clone())])
    }

    /// The same of several keyspaces, over which blobs are spread by their keys.
    ///
    /// # Errors
    /// As [`Caller::new`].
    ///
    /// # Panics
    /// Without a keyspace.
    pub fn of_all(client: &Arc<Client>, wanted: &[(String, KeyspaceConfig)]) -> Result<Self> {
        assert!(!wanted.is_empty(), "a blob lies in a keyspace");
        let mut keyspaces = Vec::new();
        for (name, config) in wanted {
            let name = KeyspaceName::new(name)?;
            let made = match block_on(client.create_keyspace(&name, config)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    block_on(client.keyspace(&name))
                }
                made => made,
            };
            keyspaces.push(made?.id);
        }
        Ok(Self { client: Arc::clone(client), keyspaces, played: None })
    }

    /// The same, but a worker does what workers can.
    pub fn played_by(self, worker: Worker) -> Self {
        Self { played: Some(Played::new(worker, self.keyspaces.len())), ..self }
    }

    /// How many keyspaces the blobs are spread over.
    pub fn keyspaces(&self) -> usize {
        self.keyspaces.len()
    }

    /// The client.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// The blob of this key.
    ///
    /// # Panics
    /// For keys that are none.
    pub fn blob(&self, key: &str) -> BlobName {
        let keyspace = self.keyspaces[place(key, self.keyspaces.len())];
        BlobName { keyspace, key: Key::new(key).expect("workloads name keys") }
    }

    /// A read by itself; `None` when there is no such blob.
    ///
    /// # Errors
    /// What the client answers.
    pub fn read(&self, key: &str, range: ByteRange) -> Result<Option<Bytes>> {
        if let Some(played) = &self.played {
            return played.read(key, range);
        }
        let want = Want { blob: self.blob(key), range, is_attributes: true };
        let sight = block_on(self.client.read(want, Place::Newest).answer())?;
        Ok(bytes(&sight.seen))
    }

    /// A blob's size; 0 when there is none.
    ///
    /// # Errors
    /// What the client answers.
    pub fn size(&self, key: &str) -> Result<u64> {
        if let Some(played) = &self.played {
            return played.size(key);
        }
        let want = Want::stat(self.blob(key));
        let sight = block_on(self.client.read(want, Place::Newest).answer())?;
        Ok(sight.seen.size.flatten().unwrap_or(0))
    }

    /// Whole blobs at one moment (R6).
    ///
    /// # Errors
    /// What the client answers.
    pub fn read_many(&self, keys: &[String], range: ByteRange) -> Result<Vec<Option<Bytes>>> {
        if let Some(played) = &self.played {
            return played.read_many(keys, range);
        }
        let wants =
            keys.iter().map(|key| Want { blob: self.blob(key), range, is_attributes: true });
        let (_, seen) = block_on(self.client.read_many(wants.collect()).answer())?;
        Ok(seen.iter().map(bytes).collect())
    }

    /// The same, one after the other in a snapshot.
    ///
    /// # Errors
    /// What the client answers.
    pub fn read_snapshot(&self, keys: &[String], range: ByteRange) -> Result<Vec<Option<Bytes>>> {
        if let Some(played) = &self.played {
            return played.read_snapshot(keys, range);
        }
        let (at, _lease) = self.moment()?;
        keys.iter().map(|key| self.read_at(key, range, at)).collect()
    }

    /// The moment of a snapshot, and what keeps it.
    ///
    /// # Errors
    /// What the client answers.
    pub fn moment(&self) -> Result<(Timestamp, Option<Lease>)> {
        let moment = block_on(self.client.moment().answer())?;
        moment.ok_or_else(|| Error::unavailable("a cluster with a keyspace has a moment"))
    }

    /// A read at that moment.
    ///
    /// # Errors
    /// What the client answers.
    pub fn read_at(&self, key: &str, range: ByteRange, at: Timestamp) -> Result<Option<Bytes>> {
        let want = Want { blob: self.blob(key), range, is_attributes: true };
        let sight = block_on(self.client.read(want, Place::At(at)).answer())?;
        Ok(bytes(&sight.seen))
    }

    /// All keys at that moment with their sizes in the order of keys, so many asked for at a time.
    ///
    /// # Errors
    /// What the client answers.
    pub fn list_at(&self, at: Timestamp, page: usize) -> Result<Vec<(String, u64)>> {
        let mut all = Vec::new();
        for (keyspace, number) in self.keyspaces.iter().zip(0..) {
            let listed = self.list_one(*keyspace, at, page)?;
            if listed.iter().any(|(key, _)| place(key, self.keyspaces.len()) != number) {
                return Err(Error::corrupt("a keyspace lists keys of another"));
            }
            all.extend(listed);
        }
        if self.keyspaces.len() > 1 {
            all.sort();
        }
        Ok(all)
    }

    /// The same with the first bytes of each: how many came, and the number that each of them is,
    /// if it is one.
    ///
    /// # Errors
    /// What the client answers.
    pub fn heads_at(&self, at: Timestamp, page: usize, len: u64) -> Result<Vec<Head>> {
        let mut all = Vec::new();
        for page in self.pages_of_all(at, &Scan::new().limit(page).first_bytes(len))? {
            let head = |entry: ScanEntry| {
                let first = entry.bytes.first().copied();
                let is_one = entry.bytes.iter().all(|byte| Some(*byte) == first);
                let size = entry.stat?.size;
                Some((text(&entry), size, entry.bytes.len() as u64, first.filter(|_| is_one)))
            };
            all.extend(page.entries.into_iter().filter_map(head));
        }
        all.sort();
        Ok(all)
    }

    /// What keys begin with at that moment, up to a delimiter; each once, in order.
    ///
    /// # Errors
    /// What the client answers.
    pub fn groups_at(&self, at: Timestamp, page: usize, delimiter: &str) -> Result<Vec<String>> {
        let mut all = BTreeSet::new();
        for page in self.pages_of_all(at, &Scan::new().limit(page).delimiter(delimiter))? {
            all.extend(page.groups.iter().map(|it| String::from_utf8_lossy(it).into_owned()));
            all.extend(page.entries.iter().map(text));
        }
        Ok(all.into_iter().collect())
    }

    /// The keys with this prefix, all of one group, at that moment.
    ///
    /// # Errors
    /// What the client answers.
    pub fn list_group_at(&self, at: Timestamp, page: usize, prefix: &str) -> Result<Vec<String>> {
        let keyspace = self.keyspaces[place(prefix, self.keyspaces.len())];
        let pages = self.pages_of(keyspace, at, Scan::new().limit(page).prefix(prefix))?;
        Ok(pages.iter().flat_map(|page| page.entries.iter().map(text)).collect())
    }

    /// All pages of a scan of each keyspace.
    fn pages_of_all(&self, at: Timestamp, scan: &Scan) -> Result<Vec<ScanPage>> {
        let mut all = Vec::new();
        for keyspace in &self.keyspaces {
            all.extend(self.pages_of(*keyspace, at, scan.clone())?);
        }
        Ok(all)
    }

    fn pages_of(&self, keyspace: KeyspaceId, at: Timestamp, scan: Scan) -> Result<Vec<ScanPage>> {
        let (mut all, mut next) = (Vec::new(), Some(scan));
        while let Some(scan) = next {
            let page = block_on(self.client.scan(keyspace, scan.clone(), Some(at)).answer())?;
            next = scan.resumed(&page);
            all.push(page);
        }
        Ok(all)
    }

    fn list_one(
        &self,
        keyspace: KeyspaceId,
        at: Timestamp,
        page: usize,
    ) -> Result<Vec<(String, u64)>> {
        let pages = self.pages_of(keyspace, at, Scan::new().limit(page))?;
        let named = |entry: ScanEntry| Some((text(&entry), entry.stat?.size));
        Ok(pages.into_iter().flat_map(|page| page.entries).filter_map(named).collect())
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Deal<'_> {
        Deal {
            caller: self,
            at: BTreeMap::new(),
            reads: Vec::new(),
            leases: Vec::new(),
            blobs: Vec::new(),
            outcomes: Vec::new(),
            is_begun: false,
        }
    }
}

/// Which of so many keyspaces a key's blob lies in: neighbours lie in different ones, but those of
/// a group in one.
pub(crate) fn place(key: &str, keyspaces: usize) -> usize {
    let part = key.split(char::from(DELIMITER)).next().unwrap_or(key);
    part.bytes().map(usize::from).sum::<usize>() % keyspaces
}

fn text(entry: &ScanEntry) -> String {
    String::from_utf8_lossy(entry.key.as_bytes()).into_owned()
}

fn bytes(seen: &Seen) -> Option<Bytes> {
    (!seen.is_absent()).then(|| seen.bytes.clone())
}

/// A transaction: reads first, then operations, then its end.
pub struct Deal<'a> {
    caller: &'a Caller,
    at: BTreeMap<BlobName, Timestamp>,
    reads: Vec<ReadCheck>,
    leases: Vec<Lease>,
    blobs: Vec<BlobOperations>,
    outcomes: Vec<Outcome>,
    /// Whether a worker, if one plays, was told of it.
    is_begun: bool,
}

impl Deal<'_> {
    /// Reads, to be validated; `None` when there is no such blob.
    ///
    /// # Errors
    /// What the client answers.
    pub fn read(&mut self, key: &str, range: ByteRange) -> Result<Option<Bytes>> {
        if let Some(played) = &self.caller.played {
            played.begin(&mut self.is_begun)?;
            return played.read_in(key, range);
        }
        let blob = self.caller.blob(key);
        let known = self.at.get(&blob).copied();
        let place = known.map_or(Place::Transaction, Place::At);
        let want = Want { blob: blob.clone(), range, is_attributes: true };
        let sight = block_on(self.caller.client.read(want, place).answer())?;
        let check = sight.seen.check();
        let check =
            check.ok_or_else(|| Error::unavailable("a first read without its timestamp"))?;
        self.at.entry(blob).or_insert(check.at);
        self.leases.extend(sight.lease);
        self.reads.push(check);
        Ok(bytes(&sight.seen))
    }

    /// Adds an operation on a blob that none was added for yet; answers its place.
    pub fn add(&mut self, key: &str, operation: Operation) -> usize {
        self.blobs
            .push(BlobOperations { blob: self.caller.blob(key), operations: vec![operation] });
        self.blobs.len() - 1
    }

    /// Adds two operations on one blob; answers the place of the first.
    pub fn add_two(&mut self, key: &str, operations: [Operation; 2]) -> usize {
        let operations = operations.into();
        self.blobs.push(BlobOperations { blob: self.caller.blob(key), operations });
        self.blobs.len() - 1
    }

    /// Commits it; asks again when the outcome is unknown (F4).
    ///
    /// # Errors
    /// What the client answers; after `TimedOut` the outcome is still unknown.
    pub fn commit(&mut self) -> Result<()> {
        if let Some(played) = &self.caller.played {
            played.begin(&mut self.is_begun)?;
            self.outcomes = played.commit(&self.blobs)?;
            return Ok(());
        }
        let client = &self.caller.client;
        let (blobs, reads) = (std::mem::take(&mut self.blobs), std::mem::take(&mut self.reads));
        let mut answer = client.commit(blobs, reads, std::mem::take(&mut self.leases)).wait();
        for _ in 0..ASKS {
            let Err(error) = &answer else { break };
            let Some(transaction) = Unresolved::of(error) else { break };
            answer = client.ask(transaction).wait();
        }
        self.outcomes = answer?.outcomes;
        Ok(())
    }

    /// The offset that the append got which was the first operation there; of one operation a blob.
    pub fn offset(&self, place: usize) -> Option<u64> {
        match self.outcomes.get(place)? {
            Outcome::Offset(offset) => Some(*offset),
            Outcome::Done | Outcome::Value(_) | Outcome::Existed(_) => None,
        }
    }

    /// The number that arithmetic there came to.
    pub fn sum(&self, place: usize) -> Option<u64> {
        match self.outcomes.get(place)? {
            Outcome::Value(Number::U64(sum)) => Some(*sum),
            Outcome::Value(_) | Outcome::Done | Outcome::Offset(_) | Outcome::Existed(_) => None,
        }
    }
}

/// An append of one value.
pub fn append(value: u64) -> Operation {
    Operation::Append { payload: payload(value), expected: None }
}

/// The blob is this value and nothing else.
pub fn put(value: u64) -> Operation {
    Operation::Replace { payload: payload(value) }
}

/// The value at the start must be this one.
pub fn compare(value: u64) -> Operation {
    Operation::Compare { offset: 0, expected: Bytes::copy_from_slice(&value.to_le_bytes()).into() }
}

/// One is added to the number at the start.
pub fn add_one() -> Operation {
    Operation::Apply { offset: 0, transform: Transform::add(Number::U64(1)) }
}

fn payload(value: u64) -> Payload {
    Payload::Inline(Bytes::copy_from_slice(&value.to_le_bytes()))
}

/// The 8-byte values of a blob.
///
/// # Errors
/// `Corrupt` when they are cut off.
pub fn values(bytes: &[u8]) -> Result<Vec<u64>> {
    let (whole, rest) = bytes.as_chunks::<8>();
    match rest.is_empty() {
        true => Ok(whole.iter().map(|value| u64::from_le_bytes(*value)).collect()),
        false => Err(Error::corrupt(format!("{} bytes are not values of 8", bytes.len()))),
    }
}

/// The range of so many values.
pub fn range(from: u64, count: u64) -> ByteRange {
    ByteRange { start: 8 * from, end: 8 * (from + count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::listings::keys_of;

    #[test]
    fn what_is_done_at_once_lies_in_several_keyspaces() {
        for keyspaces in 2..=3 {
            let [left, right] = keys_of(7).map(|key| place(&key, keyspaces));
            assert_ne!(left, right);
            let counters: Vec<usize> = (0..keyspaces)
                .map(|number| place(&format!("counter-{number}"), keyspaces))
                .collect();
            assert!((0..keyspaces).all(|keyspace| counters.contains(&keyspace)));
        }
        assert_eq!(place("counter-1", 1), 0);
        assert_eq!(place("group-1/entry-01", 3), place("group-1/header", 3), "groups are whole");
    }
}
