//! What a handle stands for.

use std::sync::Arc;

use parking_lot::Mutex;
use tyr::{Bytes, Committed, Keyspace, Number, ScanPage, Snapshot, Timestamp, blocking};
use tyr_completion::Queue;

use crate::failure::Failure;

/// A store that is open.
#[derive(Debug)]
pub struct Store(pub blocking::Tyr);

/// A transaction.
#[derive(Debug)]
pub struct Transaction {
    /// Gone once it is committed.
    pub inner: Mutex<Option<blocking::Transaction>>,
    /// Whether `tyr_transact` lends it to a body, and will end it itself.
    pub is_lent: bool,
}

/// The names of keyspaces, or a page of a listing.
#[derive(Debug)]
pub struct Page(pub ScanPage);

/// What a call that was started answers, whichever it was.
#[derive(Debug, Default)]
pub struct Value {
    pub value: u64,
    pub number: Option<Number>,
    pub version: Option<Timestamp>,
    pub bytes: Option<Bytes>,
    pub committed: Option<Committed>,
    pub page: Option<ScanPage>,
}

/// The answer to a call that was started.
pub type Answer = Result<Value, Failure>;

/// Something that has a handle.
#[derive(Clone, Debug)]
pub enum Object {
    Store(Arc<Store>),
    Keyspace(Arc<Keyspace>),
    Transaction(Arc<Transaction>),
    Snapshot(Arc<Snapshot>),
    Bytes(Arc<Bytes>),
    Committed(Arc<Committed>),
    Page(Arc<Page>),
    Queue(Arc<Queue<Answer>>),
    Failure(Arc<Failure>),
}

/// A type of things that have handles.
pub trait Kind: Sized {
    /// Its number, from 1.
    const KIND: u8;
    /// What programs in C call it.
    const NAME: &'static str;

    /// One of them as any object.
    fn into_object(self) -> Object;

    /// The object, if it is one of them.
    fn of(object: &Object) -> Option<&Arc<Self>>;
}

/// The names of the kinds, by their numbers.
pub const NAMES: [&str; 9] = [
    "tyr_store",
    "tyr_keyspace",
    "tyr_txn",
    "tyr_snapshot",
    "tyr_bytes",
    "tyr_committed",
    "tyr_page",
    "tyr_queue",
    "tyr_error",
];

macro_rules! kinds {
    ($($number:literal => $variant:ident($type:ty)),* $(,)?) => {
        $(impl Kind for $type {
            const KIND: u8 = $number;
            const NAME: &'static str = NAMES[$number - 1];

            fn into_object(self) -> Object {
                Object::$variant(Arc::new(self))
            }

            fn of(object: &Object) -> Option<&Arc<Self>> {
                if let Object::$variant(found) = object { Some(found) } else { None }
            }
        })*
    };
}

kinds! {
    1 => Store(Store),
    2 => Keyspace(Keyspace),
    3 => Transaction(Transaction),
    4 => Snapshot(Snapshot),
    5 => Bytes(Bytes),
    6 => Committed(Committed),
    7 => Page(Page),
    8 => Queue(Queue<Answer>),
    9 => Failure(Failure),
}
