//! Replica equality: in the end every node that holds a chunk has it byte for byte.

use std::collections::BTreeSet;

use tyr_protocol::View;
use tyr_protocol::member::ChunkName;
use tyr_types::{BlobName, NodeId};

use super::replay::Replayed;
use crate::store::SimStore;

/// The nodes in the end, and who of them is to hold what.
pub struct Replicas<'a> {
    /// The stores of those that run.
    pub stores: Vec<(NodeId, &'a SimStore)>,
    /// The nodes that hold a chunk.
    pub holders: &'a dyn Fn(&BlobName, u64) -> Vec<NodeId>,
}

/// Checks that every holder has every chunk as the committed transactions left it.
///
/// # Errors
/// A node, a chunk, and how it differs.
pub fn replicas_are_equal(replayed: &Replayed, replicas: &Replicas) -> Result<(), String> {
    let Some((_, any)) = replicas.stores.first() else { return Ok(()) };
    let mut names: BTreeSet<ChunkName> = BTreeSet::new();
    for (_, store) in &replicas.stores {
        names.extend(store.chunks().map(|(name, _)| name.clone()));
    }
    for (number, blob) in replayed.timeline.names.iter().enumerate() {
        let len = replayed.blobs[number].as_ref().map_or(0, Vec::len) as u64;
        let chunks = len.div_ceil(any.chunk_size(blob.keyspace)).max(1);
        names.extend((0..chunks).map(|chunk| (BlobName::clone(blob), chunk)));
    }
    for name in &names {
        let holders = (replicas.holders)(&name.0, name.1);
        let mut first = None;
        for (node, store) in replicas.stores.iter().filter(|(node, _)| holders.contains(node)) {
            let held = check(replayed, name, store).map_err(|wrong| {
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
fn check(replayed: &Replayed, name: &ChunkName, store: &SimStore) -> Result<usize, String> {
    let chunk_size = store.chunk_size(name.0.keyspace);
    let number = replayed.timeline.number(&name.0);
    let blob = number.and_then(|number| replayed.blobs[number].as_deref());
    let start = (name.1 * chunk_size) as usize;
    let bytes = blob.unwrap_or(&[]);
    let right = bytes.get(start..bytes.len().min(start + chunk_size as usize)).unwrap_or(&[]);
    let size = blob.map(|bytes| bytes.len() as u64);
    let Some(chunk) = store.chunk(name) else {
        return match right.iter().any(|byte| *byte != 0) || name.1 == 0 && size.is_some() {
            true => Err(format!("nothing, it must have {} bytes", right.len())),
            false => Ok(0),
        };
    };
    if chunk.is_awaited() {
        return Err("its base is still to come".to_owned());
    }
    let held = chunk.latest();
    if name.1 == 0 && held.size != size {
        return Err(format!("a size of {:?}, it is {size:?}", held.size));
    }
    if held.bytes.len() > right.len() {
        return Err(format!("{} bytes, of {}", held.bytes.len(), right.len()));
    }
    // What is not held is a hole.
    let (there, hole) = right.split_at(held.bytes.len());
    let wrong = there.iter().zip(&held.bytes).position(|(right, held)| right != held);
    let missing = || hole.iter().position(|byte| *byte != 0).map(|place| place + there.len());
    match wrong.or_else(missing) {
        None => Ok(held.bytes.len()),
        Some(place) => {
            let cell = place / 8 * 8;
            let of = |bytes: &[u8]| {
                let end = bytes.len().min(cell + 8);
                format!("{:02x?}", bytes.get(cell..end).unwrap_or(&[]))
            };
            let (held, right) = (of(&held.bytes), of(right));
            Err(format!("{held} at byte {}, it must be {right}", start + cell))
        }
    }
}
