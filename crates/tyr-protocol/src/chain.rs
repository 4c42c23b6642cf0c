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

use smallvec::{SmallVec, smallvec};
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
    /// Whether the transaction writes here: all replicas hold it. Otherwise it is read or required,
    /// and only the authority holds it.
    pub is_written: bool,
    /// The authority of these bytes: the first node of the chain that holds them.
    pub authority: NodeId,
}

/// What a node holds of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it, and it is the authority for all of it: the chain of an embedded store.
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

/// Where blobs are guessed to end, in bytes, by their place in `Transaction::blobs`: what appends
/// and cuts need to know before it is known which chunks they touch. Without an entry: 0.
pub type Ends = SmallVec<[(u32, u64); 1]>;

/// What a node holds of a footprint by one of its pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// The share.
    pub footprint: Footprint,
    /// The bytes of the chunk that it lies in; of a chain of one, which has no pieces, all.
    pub chunk: ByteRange,
    /// The authority of the chunk.
    pub authority: NodeId,
}

/// Places in a chain, ascending.
type Places = SmallVec<[usize; 2]>;

/// The nodes that a transaction passes, in node order. Clones share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain(Arc<Links>);

#[derive(Debug, PartialEq, Eq)]
struct Links {
    hops: Vec<Hop>,
    /// What it was computed with.
    ends: Ends,
    /// The places of the authorities of what is written (C9).
    anchors: Places,
    /// The places of the authorities of anything.
    authorities: Places,
    /// Of many pieces, by their blobs: the place of the hop, and of the piece in it.
    by_blob: Vec<(usize, usize)>,
}

/// A node's place in a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub chain: &'a Chain,
    /// The head's is 0.
    pub position: usize,
}

impl Place<'_> {
    fn hop(&self) -> &Hop {
        &self.chain.hops()[self.position]
    }

    /// The node.
    pub fn node(&self) -> NodeId {
        self.hop().node
    }

    /// What the node holds of `footprint` on `blob`: the share of each piece.
    pub fn shares(&self, blob: &BlobName, footprint: Footprint, mut visit: impl FnMut(Share)) {
        if self.hop().part == Part::Whole {
            return visit(Share { footprint, chunk: ByteRange::ALL, authority: self.node() });
        }
        for piece in self.chain.pieces_at(self.position, blob) {
            if let Some(share) = footprint.within(piece) {
                let (chunk, authority) = (piece.range, piece.authority);
                visit(Share { footprint: share, chunk, authority });
            }
        }
    }

    /// Whether the size and existence of `blob` are validated there.
    pub fn is_end_authority(&self, blob: &BlobName) -> bool {
        let is_its = |piece: &Piece| piece.is_attributes && piece.authority == self.node();
        self.hop().part == Part::Whole || self.chain.pieces_at(self.position, blob).any(is_its)
    }
}

/// Of more pieces in a chain those of a blob are looked up by its name: transactions may write to
/// thousands, and each is asked about.
const FEW_PIECES: usize = 48;

impl Chain {
    /// The chain of one that an embedded store has; make it once and clone it.
    pub fn alone(node: NodeId) -> Self {
        let hops = vec![Hop { node, part: Part::Whole }];
        let (anchors, authorities) = (smallvec![0], smallvec![0]);
        let (ends, by_blob) = (Ends::new(), Vec::new());
        Self(Arc::new(Links { hops, ends, anchors, authorities, by_blob }))
    }

    /// A chain of these hops, computed with these guesses of where blobs end.
    ///
    /// # Errors
    /// `InvalidArgument` when there are none, they are not in node order with each node once, or
    /// a hop among several claims the whole.
    pub fn new(hops: Vec<Hop>, ends: Ends) -> Result<Self> {
        if hops.is_empty() {
            return Err(Error::invalid("a chain has at least one node, this one has none"));
        }
        if !hops.is_sorted_by(|left, right| left.node < right.node) {
            return Err(Error::invalid("a chain's nodes are in ascending order, each once"));
        }
        if hops.len() > 1 && hops.iter().any(|hop| hop.part == Part::Whole) {
            return Err(Error::invalid("only a chain of one can hold the whole at one node"));
        }
        let places = |is_meant: fn(&Piece) -> bool| {
            let is_place = |(_, hop): &(usize, &Hop)| {
                let is_own = |piece: &Piece| piece.authority == hop.node && is_meant(piece);
                hop.part == Part::Whole || hop.pieces().iter().any(is_own)
            };
            hops.iter().enumerate().filter(is_place).map(|(place, _)| place).collect()
        };
        let (anchors, authorities): (Places, Places) =
            (places(|piece| piece.is_written), places(|_| true));
        let is_known = |place: &usize| authorities.contains(place);
        debug_assert!(anchors.iter().all(is_known), "C9: an anchor is an authority");
        debug_assert!(authorities.is_sorted_by(|left, right| left < right), "in chain order");
        let by_blob = by_blob(&hops);
        Ok(Self(Arc::new(Links { hops, ends, anchors, authorities, by_blob })))
    }

    /// The hops, head first.
    pub fn hops(&self) -> &[Hop] {
        &self.0.hops
    }

    /// The guesses of where blobs end that it was computed with.
    pub fn ends(&self) -> &Ends {
        &self.0.ends
    }

    /// Whether it is one node, and so nobody else ever hears of the transaction.
    pub fn is_alone(&self) -> bool {
        self.hops().len() == 1
    }

    /// The same, in which `node` has only the pieces that are meant.
    #[must_use]
    pub(crate) fn only(&self, node: NodeId, is_meant: impl Fn(&Piece) -> bool) -> Self {
        let mut hops = self.hops().to_vec();
        for hop in hops.iter_mut().filter(|hop| hop.node == node) {
            if let Part::Pieces(pieces) = &mut hop.part {
                pieces.retain(&is_meant);
            }
        }
        Self::new(hops, self.ends().clone()).expect("its nodes are the same")
    }

    /// Its node at `position`.
    pub(crate) fn place(&self, position: usize) -> Place<'_> {
        debug_assert!(position < self.hops().len(), "a place is in the chain");
        Place { chain: self, position }
    }

    /// The place of `node`, the head's being 0; `None` when it is not in the chain.
    pub fn position(&self, node: NodeId) -> Option<usize> {
        let found = match self.is_alone() {
            true => (self.hops()[0].node == node).then_some(0),
            false => self.hops().binary_search_by_key(&node, |hop| hop.node).ok(),
        };
        debug_assert!(found.is_none_or(|place| self.hops()[place].node == node), "in node order");
        found
    }

    /// The authorities of what is written: where it must be clear what comes before the
    /// transaction before any authority shows it (C9). Places in the chain, ascending.
    pub fn anchors(&self) -> &[usize] {
        &self.0.anchors
    }

    /// Whether the node at `position` is the authority of something read, required or written.
    pub fn is_authority(&self, position: usize) -> bool {
        debug_assert!(position < self.hops().len(), "a place is in the chain");
        self.0.authorities.contains(&position)
    }

    /// The authorities after `position`, which wait for the anchors before them (C9).
    pub fn authorities_after(&self, position: usize) -> impl Iterator<Item = usize> + '_ {
        self.0.authorities.iter().copied().filter(move |other| *other > position)
    }

    /// The nodes that the one at `position` waits for before it shows the transaction (C9).
    pub fn anchors_before(&self, position: usize) -> impl Iterator<Item = NodeId> + '_ {
        let is_waiting = self.is_authority(position);
        let before = self.0.anchors.iter().filter(move |other| is_waiting && **other < position);
        before.map(|other| self.hops()[*other].node)
    }

    /// Whom the node at `position` tells that the transaction is decided, once it knows (C5).
    ///
    /// The tail does not tell all, or one node, the last in many chains, would send most of these
    /// messages of a large cluster. With w the root of how many there are to tell, the nodes before
    /// the tail stand in groups of w; the tail tells the last of each group, a *relay*, and that
    /// one tells the w-1 before itself. So everyone is told once, by one further along, and nobody
    /// tells more than w+2. In a chain of up to four nodes w is 1, and the tail tells all.
    pub fn told_by(&self, position: usize) -> impl Iterator<Item = NodeId> + '_ {
        let tail = self.hops().len() - 1;
        debug_assert!(position <= tail, "a place is in the chain");
        let width = tail.isqrt().max(1);
        let teller = move |place: usize| {
            let relay = ((place / width + 1) * width).min(tail) - 1;
            let teller = if place == relay { tail } else { relay };
            debug_assert!(place < teller && teller <= tail, "C5: told by one further along");
            teller
        };
        let told = (0..position).filter(move |place| teller(*place) == position);
        told.map(|place| self.hops()[place].node)
    }

    /// Up to where its chunks of `blob` are written without a gap, from `from` on, in bytes.
    pub fn reach(&self, blob: &BlobName, from: u64) -> u64 {
        if self.hops()[0].part == Part::Whole {
            return u64::MAX;
        }
        let mut end = from;
        for written in self.written(blob) {
            if written.start > end {
                break;
            }
            end = end.max(written.end);
        }
        end
    }

    /// What its pieces of `blob` write, by where it starts.
    fn written(&self, blob: &BlobName) -> Vec<ByteRange> {
        let pieces = self.pieces_of(blob).filter(|piece| piece.is_written);
        let mut written: Vec<ByteRange> = pieces.map(|piece| piece.range).collect();
        written.sort_unstable_by_key(|range| range.start);
        written
    }

    /// The pieces of `blob` at all of its nodes.
    fn pieces_of(&self, blob: &BlobName) -> impl Iterator<Item = &Piece> {
        self.places_of(blob).map(|(_, piece)| piece)
    }

    /// The pieces of `blob` that the node at `position` lists, in their order; none when that one
    /// holds the whole.
    pub fn pieces_at(&self, position: usize, blob: &BlobName) -> impl Iterator<Item = &Piece> {
        debug_assert!(position < self.hops().len(), "a place is in the chain");
        self.places_of(blob).filter(move |(hop, _)| *hop == position).map(|(_, piece)| piece)
    }

    /// The pieces of `blob`, with the places of the nodes that list them.
    fn places_of(&self, blob: &BlobName) -> impl Iterator<Item = (usize, &Piece)> {
        let Links { hops, by_blob, .. } = &*self.0;
        let piece = |(hop, piece): &(usize, usize)| (*hop, &hops[*hop].pieces()[*piece]);
        let is_its = move |(_, piece): &(usize, &Piece)| piece.blob == *blob;
        let first = by_blob.partition_point(|place| piece(place).1.blob < *blob);
        let found = by_blob[first..].iter().map(piece);
        // Of few there is no order: all are looked at.
        let others = if by_blob.is_empty() { &hops[..] } else { &[] };
        let others = others.iter().enumerate();
        let others = others.flat_map(|(at, hop)| hop.pieces().iter().map(move |it| (at, it)));
        found.take_while(is_its).chain(others.filter(is_its))
    }

    /// Whether one of its written chunks of `blob` has all of `ranges`.
    pub fn has_together(&self, blob: &BlobName, ranges: &[ByteRange]) -> bool {
        if self.hops()[0].part == Part::Whole {
            return true;
        }
        self.pieces_of(blob).any(|piece| {
            let has = |range: &ByteRange| piece.range.contains(*range);
            piece.is_written && ranges.iter().all(has)
        })
    }

    /// Whether all of `range` of `blob` is written by its chunks in the chain.
    pub fn has(&self, blob: &BlobName, range: ByteRange) -> bool {
        if self.hops()[0].part == Part::Whole {
            return true;
        }
        let mut start = range.start;
        for written in self.written(blob) {
            if start >= range.end || written.start > start {
                break;
            }
            start = start.max(written.end);
        }
        start >= range.end
    }
}

/// The places of all pieces in the order of their blobs; none where they are few.
fn by_blob(hops: &[Hop]) -> Vec<(usize, usize)> {
    let count: usize = hops.iter().map(|hop| hop.pieces().len()).sum();
    if count <= FEW_PIECES {
        return Vec::new();
    }
    let of_hop =
        |(place, hop): (usize, &Hop)| (0..hop.pieces().len()).map(move |piece| (place, piece));
    let mut places: Vec<(usize, usize)> = hops.iter().enumerate().flat_map(of_hop).collect();
    places.sort_by(|one, next| {
        let blob = |(hop, piece): &(usize, usize)| &hops[*hop].pieces()[*piece].blob;
        blob(one).cmp(blob(next))
    });
    places
}

impl Hop {
    /// The pieces it lists; none when it holds the whole.
    pub(crate) fn pieces(&self) -> &[Piece] {
        match &self.part {
            Part::Whole => &[],
            Part::Pieces(pieces) => pieces,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use tyr_types::{Key, KeyspaceId};

    fn hop(node: u16) -> Hop {
        Hop { node: NodeId(node), part: Part::Pieces(Vec::new()) }
    }

    fn chain(hops: Vec<Hop>) -> Result<Chain> {
        Chain::new(hops, Ends::new())
    }

    /// Blobs by letter, each with its replicas; all of it is written.
    fn written(blobs: &[(&str, &[u16])]) -> Chain {
        let piece = |key: &str, authority: u16| Piece {
            blob: BlobName { keyspace: KeyspaceId(1), key: Key::new(key).unwrap() },
            range: ByteRange { start: 0, end: 64 },
            is_attributes: true,
            is_written: true,
            authority: NodeId(authority),
        };
        let holds = |node: u16| {
            let held = blobs.iter().filter(move |(_, replicas)| replicas.contains(&node));
            let pieces: Vec<Piece> = held.map(|(key, held)| piece(key, held[0])).collect();
            (!pieces.is_empty()).then_some(Hop { node: NodeId(node), part: Part::Pieces(pieces) })
        };
        chain((0..20).filter_map(holds).collect()).unwrap()
    }

    #[test]
    fn a_chain_reaches_up_to_the_first_gap() {
        let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("a").unwrap() };
        let piece = |start: u64, is_written| Piece {
            blob: blob.clone(),
            range: ByteRange { start, end: start + 64 },
            is_attributes: start == 0,
            is_written,
            authority: NodeId(1),
        };
        let pieces = vec![piece(0, true), piece(64, true), piece(128, false), piece(192, true)];
        let hops =
            [1, 2].map(|node| Hop { node: NodeId(node), part: Part::Pieces(pieces.clone()) });
        let chain = chain(hops.into()).unwrap();
        assert_eq!([0, 10, 64, 127].map(|from| chain.reach(&blob, from)), [128; 4]);
        assert_eq!(chain.reach(&blob, 200), 256);
        assert_eq!(chain.reach(&blob, 128), 128, "what is read there is not cut off");
    }

    #[test]
    fn of_many_pieces_those_of_a_blob_are_found_by_its_name() {
        let blob = |number: u64| {
            let key = Key::new(format!("{:03}", number * 7 % 100)).unwrap();
            BlobName { keyspace: KeyspaceId(1), key }
        };
        // The blob has as many chunks as its number says, in turn at one node or the other.
        let piece = |number: u64, chunk: u64| Piece {
            blob: blob(number),
            range: ByteRange { start: chunk * 64, end: chunk * 64 + 64 },
            is_attributes: chunk == 0,
            is_written: true,
            authority: NodeId(1),
        };
        let hop = |node: u64| {
            let chunks = (0..30).flat_map(|number| (0..number).map(move |chunk| (number, chunk)));
            let held = chunks.filter(|(_, chunk)| chunk % 2 == node - 1);
            let pieces = held.map(|(number, chunk)| piece(number, chunk)).collect();
            Hop { node: NodeId(node as u16), part: Part::Pieces(pieces) }
        };
        let chain = chain(vec![hop(1), hop(2)]).unwrap();
        assert!(!chain.0.by_blob.is_empty());
        for number in 0..30 {
            assert_eq!(chain.reach(&blob(number), 0), number * 64, "{number}");
            let last = ByteRange { start: number.saturating_sub(1) * 64, end: number * 64 };
            assert_eq!(chain.has_together(&blob(number), &[last]), number > 0);
        }
        assert_eq!(chain.reach(&blob(31), 5), 5, "nothing of it is in the chain");
    }

    /// C9.
    #[test]
    fn each_authority_waits_for_those_before_it() {
        let chain = written(&[("a", &[0, 2, 4]), ("b", &[1, 3, 5]), ("c", &[0, 1, 2])]);
        assert_eq!(chain.anchors(), [0, 1]);
        assert_eq!(chain.anchors_before(0).count(), 0);
        assert_eq!(chain.anchors_before(1).collect::<Vec<_>>(), [NodeId(0)]);
        assert_eq!(chain.anchors_before(4).count(), 0, "node 4 is no authority, it shows nothing");
        assert_eq!(chain.authorities_after(0).collect::<Vec<_>>(), [1]);
    }

    /// C5.
    #[test]
    fn everyone_before_the_tail_is_told_once_by_one_who_was_told_before() {
        for nodes in 1..=300 {
            let chain = chain((0..nodes).map(hop).collect()).unwrap();
            let (tail, mut knows) = (usize::from(nodes) - 1, BTreeSet::from([nodes - 1]));
            for position in (0..=tail).rev() {
                let told: Vec<u16> = chain.told_by(position).map(|node| node.0).collect();
                let teller = chain.hops()[position].node.0;
                assert!(told.is_empty() || knows.contains(&teller), "{teller} of {nodes} knows");
                let most = tail.isqrt() + if position == tail { 2 } else { 0 };
                assert!(told.len() <= most, "{teller} of {nodes} tells {told:?}");
                for node in told {
                    assert!(knows.insert(node), "{node} of {nodes} is told twice");
                }
            }
            assert_eq!(knows.len(), usize::from(nodes), "all of {nodes} are told");
        }
    }

    /// C5.
    #[test]
    fn the_tail_of_a_short_chain_tells_all_and_that_of_a_long_one_its_relays() {
        let told = |nodes: u16| -> Vec<Vec<u16>> {
            let chain = chain((0..nodes).map(hop).collect()).unwrap();
            let told_by = |position| chain.told_by(position).map(|node| node.0).collect();
            (0..usize::from(nodes)).map(told_by).collect()
        };
        assert_eq!(told(1), [[0; 0]]);
        assert_eq!(told(4), [vec![], vec![], vec![], vec![0, 1, 2]]);
        assert_eq!(told(6), [vec![], vec![0], vec![], vec![2], vec![], vec![1, 3, 4]]);
        assert_eq!(told(10)[9], [2, 5, 8]);
        assert_eq!(told(10)[5], [3, 4]);
    }

    #[test]
    fn only_a_chain_of_one_holds_the_whole_at_one_node() {
        let whole = Hop { node: NodeId(1), part: Part::Whole };
        assert!(chain(vec![whole.clone()]).is_ok());
        assert!(chain(vec![whole, hop(2)]).is_err());
    }

    #[test]
    fn a_node_knows_its_place() {
        let chain = chain(vec![hop(1), hop(3)]).unwrap();
        assert_eq!(chain.position(NodeId(3)), Some(1));
        assert_eq!(chain.position(NodeId(2)), None);
        assert_eq!(Chain::alone(NodeId(7)).position(NodeId(7)), Some(0));
    }
}
