//! What a client copies from one blob into another inside the cluster (U5).
//!
//! It reads what it copies too, at the same moment. So what the copy is to have in it is known, as
//! a read at a moment and a write of what was seen there; the nodes are told of the place and the
//! moment alone.

use std::collections::VecDeque;

use tyr_protocol::session::{Seen, Want};
use tyr_protocol::upload::PieceSource;
use tyr_types::{BlobName, BlobOperations, ByteRange, Bytes, Operation, Payload, Timestamp};

use super::on;
use super::uploading::{Uploading, cut};

/// What is copied to where.
#[derive(Clone, Debug)]
pub struct Copied {
    /// What is read, and copied.
    pub from: Want,
    /// The chunk size of its keyspace.
    pub from_size: u64,
    /// The blob that it is copied into.
    pub to: BlobName,
    /// The chunk size of its keyspace.
    pub to_size: u64,
    /// Where it begins there; without, it is all that the blob has then.
    pub offset: Option<u64>,
    /// The longest piece.
    pub len_max: u64,
    /// Whether the transaction depends on what it has read.
    pub is_validated: bool,
}

/// A copy under way.
#[derive(Debug)]
pub struct Copying {
    copied: Copied,
    /// What was there, and when.
    seen: Option<(Bytes, Timestamp)>,
}

impl Copying {
    /// Nothing was read yet.
    pub fn new(copied: Copied) -> Self {
        Self { copied, seen: None }
    }

    /// Whether there is something to be copied.
    pub fn has_seen(&self) -> bool {
        self.seen.is_some()
    }

    /// What is copied was read. Of what is absent nothing is copied.
    pub fn saw(&mut self, seen: &Seen) {
        self.seen = seen.at.filter(|_| !seen.is_absent()).map(|at| (seen.bytes.clone(), at));
    }

    /// What the transaction does, and the pieces that it needs; nothing where nothing was read.
    pub fn transaction(self) -> (Vec<BlobOperations>, Uploading) {
        let Copied { from, from_size, to, to_size, offset, len_max, .. } = self.copied;
        let Some((bytes, at)) = self.seen else { return (Vec::new(), Uploading::of(&[])) };
        let start = offset.unwrap_or(0);
        if bytes.is_empty() {
            let operation = match offset {
                None => Operation::Replace { payload: Payload::Inline(bytes) },
                Some(offset) => Operation::Write { offset, payload: Payload::Inline(bytes) },
            };
            return (vec![on(&to, [operation])], Uploading::of(&[]));
        }
        let (mut read_at, mut sources) = (from.range.start, VecDeque::new());
        let payload = cut(&bytes, start, to_size, |place| {
            debug_assert_eq!(place - start, read_at - from.range.start, "one goes with the other");
            let len = len_max.min(from_size - read_at % from_size);
            // The rest of the chunk that it goes into may be shorter.
            let len = len.min(to_size - place % to_size);
            let len = len.min(bytes.len() as u64 - (place - start));
            let range = ByteRange { start: read_at, end: read_at + len };
            sources.push_back(PieceSource { blob: from.blob.clone(), range, at });
            read_at += len;
            len
        });
        let operation = match offset {
            None => Operation::Replace { payload },
            Some(offset) => Operation::Write { offset, payload },
        };
        let blobs = vec![on(&to, [operation])];
        let uploading = Uploading::of(&blobs).copied(sources);
        (blobs, uploading)
    }
}
