//! What happens at a node that who looks after the cluster has to know: for the cluster log.
//!
//! ```text
//!   disk, log, reads, scrubbing, clock, methods ──say──► waiting, bounded
//!                                                          └──task──► the monitors' leader
//! ```
//!
//! Saying takes a lock for a moment and waits for nobody. A node says some twenty things a minute
//! at most; what is beyond is left out, counted, and the count is told. What the monitors do not
//! take is tried again; they note what comes twice once.
//!
//! Must not know: what is said, and what is done with it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tyr_control::MetadataClient;
use tyr_control::message::{REMARKS_MAX, Remark, Remarks as Said};
use tyr_runtime::repeats::RepeatLimit;
use tyr_types::NodeId;

/// Remarks that may wait to be taken.
const WAITING_MAX: usize = 64;

/// Remarks that may be made at once.
const BURST: u32 = 10;

/// After that one is made in so long: twenty a minute.
const EVERY: Duration = Duration::from_secs(3);

/// Of what every read may say again, the same text is said once in so long.
const DAMAGE_EVERY: Duration = Duration::from_secs(600);

/// That calls of a method are ended by a limit is said once in so long.
const LIMIT_EVERY: Duration = Duration::from_secs(600);

/// So many such texts are told apart in that time; the others are not said.
const DAMAGES_MAX: usize = 256;

/// What was not taken is tried again after so long.
const PAUSE: Duration = Duration::from_secs(2);

const _: () = assert!(0 < BURST && REMARKS_MAX <= WAITING_MAX);

/// What happens at a node.
pub(crate) struct Remarks {
    /// Drawn at the start of the node.
    run: u64,
    state: Mutex<State>,
    is_wanted: Notify,
}

struct State {
    waiting: VecDeque<(Instant, String)>,
    /// The number of the first that waits.
    first: u64,
    /// How many may be made now, as of then.
    allowed: u32,
    allowed_at: Instant,
    left_out: u64,
    damages: RepeatLimit<String>,
    limits: RepeatLimit<String>,
}

impl Remarks {
    /// Nothing yet; `run` tells one start of the node from another.
    pub fn new(run: u64, now: Instant) -> Arc<Self> {
        let (waiting, first) = (VecDeque::new(), 0);
        let (allowed, left_out) = (BURST, 0);
        let damages = RepeatLimit::new(1, DAMAGE_EVERY, DAMAGES_MAX);
        let limits = RepeatLimit::new(1, LIMIT_EVERY, DAMAGES_MAX);
        let state = State { waiting, first, allowed, allowed_at: now, left_out, damages, limits };
        Arc::new(Self { run, state: Mutex::new(state), is_wanted: Notify::new() })
    }

    /// This has happened.
    pub fn say(&self, text: impl Into<String>) {
        self.say_at(text.into(), Instant::now());
    }

    /// A read met damage. Each damage is said once in ten minutes, however often it is read.
    pub fn say_damage(&self, reason: &str) {
        self.say_damage_at(reason, Instant::now());
    }

    fn say_damage_at(&self, reason: &str, now: Instant) {
        let admitted = self.state.lock().damages.admit(reason.to_owned(), now);
        if admitted.is_some() {
            self.say_at(format!("a read met damage: {reason}"), now);
        }
    }

    /// A call of a method was ended by a limit. Of each method and limit that is said once in ten
    /// minutes, with how many more there were in those before.
    pub fn say_limit(&self, class: &str, method: &str, limit: &str, user: &str) {
        self.say_limit_at([class, method, limit, user], Instant::now());
    }

    fn say_limit_at(&self, [class, method, limit, user]: [&str; 4], now: Instant) {
        let met = format!("class {class}: a call of {method} was ended by the limit of {limit}");
        let more = self.state.lock().limits.admit(met.clone(), now);
        match more {
            None => {}
            Some(0) => self.say_at(format!("{met}; {user} called it"), now),
            Some(more) => {
                let text = format!("{met}, as were {more} in the minutes before; {user} called it");
                self.say_at(text, now);
            }
        }
    }

    fn say_at(&self, text: String, now: Instant) {
        self.state.lock().add(text, now);
        self.is_wanted.notify_one();
    }

    /// Gives what waits to the monitors, for as long as the node runs.
    pub async fn run(self: Arc<Self>, node: NodeId, client: MetadataClient) {
        loop {
            while let Some((first, remarks)) = self.next(Instant::now()) {
                let count = remarks.len();
                let said = Said { node: node.0, run: self.run, first, remarks };
                match client.remark(said).await {
                    Ok(()) => self.state.lock().taken(count),
                    Err(error) => {
                        tracing::debug!(%error, "the cluster log takes it not; tried again");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
            // What was left out is told when there is room again, also if nothing more happens.
            _ = tokio::time::timeout(EVERY, self.is_wanted.notified()).await;
        }
    }

    /// Waits until nothing waits to be told.
    pub async fn settle(&self) {
        while !self.state.lock().waiting.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// What waits to be told, which then waits no more.
    #[cfg(test)]
    pub fn take_all(&self) -> Vec<String> {
        self.state.lock().waiting.drain(..).map(|(_, text)| text).collect()
    }

    /// What is to be told next, and the number of the first of it.
    fn next(&self, now: Instant) -> Option<(u64, Vec<Remark>)> {
        let mut state = self.state.lock();
        state.tell_left_out(now);
        let remark = |(at, text): &(Instant, String)| {
            let ago = now.saturating_duration_since(*at).as_millis();
            Remark { ago_ms: u64::try_from(ago).unwrap_or(u64::MAX), text: text.clone() }
        };
        let remarks: Vec<Remark> = state.waiting.iter().take(REMARKS_MAX).map(remark).collect();
        (!remarks.is_empty()).then_some((state.first, remarks))
    }
}

impl State {
    fn add(&mut self, text: String, now: Instant) {
        self.tell_left_out(now);
        match self.left_out == 0 && self.may(now) {
            true => self.waiting.push_back((now, text)),
            false => self.left_out += 1,
        }
        debug_assert!(self.waiting.len() <= WAITING_MAX, "what waits is bounded");
    }

    /// Says how much was left out, once there is room for that and one more.
    fn tell_left_out(&mut self, now: Instant) {
        if self.left_out > 0 && self.may(now) {
            let count = std::mem::take(&mut self.left_out);
            let text =
                format!("{count} more warnings were left out here; the node's own log has them");
            self.waiting.push_back((now, text));
        }
    }

    /// Whether one more may be made; it is made then.
    fn may(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.allowed_at);
        let more =
            u32::try_from(passed.as_millis() / EVERY.as_millis()).unwrap_or(BURST).min(BURST);
        if more > 0 {
            self.allowed = (self.allowed + more).min(BURST);
            self.allowed_at =
                if self.allowed == BURST { now } else { self.allowed_at + EVERY * more };
        }
        let may = self.allowed > 0 && self.waiting.len() < WAITING_MAX;
        self.allowed -= u32::from(may);
        may
    }

    /// So many of those that waited longest were noted.
    fn taken(&mut self, count: usize) {
        self.waiting.drain(..count);
        self.first += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(remarks: &Remarks, now: Instant) -> Vec<String> {
        let told = remarks.next(now).map(|(_, told)| told).unwrap_or_default();
        told.into_iter().map(|remark| remark.text).collect()
    }

    #[test]
    fn what_is_too_much_is_left_out_and_counted() {
        let start = Instant::now();
        let remarks = Remarks::new(1, start);
        (0..BURST + 5).for_each(|number| remarks.say_at(format!("{number}"), start));
        assert_eq!(texts(&remarks, start).len(), BURST as usize);
        let later = start + EVERY;
        let told = texts(&remarks, later);
        assert_eq!(told.len(), BURST as usize + 1);
        assert!(told.last().unwrap().starts_with("5 more warnings were left out"), "{told:?}");
        remarks.state.lock().taken(told.len());
        remarks.say_at("next".to_owned(), later);
        assert_eq!(texts(&remarks, later), [] as [&str; 0], "there is no room for it");
        let told = texts(&remarks, later + EVERY);
        assert!(told[0].starts_with("1 more warnings"), "{told:?}");
    }

    #[test]
    fn a_damage_is_told_once_in_a_while_however_often_it_is_read() {
        let start = Instant::now();
        let remarks = Remarks::new(1, start);
        for ms in 0..2_000 {
            let damage = if ms == 1_000 { "block 7" } else { "block 3" };
            remarks.say_damage_at(damage, start + Duration::from_millis(ms));
        }
        let told = ["a read met damage: block 3", "a read met damage: block 7"];
        assert_eq!(remarks.take_all(), told);
        remarks.say_damage_at("block 3", start + DAMAGE_EVERY);
        assert_eq!(remarks.take_all(), [told[0]]);
    }

    #[test]
    fn that_a_limit_ends_calls_is_told_once_in_a_while_with_how_many() {
        let start = Instant::now();
        let remarks = Remarks::new(1, start);
        let met = |limit: &str, now| remarks.say_limit_at(["hot", "spin", limit, "bob"], now);
        for ms in 0..1_000 {
            met("time", start + Duration::from_millis(ms));
        }
        met("memory", start);
        let time = "class hot: a call of spin was ended by the limit of time";
        let memory = time.replace("time", "memory");
        let told = [format!("{time}; bob called it"), format!("{memory}; bob called it")];
        assert_eq!(remarks.take_all(), told);
        met("time", start + LIMIT_EVERY);
        let told = [format!("{time}, as were 999 in the minutes before; bob called it")];
        assert_eq!(remarks.take_all(), told);
    }

    #[test]
    fn in_a_minute_twenty_are_made_and_ten_at_once() {
        let start = Instant::now();
        let remarks = Remarks::new(1, start);
        let mut told = 0;
        for ms in (0..60_000).step_by(100) {
            let now = start + Duration::from_millis(ms);
            remarks.say_at("again".to_owned(), now);
            let count = texts(&remarks, now).len();
            remarks.state.lock().taken(count);
            told += count;
        }
        assert!((25..=30).contains(&told), "{told}");
    }

    #[test]
    fn what_was_not_taken_is_told_again_under_its_number_and_with_its_age() {
        let start = Instant::now();
        let remarks = Remarks::new(1, start);
        ["a", "b"].iter().for_each(|text| remarks.say_at((*text).to_owned(), start));
        let later = start + Duration::from_millis(700);
        let (first, told) = remarks.next(later).unwrap();
        assert_eq!((first, told.len(), told[0].ago_ms), (0, 2, 700));
        remarks.state.lock().taken(1);
        let (first, told) = remarks.next(later).unwrap();
        assert_eq!((first, told.len(), told[0].text.as_str()), (1, 1, "b"));
        // While nobody takes any, those that wait are bounded.
        for minute in 0..100 {
            remarks.say_at("x".to_owned(), start + Duration::from_secs(60 * minute));
        }
        assert_eq!(remarks.state.lock().waiting.len(), WAITING_MAX);
    }
}
