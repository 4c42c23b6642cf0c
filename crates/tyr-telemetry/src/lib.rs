//! A monitoring store on Týr: measurements and their aggregates in one transaction.
//!
//! A measurement is (site, cluster, host, parameter, job, time, value). Recording one is a single
//! write-only transaction: 16 bytes appended to the generator's blob of that day, and count, sum,
//! min and max updated in place in seven aggregates (the generator's, its host's, cluster's,
//! site's, region's, job's, and the one of all), each in its minute, its hour and its day.
//! Nothing is read, so nothing ever aborts, however many writers share an aggregate.
//!
//! ```text
//!   source ──► intake ──► telemetry ──► one transaction ──► keyspace "telemetry"
//!   live, apmon, influx, csv  counts,       routes, keys      raw blobs, aggregate blobs, catalog
//!   (load, for the demo)      notices                             │
//!                                     query ─► render, http  ◄────┤
//!                                     verify, audit          ◄────┘   at one snapshot
//! ```
//!
//! Reading order: [`series`] names what is measured, [`calendar`] and [`slot`] say where in a day
//! it counts, [`layout`] which blobs hold it, [`telemetry`] records it. [`source`] is where it
//! comes from, [`query`] what can be asked, [`verify`] how all of it is checked.
//!
//! This crate knows only the public API of `tyr`, as any other layer does.
//!
//! ```
//! use tyr_telemetry::{Config, Measurement, Telemetry};
//!
//! # tokio::runtime::Builder::new_multi_thread().build().unwrap().block_on(async {
//! # let folder = tempfile::tempdir().unwrap();
//! let store = tyr::Tyr::open(folder.path()).await?;
//! let telemetry = Telemetry::open(&store, Config::default()).await?;
//! telemetry
//!     .record(&Measurement {
//!         site: "cern",
//!         cluster: "batch",
//!         host: "node17",
//!         parameter: "load",
//!         job: "reconstruction",
//!         time_us: 1_700_000_000_000_000,
//!         value: 0.75,
//!     })
//!     .await?;
//! let report = tyr_telemetry::verify::verify(&telemetry, |_| ()).await?;
//! assert!(report.is_clean() && report.measurements == 1);
//! # Ok::<(), tyr::Error>(())
//! # }).unwrap();
//! ```

pub mod calendar;
#[cfg(test)]
mod fixture;
pub mod http;
pub mod intake;
pub mod layout;
pub mod load;
pub mod query;
pub mod render;
pub mod sample;
pub mod series;
pub mod slot;
pub mod source;
pub mod sources;
pub mod subject;
pub mod telemetry;
pub mod verify;

pub use calendar::{Day, TimeRange, Window};
pub use intake::{Intake, IntakeCounts, Notify};
pub use sample::Sample;
pub use series::{Measurement, Series};
pub use sources::{ApmonCounts, SourceCounts, Sources};
pub use subject::{AggregateName, Scope, Subject};
pub use telemetry::{Config, Counts, Telemetry};
