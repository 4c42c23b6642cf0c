//! Where messages enter a node: who may say this, what is it for, and is there room for it.
//!
//! ```text
//!   network ──► gate ──┬─ for the monitors (Renew, Prepared, ..) ──► monitor of this node
//!                      ├─ refused: not permitted, too much, quota ─► answered at once
//!                      └─ the rest ────────────────────────────────► driver
//! ```
//!
//! Everything is checked here, on every message, by what the node knows already.

mod authenticate;
mod disks;
pub(crate) mod methods;
mod permission;
mod refused;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::RwLock;
use tyr_protocol::Abort;
use tyr_protocol::chain::Ends;
use tyr_protocol::commit::{Decision, Outcomes};
use tyr_protocol::map::{ClusterMap, Nodes};
use tyr_protocol::message::{Address, Body, Envelope, ReadRequest};
use tyr_protocol::read::Kind;
use tyr_protocol::upload::{self, PieceSource, StagedPiece};
use tyr_protocol::wire::Unread;
use tyr_types::{BlobName, Epoch, Error, KeyspaceId, NodeId, Result, Timestamp, Transaction};

use self::disks::Disks;
use self::methods::Methods;
use self::refused::Refused;
use super::memory_pressure::MemoryPressure;
use super::quota::Quotas;
use super::remarks::Remarks;
use crate::driver::{Backlog, Driver, Outbound};
use tyr_net::access::{Caller, Right, Users};
use tyr_net::{Peer, Receive};

/// Reads that wait at a node above which no new ones are let in.
pub(crate) const READS_WAITING_MAX: usize = 16_384;

/// Takes what nodes tell the monitors, and what the monitors tell.
pub(crate) trait MonitorInbox: Send + Sync + 'static {
    /// Takes a message of a node for the monitors. Never waits.
    fn receive(&self, envelope: Envelope);
    /// Whether this node may speak for the monitors.
    fn is_monitor(&self, node: NodeId) -> bool;
}

/// The entrance of a node.
pub(crate) struct Gate {
    users: Arc<Users>,
    /// With TLS: what the certificates of nodes name, behind `node-<number>.`.
    domain: Option<String>,
    parts: OnceLock<Parts>,
    is_closed: AtomicBool,
    pub disks: Disks,
    /// The newest map the node goes by, for names of keyspaces.
    map: RwLock<Option<Arc<ClusterMap>>>,
    pub refused: Refused,
    pub methods: Methods,
}

/// What is behind the gate; it is there before anybody is let in.
struct Parts {
    driver: Arc<Driver>,
    monitors: Arc<dyn MonitorInbox>,
    outbound: Arc<dyn Outbound>,
    quotas: Arc<Quotas>,
    memory: Arc<MemoryPressure>,
}

impl Gate {
    /// An entrance that nothing lies behind yet.
    pub fn new(users: Arc<Users>, domain: Option<String>) -> Arc<Self> {
        let (parts, map) = (OnceLock::new(), RwLock::default());
        let (is_closed, disks) = (AtomicBool::new(false), Disks::default());
        let refused = Refused::default();
        let methods = Methods::default();
        Arc::new(Self { users, domain, parts, is_closed, disks, map, refused, methods })
    }

    /// Opens it.
    pub fn open(
        &self,
        driver: Arc<Driver>,
        monitors: Arc<dyn MonitorInbox>,
        outbound: Arc<dyn Outbound>,
        quotas: Arc<Quotas>,
        memory: Arc<MemoryPressure>,
    ) {
        let opened = self.parts.set(Parts { driver, monitors, outbound, quotas, memory });
        assert!(opened.is_ok(), "a gate is opened once");
    }

    /// Lets nobody in any more.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// The map by which names of keyspaces are told.
    pub fn learn(&self, map: Arc<ClusterMap>) {
        *self.map.write() = Some(map);
    }

    /// Whether this node is the authority of a blob's first chunk; else the epoch by whose map
    /// another is.
    ///
    /// # Errors
    /// `Unavailable` before the node takes part, and when it stops.
    pub fn authority(&self, blob: &BlobName) -> Result<std::result::Result<(), Epoch>> {
        let is_open = !self.is_closed.load(Ordering::Acquire);
        let parts = self.parts.get().filter(|_| is_open);
        let map = self.map.read();
        let (Some(parts), Some(map)) = (parts, map.as_ref()) else {
            return Err(Error::unavailable("the node starts, or stops; nothing was done"));
        };
        let is_here = map.holders(blob, 0).first() == Some(&parts.driver.node());
        Ok(if is_here { Ok(()) } else { Err(map.epoch) })
    }

    /// What happens here that the cluster log should have; nothing before the node takes part.
    pub fn remarks(&self) -> Option<&Remarks> {
        self.parts.get().map(|parts| &*parts.driver.remarks)
    }

    fn take_from_node(&self, parts: &Parts, node: NodeId, envelope: Envelope) -> Option<Envelope> {
        let is_genuine = match envelope.from {
            Address::Node(from) => from == node,
            Address::Monitors => parts.monitors.is_monitor(node),
            Address::Client(_) => false,
        };
        if !is_genuine {
            self.refused.forged.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let is_for_monitors = match &envelope.body {
            Body::Renew { .. }
            | Body::Prepared { .. }
            | Body::CaughtUp { .. }
            | Body::Return { .. } => true,
            // Any node knows a map.
            Body::FetchMap
            | Body::Commit(_)
            | Body::Recovery(_)
            | Body::Movement(_)
            | Body::Upload(_)
            | Body::Submit { .. }
            | Body::Read(_)
            | Body::CancelRead { .. }
            | Body::SnapshotEnded { .. }
            | Body::Reply { .. }
            | Body::Part(_)
            | Body::Refused { .. }
            | Body::NewerMap(_)
            | Body::NotHere(_)
            | Body::NotUnderstood { .. }
            | Body::Granted { .. }
            | Body::Prepare(_)
            | Body::ListKeys { .. }
            | Body::Scan(_)
            | Body::KeyLease(_)
            | Body::KeyWatch(_)
            | Body::Moment { .. }
            | Body::Keys { .. }
            | Body::Scanned { .. }
            | Body::Effective(_) => false,
        };
        debug_assert!(!matches!(envelope.from, Address::Client(_)), "no node speaks for a client");
        if is_for_monitors {
            parts.monitors.receive(envelope);
            return None;
        }
        Some(envelope)
    }

    fn take_from_client(
        &self,
        parts: &Parts,
        client: u64,
        caller: &Caller,
        envelope: Envelope,
    ) -> Option<Envelope> {
        if envelope.from != Address::Client(client) {
            self.refused.forged.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let refusal = match &envelope.body {
            Body::Submit { transaction, ends, is_retry, .. } => {
                let permitted = self.permit_transaction(caller, transaction);
                let admitted = permitted.and_then(|()| match is_retry {
                    true => Ok(true),
                    false => self.admit(parts, client, transaction, ends),
                });
                match admitted {
                    Ok(true) => None,
                    Ok(false) => return self.let_wait(parts, client, envelope),
                    Err(error) => Some(reply(transaction, &error)),
                }
            }
            Body::Read(request) => self
                .permit_read(caller, request, client)
                .and_then(|()| self.check_read_room(parts))
                .and_then(|()| match request.kind {
                    // A snapshot begins with them: nothing is read yet.
                    Kind::Clock => Ok(()),
                    Kind::Direct | Kind::At(_) | Kind::Layout(_) | Kind::Whole | Kind::First => {
                        self.admit_read(parts, request.blob.keyspace)
                    }
                })
                .err()
                .map(|error| refused(request, &error)),
            Body::ListKeys(it) => self.refused_listing(parts, caller, it.number, it.keyspace),
            Body::Scan(it) => self.refused_listing(parts, caller, it.number, it.keyspace),
            Body::KeyLease(message) => self.refused_lease(caller, message),
            Body::KeyWatch(message) => self.refused_watch(caller, message),
            Body::Upload(message) => self.refused_piece(parts, caller, message),
            // Nothing is read yet.
            Body::Moment { read, .. } => {
                let room = self.permit_moment(caller).and_then(|()| self.check_read_room(parts));
                room.err().map(|error| Body::Refused { read: *read, abort: abort(&error, None) })
            }
            Body::Commit(_)
            | Body::Recovery(_)
            | Body::Movement(_)
            | Body::CancelRead { .. }
            | Body::SnapshotEnded { .. }
            | Body::FetchMap
            | Body::Reply { .. }
            | Body::Keys { .. }
            | Body::Scanned { .. }
            | Body::Part(_)
            | Body::Refused { .. }
            | Body::NewerMap(_)
            | Body::NotHere(_)
            | Body::NotUnderstood { .. }
            | Body::Renew { .. }
            | Body::Granted { .. }
            | Body::Prepare(_)
            | Body::Prepared { .. }
            | Body::Effective(_)
            | Body::CaughtUp { .. }
            | Body::Return { .. } => None,
        };
        debug_assert_eq!(envelope.from, Address::Client(client), "who is answered has asked");
        let Some(body) = refusal else { return Some(envelope) };
        parts.outbound.send(Address::Client(client), answer(parts, &envelope, body));
        None
    }

    /// Whether a transaction may be begun now; `false` when it has to wait a moment for that.
    fn admit(
        &self,
        parts: &Parts,
        client: u64,
        transaction: &Transaction,
        ends: &Ends,
    ) -> Result<bool> {
        let has_room = parts.driver.has_room();
        let is_full = !has_room && !parts.driver.may_wait(client, transaction.payload_len());
        self.check(is_full, || crowded(parts.driver.backlog()))?;
        let nodes = || {
            let chain = self.map.read().as_ref()?.chain(transaction, ends).ok()?;
            Some(chain.hops().iter().map(|hop| hop.node).collect::<Nodes>())
        };
        let nodes = || nodes().unwrap_or_default();
        count(self.disks.check_transaction(transaction, nodes), &self.refused.overload)?;
        count(parts.memory.check(nodes), &self.refused.overload)?;
        count(parts.quotas.admit(transaction, Instant::now), &self.refused.quota)?;
        Ok(has_room)
    }

    /// Why a piece may not be uploaded or filled now.
    fn refused_piece(
        &self,
        parts: &Parts,
        caller: &Caller,
        message: &upload::Message,
    ) -> Option<Body> {
        let (number, admitted) = match message {
            upload::Message::Stage { number, staged, .. } => {
                (number, self.admit_piece(parts, caller, staged))
            }
            upload::Message::Copy { number, blob, chunk, source, .. } => {
                (number, self.admit_copy(parts, caller, (blob, *chunk), source))
            }
            upload::Message::Staged { .. }
            | upload::Message::Copied { .. }
            | upload::Message::Pass { .. }
            | upload::Message::Passed { .. }
            | upload::Message::Fetch { .. }
            | upload::Message::Lacking { .. }
            | upload::Message::Drop { .. } => return None,
        };
        admitted.err().map(|error| Body::Refused { read: *number, abort: abort(&error, None) })
    }

    /// Whether a piece may be uploaded ahead of its transaction now. Its client asks on where there
    /// is no room just now.
    fn admit_piece(&self, parts: &Parts, caller: &Caller, staged: &StagedPiece) -> Result<()> {
        self.permit(caller, &staged.blob, Right::Write)?;
        let len = u64::from(staged.piece.len);
        self.check_piece_room(parts, (&staged.blob, staged.chunk), len)
    }

    /// Whether a piece may be filled now with what another blob had: to its client that is a read
    /// and an upload.
    fn admit_copy(
        &self,
        parts: &Parts,
        caller: &Caller,
        (blob, chunk): (&BlobName, u64),
        source: &PieceSource,
    ) -> Result<()> {
        self.permit_copy(caller, blob, &source.blob)?;
        self.check_read_room(parts)?;
        self.admit_read(parts, source.blob.keyspace)?;
        self.check_piece_room(parts, (blob, chunk), source.range.len())
    }

    fn check_piece_room(
        &self,
        parts: &Parts,
        (blob, chunk): (&BlobName, u64),
        len: u64,
    ) -> Result<()> {
        self.check(!parts.driver.has_room(), || crowded(parts.driver.backlog()))?;
        let nodes = || self.map.read().as_ref().map(|map| map.holders(blob, chunk));
        let nodes = || nodes().unwrap_or_default();
        count(self.disks.check(nodes), &self.refused.overload)?;
        count(parts.quotas.admit_bytes(blob.keyspace, len), &self.refused.quota)
    }

    /// Lets a client's transaction wait until there is room for it; `None` when that is so.
    fn let_wait(&self, parts: &Parts, client: u64, envelope: Envelope) -> Option<Envelope> {
        let Body::Submit { transaction, .. } = &envelope.body else { return Some(envelope) };
        let refusal = crowded(parts.driver.backlog());
        let (len, body) = (transaction.payload_len(), reply(transaction, &refusal));
        let refusal = answer(parts, &envelope, body);
        if let Err(refusal) = parts.driver.wait(client, len, envelope, refusal) {
            self.refused.overload.fetch_add(1, Ordering::Relaxed);
            parts.outbound.send(Address::Client(client), *refusal);
        }
        None
    }

    pub(crate) fn name_of(&self, keyspace: KeyspaceId) -> String {
        let map = self.map.read();
        let known = map.as_ref().and_then(|map| map.keyspaces.get(&keyspace));
        known.map_or_else(|| format!("number {}", keyspace.0), |it| it.name.to_string())
    }

    fn admit_read(&self, parts: &Parts, keyspace: KeyspaceId) -> Result<()> {
        count(parts.quotas.admit_read(keyspace, Instant::now), &self.refused.quota)
    }

    fn check_read_room(&self, parts: &Parts) -> Result<()> {
        let waiting = parts.driver.counts.waiting_reads.load(Ordering::Relaxed);
        let is_full = waiting >= READS_WAITING_MAX || parts.driver.is_overloaded();
        self.check(is_full, || crowded(None))
    }

    fn check(&self, is_full: bool, refusal: impl FnOnce() -> Error) -> Result<()> {
        if !is_full {
            return Ok(());
        }
        self.refused.overload.fetch_add(1, Ordering::Relaxed);
        Err(refusal())
    }
}

impl Receive for Gate {
    fn receive(&self, peer: &Arc<Peer>, batch: &mut Vec<Envelope>) {
        let is_open = !self.is_closed.load(Ordering::Acquire);
        let Some(parts) = self.parts.get().filter(|_| is_open) else { return };
        let mut is_answered = false;
        let mut admitted = Vec::with_capacity(batch.len());
        for envelope in batch.drain(..) {
            let let_in = match peer.address {
                Address::Node(node) => self.take_from_node(parts, node, envelope),
                Address::Client(client) => {
                    let caller: &Caller =
                        peer.principal.get().expect("the gate itself identified the client");
                    let taken = self.take_from_client(parts, client, caller, envelope);
                    is_answered |= taken.is_none();
                    taken
                }
                Address::Monitors => None,
            };
            admitted.extend(let_in);
        }
        if is_answered {
            parts.outbound.flush();
        }
        debug_assert!(batch.is_empty(), "all of a batch is let in or refused");
        debug_assert!(
            admitted.iter().all(|it| is_of(peer.address, it.from)),
            "who is let in is who it says"
        );
        // Where all is refused there is nothing to work off.
        if !admitted.is_empty() {
            parts.driver.receive(admitted.into_iter());
        }
    }

    fn unread(&self, peer: &Arc<Peer>, unread: Unread) {
        let is_open = !self.is_closed.load(Ordering::Acquire);
        let Some(parts) = self.parts.get().filter(|_| is_open) else { return };
        if unread.from == peer.address {
            parts.driver.unread(unread);
        }
    }

    fn gone(&self, _: &Arc<Peer>) {
        // What it began ends by itself: snapshots by their time-out, transactions by being decided.
    }

    fn is_busy(&self) -> bool {
        self.parts.get().is_some_and(|parts| parts.driver.is_overloaded())
    }
}

/// Whether somebody may send with this sender: a node speaks for monitors, too.
fn is_of(peer: Address, from: Address) -> bool {
    peer == from || matches!((peer, from), (Address::Node(_), Address::Monitors))
}

/// What a node says to a client that asked with `asked`.
fn answer(parts: &Parts, asked: &Envelope, body: Body) -> Envelope {
    let (epoch, from) = (asked.epoch, Address::Node(parts.driver.node()));
    Envelope { epoch, incarnation: 0, from, body }
}

/// Why nothing new is begun.
fn crowded(backlog: Option<Backlog>) -> Error {
    let Some(Backlog { slowest }) = backlog else {
        return Error::unavailable(
            "the node has more to do than it can; nothing was done, try again in a moment",
        );
    };
    let who = match slowest {
        Some(NodeId(node)) => format!("node {node}"),
        None => "a node that has not answered the monitors yet".to_owned(),
    };
    Error::unavailable(format!(
        "the node remembers as many outcomes as it may, because {who} is not done with older \
         transactions; nothing was done. It goes on when that node does, or is declared down: \
         look what holds it up (tyr status)"
    ))
}

/// Counts what is refused.
fn count(admitted: Result<()>, refused: &AtomicU64) -> Result<()> {
    admitted.inspect_err(|_| {
        refused.fetch_add(1, Ordering::Relaxed);
    })
}

fn abort(error: &Error, blob: Option<&BlobName>) -> Abort {
    Abort { blob: blob.cloned(), ..Abort::new(error.kind(), error.message().to_owned()) }
}

/// It was refused before anybody heard of it; nothing was begun if it was not sent before, which
/// the client knows.
fn reply(transaction: &Transaction, error: &Error) -> Body {
    Body::Reply {
        id: transaction.id,
        decision: Decision::Abort(abort(error, None)),
        outcomes: Outcomes::new(),
        clock: Timestamp::ZERO,
    }
}

fn refused(request: &ReadRequest, error: &Error) -> Body {
    Body::Refused { read: request.read, abort: abort(error, Some(&request.blob)) }
}

#[cfg(test)]
mod tests;
