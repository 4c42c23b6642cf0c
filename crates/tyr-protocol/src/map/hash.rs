//! Where things lie on the ring: the hash of a chunk, and the tokens of a node.
//!
//! Every node and every client computes these for itself, and must come to the same: they are
//! part of the protocol, as a message is. So keys go through XXH3 with a seed, whose values its
//! specification fixes, and numbers through the finaliser of `SplitMix64`, written out here. Tests
//! compare both with values that must never change.

use tyr_types::NodeId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The fractional part of the golden ratio: steps that fill 64 bits evenly.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

const _: () = assert!(GOLDEN % 2 == 1, "no two chunks of a blob have one place");

/// The hashes that place a blob: its chunks' places follow from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobHash {
    /// Of the part of the key by which the keyspace places its blobs: all of a group have one.
    pub group: u64,
    /// Of the whole key.
    pub own: u64,
}

impl BlobHash {
    /// The place of a chunk on the ring (H). First chunks lie by their group; the others, which
    /// have the bulk of what is large, by the whole key, so that they spread.
    pub fn place(self, chunk: u64) -> u64 {
        place(if chunk == 0 { self.group } else { self.own }, chunk)
    }
}

/// The hash of a key, or of its part that places the blob.
pub fn key(seed: u64, part: &[u8]) -> u64 {
    xxh3_64_with_seed(part, seed)
}

/// The place of a chunk on the ring, of the blob with this hash.
pub fn place(hash: u64, chunk: u64) -> u64 {
    mix(hash.wrapping_add(chunk.wrapping_mul(GOLDEN)))
}

/// The `index`-th token of `node`. No two tokens are alike, since [`mix`] is a bijection.
pub fn token(node: NodeId, index: u32) -> u64 {
    let name = u64::from(node.0) << 32 | u64::from(index);
    mix(mix(name).wrapping_add(GOLDEN))
}

/// The finaliser of `SplitMix64`: a bijection whose every output bit depends on every input bit.
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}
