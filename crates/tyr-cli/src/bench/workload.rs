//! Who writes and reads what: the generators, clusters and aggregates of a monitoring store.
//!
//! 1000 generators in 20 clusters. Each has a blob of 16-byte records (time, value); generators,
//! clusters and `all` each have an aggregate blob of 1440 slots of 16 bytes, one a minute of a
//! day: how many records (u64), and their sum (f64).

use tyr::blocking::{Keyspace, Snapshot, Transaction, Tyr};
use tyr::{Bytes, Durability, Key, KeyspaceConfig, Number, Result, Transform};

use crate::random::Random;

/// Blobs of records.
pub const GENERATORS: usize = 1000;
/// Groups of generators.
pub const CLUSTERS: usize = 20;
/// Minutes of a day.
const SLOTS: usize = 1440;
/// Records that a preloaded generator has.
const RECORDS: usize = 1000;
/// Bytes of a record, and of a slot.
pub const RECORD_LEN: usize = 16;
/// The minute that all transactions meet in: noon.
const SLOT: u64 = 720;
/// Bytes of one read: 50 records.
pub const READ_LEN: u64 = 800;
/// How unequal the reads are.
const ZIPF_EXPONENT: f64 = 0.99;

/// Draws numbers below `count`, some far more often than others; which ones is shuffled.
pub struct Zipf {
    cumulated: Vec<f64>,
    shuffled: Vec<usize>,
}

impl Zipf {
    /// Of `count` numbers.
    pub fn new(count: usize) -> Self {
        let mut total = 0.0;
        let mut cumulated: Vec<f64> = (1..=count)
            .map(|rank| {
                total += (rank as f64).powf(-ZIPF_EXPONENT);
                total
            })
            .collect();
        cumulated.iter_mut().for_each(|sum| *sum /= total);
        let mut shuffled: Vec<usize> = (0..count).collect();
        let mut random = Random::new(42);
        for index in (1..count).rev() {
            shuffled.swap(index, random.below(index as u64 + 1) as usize);
        }
        Self { cumulated, shuffled }
    }

    /// Draws one.
    pub fn draw(&self, random: &mut Random) -> usize {
        let unit = random.unit();
        let rank = self.cumulated.partition_point(|sum| *sum < unit);
        self.shuffled[rank.min(self.shuffled.len() - 1)]
    }
}

/// The store's keyspace and the keys of all blobs.
pub struct Workload {
    /// The store.
    pub store: Tyr,
    /// Where all blobs are.
    pub keyspace: Keyspace,
    generators: Vec<Key>,
    generator_aggregates: Vec<Key>,
    cluster_aggregates: Vec<Key>,
    all: Key,
}

/// The name of the keyspace.
const KEYSPACE: &str = "bench";

impl Workload {
    /// In a new keyspace.
    pub fn create(store: Tyr, durability: Durability) -> Result<Self> {
        let config = KeyspaceConfig { durability, ..KeyspaceConfig::default() };
        let keyspace = store.create_keyspace(KEYSPACE, config)?;
        Self::with(store, keyspace)
    }

    /// In the keyspace that [`Workload::create`] made.
    pub fn open(store: Tyr) -> Result<Self> {
        let keyspace = store.keyspace(KEYSPACE)?;
        Self::with(store, keyspace)
    }

    fn with(store: Tyr, keyspace: Keyspace) -> Result<Self> {
        let keys = |prefix: &str, count: usize| -> Result<Vec<Key>> {
            (0..count).map(|number| Key::new(format!("{prefix}/{number}"))).collect()
        };
        Ok(Self {
            store,
            keyspace,
            generators: keys("generator", GENERATORS)?,
            generator_aggregates: keys("aggregate/generator", GENERATORS)?,
            cluster_aggregates: keys("aggregate/cluster", CLUSTERS)?,
            all: Key::new("aggregate/all")?,
        })
    }

    /// Closes the store, with every handle to it.
    pub fn close(self) -> Result<()> {
        let Self { store, keyspace, .. } = self;
        drop(keyspace);
        store.close()
    }

    /// Fills every blob: generators with 1000 records, aggregates with a day of zeros.
    pub fn preload(&self) -> Result<()> {
        for key in &self.generators {
            self.keyspace.put(key, vec![1; RECORDS * RECORD_LEN])?;
        }
        let aggregates = self.generator_aggregates.iter().chain(&self.cluster_aggregates);
        for key in aggregates.chain([&self.all]) {
            self.keyspace.put(key, vec![0; SLOTS * RECORD_LEN])?;
        }
        Ok(())
    }

    /// How many blobs there are.
    pub fn blob_count(&self) -> usize {
        2 * GENERATORS + CLUSTERS + 1
    }

    /// Blob number `number`, and how many bytes it was preloaded with.
    fn blob(&self, number: usize) -> (&Key, usize) {
        let aggregate = SLOTS * RECORD_LEN;
        match number {
            0..GENERATORS => (&self.generators[number], RECORDS * RECORD_LEN),
            _ if number < 2 * GENERATORS => {
                (&self.generator_aggregates[number - GENERATORS], aggregate)
            }
            _ if number < 2 * GENERATORS + CLUSTERS => {
                (&self.cluster_aggregates[number - 2 * GENERATORS], aggregate)
            }
            _ => (&self.all, aggregate),
        }
    }

    /// Reads 800 bytes at a random record of a blob drawn by `zipf`.
    pub fn read(&self, zipf: &Zipf, random: &mut Random) -> Result<()> {
        let (key, len) = self.blob(zipf.draw(random));
        let records = (len - READ_LEN as usize) / RECORD_LEN + 1;
        let offset = random.below(records as u64) * RECORD_LEN as u64;
        let bytes = self.keyspace.read(key, offset, READ_LEN)?;
        assert_eq!(bytes.len() as u64, READ_LEN, "preloaded blobs are longer than one read");
        Ok(())
    }

    /// One measurement as one transaction, its aggregates added to in place.
    pub fn measure_in_place(&self, random: &mut Random) -> Result<()> {
        let (generator, value) = draw(random);
        let mut transaction = self.store.begin();
        self.append(&mut transaction, generator, value, random)?;
        for key in self.aggregates(generator) {
            self.add(&mut transaction, key, 0, Number::U64(1))?;
            self.add(&mut transaction, key, 8, Number::F64(value))?;
        }
        transaction.commit().map(drop)
    }

    /// The same transaction, its aggregates read and written.
    pub fn measure_by_reading(&self, random: &mut Random) -> Result<()> {
        let (generator, value) = draw(random);
        self.store.transact(|transaction| {
            self.append(transaction, generator, value, random)?;
            for key in self.aggregates(generator) {
                let at = SLOT * RECORD_LEN as u64;
                let old = transaction.read(&self.keyspace, key, at, RECORD_LEN as u64)?;
                let count = u64::from_le_bytes(eight(&old[..8])) + 1;
                let sum = f64::from_le_bytes(eight(&old[8..16])) + value;
                let mut new = count.to_le_bytes().to_vec();
                new.extend(sum.to_le_bytes());
                transaction.write(&self.keyspace, key, at, new)?;
            }
            Ok(())
        })
    }

    fn append(
        &self,
        transaction: &mut Transaction,
        generator: usize,
        value: f64,
        random: &mut Random,
    ) -> Result<()> {
        let mut record = [0; RECORD_LEN];
        record[..8].copy_from_slice(&random.next().to_le_bytes());
        record[8..].copy_from_slice(&value.to_le_bytes());
        let key = &self.generators[generator];
        transaction.append(&self.keyspace, key, Bytes::copy_from_slice(&record)).map(drop)
    }

    fn add(
        &self,
        transaction: &mut Transaction,
        key: &Key,
        within: u64,
        number: Number,
    ) -> Result<()> {
        let offset = SLOT * RECORD_LEN as u64 + within;
        transaction.apply(&self.keyspace, key, offset, Transform::add(number)).map(drop)
    }

    fn aggregates(&self, generator: usize) -> [&Key; 3] {
        let cluster = &self.cluster_aggregates[generator % CLUSTERS];
        [&self.generator_aggregates[generator], cluster, &self.all]
    }

    /// How many measurements a snapshot counts in all.
    ///
    /// # Errors
    /// `Corrupt` when the aggregates of the clusters count otherwise; and what reading says.
    pub fn count_at(&self, snapshot: &Snapshot) -> Result<u64> {
        let count = |key: &Key| {
            let slot = snapshot.read(&self.keyspace, key, SLOT * RECORD_LEN as u64, 8)?;
            Ok::<u64, tyr::Error>(u64::from_le_bytes(eight(&slot)))
        };
        let all = count(&self.all)?;
        let mut of_clusters = 0;
        for key in &self.cluster_aggregates {
            of_clusters += count(key)?;
        }
        match of_clusters == all {
            true => Ok(all),
            false => Err(tyr::Error::corrupt(format!(
                "a snapshot counts {all} measurements in all, and {of_clusters} of all clusters"
            ))),
        }
    }

    /// Compares what is stored with `count` acknowledged measurements since [`Workload::create`].
    ///
    /// # Errors
    /// `Corrupt` when they differ.
    pub fn verify(&self, count: u64, is_preloaded: bool) -> Result<()> {
        let at = SLOT * RECORD_LEN as u64;
        let slot = self.keyspace.read(&self.all, at, 8)?;
        let counted = u64::from_le_bytes(eight(&slot));
        let mut records = 0;
        for key in &self.generators {
            let preloaded = if is_preloaded { RECORDS as u64 } else { 0 };
            match self.keyspace.stat(key) {
                Ok(stat) => records += stat.size / RECORD_LEN as u64 - preloaded,
                Err(error) if error.kind() == tyr::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if (counted, records) == (count, count) {
            return Ok(());
        }
        Err(tyr::Error::corrupt(format!(
            "{count} measurements were acknowledged, the aggregate counts {counted}, and there \
             are {records} records"
        )))
    }
}

fn draw(random: &mut Random) -> (usize, f64) {
    (random.below(GENERATORS as u64) as usize, random.unit())
}

fn eight(bytes: &[u8]) -> [u8; 8] {
    bytes[..8].try_into().expect("eight bytes are eight bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ranks_of_a_zipf_draw_are_far_more_frequent() {
        let zipf = Zipf::new(2021);
        let mut random = Random::new(1);
        let mut counts = vec![0; 2021];
        for _ in 0..100_000 {
            counts[zipf.draw(&mut random)] += 1;
        }
        counts.sort_unstable();
        // 1/H of all draws, H = sum of 1/k^0.99 up to 2021, about 8.5.
        assert!((10_000..14_000).contains(&counts[2020]), "{}", counts[2020]);
        assert!(counts[1000] < 60, "{}", counts[1000]);
    }
}
