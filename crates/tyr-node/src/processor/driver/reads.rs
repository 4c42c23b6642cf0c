//! Reads of the store for whoever asked: at once from memory, the rest on a thread that may wait.

use std::sync::Arc;

use tyr_protocol::View;
use tyr_protocol::message::{Body, ReadPart, ReadRequest};
use tyr_protocol::movement::{self, ChunkCopy, ChunkVersion};
use tyr_store::store::Store;
use tyr_store::store::chunks::{ChunkRead, ChunkReading};
use tyr_types::{ByteRange, Timestamp};

use crate::agent::holdings::{self, Holdings};

/// Bytes that are read from disk on the spot: one block, the cost of a step to another thread.
const AT_ONCE_MAX: u64 = 16 << 10;

/// The answer, or how to get it.
pub(super) enum Found {
    /// Send this.
    Now(Body),
    /// It takes the disk.
    Later(Later),
}

/// A read that takes the disk.
pub(super) struct Later {
    store: Arc<Store>,
    read: ChunkRead,
    answer: Answer,
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
pub(super) fn begin(
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
    match planned {
        Err(error) => Found::Now(answer.refused(&error)),
        Ok(read) if read.is_complete() || answer.request.range.len() <= AT_ONCE_MAX => {
            Found::Now(answer.of(store.finish_chunk_read(read)))
        }
        Ok(read) => Found::Later(Later { store, read, answer }),
    }
}

impl Later {
    /// Fetches it.
    pub fn finish(self) -> Body {
        let found = self.store.finish_chunk_read(self.read);
        self.answer.of(found)
    }
}

impl Answer {
    fn refused(&self, error: &tyr_types::Error) -> Body {
        let abort = holdings::refusal(Some(&self.request.blob), error);
        Body::Refused { read: self.request.read, abort }
    }

    fn of(self, found: tyr_types::Result<ChunkReading>) -> Body {
        let reading = match found {
            Ok(reading) => reading,
            Err(error) => return self.refused(&error),
        };
        let Self { request, at, clock, chunk, chunk_range } = self;
        let ReadRequest { read, blob, range, is_copy, .. } = request;
        let ChunkReading { bytes, attributes, version, reshaped } = reading;
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
                Body::Movement(movement::Message::Copied { read, chunk: (blob, chunk), copy })
            }
            None => Body::Part(ReadPart { read, range, at, version, bytes, size, clock }),
        }
    }
}
