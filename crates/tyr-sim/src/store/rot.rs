//! Bytes that a node's disk holds damaged, and the node notices: they cannot be read until they are
//! written anew.
//!
//! Only readers meet it. What transactions do to the chunk goes on, as where a node has the newest
//! bytes in memory; and what is read again from the log is whole.

use std::collections::BTreeMap;

use tyr_protocol::Abort;
use tyr_protocol::member::ChunkName;
use tyr_types::{BlobName, ByteRange, ErrorKind, Operation};

/// What cannot be read of each chunk. Bytes are counted in the blob.
#[derive(Clone, Debug, Default)]
pub struct Rot(BTreeMap<ChunkName, Vec<ByteRange>>);

impl Rot {
    /// From now on these bytes cannot be read.
    pub fn spoil(&mut self, name: &ChunkName, range: ByteRange) {
        self.0.entry(name.clone()).or_default().push(range);
    }

    /// Whether these bytes can be read.
    pub fn is_readable(&self, name: &ChunkName, range: ByteRange) -> bool {
        self.0.get(name).is_none_or(|spoilt| spoilt.iter().all(|it| !it.overlaps(range)))
    }

    /// A chunk of which something cannot be read.
    pub fn any(&self) -> Option<&ChunkName> {
        self.0.keys().next()
    }

    /// Whether something of the chunk cannot be read.
    pub fn has(&self, name: &ChunkName) -> bool {
        self.0.contains_key(name)
    }

    /// Something is done to the chunk: what is put down is whole.
    pub fn operate(&mut self, name: &ChunkName, operations: &[Operation]) {
        let Some(spoilt) = self.0.get_mut(name) else { return };
        for operation in operations {
            let written = match operation {
                Operation::Write { offset, payload } => {
                    ByteRange { start: *offset, end: offset + payload.len() }
                }
                Operation::Truncate { len } => ByteRange::from(*len),
                Operation::Clear { range } => *range,
                Operation::Delete | Operation::Replace { .. } => ByteRange::from(0),
                Operation::Create
                | Operation::Append { .. }
                | Operation::Apply { .. }
                | Operation::Compare { .. }
                | Operation::Expect { .. } => continue,
            };
            let before = |it: &ByteRange| ByteRange { end: it.end.min(written.start), ..*it };
            let after = |it: &ByteRange| ByteRange { start: it.start.max(written.end), ..*it };
            *spoilt = spoilt.iter().flat_map(|it| [before(it), after(it)]).collect();
            spoilt.retain(|it| it.start < it.end);
        }
        if spoilt.is_empty() {
            self.0.remove(name);
        }
    }

    /// The chunk is gone, or came anew.
    pub fn forget(&mut self, name: &ChunkName) {
        self.0.remove(name);
    }

    /// Everything is gone.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// What is answered of what cannot be read.
pub(super) fn damaged(blob: &BlobName) -> Abort {
    Abort::at(blob, ErrorKind::Corrupt, "what the disk holds is damaged")
}

#[cfg(test)]
mod tests {
    use tyr_types::{BlobName, Bytes, Key, KeyspaceId, Payload};

    use super::*;

    #[test]
    fn what_is_written_anew_can_be_read_and_nothing_else() {
        let key = Key::new("a").unwrap();
        let name = (BlobName { keyspace: KeyspaceId(1), key }, 0);
        let range = |start, end| ByteRange { start, end };
        let mut rot = Rot::default();
        rot.spoil(&name, range(10, 20));
        let payload = Payload::Inline(Bytes::from_static(b"abc"));
        rot.operate(&name, &[Operation::Write { offset: 12, payload }]);
        assert!(rot.is_readable(&name, range(0, 10)) && rot.is_readable(&name, range(12, 15)));
        assert!(!rot.is_readable(&name, range(10, 12)) && !rot.is_readable(&name, range(19, 30)));
        rot.operate(&name, &[Operation::Truncate { len: 12 }]);
        assert!(rot.is_readable(&name, range(12, 99)) && rot.has(&name));
        rot.operate(&name, &[Operation::Delete]);
        assert_eq!(rot.any(), None);
    }
}
