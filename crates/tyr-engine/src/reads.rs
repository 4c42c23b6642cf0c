//! Reads of the store for whoever asked: at once from memory, the rest on a thread that may wait.

use std::sync::Arc;

use tyr_protocol::View;
use tyr_protocol::message::{Address, Body, Envelope, ReadPart, ReadRequest};
use tyr_protocol::movement::{self, ChunkCopy, ChunkVersion};
use tyr_protocol::read::{Kind, layout};
use tyr_store::recent::Attributes;
use tyr_store::store::Store;
use tyr_store::store::chunks::{ChunkRead, ChunkReading, stored_name};
use tyr_types::chunk::Place;
use tyr_types::{BlobName, ByteRange, Error, ErrorKind, Timestamp};

use crate::holdings::{self, Holdings};

/// Bytes that are read from disk on the spot: one block, the cost of a step to another thread.
const AT_ONCE_MAX: u64 = 16 << 10;

/// The answer, or how to get it.
pub(crate) enum Found {
    /// Send this.
    Now(Body),
    /// It takes the disk.
    Later(Box<Later>),
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
    /// Bytes as they were at a kept moment (V7).
    Kept(Timestamp),
    /// Which of the bytes were written then.
    KeptLayout(Timestamp),
    /// Bytes, and what they were at kept moments, ascending.
    Copy(ChunkRead, Vec<Timestamp>),
}

/// A read that takes the disk, and how its answer travels.
pub struct Fetch {
    pub(crate) later: Box<Later>,
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
    let keyspace = request.blob.keyspace;
    let store = Arc::clone(holdings.store());
    if let Some(kept) = at.filter(|at| !request.is_copy && holdings.is_kept(*at)) {
        let answer = Answer { request, at, clock, chunk, chunk_range };
        if let Some(why) = holdings.kept_obstacle(keyspace, kept) {
            return Found::Now(answer.refused(&Error::new(ErrorKind::SnapshotTooOld, why)));
        }
        let wanted = match answer.request.kind {
            Kind::Layout(_) => Wanted::KeptLayout(kept),
            Kind::Whole | Kind::First | Kind::Direct | Kind::At(_) | Kind::Clock => {
                Wanted::Kept(kept)
            }
        };
        return Found::Later(Box::new(Later { store, wanted, answer }));
    }
    let planned = holdings.plan_read(&request.blob, request.range, at);
    let kept = at.filter(|_| request.is_copy).map(|at| holdings.kept_below(keyspace, at));
    let kept = kept.unwrap_or_default();
    let answer = Answer { request, at, clock, chunk, chunk_range };
    if let (Kind::Layout(at), Ok(_)) = (answer.request.kind, &planned) {
        return Found::Later(Box::new(Later { store, wanted: Wanted::Layout(at), answer }));
    }
    match planned {
        Err(error) => Found::Now(answer.refused(&error)),
        Ok(read) if !kept.is_empty() => {
            Found::Later(Box::new(Later { store, wanted: Wanted::Copy(read, kept), answer }))
        }
        Ok(read) if read.is_complete() || answer.request.range.len() <= AT_ONCE_MAX => {
            Found::Now(answer.of(store.finish_chunk_read(read)))
        }
        Ok(read) => Found::Later(Box::new(Later { store, wanted: Wanted::Bytes(read), answer })),
    }
}

impl Later {
    /// Fetches it.
    fn finish(self) -> Body {
        let Self { store, wanted, answer } = self;
        match wanted {
            Wanted::Bytes(read) => answer.of(store.finish_chunk_read(read)),
            Wanted::Layout(at) => answer.of_layout(&store, at, false),
            Wanted::Kept(at) => {
                let (stored, place) = answer.chunk();
                let found = store.read_chunk_kept(&stored, place, answer.request.range, at);
                answer.of(found)
            }
            Wanted::KeptLayout(at) => answer.of_layout(&store, at, true),
            Wanted::Copy(read, kept) => match store.finish_chunk_read(read) {
                Ok(reading) => answer.of_copy(&store, reading, &kept),
                Err(error) => answer.refused(&error),
            },
        }
    }
}

impl Answer {
    fn refused(&self, error: &tyr_types::Error) -> Body {
        let abort = holdings::refusal(Some(&self.request.blob), error);
        Body::Refused { read: self.request.read, abort }
    }

    /// Looked at on a thread that may wait: what is here of it does not change at that timestamp.
    fn of_layout(self, store: &Store, at: Timestamp, is_kept: bool) -> Body {
        let (stored, place) = self.chunk();
        let range = self.request.range;
        let written = match is_kept {
            true => store.chunk_stretches_kept(&stored, place, range, at),
            false => store.chunk_stretches(&stored, place, range, at),
        };
        match written {
            Err(error) => self.refused(&error),
            Ok(written) => {
                let bytes = layout::encode(range, &written);
                let (read, clock, version) = (self.request.read, self.clock, Timestamp::ZERO);
                let (at, size) = (Some(at), None);
                Body::Part(ReadPart { read, range, at, version, bytes, size, clock })
            }
        }
    }

    /// The name under which the chunk is kept, and where it lies.
    fn chunk(&self) -> (BlobName, Place) {
        (stored_name(&self.request.blob, self.chunk), Place { range: self.chunk_range })
    }

    /// A copy, with what was there at kept moments: down to a version that was current at the first
    /// of them, or to where it is not known what was there (V7).
    fn of_copy(self, store: &Store, mut reading: ChunkReading, kept: &[Timestamp]) -> Body {
        let (stored, place) = self.chunk();
        let Self { request, at, chunk, chunk_range, .. } = self;
        let at = at.expect("a copy is read at a timestamp (D2)");
        let is_first = chunk == 0;
        if !reading.attributes.exists {
            (reading.version, reading.reshaped) = (at, at);
        }
        let mut held_to = end_of_held(&reading, chunk_range, is_first);
        let mut versions = vec![version_at(&reading, is_first, (at, at))];
        for kept in kept.iter().rev() {
            let next = versions.last().map(|it| (it.version, it.size_version));
            let next = next.expect("there is the newest");
            if next.0.max(next.1) <= *kept {
                continue;
            }
            match store.read_chunk_kept(&stored, place, request.range, *kept) {
                Ok(mut then) => {
                    // Of what was not there it may be forgotten since when: before, something may
                    // have been there.
                    let is_there = then.attributes.exists;
                    let since = if is_there { then.attributes.version } else { *kept };
                    (then.version, then.reshaped) = (since, since);
                    held_to = held_to.max(end_of_held(&then, chunk_range, is_first));
                    let version = version_at(&then, is_first, next);
                    debug_assert!(version.version.max(version.size_version) <= *kept);
                    versions.push(version);
                }
                Err(error) => match error.kind() {
                    ErrorKind::SnapshotTooOld | ErrorKind::NotFound => break,
                    _ => {
                        let abort = holdings::refusal(Some(&request.blob), &error);
                        return Body::Refused { read: request.read, abort };
                    }
                },
            }
        }
        versions.reverse();
        copied(request, chunk, held_to, at, versions)
    }

    fn of(self, found: tyr_types::Result<ChunkReading>) -> Body {
        let reading = match found {
            Ok(reading) => reading,
            Err(error) => return self.refused(&error),
        };
        let Self { request, at, clock, chunk, chunk_range } = self;
        if let Some(at) = at.filter(|_| request.is_copy) {
            let version = version_at(&reading, chunk == 0, (at, at));
            let held_to = end_of_held(&reading, chunk_range, chunk == 0);
            return copied(request, chunk, held_to, at, vec![version]);
        }
        let ReadRequest { read, range, .. } = request;
        let ChunkReading { bytes, attributes, version, .. } = reading;
        debug_assert!(bytes.len() as u64 <= range.len(), "{} bytes of {range:?}", bytes.len());
        let size = (chunk == 0).then(|| attributes.exists.then_some(attributes.size));
        debug_assert!(at.is_none_or(|at| version <= at), "{version} is not seen at {at:?}");
        Body::Part(ReadPart { read, range, at, version, bytes, size, clock })
    }
}

/// What was read, as a version of a copy: of no later one than these.
fn version_at(
    reading: &ChunkReading,
    is_first: bool,
    (version_max, size_version_max): (Timestamp, Timestamp),
) -> ChunkVersion {
    let ChunkReading { bytes, attributes, version, reshaped } = reading;
    ChunkVersion {
        version: (*version).min(version_max),
        bytes: bytes.clone(),
        size: is_first.then(|| attributes.exists.then_some(attributes.size)),
        size_version: if is_first { (*reshaped).min(size_version_max) } else { Timestamp::ZERO },
    }
}

/// Where what the chunk holds ends, in the blob.
fn end_of_held(reading: &ChunkReading, chunk_range: ByteRange, is_first: bool) -> u64 {
    let Attributes { exists, size, .. } = reading.attributes;
    let len = if exists { size } else { 0 };
    match is_first {
        true => len.min(chunk_range.end),
        false => chunk_range.start + len,
    }
}

/// A copy of what was asked for, of a chunk that holds something up to `held_to`.
fn copied(
    request: ReadRequest,
    chunk: u64,
    held_to: u64,
    at: Timestamp,
    versions: Vec<ChunkVersion>,
) -> Body {
    let ReadRequest { read, blob, range, .. } = request;
    let copy = ChunkCopy::new(at, range, range.end >= held_to, versions);
    debug_assert!(copy.is_sound(), "nobody would install it: {copy:?}");
    Body::Movement(movement::Message::Copied { read, chunk: (blob, chunk), copy })
}
