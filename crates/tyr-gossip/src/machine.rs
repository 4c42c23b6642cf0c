//! The gossip of one node as a pure machine: datagrams and time in, datagrams and events out.
//!
//! ```text
//!   datagram ─► seal ─► window ─► sift ─► foca (SWIM) ─► members ─► events
//!                                  │        │   ▲
//!                      board ◄─────┘        │   └── a suspect's time is up: phi, between bounds
//!                   (rumours)               ▼
//!                                 datagrams, timers
//! ```
//!
//! `foca` has the rules of SWIM. Around it stand: what only nodes of the map may say, and of nodes
//! of the map only; when a suspicion becomes a death ([`super::phi`]); questions to those that SWIM
//! does not ask (not heard of yet, suspect, or down); and a suspect is told so in whatever is
//! sent to it, so that it can refute with its next word.
//!
//! Must not know: sockets, threads, the system's clock; who decides on what it finds.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use foca::{AccumulatingRuntime, Foca, Member, Message, State, Timer};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use tyr_types::{Error, NodeId, Result};

use super::config::GossipConfig;
use super::event::{Effect, GossipEvent, Input, MachineParts, NodeView};
use super::identity::Identity;
use super::peer::{Peer, PeerState, Suspicion};
use super::phi::Waits;
use super::rumour::{Board, Heard, Relay, Rumour, Taken};
use super::seal::{Opened, Seal};
use super::statistics::{GossipStatistics, Rejection};
use super::swim::swim_config;
use super::timers::{Clock, Timers};
use super::wire::{Codec, Packet, read_header};

/// Who is not heard is asked again after this long.
const ANNOUNCE_INTERVAL_US: u64 = 1_000_000;

/// How many of them in one tick: some hundred a second, so that all of a large cluster have their
/// turn soon.
const ANNOUNCED_MAX: usize = 8;

/// Up to so many nodes each tells its rumour once an interval; more, and the datagrams would not
/// hold all rumours often enough.
const TELLERS: u64 = 16;

const _: () = assert!(ANNOUNCED_MAX > 0 && TELLERS > 0);

type Swim = Foca<Identity, Codec, SmallRng, Relay>;

/// The machine.
pub struct Machine {
    config: GossipConfig,
    node: NodeId,
    foca: Swim,
    seal: Seal,
    clock: Clock,
    timers: Timers,
    tick_at: u64,
    rumour_at: u64,
    peers: BTreeMap<NodeId, Peer>,
    board: Board,
    /// Of all nodes together.
    waits: Waits,
    effects: Vec<Effect>,
    counters: GossipStatistics,
    has_left: bool,
}

impl Machine {
    /// A machine that knows nobody yet.
    ///
    /// # Errors
    /// `InvalidArgument` when the configuration is out of range or the incarnation 0.
    pub fn new(parts: MachineParts) -> Result<Self> {
        let MachineParts { node, incarnation, cluster, secret, config, seed } = parts;
        config.validate()?;
        if incarnation == 0 {
            return Err(Error::invalid("an incarnation is at least 1: count the process's starts"));
        }
        let me = Identity { node, incarnation, life: 0 };
        let rng = SmallRng::seed_from_u64(seed);
        let foca = Foca::with_custom_broadcast(me, swim_config(&config, 1), rng, Codec, Relay);
        Ok(Self {
            node,
            foca,
            seal: Seal::new(cluster, secret.as_ref()),
            clock: Clock::default(),
            timers: Timers::default(),
            tick_at: 0,
            rumour_at: 0,
            peers: BTreeMap::new(),
            board: Board::new(node, incarnation),
            waits: Waits::new(config.probe_interval_ms * 1_000),
            effects: Vec::new(),
            counters: GossipStatistics::default(),
            has_left: false,
            config,
        })
    }

    /// The nodes of the map and where they are; from now on these and no others. This node may be
    /// among them. A tick is to follow at once.
    pub fn set_nodes(&mut self, now_us: u64, nodes: &BTreeMap<NodeId, Vec<SocketAddr>>) {
        let now = self.clock.advance(now_us, self.due_at());
        let gone: Vec<Identity> = self
            .peers
            .iter()
            .filter(|(node, _)| !nodes.contains_key(node))
            .filter_map(|(_, peer)| peer.member.as_ref().map(|member| *member.id()))
            .collect();
        self.peers.retain(|node, _| nodes.contains_key(node));
        self.board.retain(|node| nodes.contains_key(&node));
        for (node, addresses) in nodes.iter().filter(|(node, _)| **node != self.node) {
            match self.peers.get_mut(node) {
                Some(peer) => peer.set_addresses(addresses.clone()),
                None => {
                    let peer = Peer::new(now, addresses.clone(), &self.config);
                    self.peers.insert(*node, peer);
                }
            }
        }
        debug_assert!(!self.peers.contains_key(&self.node), "a node is no peer of its own");
        debug_assert!(
            self.peers.keys().all(|node| nodes.contains_key(node)),
            "others are forgotten"
        );
        let config = swim_config(&self.config, self.peers.len() + 1);
        self.swim(|foca, runtime| {
            foca.set_config(config)?;
            // Nobody is told: whoever has the map knows.
            foca.apply_many(gone.into_iter().map(Member::down), false, runtime)
        });
        self.tick_at = now;
    }

    /// From now on this node tells this. A tick is to follow at once.
    ///
    /// # Errors
    /// `InvalidArgument` when it has too many keyspaces.
    pub fn tell(&mut self, now_us: u64, rumour: Rumour) -> Result<()> {
        if self.board.tell(rumour)? {
            self.rumour_at = self.clock.advance(now_us, self.due_at());
            self.tick_at = self.rumour_at;
        }
        Ok(())
    }

    /// When it wants to be called at the latest, on the caller's clock.
    pub fn wakes_at(&self) -> u64 {
        self.due_at().saturating_add(self.clock.skipped())
    }

    /// When something is due, on its own clock.
    fn due_at(&self) -> u64 {
        if self.has_left {
            return u64::MAX;
        }
        self.timers.next_at().map_or(self.tick_at, |at| at.min(self.tick_at))
    }

    /// Something happened at `now_us` of a clock that does not jump.
    pub fn step(&mut self, now_us: u64, input: Input<'_>, effects: &mut Vec<Effect>) {
        let now = self.clock.advance(now_us, self.due_at());
        if !self.has_left {
            match input {
                Input::Datagram { from, bytes } => match self.receive(now, from, bytes) {
                    Ok(()) => self.counters.received += 1,
                    Err(why) => *self.counters.rejected.entry(why).or_default() += 1,
                },
                Input::Tick => self.run_timers(now),
            }
            self.refresh(now);
        }
        effects.append(&mut self.effects);
    }

    /// Says goodbye, so that nobody has to find out; nothing is said after it.
    pub fn leave(&mut self, effects: &mut Vec<Effect>) {
        if !self.has_left {
            self.swim(|foca, runtime| foca.leave_cluster(runtime));
            self.has_left = true;
            self.timers.clear();
        }
        debug_assert_eq!(self.due_at(), u64::MAX, "nothing is due any more");
        effects.append(&mut self.effects);
    }

    /// What was heard of others.
    pub fn rumours(&self, now_us: u64) -> Vec<Heard> {
        self.board.heard(self.time_at(now_us))
    }

    /// All other nodes as they look from here.
    pub fn view(&self, now_us: u64) -> Vec<NodeView> {
        let now = self.time_at(now_us);
        let look = |(node, peer): (&NodeId, &Peer)| NodeView {
            node: *node,
            incarnation: peer.member.as_ref().map_or(0, |member| member.id().incarnation),
            state: if peer.reported.0 == PeerState::Down { PeerState::Down } else { peer.state() },
            phi: peer.phi(now, &self.waits),
            heard_us_ago: peer.heard_at.map(|at| now.saturating_sub(at)),
            round_trip_us: peer.round_trip_us(),
        };
        self.peers.iter().map(look).collect()
    }

    /// What was done so far.
    pub fn statistics(&self) -> GossipStatistics {
        GossipStatistics {
            pauses: self.clock.pauses,
            paused_us: self.clock.skipped(),
            ..self.counters.clone()
        }
    }

    /// A datagram was not taken by the system.
    pub fn count_unsent(&mut self) {
        self.counters.unsent += 1;
    }

    /// The caller's time on the machine's clock.
    fn time_at(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.clock.skipped()).max(self.clock.now())
    }

    fn receive(&mut self, now: u64, from: SocketAddr, bytes: &[u8]) -> Result<(), Rejection> {
        let Opened { sequence, suspicion, message } = self.seal.open(bytes)?;
        let mut packet = Packet::read(message).map_err(|_| Rejection::Malformed)?;
        let (source, target) = (packet.header.src, packet.header.dst);
        if target.node != self.node {
            return Err(Rejection::Stranger);
        }
        let peer = self.peers.get_mut(&source.node).ok_or(Rejection::Stranger)?;
        if !peer.window.admit(source.incarnation, sequence) {
            return Err(Rejection::Replayed);
        }
        peer.prefer_address(from);
        if peer.member.as_ref().is_none_or(|known| source.is_at_least(known.id())) {
            self.hear(now, source.node);
            self.note_answer(now, source.node, &packet.header.message);
        }
        self.sift(now, &mut packet)?;
        let message = packet.write();
        self.swim(|foca, runtime| {
            if let Some(refutations) = suspicion
                && target == *foca.identity()
            {
                let suspect = Member::new(target, refutations, State::Suspect);
                foca.apply_many([suspect].into_iter(), false, &mut *runtime)?;
            }
            foca.handle_data(&message, runtime)
        });
        Ok(())
    }

    /// There was a sign of life of a node.
    fn hear(&mut self, now: u64, node: NodeId) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        let wait_max_us = self.config.suspicion_max_ms * 1_000;
        self.counters.probes_lost += u64::from(peer.take_lost());
        if let Some(wait) = peer.hear(now, wait_max_us) {
            self.waits.record(wait);
        }
    }

    fn note_answer(&mut self, now: u64, source: NodeId, message: &Message<Identity>) {
        match message {
            Message::Ack(number) => {
                let peer = self.peers.get_mut(&source);
                if peer.is_some_and(|peer| peer.answer(now, *number)) {
                    self.counters.probes_answered += 1;
                }
            }
            Message::ForwardedAck { origin, .. } => self.hear(now, origin.node),
            Message::Ping(_)
            | Message::PingReq { .. }
            | Message::IndirectPing { .. }
            | Message::IndirectAck { .. }
            | Message::Announce
            | Message::Feed
            | Message::Gossip
            | Message::Broadcast
            | Message::TurnUndead => {}
        }
    }

    /// Leaves in the packet what is said of nodes of the map, and rumours that are news.
    fn sift(&mut self, now: u64, packet: &mut Packet<'_>) -> Result<(), Rejection> {
        let Self { node: me, peers, board, effects, .. } = self;
        let is_known = |node: NodeId| node == *me || peers.contains_key(&node);
        packet.members.retain(|member| is_known(member.id().node));
        let mut news = Vec::with_capacity(packet.rumours.len());
        for rumour in &packet.rumours {
            match board.take(rumour, now, is_known).map_err(|_| Rejection::Malformed)? {
                Taken::Old => {}
                Taken::New => news.push(*rumour),
                Taken::NewEpoch(epoch, node) => {
                    news.push(*rumour);
                    effects.push(Effect::Event(GossipEvent::Epoch { epoch, node }));
                }
            }
        }
        debug_assert!(news.len() <= packet.rumours.len(), "only what came is passed on");
        packet.rumours = news;
        Ok(())
    }

    fn run_timers(&mut self, now: u64) {
        // What is set meanwhile is due later.
        while let Some(timer) = self.timers.pop(now) {
            self.swim(|foca, runtime| foca.handle_timer(timer, runtime));
        }
        if self.tick_at <= now {
            self.tick_at = now + self.config.ask_interval_us();
            self.judge(now);
            self.announce(now);
            self.spread(now);
        }
    }

    /// Gives up suspects whose time is over, and asks the others.
    fn judge(&mut self, now: u64) {
        let suspects: Vec<(NodeId, Identity)> = self
            .peers
            .iter()
            .filter_map(|(node, peer)| Some((*node, peer.suspicion.as_ref()?.suspect.0)))
            .collect();
        for (node, identity) in suspects {
            let is_over = self.is_over(now, node);
            let taken = self.peers.get_mut(&node).filter(|_| is_over);
            match taken.and_then(|peer| peer.suspicion.take()) {
                Some(over) => self.swim(|foca, runtime| foca.handle_timer(over.timer, runtime)),
                None => self.swim(|foca, runtime| foca.announce(identity, runtime)),
            }
        }
    }

    /// Whether a suspect's time is over. Who heard of nobody else since it asked may be cut off
    /// itself, and takes the longest time.
    fn is_over(&self, now: u64, node: NodeId) -> bool {
        let GossipConfig { suspicion_min_ms, suspicion_max_ms, phi_threshold, .. } = self.config;
        let Some((peer, suspicion)) =
            self.peers.get(&node).and_then(|peer| Some((peer, peer.suspicion.as_ref()?)))
        else {
            return false;
        };
        let lasts = now.saturating_sub(suspicion.since);
        let silence = peer.silence_us(now);
        let mut others = self
            .peers
            .iter()
            .filter(|(other, peer)| **other != node && peer.is_active())
            .peekable();
        let is_alone = others.peek().is_some()
            && !others.any(|(_, other)| other.heard_at.is_some_and(|at| now - at < silence));
        let is_sure = peer.phi(now, &self.waits) >= phi_threshold;
        lasts >= suspicion_max_ms * 1_000
            || (lasts >= suspicion_min_ms * 1_000 && is_sure && !is_alone)
    }

    /// Asks nodes of the map that SWIM does not: not heard of yet, or down.
    fn announce(&mut self, now: u64) {
        let mut silent: Vec<(Option<u64>, NodeId)> = self
            .peers
            .iter()
            .filter(|(_, peer)| !peer.is_active() && peer.address().is_some())
            .map(|(node, peer)| (peer.announced_at, *node))
            .filter(|(at, _)| at.is_none_or(|at| now - at >= ANNOUNCE_INTERVAL_US))
            .collect();
        silent.sort_unstable();
        for (at, node) in silent.into_iter().take(ANNOUNCED_MAX) {
            let Some(peer) = self.peers.get_mut(&node) else { continue };
            if at.is_some() {
                peer.turn_address();
            }
            peer.announced_at = Some(now);
            let known = peer.member.as_ref().map(|member| *member.id());
            let identity = known.unwrap_or(Identity::unknown(node));
            self.swim(|foca, runtime| foca.announce(identity, runtime));
        }
    }

    /// Tells the next part of this node's rumour when it is time.
    fn spread(&mut self, now: u64) {
        if now < self.rumour_at {
            return;
        }
        let Some(item) = self.board.next_item() else { return };
        let nodes = self.peers.len() as u64 + 1;
        let interval_us = self.config.rumour_interval_ms * 1_000;
        self.rumour_at = now + interval_us * nodes.max(TELLERS) / TELLERS;
        debug_assert!(self.rumour_at >= now + interval_us, "no more often than once an interval");
        self.swim(|foca, runtime| {
            foca.add_broadcast(&item)?;
            foca.gossip(runtime)
        });
    }

    /// Lets SWIM do something, and takes what it wants. What it does not like came from the
    /// network, and changed nothing.
    fn swim(
        &mut self,
        deed: impl FnOnce(&mut Swim, &mut AccumulatingRuntime<Identity>) -> Result<(), foca::Error>,
    ) {
        let mut runtime = AccumulatingRuntime::new();
        if let Err(error) = deed(&mut self.foca, &mut runtime) {
            tracing::debug!(%error, "gossip took no notice of something");
        }
        let now = self.clock.now();
        while let Some((after, timer)) = runtime.to_schedule() {
            self.set_timer(now, after, timer);
        }
        while let Some((to, bytes)) = runtime.to_send() {
            self.send(now, to, &bytes);
        }
        // What it notes is read from its members afterwards.
        while runtime.to_notify().is_some() {}
    }

    fn set_timer(&mut self, now: u64, after: Duration, timer: Timer<Identity>) {
        let Timer::ChangeSuspectToDown { member_id, incarnation, .. } = timer else {
            self.timers.set(now + after.as_micros() as u64, timer);
            return;
        };
        let Some(peer) = self.peers.get_mut(&member_id.node) else { return };
        let suspect = (member_id, incarnation);
        if peer.suspicion.as_ref().is_none_or(|known| known.suspect != suspect) {
            peer.suspicion = Some(Suspicion { since: now, timer, suspect });
        }
    }

    fn send(&mut self, now: u64, to: Identity, message: &[u8]) {
        let Some((peer, address)) =
            self.peers.get_mut(&to.node).and_then(|peer| peer.address().map(|at| (peer, at)))
        else {
            self.counters.unsent += 1;
            return;
        };
        if peer.is_active() {
            match read_header(message).map(|header| header.message) {
                Ok(Message::Ping(number)) => peer.ask(now, Some(number)),
                Ok(Message::IndirectPing { .. } | Message::Announce) => peer.ask(now, None),
                _ => {}
            }
        }
        let suspected = peer.member.as_ref().filter(|member| member.state() == State::Suspect);
        let bytes = self.seal.close(suspected.map(Member::incarnation), message);
        self.counters.sent += 1;
        self.counters.sent_bytes += bytes.len() as u64;
        self.effects.push(Effect::Send { to: address, bytes });
    }

    /// Looks at what SWIM has of each node now, and says what changed.
    fn refresh(&mut self, now: u64) {
        for member in self.foca.iter_membership_state() {
            if let Some(peer) = self.peers.get_mut(&member.id().node) {
                peer.update(member);
            }
        }
        let unheard_max_us = 2 * self.config.suspicion_max_ms * 1_000;
        for (node, peer) in &mut self.peers {
            let state = match peer.state() {
                PeerState::Unknown if now - peer.since >= unheard_max_us => PeerState::Down,
                state => state,
            };
            let incarnation = peer.member.as_ref().map_or(0, |member| member.id().incarnation);
            if peer.reported == (state, incarnation) {
                continue;
            }
            peer.reported = (state, incarnation);
            let node = *node;
            let event = match state {
                PeerState::Unknown => continue,
                PeerState::Alive => GossipEvent::Alive { node, incarnation },
                PeerState::Suspect => GossipEvent::Suspect { node, incarnation },
                PeerState::Down => GossipEvent::Down { node, incarnation },
            };
            self.effects.push(Effect::Event(event));
        }
    }
}
