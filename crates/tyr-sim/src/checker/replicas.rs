//! Replica equality: in the end every node that holds a chunk has it byte for byte.

use std::collections::{BTreeMap, BTreeSet};

use tyr_protocol::member::ChunkName;
use tyr_types::{BlobName, Bytes, KeyspaceId, NodeId};

use super::replay::Replayed;

/// A chunk as a node holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldChunk {
    /// Its base is still to come.
    Awaited,
    /// It is here.
    Here {
        /// Of the first chunk of a blob: its size, `None` when the blob is absent.
        size: Option<u64>,
        /// The bytes, from the chunk's beginning; what is beyond them is a hole.
        bytes: Bytes,
    },
}

/// The chunks that a node holds.
pub type Replica = BTreeMap<ChunkName, HeldChunk>;

/// The nodes in the end, and who of them is to hold what.
pub struct Replicas<'a> {
    /// Bytes of a chunk, by keyspace.
    pub chunk_sizes: BTreeMap<KeyspaceId, u64>,
    /// What those that run hold.
    pub nodes: Vec<(NodeId, Replica)>,
    /// The nodes that hold a chunk.
    pub holders: &'a dyn Fn(&BlobName, u64) -> Vec<NodeId>,
}

/// Checks that every holder has every chunk as the committed transactions left it.
///
/// # Errors
/// A node, a chunk, and how it differs.
pub fn replicas_are_equal(replayed: &Replayed, replicas: &Replicas) -> Result<(), String> {
    if replicas.nodes.is_empty() {
        return Ok(());
    }
    let chunk_size = |name: &BlobName| replicas.chunk_sizes[&name.keyspace];
    let mut names: BTreeSet<ChunkName> = BTreeSet::new();
    for (_, replica) in &replicas.nodes {
        names.extend(replica.keys().cloned());
    }
    for (number, blob) in replayed.timeline.names.iter().enumerate() {
        let len = replayed.blobs[number].as_ref().map_or(0, Vec::len) as u64;
        let chunks = len.div_ceil(chunk_size(blob)).max(1);
        names.extend((0..chunks).map(|chunk| (BlobName::clone(blob), chunk)));
    }
    for name in &names {
        let holders = (replicas.holders)(&name.0, name.1);
        let mut first = None;
        for (node, replica) in replicas.nodes.iter().filter(|(node, _)| holders.contains(node)) {
            let held = check(replayed, name, replica, chunk_size(&name.0)).map_err(|wrong| {
                format!("node {} holds {} chunk {}: {wrong}", node.0, name.0, name.1)
            })?;
            let (other, len) = *first.get_or_insert((*node, held));
            if len != held {
                let (one, blob, chunk) = (node.0, &name.0, name.1);
                return Err(format!(
                    "nodes {} and {one} hold {len} and {held} bytes of {blob} chunk {chunk}",
                    other.0
                ));
            }
        }
    }
    Ok(())
}

/// Compares a chunk with what it must be; answers how many bytes of it are there.
fn check(
    replayed: &Replayed,
    name: &ChunkName,
    replica: &Replica,
    chunk_size: u64,
) -> Result<usize, String> {
    let number = replayed.timeline.number(&name.0);
    let blob = number.and_then(|number| replayed.blobs[number].as_deref());
    let start = (name.1 * chunk_size) as usize;
    let whole = blob.unwrap_or(&[]);
    let right = whole.get(start..whole.len().min(start + chunk_size as usize)).unwrap_or(&[]);
    let size = blob.map(|bytes| bytes.len() as u64);
    let (held_size, bytes) = match replica.get(name) {
        Some(HeldChunk::Awaited) => return Err("its base is still to come".to_owned()),
        Some(HeldChunk::Here { size, bytes }) => (*size, bytes),
        None if right.iter().any(|byte| *byte != 0) || name.1 == 0 && size.is_some() => {
            return Err(format!("nothing, it must have {} bytes", right.len()));
        }
        None => return Ok(0),
    };
    if name.1 == 0 && held_size != size {
        return Err(format!("a size of {held_size:?}, it is {size:?}"));
    }
    if bytes.len() > right.len() {
        let beyond = &bytes[right.len()..];
        let shown = &beyond[..beyond.len().min(16)];
        let (len, of) = (bytes.len(), right.len());
        return Err(format!("{len} bytes, of {of}: {shown:02x?} too much"));
    }
    // What is not held is a hole.
    let (there, hole) = right.split_at(bytes.len());
    let wrong = there.iter().zip(bytes).position(|(right, held)| right != held);
    let missing = || hole.iter().position(|byte| *byte != 0).map(|place| place + there.len());
    match wrong.or_else(missing) {
        None => Ok(bytes.len()),
        Some(place) => {
            let cell = place / 8 * 8;
            let of = |bytes: &[u8]| {
                let end = bytes.len().min(cell + 8);
                format!("{:02x?}", bytes.get(cell..end).unwrap_or(&[]))
            };
            let (held, right) = (of(bytes), of(right));
            Err(format!("{held} at byte {}, it must be {right}", start + cell))
        }
    }
}
