//! What the leader of the monitors does: leases and maps (M3), each under consensus.
//!
//! `tyr_protocol::lease::Grants` decides; this folder sees to it that at most one of them counts.
//!
//! ```text
//!   Renew, Prepared, ... ─┐
//!   proposals ────────────┼─► batch ─► does it still lead? ─► Grants ─► effects
//!   every 100 ms ─────────┘            (a quorum says so)                 │
//!                    Publish: commit the map ◄────────────────────────────┤
//!                    Prepare: commit the epoch ◄──────────────────────────┤
//!                    then send all of them to the nodes ◄─────────────────┘
//! ```
//!
//! A batch is looked at only after a quorum has confirmed, asked later than the last of it arrived,
//! that nobody leads who came after. Why that is enough stands in `docs/internals/monitors.md`.
//!
//! Reading order: [`term`] is one term of a leader, [`forming`] what the first of all does,
//! [`batch`] what it is told.

pub mod batch;
mod forming;
mod term;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use openraft::{ServerState, Vote};
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::batch::Told;
use self::term::Term;
#[cfg(test)]
pub(super) use self::term::map_bytes;
use super::monitor::Shared;

/// Between two attempts to lead in one term of Raft: something failed that is not over at once.
const PAUSE: Duration = Duration::from_millis(50);

/// Nobody who led before is obeyed any more, or it cannot be told.
#[derive(Debug)]
pub(super) struct Deposed;

/// Leads whenever Raft says so, until Raft ends.
pub(super) async fn run(shared: Arc<Shared>, mut inbox: mpsc::Receiver<Told>) {
    let mut metrics = shared.raft.server_metrics();
    loop {
        let vote: Option<Vote<u64>> = {
            let now = metrics.borrow_and_update();
            let is_leader = now.state == ServerState::Leader && now.vote.is_committed();
            (is_leader && !shared.is_handing_over()).then_some(now.vote)
        };
        let Some(vote) = vote else {
            tokio::select! {
                changed = metrics.changed() => if changed.is_err() { return },
                told = inbox.recv() => match told {
                    Some(told) => told.refuse(),
                    None => return,
                },
            }
            continue;
        };
        if let Ok(mut term) = Term::begin(&shared, vote).await {
            shared.presences.lock().lead(Instant::now());
            shared.is_leading.store(true, Ordering::Release);
            let Deposed = term.lead(&mut inbox).await;
            shared.is_leading.store(false, Ordering::Release);
            term.end();
        }
        while let Ok(told) = inbox.try_recv() {
            told.refuse();
        }
        if metrics.has_changed().is_err() {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
