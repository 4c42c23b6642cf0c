//! Leases of keys and groups that this node gives, and when it may (K1, K3, K7).
//!
//! It gives those of the keys and groups that it is the authority of by the newest map, while it
//! has a lease of its own (M3) and no planned map gives them to another. Of a key that another
//! looked after before, it gives none until what that one gave is over; who holds something of it
//! may hold it on meanwhile (K3).

use std::collections::BTreeSet;
use std::sync::Arc;

use tyr_types::lease::duration_max;
use tyr_types::limits::LEASE_DURATION_MIN;
use tyr_types::{BlobName, ErrorKind, KeyRange, KeyspaceId, Leased, NodeId};

use super::key_guard::{KeptOffListings, KeptOffReads};
use super::{Member, Store, Turn};
use crate::abort::Abort;
use crate::key_lease::{Ask, Message, RENEWED_MAX, Table, counted_us};
use crate::map::{ClusterMap, DROPPED};
use crate::message::{Address, Asked, Body};
use crate::rule::Rule;

/// What an earlier authority gave is over after so long, in microseconds (K3), in a keyspace that
/// is guarded, or not.
pub(super) const fn grace_us(is_guarded: bool) -> u64 {
    counted_us(duration_max(is_guarded).as_micros() as u64)
}

/// Maps of before that are looked at at a time; beyond, any key may have been another's.
const BEFORE_MAX: usize = 16;

/// What is to be said, and to which client.
type Said = Vec<(u64, Message)>;

/// A change of placement that is not long ago.
#[derive(Debug)]
struct Moved {
    /// The map of before; `None` where that is not known.
    before: Option<Arc<ClusterMap>>,
    /// When it was; `None` until the first tick after it, which knows the time.
    since_us: Option<u64>,
}

impl Moved {
    /// Whether what was given by the map of before is over.
    fn is_over(&self, now_us: u64, is_guarded: bool) -> bool {
        let until_us = self.since_us.map(|since_us| since_us.saturating_add(grace_us(is_guarded)));
        until_us.is_some_and(|until_us| until_us <= now_us)
    }

    /// Whether by the map of before another may have given leases of this key.
    fn was_others(&self, blob: &BlobName, node: NodeId) -> bool {
        let Some(map) = &self.before else { return true };
        map.keyspaces.contains_key(&blob.keyspace) && authority(map, blob) != Some(node)
    }
}

/// The leases that this node gives.
#[derive(Debug, Default)]
pub(super) struct KeyLeases {
    pub table: Table,
    /// At most [`BEFORE_MAX`].
    moved: Vec<Moved>,
    /// The keyspaces that are guarded (K2), by the newest map.
    pub guarded: BTreeSet<KeyspaceId>,
    /// The names of what transactions and reads are kept off: fewer than there are of those.
    pub kept_off: BTreeSet<BlobName>,
    /// Reads that wait for what keeps them off.
    pub reads: KeptOffReads,
    /// Listings that do.
    pub listings: KeptOffListings,
}

impl KeyLeases {
    /// Whether nobody holds a lease of this key that another node gave (K3).
    pub fn is_clear(&self, now_us: u64, blob: &BlobName, node: NodeId) -> bool {
        let is_guarded = self.guarded.contains(&blob.keyspace);
        let may_be_held =
            |moved: &Moved| !moved.is_over(now_us, is_guarded) && moved.was_others(blob, node);
        !self.moved.iter().any(may_be_held)
    }

    /// The same of all keys of a range. Where they may be of several groups any of them may have
    /// been another's.
    pub fn is_clear_over(
        &self,
        now_us: u64,
        keyspace: KeyspaceId,
        keys: &KeyRange,
        node: NodeId,
    ) -> bool {
        match self.table.group_of_all(keyspace, keys) {
            Some(group) => self.is_clear(now_us, &group, node),
            None => {
                let is_guarded = self.guarded.contains(&keyspace);
                self.moved.iter().all(|moved| moved.is_over(now_us, is_guarded))
            }
        }
    }

    /// Whether this node has been the key's authority for so long that all who hold, or watch,
    /// something of it have said so: longer than they are waited for when they are silent (K6).
    pub fn is_settled(&self, now_us: u64, blob: &BlobName, node: NodeId) -> bool {
        let is_recent = |moved: &Moved| !moved.is_over(now_us, false);
        !self.moved.iter().any(|moved| is_recent(moved) && moved.was_others(blob, node))
    }
}

/// Who gives leases of this key.
pub(super) fn authority(map: &ClusterMap, blob: &BlobName) -> Option<NodeId> {
    map.holders(blob, 0).first().copied()
}

impl Member {
    /// The leases of keys that this node has given, and those who wait for one here.
    pub fn key_leases(&self) -> (usize, usize) {
        (self.key_leases.table.held(), self.key_leases.table.waiting())
    }

    /// It has given no leases of keys, as far as it knows.
    pub(super) fn forget_key_leases(&mut self) {
        self.key_leases.table.forget();
    }

    /// Chunks are placed by the newest map from now on; `before` where this node went by that one
    /// up to now.
    pub(super) fn place_key_leases(&mut self, before: Option<Arc<ClusterMap>>) {
        let Some(map) = self.map.clone() else { return };
        let KeyLeases { table, moved, .. } = &mut self.key_leases;
        table.retain(|of| authority(&map, of.name()) == Some(self.node));
        let is_said = |it: &Moved| it.before.is_none() && it.since_us.is_none();
        if before.is_none() && moved.last().is_some_and(is_said) {
            return;
        }
        if moved.len() == BEFORE_MAX {
            moved.remove(0);
            moved[0].before = None;
        }
        moved.push(Moved { before, since_us: None });
    }

    /// These keyspaces are guarded from now on (K2), and their keys are placed so (K7).
    pub(super) fn note_keyspaces(&mut self, map: &ClusterMap) {
        let all = map.keyspaces.iter().filter(|(_, keyspace)| keyspace.config.is_guarded);
        self.key_leases.guarded = all.map(|(id, _)| *id).collect();
        let all = map.keyspaces.iter();
        self.key_leases.table.know(all.map(|(id, it)| (*id, it.config.placed_by)).collect());
    }

    /// Whether a planned map makes another the authority of this key: that one may give leases of
    /// it from when this node has prepared.
    fn is_leaving(&self, blob: &BlobName) -> bool {
        self.planned.iter().any(|planned| authority(&planned.map, blob) != Some(self.node))
    }

    pub(super) fn check_key_leases(&self) {
        self.key_leases.table.invariants();
        self.key_leases.reads.invariants();
        self.key_leases.listings.invariants();
        assert!(self.key_leases.moved.len() <= BEFORE_MAX, "maps of before are bounded");
    }
}

impl<S: Store> Turn<'_, S> {
    /// A client says something about a lease of a key.
    pub(super) fn hear_key_lease(&mut self, client: u64, message: Message) {
        let now_us = self.member.now.monotonic_us;
        match message {
            Message::Ask { lease, blob, mode, duration_us, sent_us, wish } => {
                let of = Leased::Key(blob);
                let ask = Ask { client, lease, of, mode, duration_us, sent_us, wish };
                self.ask_key_lease(ask);
            }
            Message::AskGroup { lease, group, mode, duration_us, sent_us, wish } => {
                let of = Leased::Group(group);
                let ask = Ask { client, lease, of, mode, duration_us, sent_us, wish };
                self.ask_key_lease(ask);
            }
            // What is not renewed is over in time.
            Message::Renew { .. } if !self.member.has_lease() => {}
            Message::Renew { sent_us, mut leases } => {
                leases.truncate(RENEWED_MAX);
                self.lease_keys(|member, table, _, said| {
                    let is_renewed = |of: &Leased| !member.is_leaving(of.name());
                    table.renew(now_us, (client, sent_us), &leases, is_renewed, said);
                });
            }
            Message::GiveBack { lease } => {
                self.lease_keys(|_, table, is_open, said| {
                    table.give_back(now_us, (client, lease), is_open, said);
                });
                self.go_on_with_kept_off();
            }
            // Not for a client to say.
            Message::Granted { .. }
            | Message::Waits { .. }
            | Message::Renewed { .. }
            | Message::Recall { .. } => {}
        }
    }

    /// A client asks for a lease. Who is refused has nothing; `NotHere` says that another knows.
    fn ask_key_lease(&mut self, mut ask: Ask) {
        let (client, lease, now_us) = (ask.client, ask.lease, self.member.now.monotonic_us);
        let Some(map) = self.member.map.clone() else { return };
        let is_here = authority(&map, ask.of.name()) == Some(self.member.node);
        let asked = match check(&map, &ask) {
            Ok(()) if !is_here || self.member.is_leaving(ask.of.name()) => {
                return self.not_here(client, Asked::Read(lease));
            }
            Ok(()) => {
                if !self.member.commit.rules.hold(Rule::K1) {
                    ask.duration_us /= 4; // The authority counts less than the holder.
                }
                self.lease_keys(|_, table, is_open, said| {
                    let is_open = is_open(&ask.of);
                    table.ask(now_us, ask, is_open, said)
                })
            }
            Err(abort) => Err(abort),
        };
        if let Err(abort) = asked {
            self.send(Address::Client(client), Body::Refused { read: lease, abort });
        }
    }

    /// Time has passed.
    pub(super) fn tick_key_leases(&mut self) {
        let now_us = self.member.now.monotonic_us;
        let moved = &mut self.member.key_leases.moved;
        moved.iter_mut().for_each(|moved| {
            moved.since_us.get_or_insert(now_us);
        });
        moved.retain(|moved| !moved.is_over(now_us, false));
        self.lease_keys(|_, table, is_open, said| table.tick(now_us, is_open, said));
        self.go_on_with_kept_off();
    }

    /// Does something with the table of leases; then says what is to be said. `act` is told of
    /// what leases may be given.
    pub(super) fn lease_keys<A>(
        &mut self,
        act: impl FnOnce(&Member, &mut Table, &dyn Fn(&Leased) -> bool, &mut Said) -> A,
    ) -> A {
        let mut leases = std::mem::take(&mut self.member.key_leases);
        let mut table = std::mem::take(&mut leases.table);
        let (member, mut said) = (&*self.member, Vec::new());
        let now_us = member.now.monotonic_us;
        let is_open = |of: &Leased| {
            let is_clear = leases.is_clear(now_us, of.name(), member.node);
            member.has_lease()
                && !member.is_leaving(of.name())
                && (is_clear || !member.commit.rules.hold(Rule::K3))
                && !(leases.guarded.contains(&of.keyspace()) && member.commit.is_changing(of))
        };
        let done = act(member, &mut table, &is_open, &mut said);
        leases.table = table;
        self.member.key_leases = leases;
        for (client, message) in said {
            self.send(Address::Client(client), Body::KeyLease(message));
        }
        done
    }
}

/// Whether there may be such a lease at all.
fn check(map: &ClusterMap, ask: &Ask) -> Result<(), Abort> {
    let (name, keyspace) = (ask.of.name(), ask.of.keyspace());
    let refuse = |kind, reason: &'static str| Err(Abort::at(name, kind, reason));
    if map.is_dropped(keyspace) {
        return refuse(ErrorKind::NotFound, DROPPED);
    }
    if map.chunk_size(keyspace).is_none() {
        return refuse(ErrorKind::NotFound, "there is no keyspace of this number");
    }
    let duration_max = duration_max(map.is_guarded(keyspace));
    let durations = LEASE_DURATION_MIN.as_micros()..=duration_max.as_micros();
    if !durations.contains(&u128::from(ask.duration_us)) {
        return refuse(ErrorKind::InvalidArgument, "the lease's duration is out of range");
    }
    map.check_leased(&ask.of).map_err(|error| {
        let abort = Abort::new(error.kind(), error.message().to_owned());
        Abort { blob: Some(name.clone()), ..abort }
    })
}
