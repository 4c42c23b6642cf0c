//! Reads of the store for whoever asked: at once from memory, the rest on a thread that may wait.

use std::sync::Arc;

use tyr_protocol::View;
use tyr_protocol::message::{Address, Body, Envelope, ReadPart, ReadRequest};
use tyr_protocol::movement::{self, ChunkCopy, ChunkVersion};
use tyr_protocol::read::{Kind, layout};
use tyr_store::store::Store;
use tyr_store::store::chunks::{ChunkRead, ChunkReading, stored_name};
use tyr_types::chunk::Place;
use tyr_types::{ByteRange, Timestamp};

use crate::holdings::{self, Holdings};

/// Bytes that are read from disk on the spot: one block, the cost of a step to another thread.
const AT_ONCE_MAX: u64 = 16 << 10;

/// The answer, or how to get it.
pub(crate) enum Found {
    /// Send this.
    Now(Body),
    /// It takes the disk.
    Later(Later),
}

/// A read that takes the disk.
pub(crate) struct Later {
    store: Arc<Store>,
    wanted: Wanted,
    answer: Answer,
}

/// What is read.
enum Wanted {
    /// Bytes.
    Bytes(ChunkRead),
    /// Which of the bytes are written then.
    Layout(Timestamp),
}

/// A read that takes the disk, and how its answer travels.
pub struct Fetch {
    pub(crate) later: Later,
    /// The envelope of the answer, but for what is in it.
    pub(crate) template: Envelope,
    pub(crate) is_own: bool,
}

impl std::fmt::Debug for Fetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fetch({:?})", self.request())
    }
}

impl Fetch {
    /// What is read.
    pub fn request(&self) -> &ReadRequest {
        &self.later.answer.request
    }

    /// The timestamp to read at; `None` for the newest.
    pub fn at(&self) -> Option<Timestamp> {
        self.later.answer.at
    }

    /// Whether the node itself asked: it receives the answer, nobody else.
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// Fetches it: who asked, and the answer.
    pub fn finish(self) -> (Address, Envelope) {
        let asker = self.request().asker;
        (asker, Envelope { body: self.later.finish(), ..self.template })
    }
}

/// How the answer looks.
struct Answer {
    request: ReadRequest,
    at: Option<Timestamp>,
    clock: Timestamp,
    chunk: u64,
    chunk_range: ByteRange,
}

/// Chooses what the read sees; answers it if it takes no time.
pub(crate) fn begin(
    holdings: &mut Holdings,
    request: ReadRequest,
    at: Option<Timestamp>,
    clock: Timestamp,
) -> Found {
    let size = holdings.chunk_size(request.blob.keyspace);
    let chunk = request.range.start / size;
    let chunk_range = ByteRange { start: chunk * size, end: (chunk + 1) * size };
    assert!(!request.is_copy || at.is_some(), "a copy is read at a timestamp (D2)");
    let planned = holdings.plan_read(&request.blob, request.range, at);
    let answer = Answer { request, at, clock, chunk, chunk_range };
    let store = Arc::clone(holdings.store());
    if let (Kind::Layout(at), Ok(_)) = (answer.request.kind, &planned) {
        return Found::Later(Later { store, wanted: Wanted::Layout(at), answer });
    }
    match planned {
        Err(error) => Found::Now(answer.refused(&error)),
        Ok(read) if read.is_complete() || answer.request.range.len() <= AT_ONCE_MAX => {
            Found::Now(answer.of(store.finish_chunk_read(read)))
        }
        Ok(read) => Found::Later(Later { store, wanted: Wanted::Bytes(read), answer }),
    }
}

impl Later {
    /// Fetches it.
    fn finish(self) -> Body {
        let Self { store, wanted, answer } = self;
        match wanted {
            Wanted::Bytes(read) => answer.of(store.finish_chunk_read(read)),
            Wanted::Layout(at) => answer.of_layout(&store, at),
        }
    }
}

impl Answer {
    fn refused(&self, error: &tyr_types::Error) -> Body {
        let abort = holdings::refusal(Some(&self.request.blob), error);
        Body::Refused { read: self.request.read, abort }
    }

    /// Looked at on a thread that may wait: what is here of it does not change at that timestamp.
    fn of_layout(self, store: &Store, at: Timestamp) -> Body {
        let (stored, place) =
            (stored_name(&self.request.blob, self.chunk), Place { range: self.chunk_range });
        let range = self.request.range;
        match store.chunk_stretches(&stored, place, range, at) {
            Err(error) => self.refused(&error),
            Ok(written) => {
                let bytes = layout::encode(range, &written);
                let (read, clock, version) = (self.request.read, self.clock, Timestamp::ZERO);
                let (at, size) = (Some(at), None);
                Body::Part(ReadPart { read, range, at, version, bytes, size, clock })
            }
        }
    }

    fn of(self, found: tyr_types::Result<ChunkReading>) -> Body {
        let reading = match found {
            Ok(reading) => reading,
            Err(error) => return self.refused(&error),
        };
        let Self { request, at, clock, chunk, chunk_range } = self;
        let ReadRequest { read, blob, range, is_copy, .. } = request;
        let ChunkReading { bytes, attributes, version, reshaped } = reading;
        debug_assert!(bytes.len() as u64 <= range.len(), "{} bytes of {range:?}", bytes.len());
        let size = (chunk == 0).then(|| attributes.exists.then_some(attributes.size));
        match at.filter(|_| is_copy) {
            Some(at) => {
                let version = ChunkVersion {
                    version: version.min(at),
                    bytes,
                    size,
                    size_version: if chunk == 0 { reshaped.min(at) } else { Timestamp::ZERO },
                };
                let is_last = range.end >= chunk_range.end;
                let copy = ChunkCopy::new(at, range, is_last, vec![version]);
                debug_assert!(copy.is_sound(), "nobody would install it: {copy:?}");
                Body::Movement(movement::Message::Copied { read, chunk: (blob, chunk), copy })
            }
            None => {
                debug_assert!(at.is_none_or(|at| version <= at), "{version} is not seen at {at:?}");
                Body::Part(ReadPart { read, range, at, version, bytes, size, clock })
            }
        }
    }
}
