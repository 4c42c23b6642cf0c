//! Quotas: what a keyspace may have at most, kept without anything that all have to ask.
//!
//! ```text
//!   quotas/<number> in the service metadata ──► limits ─┐
//!   tally: what counts at this node ────────────────────┼──► gate: may this be let in?
//!   gossip: what counts at the others ──────────────────┘
//! ```
//!
//! Bytes and blobs ([`growth`]): every blob counts at one node, and every node knows at once what
//! counts with it, and within a rumour or two what counts with the others. A transaction that would
//! make a keyspace larger than its quota is refused where it enters. So a quota is exceeded by what
//! is in flight, and by what the nodes let in between two rumours, and by no more.
//!
//! Operations a second ([`bucket`]): each node grants a part of them, as large as its part of what
//! clients ask for, which nodes tell each other too ([`demand`]).
//!
//! Must not know: how the limits come here, and how the totals are counted.

mod bucket;
mod demand;
mod growth;
mod record;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use smallvec::SmallVec;
use tyr_protocol::map::{ClusterMap, NodeState};
use tyr_store::store::Store;
use tyr_types::{
    BlobName, Epoch, Error, ErrorKind, KeyspaceId, KeyspaceUsage, NodeId, Result, Transaction,
};

use self::bucket::Bucket;
use self::demand::Demand;
use self::growth::{Growth, Known};
pub use self::record::{Quota, QuotaReport};
use tyr_engine::tally::{self, Tally, Watched};
use tyr_gossip::Heard;

/// The quotas of a cluster, as a node keeps them.
pub(crate) struct Quotas {
    node: NodeId,
    store: Arc<Store>,
    /// What counts at this node.
    tally: Arc<Tally>,
    counted_at: CountedAt,
    /// Whether there is any quota: nearly always there is none.
    is_any: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    map: Option<Arc<ClusterMap>>,
    kept: BTreeMap<KeyspaceId, Kept>,
}

/// When a keyspace was last counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Since when who holds what was as it was then.
    pub moved: Epoch,
    /// When all of it had been met.
    pub at: Instant,
}

/// When each keyspace was last counted at this node.
pub(crate) type CountedAt = Arc<Mutex<BTreeMap<KeyspaceId, Counted>>>;

/// A quota, and how the keyspace stands.
#[derive(Debug, Default)]
struct Kept {
    quota: Quota,
    /// What counts at the other nodes, as far as heard.
    elsewhere: KeyspaceUsage,
    demand: Demand,
    bucket: Bucket,
}

/// A keyspace with a quota that a request names.
struct Named {
    keyspace: KeyspaceId,
    quota: Quota,
    used: KeyspaceUsage,
    /// What it counts as, in operations.
    cost: u64,
}

impl Quotas {
    /// No quotas yet.
    pub fn new(node: NodeId, store: Arc<Store>, tally: Arc<Tally>) -> Arc<Self> {
        let (counted_at, is_any, state) = Default::default();
        Arc::new(Self { node, store, tally, counted_at, is_any, state })
    }

    /// The map that says who is up, and what keyspaces are called.
    pub fn learn(&self, map: Arc<ClusterMap>) {
        let mut state = self.state.lock();
        state.map = Some(map);
        self.watch(&state);
    }

    /// A quota was set, changed, or taken away.
    pub fn update(&self, keyspace: KeyspaceId, quota: Option<Quota>) {
        let mut state = self.state.lock();
        match quota.filter(|quota| !quota.is_unlimited()) {
            Some(quota) => state.kept.entry(keyspace).or_default().quota = quota,
            None => drop(state.kept.remove(&keyspace)),
        }
        self.watch(&state);
    }

    /// Only these keyspaces still have one.
    pub fn retain(&self, has_quota: impl Fn(KeyspaceId) -> bool) {
        let mut state = self.state.lock();
        state.kept.retain(|keyspace, _| has_quota(*keyspace));
        self.watch(&state);
    }

    /// Has all keyspaces counted; those with a quota more often.
    fn watch(&self, state: &State) {
        debug_assert!(state.kept.values().all(|kept| !kept.quota.is_unlimited()), "all are quotas");
        self.is_any.store(!state.kept.is_empty(), Ordering::Release);
        let open = state.map.iter().flat_map(|map| &map.keyspaces);
        let open = open.filter(|(_, keyspace)| !keyspace.is_dropped);
        self.tally.watch(open.map(|(id, _)| (*id, state.kept.contains_key(id))));
    }

    /// What this node tells the others: of keyspaces with a quota, so that they are told often.
    pub fn counted(&self, now: Instant) -> BTreeMap<KeyspaceId, KeyspaceUsage> {
        if !self.is_any.load(Ordering::Acquire) {
            return BTreeMap::new();
        }
        let mut counted = self.tally.totals();
        let mut state = self.state.lock();
        counted.retain(|keyspace, _| state.kept.contains_key(keyspace));
        for (keyspace, kept) in &mut state.kept {
            if let Some(totals) = counted.get_mut(keyspace) {
                totals.operations = kept.demand.measure(now);
            }
        }
        counted
    }

    /// When this node has counted its keyspaces: who counts them says so here.
    pub fn counted_at(&self) -> &CountedAt {
        &self.counted_at
    }

    /// What counts at this node of all keyspaces, and what each may have in the whole cluster.
    pub fn totals(&self) -> Vec<(Watched, KeyspaceUsage, Quota)> {
        let totals = self.tally.totals();
        let state = self.state.lock();
        let of = |watched: Watched| {
            let used = totals.get(&watched.keyspace).copied().unwrap_or_default();
            let kept = state.kept.get(&watched.keyspace);
            (watched, used, kept.map(|kept| kept.quota).unwrap_or_default())
        };
        self.tally.watched().into_iter().map(of).collect()
    }

    /// What the others told. Of nodes that are not up nothing counts: what they were the authority
    /// over, others are by now.
    pub fn hear(&self, heard: &[Heard]) {
        if !self.is_any.load(Ordering::Acquire) {
            return;
        }
        debug_assert!(heard.iter().all(|it| it.node != self.node), "what counts here counts once");
        let mut state = self.state.lock();
        let State { map, kept } = &mut *state;
        let Some(map) = map else { return };
        let is_up = |node| map.nodes.get(&node).is_some_and(|it| it.state == NodeState::Up);
        for (keyspace, kept) in kept {
            let others = heard.iter().filter(|heard| is_up(heard.node));
            let totals = others.filter_map(|heard| heard.rumour.totals.get(keyspace));
            debug_assert!(!kept.quota.is_unlimited(), "what has no quota is not added up");
            kept.elsewhere = totals.fold(KeyspaceUsage::default(), |sum, totals| sum.plus(*totals));
        }
    }

    /// Lets a transaction in, or not.
    ///
    /// # Errors
    /// `QuotaExceeded` that names the keyspace and its limit.
    pub fn admit(&self, transaction: &Transaction, now: impl Fn() -> Instant) -> Result<()> {
        if !self.is_any.load(Ordering::Acquire) {
            return Ok(());
        }
        let named = self.named(transaction);
        named.iter().try_for_each(|named| self.check_growth(transaction, named))?;
        self.spend(&named, now)
    }

    /// Lets so many bytes be uploaded ahead of their transaction, or not (U2).
    ///
    /// # Errors
    /// `QuotaExceeded` that names the keyspace and its limit.
    pub fn admit_bytes(&self, keyspace: KeyspaceId, len: u64) -> Result<()> {
        if !self.is_any.load(Ordering::Acquire) {
            return Ok(());
        }
        let state = self.state.lock();
        let Some(kept) = state.kept.get(&keyspace) else { return Ok(()) };
        let used = kept.elsewhere.plus(self.tally.of(keyspace));
        let growth = Growth { blobs: 0, bytes: i128::from(len) };
        match exceeded(&kept.quota, used, growth) {
            None => Ok(()),
            Some(limit) => Err(limit.refusal(&name_of(state.map.as_deref(), keyspace))),
        }
    }

    /// Lets a read in, or not.
    ///
    /// # Errors
    /// `QuotaExceeded` that names the keyspace and its limit.
    pub fn admit_read(&self, keyspace: KeyspaceId, now: impl Fn() -> Instant) -> Result<()> {
        if !self.is_any.load(Ordering::Acquire) {
            return Ok(());
        }
        let known = self.state.lock().kept.get(&keyspace).map(|kept| kept.quota);
        let Some(quota) = known.filter(|quota| quota.operations.is_some()) else { return Ok(()) };
        self.spend(&[Named { keyspace, quota, used: KeyspaceUsage::default(), cost: 1 }], now)
    }

    /// How each keyspace with a quota stands.
    pub fn reports(&self) -> Vec<QuotaReport> {
        let state = self.state.lock();
        let Some(map) = &state.map else { return Vec::new() };
        let open = |(id, kept): (&KeyspaceId, &Kept)| {
            let keyspace = map.keyspaces.get(id).filter(|keyspace| !keyspace.is_dropped)?;
            let KeyspaceUsage { blobs, bytes, .. } = kept.elsewhere.plus(self.tally.of(*id));
            Some(QuotaReport {
                keyspace: keyspace.name.to_string(),
                quota: kept.quota,
                bytes,
                blobs,
            })
        };
        state.kept.iter().filter_map(open).collect()
    }

    /// The keyspaces with a quota that a transaction names.
    fn named(&self, transaction: &Transaction) -> SmallVec<[Named; 2]> {
        let mut named: SmallVec<[Named; 2]> = SmallVec::new();
        let state = self.state.lock();
        for keyspace in transaction.blobs.iter().map(|entry| entry.blob.keyspace) {
            if let Some(known) = named.iter_mut().find(|named| named.keyspace == keyspace) {
                known.cost += 1;
            } else if let Some(kept) = state.kept.get(&keyspace) {
                let used = kept.elsewhere.plus(self.tally.of(keyspace));
                named.push(Named { keyspace, quota: kept.quota, used, cost: 1 });
            }
        }
        debug_assert!(named.len() <= state.kept.len(), "each keyspace is named once");
        debug_assert!(named.iter().all(|it| it.cost > 0), "who is named counts");
        named
    }

    /// Whether the keyspace has room for what the transaction adds. What adds nothing is let in
    /// however full the keyspace is.
    fn check_growth(&self, transaction: &Transaction, named: &Named) -> Result<()> {
        let Named { keyspace, quota, used, .. } = named;
        // If there is room even should nothing of it be there yet, nobody has to look.
        let most = Growth::of(transaction, *keyspace, |_| Known::Size(None));
        if exceeded(quota, *used, most).is_none() {
            return Ok(());
        }
        let map = self.state.lock().map.clone();
        let growth = Growth::of(transaction, *keyspace, |blob| self.known(map.as_deref(), blob));
        match exceeded(quota, *used, growth) {
            None => Ok(()),
            Some(limit) => Err(limit.refusal(&name_of(map.as_deref(), *keyspace))),
        }
    }

    /// What is known here of a blob.
    fn known(&self, map: Option<&ClusterMap>, blob: &BlobName) -> Known {
        let placed = map.and_then(|map| map.placement(blob, 0));
        if !placed.is_some_and(|placed| placed.holders.contains(&self.node)) {
            return Known::Elsewhere;
        }
        // Where the disk fails here, it fails again when the transaction is validated.
        tally::size(&self.store, blob).map_or(Known::Elsewhere, Known::Size)
    }

    /// Counts operations, of all keyspaces or of none.
    fn spend(&self, named: &[Named], now: impl Fn() -> Instant) -> Result<()> {
        if named.iter().all(|named| named.quota.operations.is_none()) {
            return Ok(());
        }
        let mut state = self.state.lock();
        let State { map, kept } = &mut *state;
        let up = map.as_deref().map_or(1, nodes_up);
        let now = now();
        for Named { keyspace, quota, cost, .. } in named {
            let (Some(limit), Some(kept)) = (quota.operations, kept.get_mut(keyspace)) else {
                continue;
            };
            kept.demand.ask(*cost);
            let part = kept.demand.part(limit, kept.elsewhere.operations, up);
            if !kept.bucket.has(*cost, part, now) {
                return Err(too_often(&name_of(map.as_deref(), *keyspace), limit, up));
            }
        }
        for Named { keyspace, cost, .. } in named {
            if let Some(kept) = kept.get_mut(keyspace) {
                kept.bucket.spend(*cost);
            }
        }
        Ok(())
    }
}

/// What a transaction would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    what: &'static str,
    limit: u64,
    used: u64,
    more: i128,
}

/// The limit that a keyspace would exceed; `None` when it would none.
fn exceeded(quota: &Quota, used: KeyspaceUsage, growth: Growth) -> Option<Limit> {
    let over = |what, limit: Option<u64>, used: u64, more: i128| {
        let limit = limit?;
        let is_over = more > 0 && i128::from(used) + more > i128::from(limit);
        is_over.then_some(Limit { what, limit, used, more })
    };
    over("bytes", quota.bytes, used.bytes, growth.bytes)
        .or_else(|| over("blobs", quota.blobs, used.blobs, growth.blobs))
}

impl Limit {
    fn refusal(&self, keyspace: &str) -> Error {
        let Self { what, limit, used, more } = self;
        Error::new(
            ErrorKind::QuotaExceeded,
            format!(
                "keyspace {keyspace} has a quota of {limit} {what}, of which {used} are used, and \
                 this would add {more}; nothing was written. Delete or truncate something, or let \
                 an administrator give it more: tyr keyspace quota {keyspace} --{what} N"
            ),
        )
    }
}

fn too_often(keyspace: &str, limit: u64, up: usize) -> Error {
    Error::new(
        ErrorKind::QuotaExceeded,
        format!(
            "keyspace {keyspace} has a quota of {limit} operations a second, and the part of this \
             node, one of {up}, is used up; nothing was done. Try again in a moment, or let an \
             administrator give it more: tyr keyspace quota {keyspace} --operations N"
        ),
    )
}

/// The nodes that grant operations.
fn nodes_up(map: &ClusterMap) -> usize {
    let up = map.nodes.values().filter(|node| node.state == NodeState::Up);
    up.count().max(1)
}

fn name_of(map: Option<&ClusterMap>, keyspace: KeyspaceId) -> String {
    let known = map.and_then(|map| map.keyspaces.get(&keyspace));
    known.map_or_else(|| format!("number {}", keyspace.0), |it| it.name.to_string())
}

#[cfg(test)]
mod tests;
