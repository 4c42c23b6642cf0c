//! Recording: a measurement becomes one write-only transaction.
//!
//! The way from names to keys is short because it is remembered: a generator's route holds the
//! eight keys of the day it last wrote to. A measurement of another day makes them anew, which is
//! what a late one costs.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use serde::Serialize;
use tyr::{
    Bytes, Durability, Error, ErrorKind, Key, Keyspace, KeyspaceConfig, Result, Transaction, Tyr,
};

use crate::calendar::{Day, Window};
use crate::layout;
use crate::sample::{SAMPLE_LEN, Sample};
use crate::series::{Measurement, Series};
use crate::slot::{Slot, SlotIndex};
use crate::subject::{AggregateName, Scope, Subject};

/// Measurements of one transaction: 86 operations each, of the 65,536 that one may have.
pub const BATCH_MAX: usize = 512;

/// Operations that one measurement adds at most: 7 scopes, 3 windows, 4 numbers, the append, and
/// the entry of the catalog.
const OPERATIONS_PER_MEASUREMENT: usize = Scope::ALL.len() * Window::ALL.len() * 4 + 2;
const _: () =
    assert!(BATCH_MAX * OPERATIONS_PER_MEASUREMENT <= tyr::limits::TRANSACTION_OPERATIONS_MAX);

/// Generators whose keys are remembered, at about 2 KiB each. Beyond it all are forgotten at once.
const ROUTES_MAX: usize = 50_000;

/// How measurements are kept.
#[derive(Clone, Debug)]
pub struct Config {
    /// The keyspace that holds them. Created if missing. Default `telemetry`.
    pub keyspace: String,
    /// What the keyspace is created with, if it is. Default: durability `buffered`.
    pub keyspace_config: KeyspaceConfig,
    /// The region of each site. A changed mapping counts for what is recorded from then on.
    pub regions: BTreeMap<String, String>,
    /// The region of the other sites. Default `default`.
    pub default_region: String,
    /// Measurements that an intake puts into one transaction, 1 to [`BATCH_MAX`]. Default 1.
    pub batch: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            keyspace: "telemetry".to_owned(),
            keyspace_config: KeyspaceConfig {
                durability: Durability::Buffered,
                ..KeyspaceConfig::default()
            },
            regions: BTreeMap::new(),
            default_region: "default".to_owned(),
            batch: 1,
        }
    }
}

impl Config {
    fn validate(&self) -> Result<()> {
        if !(1..=BATCH_MAX).contains(&self.batch) {
            return Err(Error::invalid(format!(
                "a transaction takes 1 to {BATCH_MAX} measurements, not {}",
                self.batch
            )));
        }
        for region in self.regions.values().chain([&self.default_region]) {
            layout::validate_name("region", region)?;
        }
        Ok(())
    }
}

/// What was recorded since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Measurements recorded.
    pub measurements: u64,
    /// Transactions that recorded them.
    pub transactions: u64,
}

/// A monitoring store. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Telemetry {
    shared: Arc<Shared>,
}

struct Shared {
    store: Tyr,
    keyspace: Keyspace,
    config: Config,
    routes: RwLock<HashMap<Box<str>, Arc<Route>>>,
    routes_max: usize,
    measurements: AtomicU64,
    transactions: AtomicU64,
}

impl Telemetry {
    /// Opens the keyspace of `config` in `store`, and creates it if it is missing.
    ///
    /// # Errors
    /// `InvalidArgument` for a configuration out of range; whatever the store answers.
    pub async fn open(store: &Tyr, config: Config) -> Result<Self> {
        Self::open_with(store, config, ROUTES_MAX).await
    }

    async fn open_with(store: &Tyr, config: Config, routes_max: usize) -> Result<Self> {
        config.validate()?;
        let keyspace = match store.keyspace(&config.keyspace).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                store.create_keyspace(&config.keyspace, config.keyspace_config.clone()).await?
            }
            other => other?,
        };
        Ok(Self {
            shared: Arc::new(Shared {
                store: store.clone(),
                keyspace,
                config,
                routes: RwLock::default(),
                routes_max,
                measurements: AtomicU64::new(0),
                transactions: AtomicU64::new(0),
            }),
        })
    }

    /// Records one measurement in one transaction.
    ///
    /// # Errors
    /// `InvalidArgument` for a name, time or value out of range; whatever the store answers.
    pub async fn record(&self, measurement: &Measurement<'_>) -> Result<()> {
        self.record_batch(std::slice::from_ref(measurement)).await
    }

    /// Records all of these in one transaction, or none.
    ///
    /// # Errors
    /// `InvalidArgument` for more than [`BATCH_MAX`], and when one of them is out of range;
    /// whatever the store answers.
    pub async fn record_batch(&self, measurements: &[Measurement<'_>]) -> Result<()> {
        if measurements.is_empty() {
            return Ok(());
        }
        let (transaction, new_routes) = self.prepare(measurements)?;
        transaction.commit().await?;
        new_routes.iter().for_each(|route| route.is_cataloged.store(true, Ordering::Release));
        self.shared.measurements.fetch_add(measurements.len() as u64, Ordering::Relaxed);
        self.shared.transactions.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The transaction that records these, and the generators that it enters into the catalog.
    fn prepare(&self, measurements: &[Measurement<'_>]) -> Result<(Transaction, Vec<Arc<Route>>)> {
        if measurements.len() > BATCH_MAX {
            return Err(Error::invalid(format!(
                "a transaction takes at most {BATCH_MAX} measurements, not {}",
                measurements.len()
            )));
        }
        let mut batch = Batch::with_capacity(measurements.len());
        let mut new_routes = Vec::new();
        for measurement in measurements {
            measurement.validate()?;
            let route = self.route(measurement)?;
            batch.add(&*route.day_keys(Day::of(measurement.time_us))?, measurement);
            if !route.is_cataloged.load(Ordering::Acquire) {
                new_routes.push(route);
            }
        }
        let mut transaction = self.shared.store.begin();
        batch.write(&mut transaction, &self.shared.keyspace)?;
        for route in &new_routes {
            let key = layout::catalog_key(&route.path, &route.region)?;
            // A blind write that says the same however often it is made: nothing to conflict with.
            transaction.truncate(&self.shared.keyspace, &key, 0)?;
        }
        Ok((transaction, new_routes))
    }

    fn route(&self, measurement: &Measurement<'_>) -> Result<Arc<Route>> {
        thread_local! {
            static PATH: RefCell<String> = const { RefCell::new(String::new()) };
        }
        PATH.with_borrow_mut(|path| {
            layout::write_series_path(measurement, path)?;
            if let Some(route) = self.shared.routes.read().get(path.as_str()) {
                return Ok(Arc::clone(route));
            }
            let route = Arc::new(Route {
                path: path.clone(),
                series: measurement.series(),
                region: self.region_of(measurement.site).to_owned(),
                is_cataloged: AtomicBool::new(false),
                last: Mutex::new(None),
            });
            let mut routes = self.shared.routes.write();
            if routes.len() >= self.shared.routes_max {
                routes.clear();
            }
            Ok(Arc::clone(routes.entry(path.as_str().into()).or_insert(route)))
        })
    }

    /// The region that measurements of this site count in.
    pub fn region_of(&self, site: &str) -> &str {
        let config = &self.shared.config;
        config.regions.get(site).unwrap_or(&config.default_region)
    }

    /// What was recorded through this handle and its clones.
    pub fn counts(&self) -> Counts {
        Counts {
            measurements: self.shared.measurements.load(Ordering::Relaxed),
            transactions: self.shared.transactions.load(Ordering::Relaxed),
        }
    }

    /// The store below.
    pub fn store(&self) -> &Tyr {
        &self.shared.store
    }

    /// The keyspace that holds everything.
    pub fn keyspace(&self) -> &Keyspace {
        &self.shared.keyspace
    }

    /// How measurements are kept.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }
}

/// The way from a generator's names to its blobs.
struct Route {
    path: String,
    series: Series,
    region: String,
    /// Whether this process has entered the generator into the catalog.
    is_cataloged: AtomicBool,
    last: Mutex<Option<Arc<DayKeys>>>,
}

/// The blobs that a generator's measurements of one day go to.
struct DayKeys {
    day: Day,
    raw: Key,
    aggregates: [Key; Scope::ALL.len()],
}

impl Route {
    fn day_keys(&self, day: Day) -> Result<Arc<DayKeys>> {
        let mut last = self.last.lock();
        if let Some(keys) = last.as_ref().filter(|keys| keys.day == day) {
            return Ok(Arc::clone(keys));
        }
        let mut aggregates = Vec::with_capacity(Scope::ALL.len());
        for scope in Scope::ALL {
            let subject = Subject::of(scope, &self.series, &self.region);
            let parameter = self.series.parameter.clone();
            aggregates.push(layout::aggregate_key(day, &AggregateName { subject, parameter })?);
        }
        let keys = Arc::new(DayKeys {
            day,
            raw: layout::raw_key(day, &self.path, &self.region)?,
            aggregates: aggregates.try_into().expect("one key for each scope"),
        });
        *last = Some(Arc::clone(&keys));
        Ok(keys)
    }
}

/// What a transaction will do, merged where several measurements do it to the same bytes.
struct Batch {
    appends: Vec<(Key, Vec<u8>)>,
    slots: Vec<(Key, SlotIndex, Slot)>,
}

impl Batch {
    fn with_capacity(measurements: usize) -> Self {
        let slots = Scope::ALL.len() * Window::ALL.len();
        Self {
            appends: Vec::with_capacity(measurements),
            slots: Vec::with_capacity(measurements * slots),
        }
    }

    fn add(&mut self, keys: &DayKeys, measurement: &Measurement<'_>) {
        let sample = Sample { time_us: measurement.time_us, value: measurement.value }.store();
        match self.appends.last_mut() {
            Some((key, bytes)) if *key == keys.raw => bytes.extend_from_slice(&sample),
            Some(_) | None => {
                let mut bytes = Vec::with_capacity(SAMPLE_LEN);
                bytes.extend_from_slice(&sample);
                self.appends.push((keys.raw.clone(), bytes));
            }
        }
        let indices = Window::ALL.map(|window| SlotIndex::of(window, measurement.time_us));
        let slot = Slot::of(measurement.value);
        for key in &keys.aggregates {
            self.slots.extend(indices.map(|index| (key.clone(), index, slot)));
        }
    }

    /// Adds everything to the transaction.
    fn write(mut self, transaction: &mut Transaction, keyspace: &Keyspace) -> Result<()> {
        if self.appends.len() > 1 || self.slots.len() > Scope::ALL.len() * Window::ALL.len() {
            self.merge_slots();
        }
        for (key, bytes) in self.appends {
            transaction.append(keyspace, &key, Bytes::from(bytes))?;
        }
        for (key, index, slot) in &self.slots {
            for (offset, transform) in slot.transforms(*index) {
                transaction.apply(keyspace, key, offset, transform)?;
            }
        }
        Ok(())
    }

    fn merge_slots(&mut self) {
        self.slots.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        self.slots.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0 && next.1 == kept.1;
            if is_same {
                kept.2.merge(&next.2);
            }
            is_same
        });
    }
}

#[cfg(test)]
mod tests;
