//! The nodes that a transaction passes, and what each of them holds of it.
//!
//! A chain is computed once, by whoever routes the transaction, and travels with it: so every node
//! of it has the same idea of who holds what, whatever map it has by now. Sorted by node, each
//! node once: this order is why waiting cannot deadlock.
//!
//! ```text
//!   head ──forward──► node ──forward──► tail      C1..C5
//!   head ◄─backward── node ◄─backward── tail      C6, C7
//! ```

use std::sync::Arc;

use tyr_types::{BlobName, ByteRange, Error, NodeId, Result};

use crate::footprint::Footprint;

/// A stretch of a blob that a node holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The blob.
    pub blob: BlobName,
    /// The bytes: those of one chunk.
    pub range: ByteRange,
    /// Whether the node is a version manager of the blob, by this piece (of chunk 0).
    pub is_attributes: bool,
    /// The authority of these bytes: the first node of the chain that holds them.
    pub authority: NodeId,
}

/// What a node holds of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it, and it is the authority for all of it: a chain of one.
    Whole,
    /// These pieces.
    Pieces(Vec<Piece>),
}

/// A node of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The node.
    pub node: NodeId,
    /// What it holds of the transaction.
    pub part: Part,
}

/// The nodes that a transaction passes, in node order. Clones share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain(Arc<[Hop]>);

impl Chain {
    /// The chain of one that an embedded store has; make it once and clone it.
    pub fn alone(node: NodeId) -> Self {
        Self(Arc::from([Hop { node, part: Part::Whole }]))
    }

    /// A chain of these hops.
    ///
    /// # Errors
    /// `InvalidArgument` when there are none, they are not in node order with each node once, or
    /// a hop among several claims the whole.
    pub fn new(hops: Vec<Hop>) -> Result<Self> {
        if hops.is_empty() {
            return Err(Error::invalid("a chain has at least one node, this one has none"));
        }
        if !hops.is_sorted_by(|left, right| left.node < right.node) {
            return Err(Error::invalid("a chain's nodes are in ascending order, each once"));
        }
        if hops.len() > 1 && hops.iter().any(|hop| hop.part == Part::Whole) {
            return Err(Error::invalid("only a chain of one can hold the whole at one node"));
        }
        Ok(Self(hops.into()))
    }

    /// The hops, head first.
    pub fn hops(&self) -> &[Hop] {
        &self.0
    }

    /// Whether it is one node, and so nobody else ever hears of the transaction.
    pub fn is_alone(&self) -> bool {
        self.0.len() == 1
    }

    /// The place of `node`, the head's being 0; `None` when it is not in the chain.
    pub fn position(&self, node: NodeId) -> Option<usize> {
        match self.is_alone() {
            true => (self.0[0].node == node).then_some(0),
            false => self.0.binary_search_by_key(&node, |hop| hop.node).ok(),
        }
    }

    /// The nodes that hold something of `footprint` on `blob` of which another, `authority`, is the
    /// authority: those that wait for its notice of stability (R2).
    pub(crate) fn followers<'a>(
        &'a self,
        authority: NodeId,
        blob: &'a BlobName,
        footprint: Footprint,
    ) -> impl Iterator<Item = NodeId> + 'a {
        let follows = move |piece: &Piece| {
            piece.authority == authority && piece.blob == *blob && footprint.within(piece).is_some()
        };
        let others = self.0.iter().filter(move |hop| hop.node != authority);
        others.filter(move |hop| hop.pieces().iter().any(follows)).map(|hop| hop.node)
    }
}

impl Hop {
    /// The pieces it lists; none when it holds the whole.
    pub(crate) fn pieces(&self) -> &[Piece] {
        match &self.part {
            Part::Whole => &[],
            Part::Pieces(pieces) => pieces,
        }
    }

    /// What it holds of `footprint` on `blob`: each piece's share, with its authority.
    pub(crate) fn shares(
        &self,
        blob: &BlobName,
        footprint: Footprint,
        mut visit: impl FnMut(Footprint, NodeId),
    ) {
        match &self.part {
            Part::Whole => visit(footprint, self.node),
            Part::Pieces(pieces) => {
                for piece in pieces.iter().filter(|piece| piece.blob == *blob) {
                    if let Some(share) = footprint.within(piece) {
                        visit(share, piece.authority);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(node: u16) -> Hop {
        Hop { node: NodeId(node), part: Part::Pieces(Vec::new()) }
    }

    #[test]
    fn a_chain_out_of_node_order_or_with_a_node_twice_is_refused() {
        assert!(Chain::new(vec![hop(1), hop(2), hop(5)]).is_ok());
        assert!(Chain::new(vec![]).is_err());
        assert!(Chain::new(vec![hop(2), hop(1)]).is_err());
        assert!(Chain::new(vec![hop(1), hop(1)]).is_err());
    }

    #[test]
    fn only_a_chain_of_one_holds_the_whole_at_one_node() {
        let whole = Hop { node: NodeId(1), part: Part::Whole };
        assert!(Chain::new(vec![whole.clone()]).is_ok());
        assert!(Chain::new(vec![whole, hop(2)]).is_err());
    }

    #[test]
    fn a_node_knows_its_place() {
        let chain = Chain::new(vec![hop(1), hop(3)]).unwrap();
        assert_eq!(chain.position(NodeId(3)), Some(1));
        assert_eq!(chain.position(NodeId(2)), None);
        assert_eq!(Chain::alone(NodeId(7)).position(NodeId(7)), Some(0));
    }
}
