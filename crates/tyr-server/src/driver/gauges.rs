//! What surrounds an engine in a node: clocks, the network, threads for what takes the disk, and
//! gauges that look on.

use std::sync::Arc;

use tyr_engine::lists::Listing;
use tyr_engine::reads::Fetch;
use tyr_engine::{Engine, Host, Trouble};
use tyr_protocol::member::{Event, Record};
use tyr_protocol::message::{Address, Body, Envelope, Now};
use tyr_protocol::movement::scrub::Finding;
use tyr_types::{Error, ErrorKind};

use super::pace::{Amount, Backlog, Load, Pace};
use super::stopwatch::Stopwatch;
use super::{Driver, Work};
use tyr_runtime::clock;
use tyr_trace::Watch;

/// Look on, and measure.
#[derive(Default)]
pub(super) struct Gauges {
    stopwatch: Stopwatch,
    pace: Pace,
    /// Sees what passes, if transactions are traced.
    watch: Option<Watch>,
}

impl Gauges {
    /// Traces transactions from now on.
    pub fn watch_by(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    /// Traces no more; what is open ends as it is.
    pub fn end_watch(&mut self) {
        if let Some(mut watch) = self.watch.take() {
            watch.close(clock::steady_us());
        }
    }

    /// What is in flight now, and how much may be.
    pub fn load(&mut self, engine: &mut Engine) -> Load {
        let (count, len) = engine.member().finished();
        let in_flight = Amount {
            count: engine.member().in_flight() as u64,
            len: engine.member().in_flight_len(),
        };
        let load = self.pace.note(clock::steady_us(), Amount { count, len }, in_flight);
        let member = engine.member();
        let backlog = || Backlog { slowest: member.slowest() };
        let load = Load { backlog: member.remembers_too_much().then(backlog), ..load };
        engine.set_room(load.has_room(Amount::default()));
        load
    }
}

/// What is around the engine while it is driven.
pub(super) struct Surroundings<'s> {
    pub driver: &'s Arc<Driver>,
    pub gauges: &'s mut Gauges,
}

impl Host for Surroundings<'_> {
    fn now(&mut self) -> Now {
        Now { wall_us: clock::now_us(), monotonic_us: clock::steady_us() }
    }

    fn hears(&mut self, event: &Event, now: Now) {
        if let Event::Receive(envelope) = event {
            self.gauges.stopwatch.asked(envelope, now.monotonic_us);
        }
        if let Some(watch) = &mut self.gauges.watch {
            watch.happened(event, now);
        }
    }

    fn logs(&mut self, number: u64, record: &Record, _: Option<u64>) {
        if let Some(watch) = &mut self.gauges.watch {
            watch.logged(number, record, clock::steady_us);
        }
    }

    fn send(&mut self, to: Address, envelope: Envelope) {
        let Gauges { stopwatch, watch, .. } = &mut *self.gauges;
        if let Some(watch) = watch {
            watch.sent(to, &envelope.body, clock::steady_us);
        }
        if let Address::Client(_) = to {
            let answers = &self.driver.counts.answers;
            stopwatch.answered(to, &envelope.body, answers, clock::steady_us());
        }
        self.driver.outbound.send(to, envelope);
    }

    fn go_on_later(&mut self) {
        self.driver.inbox.lock().work.push_back(Work::Event(Event::Continue)); // The next round.
    }

    fn fetch(&mut self, fetch: Fetch) {
        let driver = Arc::clone(self.driver);
        let request = fetch.request();
        let mut stopwatch = self.gauges.stopwatch.hand_on(request.asker, request.read);
        blocking::unblock(move || {
            let is_own = fetch.is_own();
            let (asker, envelope) = fetch.finish();
            let answers = &driver.counts.answers;
            stopwatch.answered(asker, &envelope.body, answers, clock::steady_us());
            if let Body::Refused { abort, .. } = &envelope.body
                && abort.kind == ErrorKind::Corrupt
            {
                driver.remarks.say_damage(&abort.reason);
            }
            if is_own {
                return driver.receive(std::iter::once(envelope));
            }
            driver.outbound.send(asker, envelope);
            driver.outbound.flush();
        })
        .detach();
    }

    fn list(&mut self, listing: Listing) {
        let driver = Arc::clone(self.driver);
        blocking::unblock(move || {
            let listed = listing.make();
            let (to, envelope) = driver.look(|engine| engine.listed(listed));
            driver.outbound.send(to, envelope);
            driver.outbound.flush();
        })
        .detach();
    }

    fn found(&mut self, finding: Finding) {
        match finding.what.is_well() {
            true => tracing::info!("scrubbing: {finding}"),
            false => tracing::warn!("scrubbing: {finding}"),
        }
        self.driver.remarks.say(format!("scrubbing: {finding}"));
    }

    fn trouble(&mut self, trouble: Trouble, error: &Error) {
        match trouble {
            Trouble::Record => tracing::warn!(%error, "{trouble}"),
            Trouble::Log | Trouble::Store | Trouble::Payload => {
                tracing::error!(%error, "{trouble}");
                self.driver.remarks.say(format!("{trouble}: {error}"));
            }
        }
    }
}
