//! Pieces that were uploaded ahead of their transaction (U1): each an extent, written once, where
//! it will stay.
//!
//! ```text
//!   Stage ──► extent ◄── log record      Decided ──apply──► extent ◄── recent, base
//!                └── dropped, late ──► given back
//! ```
//!
//! A lease keeps each alive until a chunk has it. After a restart leases are made anew from what
//! the log says.
//!
//! Must not know: which pieces may be used by whom, and until when. That is the member's affair.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use tyr_protocol::upload::StagedPiece;
use tyr_store::recent::ExtentLease;
use tyr_store::store::Store;
use tyr_types::{Bytes, Error, ExtentRef, KeyspaceId, PieceContent, PieceId, Result};

use crate::tally::Tally;

/// A piece.
#[derive(Debug)]
struct HeldPiece {
    leases: Vec<Arc<ExtentLease>>,
    /// The keyspace whose quota counts it at this node, and its bytes.
    counted: Option<(KeyspaceId, u64)>,
}

/// The pieces that are staged here; bounded by what the member has.
#[derive(Debug)]
pub struct HeldPieces {
    by_id: HashMap<PieceId, HeldPiece, FixedState>,
    tally: Arc<Tally>,
}

impl HeldPieces {
    /// None; what is staged is counted in `tally`.
    pub fn new(tally: Arc<Tally>) -> Self {
        Self { by_id: HashMap::default(), tally }
    }

    /// Keeps a piece, unless it is here; `is_counted` says whether its keyspace's quota counts it
    /// at this node.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or refuses.
    pub fn stage(
        &mut self,
        store: &Store,
        StagedPiece { piece, blob, .. }: &StagedPiece,
        content: &PieceContent,
        is_compressed: bool,
        is_counted: bool,
    ) -> Result<()> {
        let id = piece.id;
        if self.by_id.contains_key(&id) {
            return Ok(());
        }
        let leases = match content {
            PieceContent::Bytes(bytes) => {
                vec![store.write_extent_later(bytes.clone(), is_compressed)?]
            }
            PieceContent::Extents(extents) => {
                let dead = store.recent().dead();
                extents.iter().map(|extent| ExtentLease::new(*extent, dead)).collect()
            }
            PieceContent::Elsewhere => {
                return Err(Error::corrupt(format!("the log has nothing of piece {:x}", id.0)));
            }
        };
        let counted = is_counted.then_some((blob.keyspace, u64::from(piece.len)));
        if let Some((keyspace, len)) = counted {
            self.tally.stage(keyspace, len);
        }
        self.by_id.insert(id, HeldPiece { leases, counted });
        Ok(())
    }

    /// These are not needed any more: what no chunk has is given back.
    pub fn unstage(&mut self, ids: &[PieceId]) {
        for id in ids {
            if let Some(HeldPiece { counted: Some((keyspace, len)), .. }) = self.by_id.remove(id) {
                self.tally.unstage(keyspace, len);
            }
        }
    }

    /// Nothing is here any more.
    pub fn clear(&mut self) {
        let all: Vec<PieceId> = self.by_id.keys().copied().collect();
        self.unstage(&all);
    }

    /// Where the piece lies, as the log has it.
    pub fn content(&self, id: PieceId) -> PieceContent {
        match self.extents(id) {
            Some(extents) => PieceContent::Extents(extents),
            None => PieceContent::Elsewhere,
        }
    }

    /// The bytes of a piece.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn bytes(&self, store: &Store, id: PieceId) -> Result<Option<Bytes>> {
        let Some(extents) = self.extents(id) else { return Ok(None) };
        let mut bytes = vec![0; extents.iter().map(|extent| extent.len as usize).sum()];
        let mut rest = &mut bytes[..];
        for extent in &extents {
            let (piece, next) = rest.split_at_mut(extent.len as usize);
            store.read_extent(extent, 0, piece)?;
            rest = next;
        }
        Ok(Some(Bytes::from(bytes)))
    }

    /// A chunk answers for this piece from now on.
    pub fn adopt(&self, id: PieceId) {
        let leases = self.by_id.get(&id).into_iter().flat_map(|held| &held.leases);
        leases.for_each(|lease| lease.adopt());
    }

    fn extents(&self, id: PieceId) -> Option<Vec<ExtentRef>> {
        let held = self.by_id.get(&id)?;
        Some(held.leases.iter().map(|lease| lease.extent()).collect())
    }
}
