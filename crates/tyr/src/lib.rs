//! Týr, a transactional blob store.
//!
//! Blobs of any size with byte-granular random writes and appends, transactions over many blobs,
//! arithmetic in place, and consistent reads while others write, in a directory of your own.

mod committed;
mod key;
mod keyspace;
mod offload;
mod overlay;
mod pages;
mod pending;
mod reader;
mod snapshot;
mod store;
mod transaction;

pub mod blocking;

pub use committed::Committed;
pub use key::ToKey;
pub use keyspace::Keyspace;
pub use pending::OperationId;
pub use reader::Reader;
pub use snapshot::Snapshot;
pub use store::{Options, ReadRequest, Tyr, check};
pub use transaction::Transaction;

pub use tyr_node::{CheckFinding, CheckReport, CheckSeverity, KeyspaceInfo, Statistics};
pub use tyr_types::{
    ByteRange, Bytes, Durability, Error, ErrorKind, Key, KeyspaceConfig, KeyspaceId, KeyspaceName,
    Number, NumberType, Result, Stat, Timestamp, Transform, TransformKind, limits,
};
