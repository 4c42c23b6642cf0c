//! Listings of the store for whoever asked, on a thread that may wait for the disk (Q1).

use tyr_protocol::map::ClusterMap;
use tyr_protocol::message::{Body, ListRequest, ListedBlob};
use tyr_store::store::Store;
use tyr_store::store::chunks::listing::Range;
use tyr_types::{BlobName, Bytes, Key, NodeId, Result, limits};

use crate::agent::holdings;

/// The blobs that `node` is the authority of by `map`, or why they cannot be told.
pub(super) fn list(store: &Store, node: NodeId, map: &ClusterMap, request: &ListRequest) -> Body {
    match found(store, node, map, request) {
        Ok((keys, is_end)) => Body::Keys { number: request.number, keys, is_end },
        Err(error) => {
            let abort = holdings::refusal(None, &error);
            Body::Refused { read: request.number, abort }
        }
    }
}

fn found(
    store: &Store,
    node: NodeId,
    map: &ClusterMap,
    request: &ListRequest,
) -> Result<(Vec<ListedBlob>, bool)> {
    let ListRequest { keyspace, prefix, after, limit, at, .. } = request;
    let after = after.as_ref().map(Key::new).transpose()?;
    let range = Range { keyspace: *keyspace, prefix, after: after.as_ref() };
    let limit = (*limit as usize).clamp(1, limits::SCAN_LIMIT_MAX);
    let is_own = |key: &Key| {
        let blob = BlobName { keyspace: *keyspace, key: key.clone() };
        map.holders(&blob, 0).first() == Some(&node)
    };
    let (listed, is_end) = store.list(range, limit, *at, is_own)?;
    let listed = listed.into_iter().map(|(key, stat)| ListedBlob {
        key: Bytes::copy_from_slice(key.as_bytes()),
        size: stat.size,
        version: stat.version,
    });
    Ok((listed.collect(), is_end))
}
