//! What can be asked: raw ranges, aggregate series, the top of a scope, the catalog.
//!
//! Every query reads at one snapshot: what it answers was true at one moment, in all its parts.
//! Answers are plain values; [`render`](crate::render) writes them down.

mod absent;
mod aggregate;
mod catalog;
mod days;
mod raw;
mod top;

pub use aggregate::{AggregateSeries, POINTS_MAX, Point};
pub use catalog::{Catalog, CatalogEntry, CatalogFilter};
pub(crate) use days::{days, last_day};
pub use raw::RawSeries;
pub(crate) use raw::read_samples;
pub use top::{Top, TopBy, TopEntry, TopQuery};

#[cfg(test)]
mod tests;
