//! Whether all replicas of every chunk are equal, byte for byte.
//!
//! Each holder is asked alone. Only when nobody writes.

use std::fmt;

use tyr_types::{ByteRange, Error, Result};

use crate::client::Caller;
use crate::client::probe::Probe;
use crate::cluster::Control;

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Blobs.
    pub blobs: u64,
    /// Chunks of them.
    pub chunks: u64,
    /// Replicas that were read.
    pub replicas: u64,
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blobs, chunks, replicas } = self;
        write!(f, "{blobs} blobs, {chunks} chunks, {replicas} replicas equal")
    }
}

/// Compares the replicas of these blobs.
///
/// # Errors
/// `Corrupt` naming those that differ; `Unavailable` when a holder does not answer.
pub fn compare(
    control: &Control,
    caller: &Caller,
    keys: &[String],
    chunk_size: u64,
    compared: &mut Compared,
) -> Result<()> {
    let (probe, map) = (Probe::new(control)?, control.map()?);
    for key in keys {
        let (blob, size) = (caller.blob(key), caller.size(key)?);
        compared.blobs += 1;
        for chunk in 0..size.div_ceil(chunk_size).max(1) {
            let start = chunk * chunk_size;
            let range = ByteRange { start, end: size.min(start + chunk_size) };
            let mut first = None;
            compared.chunks += 1;
            for node in map.holders(&blob, chunk) {
                let bytes = probe.read(node, control, &blob, range)?;
                compared.replicas += 1;
                let (other, expected) = first.get_or_insert((node, bytes.clone()));
                if *expected != bytes {
                    let at = expected.iter().zip(&bytes).position(|(one, two)| one != two);
                    return Err(Error::corrupt(format!(
                        "replicas of {key}, chunk {chunk}, differ: node {} has {} bytes, node {} \
                         has {}, the first that differs is {at:?}",
                        other.0,
                        expected.len(),
                        node.0,
                        bytes.len()
                    )));
                }
            }
        }
    }
    Ok(())
}
