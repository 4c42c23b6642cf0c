//! Listings of the store for whoever asked, on a thread that may wait for the disk (Q1).

use std::sync::Arc;

use tyr_protocol::map::ClusterMap;
use tyr_protocol::message::{Body, ListForm, ScanRequest};
use tyr_store::store::Store;
use tyr_store::store::scan::Moment;
use tyr_types::{BlobName, Key, KeyspaceId, NodeId, Result, ScanPage, Timestamp};

use crate::holdings;

/// A listing to be made.
pub struct Listing {
    pub(crate) store: Arc<Store>,
    pub(crate) node: NodeId,
    pub(crate) client: u64,
    pub(crate) request: Arc<ScanRequest>,
    pub(crate) form: ListForm,
    /// When the first bytes are read (Q2).
    pub(crate) bytes_at: Option<Timestamp>,
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
        let Self { store, node, client, request, form, bytes_at, map } = self;
        let number = request.number;
        let body = match found(&store, node, &map, &request, bytes_at) {
            Ok(page) => form.answer(number, page),
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
    request: &ScanRequest,
    bytes_at: Option<Timestamp>,
) -> Result<ScanPage> {
    let (scan, moment) = (request.scan(), Moment { at: request.at, bytes_at });
    let is_own = is_own(node, map, request.keyspace);
    let page = match request.at.filter(|at| store.base().is_kept(*at)) {
        Some(kept) => store.scan_chunks_kept(request.keyspace, &scan, kept, is_own)?,
        None => store.scan(request.keyspace, &scan, moment, is_own)?,
    };
    let count = page.entries.len() + page.groups.len();
    assert!(count <= scan.get_limit(), "{count} are listed of {}", scan.get_limit());
    let keys = request.keys();
    debug_assert!(
        page.entries.iter().all(|entry| keys.contains(entry.key.as_bytes())),
        "a key is listed that was not asked for"
    );
    Ok(page)
}

/// Whether the node is the authority of the blob of this key.
fn is_own(node: NodeId, map: &ClusterMap, keyspace: KeyspaceId) -> impl Fn(&Key) -> bool {
    move |key| {
        let blob = BlobName { keyspace, key: key.clone() };
        map.holders(&blob, 0).first() == Some(&node)
    }
}
