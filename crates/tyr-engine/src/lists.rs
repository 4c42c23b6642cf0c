//! Listings of the store for whoever asked, on a thread that may wait for the disk (Q1).

use std::sync::Arc;

use tyr_protocol::map::ClusterMap;
use tyr_protocol::message::{Body, ListRequest, ListedBlob};
use tyr_store::store::Store;
use tyr_store::store::chunks::listing::Range;
use tyr_types::{BlobName, Bytes, Key, NodeId, Result, limits};

use crate::holdings;

/// A listing to be made.
pub struct Listing {
    pub(crate) store: Arc<Store>,
    pub(crate) node: NodeId,
    pub(crate) client: u64,
    pub(crate) request: ListRequest,
    pub(crate) map: Arc<ClusterMap>,
}

/// What a listing found.
pub struct Listed {
    pub(crate) client: u64,
    pub(crate) number: u64,
    /// What it was found by.
    pub(crate) map: Arc<ClusterMap>,
    pub(crate) body: Body,
}

impl std::fmt::Debug for Listing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Listing({:?})", self.request)
    }
}

impl std::fmt::Debug for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Listed({:?})", self.body)
    }
}

impl Listing {
    /// The blobs that the node is the authority of by the map, or why they cannot be told. All of
    /// what there was then is applied.
    pub fn make(self) -> Listed {
        let Self { store, node, client, request, map } = self;
        let number = request.number;
        let body = match found(&store, node, &map, &request) {
            Ok((keys, is_end)) => Body::Keys { number, keys, is_end },
            Err(error) => {
                let abort = holdings::refusal(None, &error);
                Body::Refused { read: number, abort }
            }
        };
        Listed { client, number, map, body }
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
    assert!(listed.len() <= limit, "{} blobs are listed of {limit}", listed.len());
    debug_assert!(
        listed.iter().all(|(key, _)| {
            key.as_bytes().starts_with(prefix) && after.as_ref().is_none_or(|after| key > after)
        }),
        "a key is listed that was not asked for"
    );
    let listed = listed.into_iter().map(|(key, stat)| ListedBlob {
        key: Bytes::copy_from_slice(key.as_bytes()),
        size: stat.size,
        version: stat.version,
    });
    Ok((listed.collect(), is_end))
}
