//! What a node that has seats says of them, and how it learns whose they should be.
//!
//! ```text
//!   presence ──► seats/nodes/N, seat-loads/N         that it is there, what it has
//!   watch of seats/ ──► table ──► what another should have is left, at once
//! ```
//!
//! One thread does both, for as long as the node has its host of methods. While the monitors do not
//! answer the table says what it said last: it is about where requests go, and whoever has a seat
//! has its lock. Before it was read for the first time each request asks them.

use std::collections::HashMap;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tyr::blocking::Metadata;
use tyr::metadata::{Entry, Path};
use tyr::{NodeId, Result};

use super::name::SeatName;
use super::record::{
    Assignment, NodeSeats, PREFIX, SeatLoad, assigned_path, decode, encode, load_path, node_path,
};
use super::table::Seated;
use super::{HANDOVER_MAX, Place, Seats};

/// After so long without a word a node's seats are others'.
const THERE: Duration = Duration::from_secs(3);

/// How long the thread waits before it looks whether it is still needed.
const LOOK: Duration = Duration::from_millis(250);

/// How long it waits for the monitors before it tries again.
const AGAIN: Duration = Duration::from_secs(1);

/// Loads are looked at so often; and half of what was a look ago still counts.
const LOADS: Duration = Duration::from_secs(1);

/// Entries of a page of the metadata.
const PAGE: usize = 1_024;

/// What has seats.
pub(crate) trait Seating: Send + Sync + 'static {
    /// Its seats.
    fn seats(&self) -> &Seats;

    /// The metadata of its cluster, connected to if it is not yet.
    ///
    /// # Errors
    /// `Unavailable`.
    fn metadata(&self) -> Result<Metadata>;
}

/// Serves until nobody has the seats any more.
pub(crate) fn serve<T: Seating>(seating: &Weak<T>, node: NodeId) {
    while let Some(strong) = seating.upgrade() {
        let metadata = strong.metadata();
        drop(strong);
        match metadata.and_then(|metadata| follow(seating, &metadata, node)) {
            Ok(()) => return,
            Err(error) => tracing::debug!(%error, "whose seats are is not followed; tried again"),
        }
        std::thread::park_timeout(AGAIN);
    }
}

/// Follows the metadata; returns when nobody has the seats any more.
fn follow<T: Seating>(seating: &Weak<T>, metadata: &Metadata, node: NodeId) -> Result<()> {
    let presence = metadata.presence(THERE)?;
    presence.put(&node_path(node), encode(&NodeSeats { node: node.0, ..NodeSeats::default() }))?;
    let mut gauge = Gauge { node, ..Gauge::default() };
    let (entries, revision) = all(metadata)?;
    let mut watch = metadata.watch(PREFIX, revision);
    if let Some(strong) = seating.upgrade() {
        strong.seats().table.write().begin(&entries);
    }
    loop {
        let Some(strong) = seating.upgrade() else { return Ok(()) };
        let seats = strong.seats();
        for seat in seats.take_elsewhere() {
            // Each as long as it takes, side by side.
            blocking::unblock(move || seat.leave(HANDOVER_MAX)).detach();
        }
        let news = gauge.news(seats, Instant::now());
        // Not while the monitors are waited for: whoever ends hands its seats over.
        drop(strong);
        if let Some(load) = news {
            presence.put(&load_path(node), encode(&load))?;
        }
        if presence.lost_within(Duration::ZERO) {
            return Err(tyr::Error::unavailable("the presence of the node is over"));
        }
        let told = watch.next_within(LOOK)?;
        let Some(strong) = seating.upgrade() else { return Ok(()) };
        if let Some(changes) = told {
            strong.seats().table.write().change(&changes.changes);
        }
    }
}

/// Who should have a seat, of those who are there, as the metadata has it now.
///
/// # Errors
/// `Unavailable` when the monitors do not answer; `PermissionDenied`.
pub(crate) fn seated_now(metadata: &Metadata, name: &SeatName) -> Result<Option<Seated>> {
    let path = assigned_path(name);
    let Some(entry) = metadata.get(&path)? else { return Ok(None) };
    let Ok(Assignment { node, mode, .. }) = decode(&path, &entry.value) else { return Ok(None) };
    let node = NodeId(node);
    let is_there = metadata.get(&node_path(node))?.is_some();
    Ok(is_there.then_some(Seated { node, mode }))
}

/// All there is of assignments and nodes, and the revision that it is of.
fn all(metadata: &Metadata) -> Result<(Vec<(Path, Entry)>, u64)> {
    let mut entries: Vec<(Path, Entry)> = Vec::new();
    let mut first = None;
    loop {
        let after = entries.last().map(|(path, _)| path.as_str().to_owned());
        let page = metadata.list(PREFIX, after.as_deref(), PAGE)?;
        // What has changed since the first page is told by the watch.
        let revision = *first.get_or_insert(page.revision);
        if page.entries.is_empty() {
            return Ok((entries, revision));
        }
        entries.extend(page.entries);
    }
}

/// What of the node's load was told, and what it was told by.
#[derive(Default)]
struct Gauge {
    node: NodeId,
    looked: Option<Instant>,
    cpu_ticks: u64,
    /// Requests that a seat had at the last look, and their rate.
    rates: HashMap<Place, (u64, f64)>,
    told: Option<NodeSeats>,
}

impl Gauge {
    /// The load, if it is time to tell it, and there is news.
    fn news(&mut self, seats: &Seats, now: Instant) -> Option<NodeSeats> {
        let since = self.looked.map(|looked| now.duration_since(looked));
        if since.is_some_and(|since| since < LOADS) {
            return None;
        }
        self.looked = Some(now);
        let load = self.load(seats, now, since.unwrap_or(LOADS));
        let is_new = self.told.as_ref().is_none_or(|told| is_news(told, &load));
        is_new.then(|| self.told.insert(load).clone())
    }

    fn load(&mut self, seats: &Seats, now: Instant, since: Duration) -> NodeSeats {
        let seconds = since.as_secs_f64();
        let mut rates = HashMap::new();
        let mut loads = Vec::new();
        for (place, sat) in &*seats.sat.lock() {
            let taken = sat.count.taken.load(Ordering::Relaxed);
            let (before, rate) = self.rates.get(place).copied().unwrap_or_default();
            let rate = (rate + taken.saturating_sub(before) as f64 / seconds) / 2.0;
            rates.insert(place.clone(), (taken, rate));
            loads.push(SeatLoad {
                name: sat.name.to_string(),
                kind: sat.kind.clone(),
                rate: (rate * 10.0).round() / 10.0,
                waiting: sat.count.waiting.load(Ordering::Relaxed) as u64,
                seconds: now.duration_since(sat.since).as_secs(),
            });
        }
        self.rates = rates;
        loads.sort_by(|a, b| a.name.cmp(&b.name));
        let ticks = process_ticks();
        let used = ticks.saturating_sub(std::mem::replace(&mut self.cpu_ticks, ticks));
        let cpu = (used as f64 / TICKS_A_SECOND / seconds * 20.0).round() / 20.0;
        NodeSeats { node: self.node.0, cpu, seats: loads }
    }
}

/// Whether it is worth a write: other seats, or a rate that is another by a tenth.
fn is_news(told: &NodeSeats, load: &NodeSeats) -> bool {
    let is_other = |(a, b): (&SeatLoad, &SeatLoad)| {
        let change = (a.rate - b.rate).abs();
        a.name != b.name || a.kind != b.kind || change > 0.1 * a.rate.max(b.rate) + 1.0
    };
    told.seats.len() != load.seats.len()
        || told.seats.iter().zip(&load.seats).any(is_other)
        || (told.cpu - load.cpu).abs() > 0.1
}

/// Of the times in `/proc`, whatever the machine's clock.
const TICKS_A_SECOND: f64 = 100.0;

/// The time that this process has had on a processor, where the system tells it.
fn process_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in brackets, may have anything in it.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let times = fields.split_whitespace().skip(11).take(2);
    times.filter_map(|time| time.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(rate: f64) -> NodeSeats {
        let seat = SeatLoad {
            name: "zlogs/a".to_owned(),
            kind: "zlog.sequencer".to_owned(),
            rate,
            waiting: 0,
            seconds: 0,
        };
        NodeSeats { node: 1, cpu: 0.0, seats: vec![seat] }
    }

    #[test]
    fn a_load_is_told_when_it_is_another_and_not_each_time() {
        assert!(!is_news(&load(1000.0), &load(1050.0)));
        assert!(is_news(&load(1000.0), &load(1200.0)));
        assert!(is_news(&load(1000.0), &load(0.0)));
        assert!(!is_news(&load(0.0), &load(0.5)));
        assert!(is_news(&load(10.0), &NodeSeats { seats: Vec::new(), ..load(10.0) }));
        assert!(is_news(&load(10.0), &NodeSeats { cpu: 0.5, ..load(10.0) }));
    }
}
