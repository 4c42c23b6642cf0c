//! The words of Týr, each meaning one thing: ids, timestamps, ranges, operations, limits, errors.
//!
//! Everything above speaks in these types, so they are plain values: no I/O, no clock, no
//! randomness, no encoding. How they look on disk is the store's affair, how they look on the
//! wire is the protocol's.
//!
//! Reading order: [`id`] and [`timestamp`] name things, [`range`], [`transform`] and [`expected`]
//! say what an operation touches, computes and compares, [`payload`], [`stamped`] and [`uploaded`]
//! are the bytes that it carries, [`operation`] puts them into transactions, [`read_check`] is what
//! those have read, [`chunk`] says what they do, [`scan`] what is listed, [`stretch`] what of a
//! blob is written, [`lease`] how keys are leased, [`watch`] how they are watched, [`keyspace`] is
//! what a namespace is created with, [`usage`] how much of it there is, [`location`] where it lies,
//! [`kept`] what stays readable of earlier moments,
//! [`limits`] holds every bound, [`error`] what can go wrong.

pub mod chunk;
pub mod error;
pub mod expected;
pub mod id;
pub mod kept;
pub mod keyspace;
pub mod lease;
pub mod limits;
pub mod location;
pub mod method;
pub mod notice;
pub mod operation;
pub mod payload;
pub mod placed_by;
pub mod range;
pub mod read_check;
pub mod scan;
pub mod stamped;
pub mod stretch;
pub mod timestamp;
pub mod transform;
pub mod uploaded;
pub mod usage;
pub mod watch;

pub use bytes::Bytes;
pub use error::{Error, ErrorKind, Result};
pub use expected::{Expected, Relation};
pub use id::{BlobName, Key, KeyspaceId, NodeId, TransactionId};
pub use kept::{KeptName, KeptSnapshot};
pub use keyspace::{Durability, KeyspaceConfig, KeyspaceInfo, KeyspaceName};
pub use lease::{LeaseMode, Leased};
pub use location::{ChunkLocation, Replica};
pub use method::{FailureCause, MethodAnswer, MethodCall, MethodFailure, SeatAnswer};
pub use notice::{Notice, NoticeId, Notified, Watcher};
pub use operation::{
    BlobOperations, Existence, Operation, OperationId, Outcome, Stat, Transaction,
};
pub use payload::{ExtentRef, Payload};
pub use placed_by::PlacedBy;
pub use range::ByteRange;
pub use read_check::{Listed, ReadCheck};
pub use scan::{KeyRange, Scan, ScanEntry, ScanPage};
pub use stamped::{Data, Stamped};
pub use stretch::Stretches;
pub use timestamp::{Epoch, Timestamp};
pub use transform::{Number, NumberType, Transform, TransformKind};
pub use uploaded::{PieceContent, PieceId, PieceRef, Uploaded, UploadedPiece};
pub use usage::{DiskSpace, KeyspaceSize, KeyspaceUsage, NodeSpace, SizeLimit, Usage};
pub use watch::{Changes, WatchEvent, WatchTarget};
