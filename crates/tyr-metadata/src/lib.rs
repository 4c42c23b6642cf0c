//! Service metadata: a small versioned key-value store, as a plain value (M1).
//!
//! Everything that a cluster must agree on beside its data lies here: the map, who the nodes are
//! and where, users and rights, and whatever a service above registers. Each change raises one
//! revision of the whole store; each entry knows the revisions of its creation and of its last
//! change, so that a condition on a revision is a compare-and-set.
//!
//! ```text
//!   Transaction ──apply──► Store: entries, revision ──► History ──► watches
//!    conditions, changes    (all or nothing)             the last changes, bounded
//! ```
//!
//! Reading order: [`path`] is what a key may be, [`limits`] how much there may be; [`transaction`]
//! is what is asked for, [`store`] what there is, [`history`] what a watch is told; [`access`] says
//! who may read and write what, [`guard`] what values may be; [`reserved`] names the keys that the
//! cluster itself uses; [`presence`] binds entries to who put them. With the feature `serde` all of
//! it travels, and a store has an image.
//!
//! This crate must not know how the store is agreed upon or kept, nor what its values mean, those
//! of [`access`] excepted. It is deterministic: every monitor applies the same transactions in the
//! same order and has the same store.

pub mod access;
pub mod guard;
pub mod history;
#[cfg(feature = "serde")]
mod image;
pub mod limits;
pub mod path;
pub mod presence;
pub mod reserved;
pub mod store;
pub mod transaction;

#[cfg(test)]
mod tests;

pub use self::access::Actor;
pub use self::history::{History, KeyChange};
pub use self::path::Path;
pub use self::store::{Entry, Planned, Store};
pub use self::transaction::{Alteration, Condition, Expected, Transaction};
