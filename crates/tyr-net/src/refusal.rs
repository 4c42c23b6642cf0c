//! Why a connection was not taken: counted by kind, and said in the log, but not too often.
//!
//! Whoever can reach the port can make us refuse as often as it likes; so of each kind one line a
//! second is written, which says how many there were besides.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr_runtime::repeats::RepeatLimit;
use tyr_types::Error;

/// Why a connection was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::EnumCount)]
pub enum Refusal {
    /// It does not speak our protocol, or what it said was damaged.
    Protocol,
    /// It speaks another version.
    Version,
    /// It is of another cluster.
    Cluster,
    /// It is not whom it may be, or means somebody else.
    Identity,
    /// The authenticator does not know it.
    Permission,
    /// TLS failed: no certificate, or one of another authority.
    Tls,
    /// It did not say hello in time.
    Slow,
    /// Too many had not said hello, from its address or in all, and it was the oldest.
    Flood,
    /// There are as many connections as there may be.
    Full,
    /// It went away before it had said hello, as port scanners do.
    Vanished,
}

impl Refusal {
    /// All kinds.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [
        Self::Protocol,
        Self::Version,
        Self::Cluster,
        Self::Identity,
        Self::Permission,
        Self::Tls,
        Self::Slow,
        Self::Flood,
        Self::Full,
        Self::Vanished,
    ];

    /// Its name, as in `refused_protocol`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Protocol => "protocol",
            Self::Version => "version",
            Self::Cluster => "cluster",
            Self::Identity => "identity",
            Self::Permission => "permission",
            Self::Tls => "tls",
            Self::Slow => "slow",
            Self::Flood => "flood",
            Self::Full => "full",
            Self::Vanished => "vanished",
        }
    }
}

const _: () = {
    let mut place = 0;
    while place < Refusal::ALL.len() {
        assert!(Refusal::ALL[place] as usize == place, "each kind has a counter of its own");
        place += 1;
    }
};

/// Of each kind one line is written in this time.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

/// How often each kind was refused, and what of it is logged.
#[derive(Debug)]
pub(super) struct Refusals {
    counts: [AtomicU64; Refusal::ALL.len()],
    lines: Mutex<RepeatLimit<Refusal>>,
}

impl Default for Refusals {
    fn default() -> Self {
        let lines = RepeatLimit::new(1, LINE_INTERVAL, Refusal::ALL.len());
        Self { counts: Default::default(), lines: Mutex::new(lines) }
    }
}

impl Refusals {
    /// Notes that a connection from there was refused.
    pub fn note(&self, refusal: Refusal, from: SocketAddr, error: &Error) {
        debug_assert_eq!(Refusal::ALL[refusal as usize], refusal, "each kind has its place");
        self.counts[refusal as usize].fetch_add(1, Ordering::Relaxed);
        let Some(unwritten) = self.lines.lock().admit(refusal, Instant::now()) else { return };
        let kind = refusal.name();
        match refusal {
            Refusal::Vanished => {
                tracing::debug!(%from, kind, unwritten, "connection refused: {error}");
            }
            Refusal::Protocol
            | Refusal::Version
            | Refusal::Cluster
            | Refusal::Identity
            | Refusal::Permission
            | Refusal::Tls
            | Refusal::Slow
            | Refusal::Flood
            | Refusal::Full => {
                tracing::warn!(%from, kind, unwritten, "connection refused: {error}");
            }
        }
    }

    /// How often this was why.
    pub fn count(&self, refusal: Refusal) -> u64 {
        self.counts[refusal as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_place() {
        let refusals = Refusals::default();
        let from = SocketAddr::from(([127, 0, 0, 1], 1));
        for (index, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal as usize, index);
            refusals.note(refusal, from, &Error::invalid("it is a test"));
            assert_eq!(refusals.count(refusal), 1, "{}", refusal.name());
        }
    }
}
