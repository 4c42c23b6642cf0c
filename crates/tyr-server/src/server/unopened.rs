//! What a node whose store cannot be opened tells the cluster log before it ends: that a program is
//! too old for what its folder holds, for instance, nobody else could hear of.
//!
//! Whoever starts it again and again says the same each time, under the same number, and it is
//! noted once.

use std::time::Duration;

use tokio::runtime::Handle;
use tyr_control::MetadataClient;
use tyr_control::message::{Remark, Remarks};
use tyr_types::{Error, NodeId};
use xxhash_rust::xxh3::xxh3_64;

/// The node ends no later than this after it could not be opened.
const PATIENCE: Duration = Duration::from_secs(3);

/// Tells why the node does not start, if it knows others and they answer.
pub(super) fn tell(node: NodeId, others: Option<&MetadataClient>, handle: &Handle, error: &Error) {
    let Some(client) = others else { return };
    let told = async { tokio::time::timeout(PATIENCE, client.remark(said(node, error))).await };
    match handle.block_on(told) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "the cluster log takes it not"),
        Err(_) => tracing::debug!("no monitor answers, so the cluster log does not have it"),
    }
}

fn said(node: NodeId, error: &Error) -> Remarks {
    let text = format!("does not start: {error}");
    let run = xxh3_64(text.as_bytes());
    Remarks { node: node.0, run, first: 0, remarks: vec![Remark { ago_ms: 0, text }] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_under_the_same_number() {
        let of = |text: &str| said(NodeId(3), &Error::unavailable(text));
        assert_eq!(of("too old").run, of("too old").run);
        assert_ne!(of("too old").run, of("damaged").run);
        assert!(of("too old").remarks[0].text.starts_with("does not start: "));
    }
}
