//! What one node knows of another: where it is, what it was asked, when it was heard.
//!
//! Must not know: SWIM's rules; it is told what to count.

use std::net::SocketAddr;

use foca::{Member, ProbeNumber, State, Timer};

use super::config::GossipConfig;
use super::identity::Identity;
use super::phi::Waits;
use super::seal::Window;

/// A node as seen from here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PeerState {
    /// It is in the map, and nobody here has heard of it yet.
    #[default]
    Unknown,
    /// It answers.
    Alive,
    /// It did not answer, and may still.
    Suspect,
    /// It is given up, or has said goodbye.
    Down,
}

impl PeerState {
    /// Its name, as in status and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Alive => "alive",
            Self::Suspect => "suspect",
            Self::Down => "down",
        }
    }

    fn of(state: State) -> Self {
        match state {
            State::Alive => Self::Alive,
            State::Suspect => Self::Suspect,
            State::Down => Self::Down,
        }
    }
}

/// A suspicion of this node's own, which becomes a death unless it is refuted.
#[derive(Debug)]
pub(super) struct Suspicion {
    pub since: u64,
    /// What `foca` wants to hear when time is up.
    pub timer: Timer<Identity>,
    /// Of whom, and after how many refutations.
    pub suspect: (Identity, u16),
}

/// Another node.
#[derive(Debug)]
pub(super) struct Peer {
    addresses: Vec<SocketAddr>,
    /// Which address is used.
    address: usize,
    pub window: Window,
    /// As SWIM has it.
    pub member: Option<Member<Identity>>,
    /// What was said of it last: state, incarnation.
    pub reported: (PeerState, u64),
    pub suspicion: Option<Suspicion>,
    /// When it came into the map that this node has.
    pub since: u64,
    pub announced_at: Option<u64>,
    pub heard_at: Option<u64>,
    /// When it was asked the first question that it has not answered.
    asked_at: Option<u64>,
    /// The last probe, while it is not answered.
    probe: Option<(ProbeNumber, u64)>,
    probes_lost: u32,
    waits: Waits,
    round_trip_us: Option<u64>,
}

impl Peer {
    pub fn new(now: u64, addresses: Vec<SocketAddr>, config: &GossipConfig) -> Self {
        Self {
            addresses,
            address: 0,
            window: Window::default(),
            member: None,
            reported: (PeerState::Unknown, 0),
            suspicion: None,
            since: now,
            announced_at: None,
            heard_at: None,
            asked_at: None,
            probe: None,
            probes_lost: 0,
            waits: Waits::new(config.probe_interval_ms * 1_000),
            round_trip_us: None,
        }
    }

    pub fn set_addresses(&mut self, addresses: Vec<SocketAddr>) {
        if self.addresses != addresses {
            self.addresses = addresses;
            self.address = 0;
            debug_assert_eq!(self.address().is_some(), !self.addresses.is_empty(), "one is used");
        }
    }

    /// Where it is reached.
    pub fn address(&self) -> Option<SocketAddr> {
        self.addresses.get(self.address).copied()
    }

    /// Tries the next address.
    pub fn turn_address(&mut self) {
        self.address = (self.address + 1) % self.addresses.len().max(1);
        debug_assert_eq!(self.address().is_some(), !self.addresses.is_empty(), "one is used");
    }

    /// It wrote from there: if that is one of its addresses, it is the one to use.
    pub fn prefer_address(&mut self, from: SocketAddr) {
        if let Some(at) = self.addresses.iter().position(|address| *address == from) {
            self.address = at;
        }
    }

    /// It is asked something; `probe` if it is a probe.
    pub fn ask(&mut self, now: u64, probe: Option<ProbeNumber>) {
        let asked_at = *self.asked_at.get_or_insert(now);
        debug_assert!(asked_at <= now, "who was asked at {asked_at} is asked again at {now}");
        if let Some(number) = probe
            && self.probe.replace((number, now)).is_some()
        {
            self.probes_lost += 1;
        }
    }

    /// It was heard of. Answers how long that took after the question, if there was one.
    pub fn hear(&mut self, now: u64, wait_max_us: u64) -> Option<u64> {
        debug_assert!(self.heard_at.is_none_or(|before| before <= now), "time never goes back");
        self.heard_at = Some(now);
        let wait = now.saturating_sub(self.asked_at.take()?).min(wait_max_us);
        debug_assert!(self.asked_at.is_none(), "a question is answered once");
        debug_assert!(wait <= wait_max_us, "a wait is bounded");
        self.waits.record(wait);
        Some(wait)
    }

    /// It answered a probe itself. Answers whether that was the last one.
    pub fn answer(&mut self, now: u64, number: ProbeNumber) -> bool {
        let Some((_, at)) = self.probe.take_if(|(asked, _)| *asked == number) else {
            return false;
        };
        debug_assert!(self.probe.is_none(), "a probe is answered once");
        let us = now.saturating_sub(at);
        // Smoothed as in TCP (RFC 6298), by an eighth.
        self.round_trip_us = Some(self.round_trip_us.map_or(us, |known| (7 * known + us) / 8));
        true
    }

    /// How many probes it did not answer while it lived, since the last call. It does live now.
    pub fn take_lost(&mut self) -> u32 {
        std::mem::take(&mut self.probes_lost)
    }

    /// Phi: neither its own slowness nor that of all explains its silence.
    pub fn phi(&self, now: u64, all: &Waits) -> f64 {
        let Some(asked_at) = self.asked_at else { return 0.0 };
        let silence = now.saturating_sub(asked_at);
        all.phi(silence).min(self.waits.phi(silence))
    }

    /// For how long it has owed an answer.
    pub fn silence_us(&self, now: u64) -> u64 {
        self.asked_at.map_or(0, |at| now.saturating_sub(at))
    }

    pub fn round_trip_us(&self) -> Option<u64> {
        self.round_trip_us
    }

    /// SWIM has this of it now. What was asked of the dead is forgotten: they do not answer, and
    /// that says nothing of the network.
    pub fn update(&mut self, member: &Member<Identity>) {
        let suspect = (*member.id(), member.incarnation());
        let is_suspect = member.state() == State::Suspect;
        if self.suspicion.as_ref().is_some_and(|it| !is_suspect || it.suspect != suspect) {
            self.suspicion = None;
        }
        if member.state() == State::Down && self.state() != PeerState::Down {
            self.asked_at = None;
            self.probe = None;
            self.probes_lost = 0;
        }
        if self.member.as_ref() != Some(member) {
            self.member = Some(member.clone());
        }
        debug_assert_eq!(self.state(), PeerState::of(member.state()), "it is as SWIM has it");
        debug_assert!(is_suspect || self.suspicion.is_none(), "only suspects are suspected");
    }

    /// As SWIM has it.
    pub fn state(&self) -> PeerState {
        self.member.as_ref().map_or(PeerState::Unknown, |it| PeerState::of(it.state()))
    }

    pub fn is_active(&self) -> bool {
        matches!(self.state(), PeerState::Alive | PeerState::Suspect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(addresses: &[&str]) -> Peer {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        Peer::new(0, addresses, &GossipConfig::default())
    }

    #[test]
    fn addresses_take_turns_until_one_is_heard_from() {
        let mut peer = peer(&["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"]);
        let first = peer.address();
        peer.turn_address();
        assert_ne!(peer.address(), first);
        let third = "10.0.0.3:1".parse().unwrap();
        peer.prefer_address(third);
        peer.prefer_address("10.0.0.9:1".parse().unwrap());
        assert_eq!(peer.address(), Some(third), "a strange address does not count");
        peer.turn_address();
        assert_eq!(peer.address(), first);
    }

    #[test]
    fn silence_begins_with_the_first_question_and_ends_with_a_sign_of_life() {
        let mut peer = peer(&[]);
        let all = Waits::new(250_000);
        peer.ask(1, Some(1));
        peer.ask(2, Some(2));
        peer.ask(3, Some(3));
        assert!(peer.silence_us(11) == 10 && peer.phi(11, &all) > 0.0);
        assert_eq!(peer.hear(12, 1_000), Some(11));
        assert_eq!((peer.phi(12, &all), peer.hear(13, 1_000)), (0.0, None));
    }

    #[test]
    fn a_probe_is_lost_when_the_next_one_is_sent_and_answered_once() {
        let mut peer = peer(&[]);
        (1..=3).for_each(|turn| peer.ask(u64::from(turn), Some(turn)));
        assert_eq!((peer.take_lost(), peer.take_lost()), (2, 0));
        assert!(!peer.answer(13, 2), "an old answer");
        assert_eq!(peer.round_trip_us(), None);
        assert!(peer.answer(13, 3) && !peer.answer(13, 3));
        assert_eq!(peer.round_trip_us(), Some(10));
    }
}
