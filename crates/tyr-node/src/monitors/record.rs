//! What a node tells the others of itself: where it is reached, and what it would take.
//!
//! It lies under `cluster/nodes/<number>`. The map says who takes part, this says where they are;
//! a node that comes back elsewhere writes it anew and no map changes.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tyr_protocol::map::{Domain, Newcomer, Share, ring};
use tyr_types::{Error, NodeId, Result};

use super::metadata::{Store, reserved};

/// Bytes of an address, and of a version.
const TEXT_LEN_MAX: usize = 256;
/// Addresses of one node: one for each network that it is in.
const ADDRESSES_MAX: usize = 8;
/// The version of the bytes below, which is the first of them.
const RECORD_VERSION: u8 = 1;

/// What a node tells of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Drawn once by the node's folder: who asks twice to join is known again by it.
    pub identity: u128,
    /// Where it is reached, `host:port`; the first one by the other nodes.
    pub addresses: Vec<String>,
    /// Where it serves HTTP, if it does.
    pub http_address: Option<String>,
    /// How much it takes of the ring when it joins, compared with others.
    pub weight: u32,
    /// Its failure domain.
    pub domain: Option<u32>,
    /// Whether it is, or is to be, one of the monitors.
    pub is_monitor: bool,
    /// Its incarnation when it wrote this.
    pub incarnation: u64,
    /// The program's version.
    pub version: String,
}

impl NodeRecord {
    /// A node at this address, with everything else as it usually is.
    pub fn at(address: impl Into<String>) -> Self {
        Self {
            identity: 0,
            addresses: vec![address.into()],
            http_address: None,
            weight: ring::WEIGHT_DEFAULT,
            domain: None,
            is_monitor: false,
            incarnation: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// The node as one that joins.
    pub fn newcomer(&self, node: NodeId) -> Newcomer {
        let share = Share { weight: self.weight, domain: self.domain.map(Domain) };
        Newcomer { node, incarnation: self.incarnation, share }
    }

    /// Checks that it keeps the bounds.
    ///
    /// # Errors
    /// `InvalidArgument` with the bound.
    pub fn check(&self) -> Result<()> {
        let is_short = |text: &String| (1..=TEXT_LEN_MAX).contains(&text.len());
        let is_sound = (1..=ADDRESSES_MAX).contains(&self.addresses.len())
            && self.addresses.iter().all(is_short)
            && self.http_address.as_ref().is_none_or(is_short)
            && self.version.len() <= TEXT_LEN_MAX
            && (1..=ring::WEIGHT_MAX).contains(&self.weight);
        match is_sound {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "a node has 1 to {ADDRESSES_MAX} addresses of 1 to {TEXT_LEN_MAX} bytes, and a \
                 weight from 1 to {}; this one says {self:?}",
                ring::WEIGHT_MAX
            ))),
        }
    }

    /// The record as bytes.
    pub fn encode(&self) -> Bytes {
        let bytes = postcard::to_extend(self, vec![RECORD_VERSION]);
        bytes.expect("plain values can be written").into()
    }

    /// The record of these bytes.
    ///
    /// # Errors
    /// `Corrupt` when they are none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let record = match bytes.split_first() {
            Some((&RECORD_VERSION, rest)) => postcard::from_bytes(rest).ok(),
            Some(_) | None => None,
        };
        record.ok_or_else(|| Error::corrupt("what a node told of itself cannot be read"))
    }
}

/// What this node told of itself.
pub fn record(store: &Store, node: NodeId) -> Option<NodeRecord> {
    let entry = store.get(reserved::node(node).as_str())?;
    NodeRecord::decode(&entry.value).ok()
}

/// What all nodes told of themselves.
pub fn records(store: &Store) -> BTreeMap<NodeId, NodeRecord> {
    let mut found = BTreeMap::new();
    let mut after: Option<String> = None;
    loop {
        let page = store.list(
            &super::metadata::Actor::System,
            reserved::NODES,
            after.as_deref(),
            super::metadata::limits::LIST_MAX,
        );
        let Some((last, _)) = page.last() else { return found };
        after = Some(last.to_string());
        for (path, entry) in page {
            let number = path.as_str().strip_prefix(reserved::NODES).and_then(|it| it.parse().ok());
            if let (Some(number), Ok(record)) = (number, NodeRecord::decode(&entry.value)) {
                found.insert(NodeId(number), record);
            }
        }
    }
}
