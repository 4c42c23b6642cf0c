//! What is in the store that is damaged, and what it must answer.

use std::collections::BTreeMap;
use std::path::Path;

use tyr::blocking::Tyr;
use tyr::{ByteRange, Durability, Error, ErrorKind, KeyspaceConfig, limits};
use tyr_chance::Chance;

/// Transactions after the last fold: number `n` makes `late/n`, and appends a byte to `count`.
pub const LATE: usize = 12;

/// Keyspaces: name, durability, compression.
const KEYSPACES: [(&str, Durability, bool); 2] =
    [("plain", Durability::Sync, false), ("compressed", Durability::Buffered, true)];

/// Blobs that were folded: kind, size.
const FOLDED: [(&str, usize); 6] = [
    ("empty", 0),
    ("small", 300),
    ("inline", 20_000),
    ("blocks", 31_000),
    ("extent", 70_000),
    ("extents", 300_000),
];

/// Makes the store, with blobs of every kind in the base and in the log.
pub fn fill(path: &Path) -> Tyr {
    let tyr = Tyr::open(path).unwrap();
    for (name, durability, is_compressed) in KEYSPACES {
        let config = KeyspaceConfig { durability, is_compressed, ..KeyspaceConfig::default() };
        let keyspace = tyr.create_keyspace(name, config).unwrap();
        for (kind, size) in FOLDED {
            for copy in 0..3 {
                let key = format!("{kind}/{copy}");
                keyspace.put(key.as_str(), bytes(name, &key, size)).unwrap();
            }
        }
        keyspace.put("deleted", bytes(name, "deleted", 50_000)).unwrap();
    }
    // A check folds first.
    assert!(tyr.check(&mut |_| {}).unwrap().findings.is_empty());
    let plain = tyr.keyspace("plain").unwrap();
    for (name, _, _) in KEYSPACES {
        tyr.keyspace(name).unwrap().delete("deleted").unwrap();
    }
    for number in 1..=LATE {
        let mut transaction = tyr.begin();
        let key = format!("late/{number}");
        let content = bytes("plain", &key, late_size(number));
        transaction.put(&plain, key.as_str(), content).unwrap();
        transaction.append(&plain, "count", vec![number as u8]).unwrap();
        transaction.commit().unwrap();
    }
    tyr
}

fn late_size(number: usize) -> usize {
    if number.is_multiple_of(4) { 40_000 } else { 100 * number }
}

fn bytes(keyspace: &str, key: &str, len: usize) -> Vec<u8> {
    let seed = keyspace
        .bytes()
        .chain(key.bytes())
        .fold(0, |seed, byte| (seed << 5) ^ (seed >> 57) ^ u64::from(byte));
    let mut chance = Chance::new(seed);
    // Every other word repeats, so that some of it compresses.
    let words = (0..len.div_ceil(8)).map(|n| if n % 2 == 0 { chance.any() } else { 7 });
    words.flat_map(u64::to_le_bytes).take(len).collect()
}

/// What a store answers.
#[derive(Debug, Default)]
pub struct Answers {
    /// Blobs that are as they were written.
    pub right: usize,
    /// Errors instead of answers.
    pub refused: Vec<Error>,
    /// Answers that are neither.
    pub wrong: Vec<String>,
    /// How many of the transactions after the last fold are there, if that can be read.
    pub late: Option<usize>,
}

impl Answers {
    /// Reads everything.
    pub fn of(tyr: &Tyr) -> Self {
        let mut answers = Self::default();
        answers.late = answers.count(tyr);
        for (name, _, _) in KEYSPACES {
            let expected = expected(name, answers.late);
            answers.read(tyr, name, &expected);
        }
        answers
    }

    fn count(&mut self, tyr: &Tyr) -> Option<usize> {
        let count = tyr.keyspace("plain").and_then(|keyspace| keyspace.get("count"));
        let count = match count {
            Ok(count) => count.to_vec(),
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                self.refused.push(error);
                return None;
            }
        };
        if count != (1..=count.len() as u8).collect::<Vec<_>>() {
            self.wrong.push(format!("the transactions {count:?} are there"));
        }
        Some(count.len())
    }

    fn read(&mut self, tyr: &Tyr, name: &str, expected: &BTreeMap<String, Vec<u8>>) {
        let keyspace = match tyr.keyspace(name) {
            Ok(keyspace) => keyspace,
            Err(error) => return self.wrong.push(format!("keyspace {name}: {error}")),
        };
        for (key, wanted) in expected {
            match keyspace.get(key.as_str()) {
                Ok(found) if found == *wanted => self.right += 1,
                Ok(found) => {
                    let what = format!("{name}: {key} has other bytes ({} of them)", found.len());
                    self.wrong.push(what);
                }
                // What came after the last fold may be missing when nobody knows how much is.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    if self.late.is_some() {
                        self.wrong.push(format!("{name}: {key} is missing"));
                    }
                }
                Err(error) => self.refused.push(error),
            }
            // A reader takes another way through the store.
            let range = ByteRange { start: 0, end: u64::MAX };
            let mut streamed = Vec::new();
            let stream = keyspace.reader(key.as_str(), range).and_then(|mut reader| {
                std::io::Read::read_to_end(&mut reader, &mut streamed)
                    .map_err(|error| Error::corrupt(error.to_string()))
            });
            if stream.is_ok() && streamed != *wanted {
                self.wrong.push(format!("{name}: {key} streams other bytes"));
            }
        }
        match keyspace.scan(b"", None, limits::SCAN_LIMIT_MAX) {
            Ok(listed) => {
                let mut listed: Vec<_> = listed.iter().map(|(key, _)| key.to_string()).collect();
                // It was deleted before the first of the late transactions.
                listed.retain(|key| key != "deleted" || self.late != Some(0));
                let is_right = listed.iter().eq(expected.keys());
                if self.late.is_some() && !is_right {
                    self.wrong.push(format!("{name}: lists {listed:?}"));
                }
            }
            Err(error) => self.refused.push(error),
        }
    }
}

/// The blobs of a keyspace after so many of the late transactions; all if that is not known.
fn expected(name: &str, late: Option<usize>) -> BTreeMap<String, Vec<u8>> {
    let folded = FOLDED
        .iter()
        .flat_map(|(kind, size)| (0..3).map(move |copy| (format!("{kind}/{copy}"), *size)));
    let mut blobs: BTreeMap<_, _> =
        folded.map(|(key, size)| (key.clone(), bytes(name, &key, size))).collect();
    if name == "plain" {
        for number in 1..=late.unwrap_or(LATE) {
            let key = format!("late/{number}");
            blobs.insert(key.clone(), bytes(name, &key, late_size(number)));
        }
        if let Some(late @ 1..) = late {
            blobs.insert("count".to_owned(), (1..=late as u8).collect());
        }
    }
    blobs
}
