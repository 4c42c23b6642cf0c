//! What a node tells the others of itself: where it is reached, and what it would take.
//!
//! It lies under `cluster/nodes/<number>`. The map says who takes part, this says where they are;
//! a node that comes back elsewhere writes it anew and no map changes.
//!
//! ```text
//!   | version | fields of version 1, in postcard | feature level | generation, in postcard
//!   | what later releases add |
//! ```

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tyr_protocol::map::{Domain, Newcomer, Share, ring};
use tyr_protocol::wire::LEVEL_FIRST;
use tyr_types::{Error, NodeId, Result};

use tyr_metadata::{Store, reserved};
use tyr_net::level;

/// Bytes of an address, and of a version.
const TEXT_LEN_MAX: usize = 256;
/// Addresses of one node: one for each network that it is in.
const ADDRESSES_MAX: usize = 8;
/// The version of the bytes, which is the first of them. What later releases add comes at the end
/// and is passed over here, so that programs of several releases read each other's.
const RECORD_VERSION: u8 = 2;
/// The version before, which ends before the feature level.
const RECORD_VERSION_BEFORE: u8 = 1;

/// What a node tells of itself. It travels as its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<u8>", try_from = "Vec<u8>")]
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
    /// The highest feature level that the program speaks.
    pub level: u8,
    /// How far its folder had counted when it wrote this: a folder that has counted less is an
    /// older copy of it. 0 where a program of before wrote it.
    pub generation: u64,
}

/// The fields of version 1.
#[derive(Clone, Serialize, Deserialize)]
struct Fields {
    identity: u128,
    addresses: Vec<String>,
    http_address: Option<String>,
    weight: u32,
    domain: Option<u32>,
    is_monitor: bool,
    incarnation: u64,
    version: String,
}

impl From<NodeRecord> for Vec<u8> {
    fn from(record: NodeRecord) -> Self {
        record.encode().into()
    }
}

impl TryFrom<Vec<u8>> for NodeRecord {
    type Error = Error;

    fn try_from(bytes: Vec<u8>) -> Result<Self> {
        Self::decode(&bytes)
    }
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
            level: level::spoken(),
            generation: 0,
        }
    }

    /// The node as one that joins.
    pub fn newcomer(&self, node: NodeId) -> Newcomer {
        let share = Share { weight: self.weight, domain: self.domain.map(Domain) };
        Newcomer { node, incarnation: self.incarnation, share, level: self.level }
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
        let record = self.clone();
        let fields = Fields {
            identity: record.identity,
            addresses: record.addresses,
            http_address: record.http_address,
            weight: record.weight,
            domain: record.domain,
            is_monitor: record.is_monitor,
            incarnation: record.incarnation,
            version: record.version,
        };
        let bytes = postcard::to_extend(&fields, vec![RECORD_VERSION]);
        let mut bytes = bytes.expect("plain values can be written");
        bytes.push(self.level);
        let bytes = postcard::to_extend(&self.generation, bytes);
        bytes.expect("plain values can be written").into()
    }

    /// The record of these bytes.
    ///
    /// # Errors
    /// `Corrupt` when they are none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let broken = || Error::corrupt("what a node told of itself cannot be read");
        let (version, rest) = bytes.split_first().ok_or_else(broken)?;
        let (fields, rest): (Fields, _) = postcard::take_from_bytes(rest).map_err(|_| broken())?;
        let (level, rest) = match *version {
            RECORD_VERSION_BEFORE => (LEVEL_FIRST, &[][..]),
            RECORD_VERSION => {
                let (level, rest) = rest.split_first().ok_or_else(broken)?;
                (*level, rest)
            }
            _ => return Err(broken()),
        };
        let generation = match rest {
            [] => 0,
            rest => postcard::take_from_bytes(rest).map_err(|_| broken())?.0,
        };
        let Fields {
            identity,
            addresses,
            http_address,
            weight,
            domain,
            is_monitor,
            incarnation,
            version,
        } = fields;
        Ok(Self {
            identity,
            addresses,
            http_address,
            weight,
            domain,
            is_monitor,
            incarnation,
            version,
            level,
            generation,
        })
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
            &tyr_metadata::Actor::System,
            reserved::NODES,
            after.as_deref(),
            tyr_metadata::limits::LIST_MAX,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program wrote that knew of no feature levels.
    fn before() -> Vec<u8> {
        let fields = (7u128, vec!["a:1"], None::<String>, 100u32, Some(3u32), true, 9u64, "0.1.0");
        postcard::to_extend(&fields, vec![RECORD_VERSION_BEFORE]).unwrap()
    }

    #[test]
    fn a_record_comes_back_and_older_and_newer_programs_read_each_others() {
        let record =
            NodeRecord { level: 4, domain: Some(2), generation: 9, ..NodeRecord::at("b:2") };
        let bytes = record.encode();
        assert_eq!(NodeRecord::decode(&bytes).unwrap(), record);
        let later = [&bytes[..], b"what a later release adds"].concat();
        assert_eq!(NodeRecord::decode(&later).unwrap(), record);
        let known = NodeRecord::decode(&before()).unwrap();
        assert_eq!((known.level, known.incarnation, known.identity), (LEVEL_FIRST, 9, 7));
        assert_eq!((known.domain, known.version.as_str()), (Some(3), "0.1.0"));
        let (_, uncounted) = bytes.split_last().unwrap();
        let before = NodeRecord { generation: 0, ..record };
        assert_eq!(NodeRecord::decode(uncounted).unwrap(), before, "of a program that counts not");
        for len in 0..uncounted.len() {
            assert!(NodeRecord::decode(&bytes[..len]).is_err(), "cut to {len}");
        }
    }
}
