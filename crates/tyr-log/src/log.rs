//! A log, opened: its description, and where each partition takes entries.
//!
//! The handle remembers the last segment of each partition, and learns of another when an append
//! meets a closed one. Nothing else that it remembers changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::RwLock;
use tyr::{Bytes, Error, ErrorKind, Key, Keyspace, Number, Result, Scan, Timestamp, Tyr};

use crate::description::{DESCRIPTION_LEN_MAX, Description};
use crate::gather::Gathering;
use crate::layout;
use crate::name::Name;
use crate::options::{KEYSPACE_DEFAULT, Options};
use crate::segment;

/// A log. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Log {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub store: Tyr,
    pub keyspace: Keyspace,
    pub name: Name,
    pub key: Key,
    /// Of a strict log: its counter.
    pub number_key: Option<Key>,
    pub segment_bytes: u64,
    /// When it was made: tells it from a later log of the same name.
    pub created: Timestamp,
    pub tails: Vec<Tail>,
    /// Whether entries that are appended at once share transactions: where each waits for a trip.
    pub is_gathering: bool,
    /// The partition that is next in turn.
    pub turn: AtomicUsize,
}

/// Where a partition takes entries, as far as this handle knows.
#[derive(Debug)]
pub(crate) struct Tail {
    current: RwLock<Arc<Segment>>,
    /// Whether somebody here is closing it.
    pub is_rolling: AtomicBool,
    /// Whether something was put into a transaction that nobody has told the outcome of.
    pub is_open_ended: AtomicBool,
    /// Entries that are appended at once.
    pub gathering: Gathering,
}

/// A segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub partition: u16,
    pub number: u64,
    pub key: Key,
    pub guard: u32,
}

impl Segment {
    pub fn new(log: &Name, partition: u16, number: u64) -> Result<Self> {
        let key = layout::segment_key(log, partition, number)?;
        Ok(Self { partition, number, key, guard: segment::guard(log, partition, number) })
    }
}

impl Tail {
    pub fn current(&self) -> Arc<Segment> {
        Arc::clone(&self.current.read())
    }

    /// It is this one, or a later one that somebody else has seen.
    pub fn advance(&self, to: Segment) {
        let mut current = self.current.write();
        if current.number < to.number {
            *current = Arc::new(to);
        }
    }
}

impl Log {
    /// Makes a log in its keyspace, which is made if it is missing.
    ///
    /// # Errors
    /// `AlreadyExists` when there is one of this name; `InvalidArgument` for options out of range.
    pub async fn create(store: &Tyr, name: &str, options: &Options) -> Result<Self> {
        let name = Name::new("log", name)?;
        let keyspace = match store.keyspace(&options.keyspace).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let config = options.keyspace_config.clone();
                options.validate_in(&config)?;
                store.keyspace_or_create(&options.keyspace, config).await?
            }
            found => found?,
        };
        options.validate_in(keyspace.config())?;
        let segment_bytes = options.segment_bytes_in(keyspace.config().chunk_size);
        let key = layout::log_key(&name)?;
        let mut transaction = store.begin();
        transaction.expect_absent(&keyspace, &key)?;
        transaction.put(&keyspace, &key, Description::create(options, segment_bytes)?)?;
        if options.is_strict {
            transaction.put(&keyspace, layout::number_key(&name)?, vec![0; 8])?;
        }
        for partition in 0..options.partitions {
            let head = segment::new_head(&name, partition, 0)?;
            transaction.put(&keyspace, layout::segment_key(&name, partition, 0)?, head)?;
        }
        match transaction.commit().await {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("there is a log {name} in keyspace {} already: open it", keyspace.name()),
            )),
            Err(error) => Err(error),
            Ok(_) => Self::open_in(store, &options.keyspace, name.as_str()).await,
        }
    }

    /// Opens a log of the keyspace `logs`.
    ///
    /// # Errors
    /// `NotFound` when there is no such log.
    pub async fn open(store: &Tyr, name: &str) -> Result<Self> {
        Self::open_in(store, KEYSPACE_DEFAULT, name).await
    }

    /// Opens a log of a keyspace.
    ///
    /// # Errors
    /// `NotFound` when there is no such log, or keyspace.
    pub async fn open_in(store: &Tyr, keyspace: &str, name: &str) -> Result<Self> {
        let name = Name::new("log", name)?;
        let keyspace = match store.keyspace(keyspace).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(no_log(&name, keyspace).with_source(error));
            }
            found => found?,
        };
        let key = layout::log_key(&name)?;
        let description = read_description(&keyspace, &key, &name).await?;
        let tails = description.rows.iter().zip(0..).map(|(row, partition)| {
            Ok(Tail {
                current: RwLock::new(Arc::new(Segment::new(&name, partition, row.last)?)),
                is_rolling: AtomicBool::new(false),
                is_open_ended: AtomicBool::new(false),
                gathering: Gathering::default(),
            })
        });
        let tails = tails.collect::<Result<_>>()?;
        let number_key = description.is_strict.then(|| layout::number_key(&name)).transpose()?;
        let Description { segment_bytes, created, .. } = description;
        Ok(Self {
            shared: Arc::new(Shared {
                store: store.clone(),
                keyspace,
                name,
                key,
                number_key,
                segment_bytes,
                created,
                tails,
                is_gathering: store.metadata().is_of_cluster(),
                turn: AtomicUsize::new(0),
            }),
        })
    }

    /// The names of the logs of a keyspace, in order.
    ///
    /// # Errors
    /// `NotFound` when there is no such keyspace; whatever the store answers.
    pub async fn list_in(store: &Tyr, keyspace: &str) -> Result<Vec<String>> {
        let keyspace = store.keyspace(keyspace).await?;
        let mut names = Vec::new();
        // What is in partitions has the delimiter in its key, and is passed by.
        let mut next = Some(Scan::new().delimiter("/").keys_only());
        while let Some(scan) = next {
            let page = keyspace.scan_page(&scan).await?;
            next = scan.resumed(&page);
            let found = page.entries.iter().filter_map(|entry| {
                let key = std::str::from_utf8(entry.key.as_bytes()).ok()?;
                key.strip_suffix(layout::LOG_SUFFIX).map(str::to_owned)
            });
            names.extend(found);
        }
        Ok(names)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.shared.name.as_str()
    }

    /// The keyspace that holds it.
    pub fn keyspace(&self) -> &Keyspace {
        &self.shared.keyspace
    }

    /// How many partitions it has.
    pub fn partitions(&self) -> u16 {
        self.shared.tails.len() as u16
    }

    /// Whether all partitions have one strict order, and each entry a number.
    pub fn is_strict(&self) -> bool {
        self.shared.number_key.is_some()
    }

    /// The partition of all entries with this key: the same for the same key and number of
    /// partitions, whoever asks.
    pub fn partition_of(&self, key: impl AsRef<[u8]>) -> u16 {
        (crc32c::crc32c(key.as_ref()) % u32::from(self.partitions())) as u16
    }

    /// The description as it is now.
    pub(crate) async fn describe(&self) -> Result<Description> {
        let Shared { keyspace, key, name, .. } = &*self.shared;
        read_description(keyspace, key, name).await
    }

    /// The partition that is next in turn.
    pub(crate) fn next_partition(&self) -> u16 {
        let count = self.shared.tails.len();
        if count == 1 {
            return 0;
        }
        (self.shared.turn.fetch_add(1, Ordering::Relaxed) % count) as u16
    }

    pub(crate) fn tail_of(&self, partition: u16) -> Result<&Tail> {
        self.shared.tails.get(usize::from(partition)).ok_or_else(|| {
            Error::invalid(format!(
                "log {} has the partitions 0 to {}, not {partition}",
                self.shared.name,
                self.partitions() - 1
            ))
        })
    }
}

async fn read_description(keyspace: &Keyspace, key: &Key, name: &Name) -> Result<Description> {
    match keyspace.read(key, 0, DESCRIPTION_LEN_MAX).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(no_log(name, keyspace.name())),
        found => Description::read(&found?, name),
    }
}

fn no_log(name: &Name, keyspace: &str) -> Error {
    Error::not_found(format!("there is no log {name} in keyspace {keyspace}: create it first"))
}

/// The counter of a strict log, from its bytes.
pub(crate) fn read_number(bytes: &Bytes) -> u64 {
    match Number::load_written(tyr::NumberType::U64, bytes) {
        Number::U64(number) => number,
        other => unreachable!("a number of type u64 was asked for, not {other:?}"),
    }
}

/// Microseconds since 1970 by this machine's clock.
pub(crate) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Whether a moment is longer ago than this many microseconds.
pub(crate) fn is_older(at: Timestamp, age_us: u64, now_us: u64) -> bool {
    at.clock.saturating_add(age_us) < now_us
}
