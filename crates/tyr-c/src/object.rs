//! What a handle stands for.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tyr::{Bytes, Committed, Keyspace, Number, ScanPage, Snapshot, Timestamp, blocking};
use tyr_completion::Queue;

use crate::failure::Failure;

/// A store that is open.
#[derive(Debug)]
pub struct Store(pub blocking::Tyr);

/// A transaction.
#[derive(Debug)]
pub struct Transaction {
    pub place: Mutex<Place>,
    /// Whether `tyr_transact` lends it to a body, and will end it itself.
    pub is_lent: bool,
}

/// Where a transaction is.
#[derive(Debug)]
pub enum Place {
    Here(Box<blocking::Transaction>),
    /// A call that was started with it has it.
    Away,
    /// Committed or rolled back.
    Over,
}

impl Transaction {
    /// A transaction that the program, or a body of `tyr_transact`, may use.
    pub fn new(transaction: blocking::Transaction, is_lent: bool) -> Self {
        Self { place: Mutex::new(Place::Here(Box::new(transaction))), is_lent }
    }

    /// Takes it out for good; `None` when it is over, or away.
    pub fn end(&self) -> Option<blocking::Transaction> {
        match std::mem::replace(&mut *self.place.lock(), Place::Over) {
            Place::Here(transaction) => Some(*transaction),
            Place::Away | Place::Over => None,
        }
    }
}

/// A transaction that a call has taken along. It comes back when that is dropped, unless it was
/// ended meanwhile.
#[derive(Debug)]
pub struct Away {
    of: Arc<Transaction>,
    transaction: Option<tyr::Transaction>,
}

impl Away {
    /// Takes a transaction along.
    ///
    /// # Errors
    /// `InvalidArgument` when another call or thread has it, and when it is over.
    pub fn take(of: Arc<Transaction>) -> Result<Self, Failure> {
        let mut place = of.place.try_lock().ok_or_else(in_use)?;
        match std::mem::replace(&mut *place, Place::Away) {
            Place::Here(transaction) => {
                drop(place);
                Ok(Self { of, transaction: Some(transaction.into_async()) })
            }
            Place::Away => Err(in_use()),
            Place::Over => {
                *place = Place::Over;
                Err(over())
            }
        }
    }

    /// The transaction.
    pub fn inner(&mut self) -> &mut tyr::Transaction {
        self.transaction.as_mut().expect("it is here until this is dropped")
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        let mut place = self.of.place.lock();
        match (&*place, self.transaction.take()) {
            (Place::Away, Some(back)) => *place = Place::Here(Box::new(back.into_blocking())),
            (Place::Here(_) | Place::Away | Place::Over, _) => {}
        }
    }
}

/// One at a time may use a transaction.
pub fn in_use() -> Failure {
    Failure::invalid(
        "another thread, or a call that was started, is using this tyr_txn: one at a \
                      time may",
    )
}

/// Nothing is left to do with it.
pub fn over() -> Failure {
    Failure::invalid("this tyr_txn is over")
}

/// The names of keyspaces, or a page of a listing.
#[derive(Debug)]
pub struct Page(pub ScanPage);

/// Part of a blob that is read piece by piece.
#[derive(Debug)]
pub struct Reader(Mutex<blocking::Reader>);

impl Reader {
    /// One that the program may use.
    pub fn new(reader: blocking::Reader) -> Self {
        Self(Mutex::new(reader))
    }

    /// The reader, for one thread.
    ///
    /// # Errors
    /// `InvalidArgument` when another has it.
    pub fn lock(&self) -> Result<MutexGuard<'_, blocking::Reader>, Failure> {
        self.0.try_lock().ok_or_else(|| {
            Failure::invalid("another thread is using this tyr_reader: one at a time may")
        })
    }
}

/// A lock that is held; nothing once it was given back.
#[derive(Debug)]
pub struct Lock(pub Mutex<Option<blocking::Lock>>);

impl Lock {
    /// Does something with it.
    ///
    /// # Errors
    /// `InvalidArgument` when it was given back; what `work` fails with.
    pub fn with<T>(
        &self,
        work: impl FnOnce(&blocking::Lock) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        work(self.0.lock().as_ref().ok_or_else(given_back)?)
    }

    /// Takes it out for good.
    ///
    /// # Errors
    /// `InvalidArgument` when it was given back.
    pub fn end(&self) -> Result<blocking::Lock, Failure> {
        self.0.lock().take().ok_or_else(given_back)
    }
}

fn given_back() -> Failure {
    Failure::invalid("this tyr_lock was given back")
}

/// A watch of keys.
#[derive(Debug)]
pub struct Watch(pub blocking::Watch);

/// What a call that was started answers, whichever it was.
#[derive(Debug, Default)]
pub struct Value {
    pub value: u64,
    pub number: Option<Number>,
    pub version: Option<Timestamp>,
    pub bytes: Option<Bytes>,
    pub committed: Option<Committed>,
    pub page: Option<ScanPage>,
    pub snapshot: Option<Snapshot>,
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
    Reader(Arc<Reader>),
    Lock(Arc<Lock>),
    Watch(Arc<Watch>),
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
pub const NAMES: [&str; 12] = [
    "tyr_store",
    "tyr_keyspace",
    "tyr_txn",
    "tyr_snapshot",
    "tyr_bytes",
    "tyr_committed",
    "tyr_page",
    "tyr_queue",
    "tyr_error",
    "tyr_reader",
    "tyr_lock",
    "tyr_watch",
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
    10 => Reader(Reader),
    11 => Lock(Lock),
    12 => Watch(Watch),
}
