//! Who is there of the clients that said so, and what goes when they do not any more (M5).
//!
//! ```text
//!   Begin ─► committed                Renew ─► a quorum says this leads ─► heard now
//!   Bind  ─► committed, if it is there             │
//!   every 250 ms: not heard for 1.1 of its time ▼ ─► committed: it is over ─► what was bound goes
//! ```
//!
//! That a client is there is durable; when it was heard last only the leader knows. A new leader
//! waits as long as if all had been heard when it began, and so does one that stood still: nobody
//! is taken for gone who had nobody to say otherwise to. A client counts from when it asked, the
//! leader from when it answers, and a tenth longer: so a client that counts its time as over has
//! what was bound for at least as long, and who is answered has it for its whole time.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use tyr_control::Fault;
use tyr_control::presence::{Presence, check_ttl};
use tyr_metadata::access::{self, Wish};
use tyr_metadata::presence::{self, PRESENCE};
use tyr_metadata::{Actor, Expected, Path, Store, Transaction};
use tyr_types::{Error, ErrorKind};

use super::monitor::Monitor;

/// The leader looks so often whose time is over.
const LOOK: Duration = Duration::from_millis(250);

/// After so long without a look the leader stood still, and heard nobody because of that.
const GAP: Duration = Duration::from_secs(1);

/// Clients that are there at once.
const PRESENCES_MAX: usize = 4096;

/// Entries that are bound in all.
const BOUND_MAX: usize = 1 << 14;

const _: () = assert!(LOOK.as_millis() * 2 < GAP.as_millis());

/// What the leader knows of clients that are there, and nobody else.
#[derive(Debug)]
pub(super) struct Presences {
    /// Nobody counts as unheard from before.
    since: Instant,
    looked: Instant,
    heard: BTreeMap<u64, Instant>,
    /// Whether something may be bound to presences that are over.
    is_sweeping: bool,
}

/// A presence, as it is written down: its time in milliseconds, and the user.
fn value(ttl_ms: u32, user: &str) -> String {
    format!("{ttl_ms} {user}")
}

/// What is written down of a presence.
fn read(value: &[u8]) -> Option<(Duration, &str)> {
    let (ttl_ms, user) = std::str::from_utf8(value).ok()?.split_once(' ')?;
    Some((Duration::from_millis(ttl_ms.parse().ok()?), user))
}

fn name(actor: &Actor) -> &str {
    match actor {
        Actor::System => "",
        Actor::User { name, .. } => name,
    }
}

fn refused(error: Error) -> Fault {
    Fault::Refused(error.into())
}

fn is_over() -> Fault {
    refused(Error::not_found(
        "this presence is over: it was ended, or not renewed in time, and what was bound to it is \
         gone; begin another",
    ))
}

impl Presences {
    /// Nobody is there.
    pub fn new(now: Instant) -> Self {
        Self { since: now, looked: now, heard: BTreeMap::new(), is_sweeping: false }
    }

    /// This monitor leads from now on: nobody was heard yet, and all have their time.
    pub fn lead(&mut self, now: Instant) {
        *self = Self { is_sweeping: true, ..Self::new(now) };
    }

    /// What is to be committed now, if anything.
    fn look(&mut self, store: &Store, now: Instant) -> Option<Transaction> {
        if now.saturating_duration_since(self.looked) > GAP {
            (self.since, self.heard) = (now, BTreeMap::new());
        }
        self.looked = now;
        self.heard.retain(|id, _| store.get(presence::presence(*id).as_str()).is_some());
        let is_silent = |path: &&Path| {
            let entry = store.get(path.as_str());
            let ttl = entry.and_then(|it| read(&it.value)).map_or(Duration::ZERO, |(ttl, _)| ttl);
            let id = presence::presence_id(path.as_str());
            let heard = id.and_then(|id| self.heard.get(&id)).copied().unwrap_or(self.since);
            now >= heard.max(self.since) + ttl * 11 / 10
        };
        if let Some(over) = store.paths(PRESENCE).find(is_silent) {
            self.is_sweeping = true;
            return Some(Transaction::new().delete(over.clone()));
        }
        if !self.is_sweeping {
            return None;
        }
        let removal = presence::removal(store, None);
        self.is_sweeping = !removal.alterations.is_empty();
        self.is_sweeping.then_some(removal)
    }
}

impl Monitor {
    /// Answers a question about a presence, as the leader; with `Bind` the revision.
    pub(super) async fn presence(&self, actor: &Actor, asked: Presence) -> Result<u64, Fault> {
        self.be_current().await?;
        match asked {
            Presence::Begin { id, ttl_ms } => self.begin_presence(actor, id, ttl_ms).await,
            Presence::Renew { id } => {
                // While it is decided that somebody is gone, nobody is told to be there.
                let _deciding = self.shared.deciding_presence.lock().await;
                self.check_presence(actor, id)?;
                self.hear(id);
                Ok(0)
            }
            Presence::Bind { id, transaction } => {
                self.check_presence(actor, id)?;
                self.check_binding(actor, &transaction).map_err(refused)?;
                let transaction = self.guarded(actor, &transaction)?;
                let binding = presence::bind(&transaction, id).map_err(refused)?;
                let path = presence::presence(id);
                let binding = binding.when(path.clone(), Expected::Present);
                let written = self.write(&Actor::System, binding).await;
                let is_gone = self.shared.committed.read().get(path.as_str()).is_none();
                match written {
                    Err(Fault::Refused(refusal)) if refusal.is_conflict() && is_gone => {
                        Err(is_over())
                    }
                    written => {
                        let revision = written?;
                        let _deciding = self.shared.deciding_presence.lock().await;
                        self.hear(id);
                        Ok(revision)
                    }
                }
            }
            Presence::End { id } => {
                if self.check_presence(actor, id).is_err() {
                    return Ok(0); // It is over already.
                }
                let over = Transaction::new().delete(presence::presence(id));
                self.write(&Actor::System, over).await?;
                self.sweep().await
            }
        }
    }

    async fn begin_presence(&self, actor: &Actor, id: u64, ttl_ms: u32) -> Result<u64, Fault> {
        check_ttl(Duration::from_millis(u64::from(ttl_ms))).map_err(refused)?;
        if self.check_presence(actor, id).is_ok() {
            return Ok(0); // Asked again.
        }
        if self.shared.committed.read().paths(PRESENCE).count() >= PRESENCES_MAX {
            let text = format!("{PRESENCES_MAX} clients are there already, and no more can be");
            return Err(refused(Error::new(ErrorKind::QuotaExceeded, text)));
        }
        let path = presence::presence(id);
        let begin = Transaction::new()
            .when(path.clone(), Expected::Absent)
            .put(path, value(ttl_ms, name(actor)));
        self.write(&Actor::System, begin).await?;
        self.hear(id);
        Ok(0)
    }

    /// The client was heard now.
    fn hear(&self, id: u64) {
        self.shared.presences.lock().heard.insert(id, Instant::now());
    }

    /// Refuses what is about a presence that is over, or another's.
    fn check_presence(&self, actor: &Actor, id: u64) -> Result<(), Fault> {
        let store = self.shared.committed.read();
        let entry = store.get(presence::presence(id).as_str());
        let is_theirs =
            entry.is_some_and(|it| read(&it.value).is_some_and(|(_, user)| user == name(actor)));
        if is_theirs { Ok(()) } else { Err(is_over()) }
    }

    /// Whether the user may do this: it is done in the cluster's name, with what binds it.
    fn check_binding(&self, actor: &Actor, transaction: &Transaction) -> tyr_types::Result<()> {
        let store = self.shared.committed.read();
        for condition in &transaction.conditions {
            access::check(&store, actor, condition.path.as_str(), Wish::Read)?;
        }
        for alteration in &transaction.alterations {
            access::check(&store, actor, alteration.path().as_str(), Wish::Write)?;
        }
        if store.paths(presence::BOUND).count() + transaction.alterations.len() > BOUND_MAX {
            return Err(Error::new(
                ErrorKind::QuotaExceeded,
                format!("{BOUND_MAX} entries are bound already, and no more can be"),
            ));
        }
        Ok(())
    }

    /// Takes away what is bound to presences that are over.
    async fn sweep(&self) -> Result<u64, Fault> {
        self.shared.presences.lock().is_sweeping = true;
        loop {
            let removal = presence::removal(&self.shared.committed.read(), None);
            if removal.alterations.is_empty() {
                return Ok(0);
            }
            match self.write(&Actor::System, removal).await {
                // Somebody has changed one of them meanwhile.
                Err(Fault::Refused(refusal)) if refusal.is_conflict() => {}
                written => _ = written?,
            }
        }
    }

    /// Looks again and again whose time is over, for as long as the monitor runs.
    pub(super) async fn keep_presences(self) {
        loop {
            tokio::time::sleep(LOOK).await;
            if !self.shared.is_leading.load(Ordering::Acquire) {
                continue;
            }
            // What is not committed now is looked at again.
            let _deciding = self.shared.deciding_presence.lock().await;
            while self.shared.is_leading.load(Ordering::Acquire) {
                let due = {
                    let store = self.shared.committed.read();
                    self.shared.presences.lock().look(&store, Instant::now())
                };
                let Some(due) = due else { break };
                if self.write(&Actor::System, due).await.is_err() {
                    break;
                }
            }
        }
    }
}
