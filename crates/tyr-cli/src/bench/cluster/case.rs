//! What is measured: which operation, with how many callers, and how it is checked.

use std::time::Duration;

use serde_json::{Value, json};
use tyr::{
    Bytes, ErrorKind, Keyspace, KeyspaceConfig, LeaseOptions, Number, PlacedBy, Result, Scan,
    Transform, Tyr,
};
use tyr_log::Options;

use super::files;
use super::other::Other;
use crate::bench::log::{self, LogCase};
use crate::bench::meter::Figures;
use crate::bench::workload::{CLUSTERS, GENERATORS, READ_LEN, RECORD_LEN, Zipf};
use crate::random::Random;

/// The keyspace of the case that is measured.
pub const KEYSPACE: &str = "bench";
/// Minutes of a day.
const MINUTES: u64 = 1440;
/// The minute that all measurements fall into.
const NOON: u64 = 720;
/// Who is refused tries again after this or up to twice as long: "in a moment".
const REST: Duration = Duration::from_millis(250);
/// Bytes that a generator has for reads.
const SERIES_LEN: usize = 16_000;
/// Blobs that are written and read in large pieces.
const LARGE_BLOBS: u64 = 64;
/// Blobs that are listed, and bytes of each.
const LISTED: usize = 1_000;
const LISTED_LEN: usize = 600;
/// What their keys begin with: a group, where the keyspace has groups.
const LISTED_IN: &str = "listed/";
/// Leases that are held while their cost is measured.
const HELD: usize = 1_000;
/// Bytes of a chunk, for pieces of 64 KiB and 4 MiB alike.
const LARGE_CHUNK: u64 = 64 << 20;

/// What each caller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The transaction of a monitoring store, in one minute.
    Hot,
    /// The same, by more than a node takes at a time: who is refused tries again after a moment.
    Crowd,
    /// The same, in any minute of a day.
    Spread,
    /// The same, in one minute, by reading and writing.
    ByReading,
    /// A file created: a blob of 4 KiB that must not be there, and two numbers added to in the
    /// header of its group, which must be.
    File,
    /// 800 bytes of one of 1000 series, zipf 0.99.
    Read,
    /// This many bytes at a random place that is a multiple of them.
    Write(u64),
    /// The same, read back.
    ReadLarge(u64),
    /// A page of the keys of one group with their attributes, and so many first bytes of each.
    Page(u64),
    /// As many keys of a keyspace whose blobs lie anywhere.
    PageOfAll,
    /// A lease of a key that nobody else wants, taken and given back.
    Lease,
    /// A second of [`HELD`] leases of three seconds, each of which is renewed each 0.75 s.
    Hold,
    /// A blob written of which another client holds a lease, which it gives back when it is asked.
    Recall,
    /// A blob written, until another client that watches it knows.
    Watch,
    /// Something done to a shared log.
    Log(log::Work),
}

/// A case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// What.
    pub work: Work,
    /// Callers in flight.
    pub callers: usize,
}

impl Case {
    /// All, in the order of the table.
    pub fn all() -> Vec<Self> {
        let of = |work: Work, callers: &[usize]| -> Vec<Self> {
            callers.iter().map(|callers| Self { work, callers: *callers }).collect()
        };
        [
            of(Work::Hot, &[1, 8, 32, 128]),
            of(Work::Crowd, &[128, 1024, 4096, 8192]),
            of(Work::Spread, &[1, 8, 32, 128]),
            of(Work::ByReading, &[32]),
            of(Work::File, &[1, 32, 128]),
            of(Work::Read, &[1, 32, 128]),
            of(Work::Write(64 << 10), &[16]),
            of(Work::Write(4 << 20), &[4]),
            of(Work::ReadLarge(4 << 20), &[4]),
            of(Work::Page(0), &[1, 8]),
            of(Work::Page(512), &[1, 8]),
            of(Work::PageOfAll, &[1, 8]),
            of(Work::Lease, &[1, 32]),
            of(Work::Hold, &[1]),
            of(Work::Recall, &[1, 32]),
            of(Work::Watch, &[1, 32]),
            of(Work::Log(log::Work::Append), &[1, 32, 128]),
            of(Work::Log(log::Work::Batches), &[1, 8]),
            of(Work::Log(log::Work::Pop), &[1, 8]),
        ]
        .concat()
    }

    /// In words.
    pub fn label(&self) -> String {
        let work = match self.work {
            Work::Hot => "transactions, one minute".to_owned(),
            Work::Crowd => "transactions of a crowd, one minute".to_owned(),
            Work::Spread => "transactions, a day".to_owned(),
            Work::ByReading => "transactions by reading, one minute".to_owned(),
            Work::File => "files created in a group".to_owned(),
            Work::Read => "reads of 800 B, zipf".to_owned(),
            Work::Write(len) => format!("writes of {} KiB", len >> 10),
            Work::ReadLarge(len) => format!("reads of {} KiB", len >> 10),
            Work::Page(0) => format!("pages of {LISTED} keys of a group"),
            Work::Page(first) => {
                format!("pages of {LISTED} keys of a group with {first} B of each")
            }
            Work::PageOfAll => format!("pages of {LISTED} keys of all groups"),
            Work::Lease => "leases taken and given back".to_owned(),
            Work::Hold => format!("seconds of {HELD} leases held"),
            Work::Recall => "writes of what another holds".to_owned(),
            Work::Watch => "writes until a watcher knows".to_owned(),
            Work::Log(work) => format!("log: {}", work.name()),
        };
        format!("{work}, {} in flight", self.callers)
    }

    /// The keyspace that suits it.
    pub fn config(&self) -> KeyspaceConfig {
        if let Work::Log(_) = self.work {
            return Options::default().keyspace_config;
        }
        let placed_by = match self.work {
            Work::Page(_) | Work::File => PlacedBy::UpTo(b'/'),
            Work::Hot
            | Work::Crowd
            | Work::Spread
            | Work::ByReading
            | Work::Read
            | Work::Write(_)
            | Work::ReadLarge(_)
            | Work::PageOfAll
            | Work::Lease
            | Work::Hold
            | Work::Recall
            | Work::Watch
            | Work::Log(_) => PlacedBy::Key,
        };
        let is_guarded = self.work == Work::Recall;
        let chunk_size = LARGE_CHUNK;
        KeyspaceConfig { chunk_size, placed_by, is_guarded, ..KeyspaceConfig::default() }
    }

    /// Payload bytes of one operation.
    fn len(&self) -> u64 {
        match self.work {
            Work::Hot | Work::Crowd | Work::Spread | Work::ByReading => RECORD_LEN as u64,
            Work::Read => READ_LEN,
            Work::File => files::FILE_LEN as u64,
            Work::Write(len) | Work::ReadLarge(len) => len,
            Work::Page(first) => LISTED as u64 * first,
            Work::Recall | Work::Watch => RECORD_LEN as u64,
            Work::PageOfAll | Work::Lease | Work::Hold => 0,
            Work::Log(work) => log::len_of(work),
        }
    }

    /// The medians of all runs as a row of the table.
    pub fn as_row(&self, runs: &[Figures]) -> Vec<String> {
        let label = self.label();
        let (what, _) = label.rsplit_once(',').unwrap_or((&label, ""));
        let of = |name: &str| median(runs, name);
        vec![
            what.to_owned(),
            self.callers.to_string(),
            format!("{:.0}", of("per_s")),
            format!("{:.1}", of("per_s") * self.len() as f64 / 1e6),
            format!("{:.1}", of("cpu_us")),
            format!("{:.1}", of("nodes_cpu_us")),
            format!("{:.2}", of("p50_us") / 1e3),
            format!("{:.2}", of("p99_us") / 1e3),
            format!("{:.0}", of("aborts")),
        ]
    }

    /// The medians of all runs, and each run.
    pub fn as_json(&self, runs: &[Figures]) -> Value {
        let mut medians = serde_json::Map::new();
        for name in runs.first().into_iter().flat_map(Figures::names) {
            medians.insert(name.to_owned(), json!(median(runs, name)));
        }
        let each: Vec<Value> = runs.iter().map(Figures::as_json).collect();
        json!({"case": self.label(), "in_flight": self.callers, "medians": medians, "runs": each})
    }
}

fn median(runs: &[Figures], name: &str) -> f64 {
    let mut values: Vec<f64> = runs.iter().filter_map(|figures| figures.get(name)).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A case on its keyspace.
pub struct Pattern {
    store: Tyr,
    keyspace: Keyspace,
    other: Other,
    /// The case.
    pub case: Case,
    zipf: Zipf,
    log: Option<LogCase>,
}

impl Pattern {
    /// The case on an empty keyspace; the other one is the same to another client.
    pub fn new(store: Tyr, keyspace: Keyspace, other: Keyspace, case: Case) -> Self {
        let (other, zipf) = (Other::new(other), Zipf::new(GENERATORS));
        Self { store, keyspace, other, case, zipf, log: None }
    }

    /// Writes what is to be read, and takes what is to be held.
    ///
    /// # Errors
    /// What the cluster says.
    pub async fn prepare(&mut self) -> Result<()> {
        match self.case.work {
            Work::Hot | Work::Crowd | Work::Spread | Work::ByReading | Work::Write(_) => {}
            Work::Lease | Work::Recall => {}
            Work::Log(work) => {
                let options = Options { keyspace: KEYSPACE.to_owned(), ..Options::default() };
                self.log =
                    Some(LogCase::new(&self.store, &options, work, self.case.callers).await?);
            }
            Work::File => files::prepare(&self.keyspace).await?,
            Work::Hold => self.other.hold((0..HELD).map(series)).await?,
            Work::Watch => self.other.watch((0..self.case.callers).map(series)).await?,
            Work::Read => {
                for number in 0..GENERATORS {
                    self.keyspace.put(series(number), vec![1; SERIES_LEN]).await?;
                }
            }
            Work::Page(_) | Work::PageOfAll => {
                for number in 0..LISTED {
                    self.keyspace.put(listed(number), vec![1; LISTED_LEN]).await?;
                }
            }
            Work::ReadLarge(len) => {
                for number in 0..LARGE_BLOBS {
                    self.keyspace.put(large(number), vec![1; len as usize]).await?;
                }
            }
        }
        Ok(())
    }

    /// What a caller needs before it does it once; its time does not count.
    ///
    /// # Errors
    /// What the cluster says.
    pub async fn before(&self, caller: usize) -> Result<()> {
        match self.case.work {
            Work::Recall => self.other.hold_until_recalled(series(caller)).await,
            Work::Hot
            | Work::Crowd
            | Work::Spread
            | Work::ByReading
            | Work::File
            | Work::Read
            | Work::Write(_)
            | Work::ReadLarge(_)
            | Work::Page(_)
            | Work::PageOfAll
            | Work::Lease
            | Work::Hold
            | Work::Watch
            | Work::Log(_) => Ok(()),
        }
    }

    /// Does it once; answers how often it was begun anew.
    ///
    /// # Errors
    /// What the cluster says.
    pub async fn once(&self, caller: usize, random: &mut Random) -> Result<u64> {
        match self.case.work {
            Work::Hot => self.measure(random, NOON).await.map(|()| 0),
            Work::Crowd => self.measure_in_crowd(random).await,
            Work::Spread => {
                let minute = random.below(MINUTES);
                self.measure(random, minute).await.map(|()| 0)
            }
            Work::ByReading => self.measure_by_reading(random).await,
            Work::File => files::create(&self.store, &self.keyspace, random).await.map(|()| 0),
            Work::Read => {
                let records = (SERIES_LEN - READ_LEN as usize) / RECORD_LEN + 1;
                let offset = random.below(records as u64) * RECORD_LEN as u64;
                let key = series(self.zipf.draw(random));
                let bytes = self.keyspace.read(key, offset, READ_LEN).await?;
                assert_eq!(bytes.len() as u64, READ_LEN, "what was prepared is longer");
                Ok(0)
            }
            Work::Write(len) => {
                let (blob, piece) = (random.below(LARGE_BLOBS), random.below(16));
                let bytes = Bytes::from(vec![random.next() as u8; len as usize]);
                self.keyspace.write(large(blob), piece * len, bytes).await.map(|_| 0)
            }
            Work::ReadLarge(len) => {
                let bytes = self.keyspace.read(large(random.below(LARGE_BLOBS)), 0, len).await?;
                assert_eq!(bytes.len() as u64, len, "what was prepared is as long");
                Ok(0)
            }
            Work::Page(0) => self.list(Scan::new().prefix(LISTED_IN)).await,
            Work::Page(first) => self.list(Scan::new().prefix(LISTED_IN).first_bytes(first)).await,
            Work::PageOfAll => self.list(Scan::new()).await,
            Work::Lease => {
                let options = LeaseOptions::exclusive();
                self.keyspace.lease(series(caller), &options).await.map(drop).map(|()| 0)
            }
            Work::Hold => {
                tokio::time::sleep(Duration::from_secs(1)).await;
                self.other.are_held().map(|()| 0)
            }
            Work::Recall => self.put_record(caller, random).await.map(|()| 0),
            Work::Watch => {
                self.put_record(caller, random).await?;
                self.other.changed(caller).await.map(|()| 0)
            }
            Work::Log(_) => self.log().once(caller).await.map(|()| 0),
        }
    }

    fn log(&self) -> &LogCase {
        self.log.as_ref().expect("it was prepared")
    }

    async fn put_record(&self, caller: usize, random: &mut Random) -> Result<()> {
        let value = random.unit();
        self.keyspace.put(series(caller), record(random, value)).await
    }

    async fn list(&self, scan: Scan) -> Result<u64> {
        let page = self.keyspace.scan_page(&scan.limit(LISTED)).await?;
        assert_eq!(page.entries.len(), LISTED, "what was prepared is as much");
        Ok(0)
    }

    async fn measure(&self, random: &mut Random, minute: u64) -> Result<()> {
        let (generator, value) = (random.below(GENERATORS as u64) as usize, random.unit());
        let mut transaction = self.store.begin();
        transaction.append(&self.keyspace, series(generator), record(random, value))?;
        for key in aggregates(generator) {
            let at = minute * RECORD_LEN as u64;
            transaction.apply(&self.keyspace, &key, at, Transform::add(Number::U64(1)))?;
            transaction.apply(&self.keyspace, &key, at + 8, Transform::add(Number::F64(value)))?;
        }
        transaction.commit().await.map(drop)
    }

    /// However often it is refused for want of room.
    async fn measure_in_crowd(&self, random: &mut Random) -> Result<u64> {
        let mut refused = 0;
        loop {
            match self.measure(random, NOON).await {
                Err(error) if error.kind() == ErrorKind::Unavailable => refused += 1,
                done => return done.map(|()| refused),
            }
            tokio::time::sleep(REST + REST.mul_f64(random.unit())).await;
        }
    }

    /// However often others come first.
    async fn measure_by_reading(&self, random: &mut Random) -> Result<u64> {
        let (generator, value) = (random.below(GENERATORS as u64) as usize, random.unit());
        let mut begun = 0;
        loop {
            let done = self.measure_once_by_reading(random, generator, value, &mut begun).await;
            match done {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                done => return done.map(|()| begun - 1),
            }
        }
    }

    async fn measure_once_by_reading(
        &self,
        random: &mut Random,
        generator: usize,
        value: f64,
        begun: &mut u64,
    ) -> Result<()> {
        self.store
            .transact(async |transaction| {
                *begun += 1;
                transaction.append(&self.keyspace, series(generator), record(random, value))?;
                for key in aggregates(generator) {
                    let at = NOON * RECORD_LEN as u64;
                    let old = transaction.read(&self.keyspace, &key, at, RECORD_LEN as u64).await;
                    let old = match old {
                        Ok(old) => old,
                        Err(error) if error.kind() == ErrorKind::NotFound => Bytes::new(),
                        Err(error) => return Err(error),
                    };
                    let mut slot = [0; RECORD_LEN];
                    slot[..old.len()].copy_from_slice(&old);
                    let (count, sum) = (eight(&slot[..8]), eight(&slot[8..]));
                    let count = u64::from_le_bytes(count) + 1;
                    let sum = f64::from_le_bytes(sum) + value;
                    let new = [count.to_le_bytes(), sum.to_le_bytes()].concat();
                    transaction.write(&self.keyspace, &key, at, new)?;
                }
                Ok(())
            })
            .await
    }

    /// Compares what is stored with `count` acknowledged transactions.
    ///
    /// # Errors
    /// `Corrupt` when they differ.
    pub async fn verify(&self, count: u64) -> Result<()> {
        match self.case.work {
            Work::Hot | Work::Crowd | Work::Spread | Work::ByReading => {}
            Work::File => return files::verify(&self.keyspace, count).await,
            Work::Read | Work::Write(_) | Work::ReadLarge(_) | Work::Page(_) | Work::PageOfAll => {
                return Ok(());
            }
            Work::Lease | Work::Hold | Work::Recall | Work::Watch => return Ok(()),
            Work::Log(_) => return self.log().verify(count).await,
        }
        let slots = self.keyspace.read(ALL, 0, MINUTES * RECORD_LEN as u64).await?;
        let slots = slots.chunks(RECORD_LEN).filter(|slot| slot.len() == RECORD_LEN);
        let counted: u64 = slots.map(|slot| u64::from_le_bytes(eight(&slot[..8]))).sum();
        let mut records = 0;
        for generator in 0..GENERATORS {
            match self.keyspace.stat(series(generator)).await {
                Ok(stat) => records += stat.size / RECORD_LEN as u64,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if (counted, records) == (count, count) {
            return Ok(());
        }
        Err(tyr::Error::corrupt(format!(
            "{count} transactions were acknowledged, the aggregate counts {counted}, and there are \
             {records} records"
        )))
    }
}

/// The aggregate that all transactions add to.
const ALL: &str = "aggregate/all";

fn series(number: usize) -> String {
    format!("generator/{number}")
}

fn listed(number: usize) -> String {
    format!("{LISTED_IN}{number:04}")
}

fn large(number: u64) -> String {
    format!("large/{number}")
}

fn aggregates(generator: usize) -> [String; 3] {
    [
        format!("aggregate/generator/{generator}"),
        format!("aggregate/cluster/{}", generator % CLUSTERS),
        ALL.to_owned(),
    ]
}

fn record(random: &mut Random, value: f64) -> Bytes {
    let mut record = [0; RECORD_LEN];
    record[..8].copy_from_slice(&random.next().to_le_bytes());
    record[8..].copy_from_slice(&value.to_le_bytes());
    Bytes::copy_from_slice(&record)
}

fn eight(bytes: &[u8]) -> [u8; 8] {
    bytes[..8].try_into().expect("eight bytes are eight bytes")
}
