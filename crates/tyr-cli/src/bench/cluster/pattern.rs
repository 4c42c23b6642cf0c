//! A case on its keyspace: what is written before, what each caller does, how it is checked.

use std::time::Duration;

use tyr::{Bytes, ErrorKind, Keyspace, LeaseOptions, Number, Result, Scan, Transform, Tyr};
use tyr_log::Options;

use super::case::{Case, HELD, LISTED, Work};
use super::files;
use super::other::Other;
use crate::bench::calls::CallCase;
use crate::bench::log::LogCase;
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
/// Bytes of each blob that is listed.
const LISTED_LEN: usize = 600;
/// What their keys begin with: a group, where the keyspace has groups.
const LISTED_IN: &str = "listed/";

/// A case on its keyspace.
pub struct Pattern {
    store: Tyr,
    keyspace: Keyspace,
    other: Other,
    /// The case.
    pub case: Case,
    zipf: Zipf,
    log: Option<LogCase>,
    calls: Option<CallCase>,
}

impl Pattern {
    /// The case on an empty keyspace; the other one is the same to another client.
    pub fn new(store: Tyr, keyspace: Keyspace, other: Keyspace, case: Case) -> Self {
        let (other, zipf) = (Other::new(other), Zipf::new(GENERATORS));
        Self { store, keyspace, other, case, zipf, log: None, calls: None }
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
            Work::Calls(work) => {
                let (keyspace, callers) = (self.keyspace.clone(), self.case.callers);
                let case = CallCase::new(&self.store, keyspace, work, callers).await?;
                self.calls = Some(case);
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
            | Work::Log(_)
            | Work::Calls(_) => Ok(()),
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
            Work::Calls(_) => self.calls().once(caller).await.map(|()| 0),
        }
    }

    fn calls(&self) -> &CallCase {
        self.calls.as_ref().expect("it was prepared")
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
            Work::Calls(_) => return self.calls().verify().await,
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
