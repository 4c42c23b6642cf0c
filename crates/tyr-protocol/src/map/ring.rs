//! The ring: which nodes hold what lies at a place.
//!
//! Each node owns tokens in proportion to its weight. From a place one walks on, upwards and
//! around, and takes the first distinct nodes met. Tokens are computed from the node's number, so
//! a ring is no more than its members; a node that comes or goes moves only the ranges that it
//! gains or loses.
//!
//! ```text
//!   0 ───t2───t0──────t1──t2─────────t0───t1─── 2^64 ─► 0
//!              ▲ place: walks on to 1, 2, 0
//! ```
//!
//! Where nodes declare a failure domain, the walk takes nodes of distinct domains first, and fills
//! up with what it passed when there are fewer domains than replicas. So a longer walk from the
//! same place begins with the shorter one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tyr_types::{Error, NodeId, Result, limits};

use super::hash;

/// A few nodes; as many as a chunk usually has replicas.
pub type Nodes = SmallVec<[NodeId; 3]>;

/// The weight of a node that does not say.
pub const WEIGHT_DEFAULT: u32 = 100;
/// The largest weight: a node with ten times the room of a usual one.
pub const WEIGHT_MAX: u32 = 1000;
/// Most nodes of a ring. Bounds what a map takes in memory and on the wire.
pub const NODES_MAX: usize = 1024;
/// Tokens of a node of the default weight. With more of them shares stray less, about as one over
/// the square root: of a hundred nodes the fullest holds a sixth more than the mean.
pub const TOKENS: u32 = 128;
/// Most tokens of a ring, two thousand nodes' worth. Bounds what a few bytes of map grow to.
pub const TOKENS_MAX: u32 = 1 << 18;

/// What can fail together: a rack, a room, a power line. Numbers have no meaning but equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domain(pub u32);

/// A node's share of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// How much it takes, compared with others; from 1 to [`WEIGHT_MAX`].
    pub weight: u32,
    /// Its failure domain. Without one it is a domain of its own.
    pub domain: Option<Domain>,
}

impl Share {
    /// How many tokens that is; at least one.
    fn tokens(self) -> u32 {
        debug_assert!((1..=WEIGHT_MAX).contains(&self.weight), "Ring::new refused it: {self:?}");
        (TOKENS * self.weight / WEIGHT_DEFAULT).max(1)
    }
}

impl Default for Share {
    fn default() -> Self {
        Self { weight: WEIGHT_DEFAULT, domain: None }
    }
}

/// The members of a ring and where they stand on it. Clones share it.
///
/// Two rings are equal when their members are: all else follows from them.
#[derive(Clone)]
pub struct Ring(Arc<Computed>);

struct Computed {
    members: BTreeMap<NodeId, Share>,
    /// The tokens, ascending.
    tokens: Vec<u64>,
    /// Who owns the token at the same place: a place in `owned`.
    owners: Vec<u16>,
    /// The members in node order.
    owned: Vec<Owner>,
    /// Number of distinct domains.
    domains: usize,
}

#[derive(Clone, Copy)]
struct Owner {
    node: NodeId,
    /// The number of its domain in this ring.
    domain: u16,
}

impl Ring {
    /// The ring of these members.
    ///
    /// # Errors
    /// `InvalidArgument` when there are none or more than [`NODES_MAX`], a weight is not from 1 to
    /// [`WEIGHT_MAX`], or all together are too much.
    pub fn new(members: BTreeMap<NodeId, Share>) -> Result<Self> {
        if members.is_empty() || members.len() > NODES_MAX {
            return Err(Error::invalid(format!(
                "a ring has 1 to {NODES_MAX} nodes, this one has {}",
                members.len()
            )));
        }
        for (node, share) in &members {
            if !(1..=WEIGHT_MAX).contains(&share.weight) {
                return Err(Error::invalid(format!(
                    "a weight is from 1 to {WEIGHT_MAX}, that of node {} is {}",
                    node.0, share.weight
                )));
            }
        }
        // Their sum fits, or a ring that is too large would wrap around to one that is not.
        let tokens: u32 = members.values().map(|share| share.tokens()).sum();
        if tokens > TOKENS_MAX {
            return Err(Error::invalid(format!(
                "{} nodes of weights as large as these are too much; divide all weights by {}",
                members.len(),
                tokens.div_ceil(TOKENS_MAX)
            )));
        }
        Ok(Self(Arc::new(Computed::of(members))))
    }

    /// The members and their shares.
    pub fn members(&self) -> &BTreeMap<NodeId, Share> {
        &self.0.members
    }

    /// The share of `node`; `None` when it is no member.
    pub fn share(&self, node: NodeId) -> Option<Share> {
        self.0.members.get(&node).copied()
    }

    /// The tokens of all members, ascending. What lies above one token and not above the next one
    /// has the same replicas, those that [`Ring::walk`] finds from the latter.
    pub fn tokens(&self) -> &[u64] {
        &self.0.tokens
    }

    /// The first `count` distinct nodes from `place` on, in the order they are met; all members
    /// when there are no more.
    pub fn walk(&self, place: u64, count: usize) -> Nodes {
        let Computed { tokens, owners, owned, domains, .. } = &*self.0;
        let count = count.min(owned.len());
        let distinct = count.min(*domains);
        let spare = count - distinct;
        let start = tokens.partition_point(|token| *token < place);
        let mut chosen: SmallVec<[Owner; 4]> = SmallVec::new();
        let mut passed: SmallVec<[Owner; 4]> = SmallVec::new();
        for owner in owners[start..].iter().chain(&owners[..start]) {
            if chosen.len() == distinct && passed.len() == spare {
                break;
            }
            let owner = owned[usize::from(*owner)];
            if chosen.iter().all(|other| other.domain != owner.domain) {
                if chosen.len() < distinct {
                    chosen.push(owner);
                }
            } else if passed.len() < spare
                && chosen.iter().chain(&passed).all(|other| other.node != owner.node)
            {
                passed.push(owner);
            }
        }
        let nodes: Nodes = chosen.iter().chain(&passed).map(|owner| owner.node).collect();
        debug_assert_eq!(nodes.len(), count, "every member has a token, and every domain a member");
        let is_new = |(at, node)| !nodes[..at].contains(node);
        debug_assert!(nodes.iter().enumerate().all(is_new), "each replica is at another node");
        nodes
    }

    /// The same ring with `node` in it, or with another share.
    ///
    /// # Errors
    /// As for [`Ring::new`].
    pub fn with(&self, node: NodeId, share: Share) -> Result<Self> {
        let mut members = self.0.members.clone();
        members.insert(node, share);
        Self::new(members)
    }

    /// The same ring without `node`.
    ///
    /// # Errors
    /// As for [`Ring::new`].
    pub fn without(&self, node: NodeId) -> Result<Self> {
        let mut members = self.0.members.clone();
        members.remove(&node);
        Self::new(members)
    }
}

impl Computed {
    fn of(members: BTreeMap<NodeId, Share>) -> Self {
        let mut numbers: BTreeMap<Domain, u16> = BTreeMap::new();
        let (mut owned, mut all) = (Vec::with_capacity(members.len()), Vec::new());
        let mut domains = 0;
        for (owner, (node, share)) in (0..).zip(&members) {
            let known = share.domain.and_then(|domain| numbers.get(&domain).copied());
            let domain = known.unwrap_or_else(|| {
                domains += 1;
                domains - 1
            });
            if let Some(declared) = share.domain {
                numbers.insert(declared, domain);
            }
            owned.push(Owner { node: *node, domain });
            all.extend((0..share.tokens()).map(|index| (hash::token(*node, index), owner)));
        }
        all.sort_unstable();
        debug_assert_eq!(owned.len(), members.len(), "members are numbered in their order");
        debug_assert!(usize::from(domains) <= owned.len(), "a domain has a member");
        // Else who owns what lies before it would hang on how the sort treats equals.
        debug_assert!(all.is_sorted_by(|left, right| left.0 < right.0), "no two tokens are alike");
        let (tokens, owners): (Vec<u64>, Vec<u16>) = all.into_iter().unzip();
        assert!(tokens.len() >= members.len(), "every member has a token, or a walk misses it");
        assert_eq!(tokens.len(), owners.len(), "a token has an owner");
        Self { members, tokens, owners, owned, domains: usize::from(domains) }
    }
}

impl PartialEq for Ring {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.members == other.0.members
    }
}

impl Eq for Ring {}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.0.members).finish()
    }
}

const _: () = {
    assert!(NODES_MAX <= u16::MAX as usize, "owned and domains are numbered in 16 bits");
    assert!(NODES_MAX as u32 * TOKENS <= TOKENS_MAX, "equal nodes are never too much");
    assert!(limits::REPLICATION_MAX as usize <= NODES_MAX);
    assert!(1 <= WEIGHT_DEFAULT && WEIGHT_DEFAULT <= WEIGHT_MAX);
    assert!(NODES_MAX as u64 * (TOKENS * WEIGHT_MAX) as u64 <= u32::MAX as u64, "sums fit");
};
