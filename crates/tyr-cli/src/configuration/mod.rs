//! How a node is set up: one table of settings, and where each value came from.
//!
//! ```text
//!   table ──► --help, docs/reference/configuration.md
//!     │
//!     ├─ file (--config) ─┐
//!     ├─ TYR_... ─────────┼─► layers ─► Configuration: values with their sources ─► plan
//!     └─ flags ───────────┘    (flags over environment over file over defaults)
//! ```
//!
//! Reading order: [`kind`] is what a value may be, [`setting`] what a row of the table says,
//! [`table`] the table; [`source`], [`mod@file`] and [`flags`] are where values come from,
//! [`layers`] puts them together; [`page`] writes the reference. What a value means to a node is
//! not known here: `serve` makes its options from it.

pub mod file;
pub mod flags;
pub mod kind;
pub mod layers;
pub mod page;
pub mod setting;
pub mod source;
pub mod table;

#[cfg(test)]
mod tests;

pub use flags::SettingFlags;
pub use layers::{Configuration, Layers, Reviewed};
pub use table::Name;
