//! How the cluster map is written: what it is made of, and nothing that follows from it.

use std::collections::BTreeMap;

use tyr_types::{Bytes, Result};

use super::encoded::{Encoded, encoded_enum, encoded_struct};
use super::input::{Input, Malformed};
use super::output::{Outgoing, Output};
use super::record::{decode_versioned, encode_versioned};
use crate::level::{LEVEL_ALONE, LEVEL_FIRST, LEVEL_KEEPING, LEVEL_KNOWN};
use crate::map::{ClusterMap, Domain, MapKept, MapKeyspace, MapNode, NodeState, Ring, Share};

encoded_enum!(NodeState, "state of a node", { 0 => Up, 1 => Returning, 2 => Down });
encoded_struct!(MapNode, 3, { incarnation, state, since } + 1 { level: LEVEL_FIRST });
encoded_struct!(Share, 2, { weight, domain });
encoded_struct!(MapKept, 2, { epoch, day_us });

/// One that has lost nothing is as in level 1: its last byte says whether it was dropped. Two more
/// values of that byte say that those follow who lost their part.
impl Encoded for MapKeyspace {
    const LEN_MIN: usize = 10;

    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        let Self { name, config, seed, is_dropped, lost } = self;
        name.encode(output);
        config.encode(output);
        seed.encode(output);
        output.byte(u8::from(*is_dropped) + if lost.is_empty() { 0 } else { LOST });
        if !lost.is_empty() {
            output.needs(LEVEL_ALONE);
            lost.encode(output);
        }
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let (name, config) = (Encoded::decode(input)?, Encoded::decode(input)?);
        let (seed, state) = (Encoded::decode(input)?, input.byte()?);
        let mut lost = BTreeMap::new();
        match state {
            0 | 1 => {}
            LOST | LOST_DROPPED => {
                input.needs(LEVEL_ALONE)?;
                lost = Encoded::decode(input)?;
                if lost.is_empty() {
                    return Err(input.malformed("nobody lost it, though the byte before says so"));
                }
            }
            _ => return Err(input.unknown_last("an unknown state of a keyspace")),
        }
        let is_dropped = matches!(state, 1 | LOST_DROPPED);
        Ok(Self { name, config, seed, is_dropped, lost })
    }
}

/// What is added to whether a keyspace was dropped when those follow who lost their part of it.
const LOST: u8 = 2;
const LOST_DROPPED: u8 = LOST + 1;

const _: () = assert!(LOST > true as u8, "the states of level 1 are those of a truth value");

impl Encoded for Domain {
    const LEN_MIN: usize = 1;

    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        self.0.encode(output);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        u32::decode(input).map(Self)
    }
}

/// Its members. Their tokens are computed: at most `NODES_MAX` members of `WEIGHT_MAX`, which is
/// what bounds the memory that a few bytes can ask for here.
impl Encoded for Ring {
    const LEN_MIN: usize = 4;

    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        self.members().encode(output);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let members = Encoded::decode(input)?;
        Self::new(members).map_err(|_| {
            input.malformed("the ring before has no member, too many, or one of a wrong weight")
        })
    }
}

/// What is added to the level in use when the snapshots follow that are kept.
const KEPT: u8 = 0x80;

const _: () = assert!(LEVEL_KNOWN < KEPT, "a level can be told from one with kept snapshots");

/// One that keeps nothing is as in level 1.
impl Encoded for ClusterMap {
    const LEN_MIN: usize = 9;

    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        debug_assert!(self.check().is_ok(), "nobody would go by it: {:?}", self.check());
        let Self { epoch, moved, level, nodes, keyspaces, keyspaces_created, ring, next, kept } =
            self;
        epoch.encode(output);
        moved.encode(output);
        nodes.encode(output);
        keyspaces.encode(output);
        keyspaces_created.encode(output);
        ring.encode(output);
        next.encode(output);
        output.needs(LEVEL_FIRST);
        output.byte(*level + if kept.is_empty() { 0 } else { KEPT });
        if !kept.is_empty() {
            output.needs(LEVEL_KEEPING);
            kept.encode(output);
        }
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let mut map = Self {
            epoch: Encoded::decode(input)?,
            moved: Encoded::decode(input)?,
            level: LEVEL_FIRST,
            nodes: Encoded::decode(input)?,
            keyspaces: Encoded::decode(input)?,
            keyspaces_created: Encoded::decode(input)?,
            ring: Encoded::decode(input)?,
            next: Encoded::decode(input)?,
            kept: BTreeMap::new(),
        };
        if input.has(LEVEL_FIRST) {
            let level: u8 = Encoded::decode(input)?;
            map.level = level & !KEPT;
            if level & KEPT != 0 {
                input.needs(LEVEL_KEEPING)?;
                map.kept = Encoded::decode(input)?;
                if map.kept.is_empty() {
                    return Err(input.malformed("nothing is kept, though a byte before says so"));
                }
            }
        }
        match map.check() {
            Ok(()) => Ok(map),
            Err(_) => Err(input.malformed("the cluster map before does not fit together")),
        }
    }
}

/// Puts `map` into `outgoing`.
pub fn encode_map(map: &ClusterMap, outgoing: &mut Outgoing) {
    encode_versioned(map, outgoing);
}

/// The map in these bytes.
///
/// # Errors
/// `Corrupt` when the bytes are none that [`encode_map`] makes, in this version or an older one,
/// with what is wrong and where; `Unavailable` when a later release wrote them. The caller adds
/// file and place.
pub fn decode_map(bytes: &Bytes) -> Result<ClusterMap> {
    decode_versioned(bytes, "the cluster map")
}
