//! Gossip: who is alive, said by everybody (M2).
//!
//! ```text
//!   set_nodes, tell ──► driver: socket, clock ◄──► machine: pure
//!                          │                          │
//!                          ▼ events                   ├─ foca      SWIM: probes, suspicion, news
//!                 proposals to the monitors           ├─ phi       when a suspicion is a death
//!                                                     ├─ rumour    epoch, floors, totals, load
//!                                                     └─ seal      one cluster, one secret, once
//! ```
//!
//! Each node asks one other a few times a second whether it lives, directly and around others, and
//! what it finds travels on whatever is sent anyway. Gossip finds failed nodes and spreads the
//! newest epoch. It proposes; only the monitors decide, so that a partition never has two sides
//! that both write. What it says may be wrong or late, and no promise of the store rests on it.
//!
//! Reading order: [`event`] and [`machine`] with [`config`] and [`swim`], then [`identity`],
//! [`peer`], [`phi`] and [`timers`], [`rumour`], [`seal`], [`wire`] and [`statistics`]; [`driver`]
//! gives it a socket. `docs/internals/gossip.md` tells more.
//!
//! Must not know: maps, leases, monitors.

mod config;
mod driver;
mod event;
mod identity;
mod machine;
mod peer;
mod phi;
mod rumour;
mod seal;
mod statistics;
mod swim;
mod timers;
mod wire;

#[cfg(test)]
mod tests;

pub use self::config::GossipConfig;
pub use self::driver::{Gossip, GossipOptions};
pub use self::event::{Effect, GossipEvent, Input, MachineParts, NodeView};
pub use self::machine::Machine;
pub use self::peer::PeerState;
pub use self::rumour::{Heard, Rumour};
pub use self::statistics::{GossipStatistics, Rejection};
