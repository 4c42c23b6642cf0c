//! What holds between two steps of a session.

use std::collections::BTreeMap;

use tyr_types::Epoch;

use super::event::CallId;
use super::numbers::Numbers;
use super::timer::Timer;
use super::{InFlight, QUESTIONS_MAX, Session, Task};

impl Session {
    /// Checks what never goes back, where debug assertions are on, against what was before a step:
    /// the map, the numbers given to reads, and below which transaction all are settled.
    pub(super) fn check_since(&self, (epoch, begun, settled): (Epoch, u64, u64)) {
        debug_assert!(self.map.epoch >= epoch, "a session does not go back to an older map");
        debug_assert!(self.questions_begun >= begun, "an answer is of one question");
        debug_assert!(self.unsettled.settled() >= settled, "F4: nodes forget what was settled");
        let is_over = self.timers.first_us().is_none_or(|due_us| due_us > self.now_us);
        debug_assert!(is_over, "what was due is done, and what it began is due later");
    }

    /// Checks what must hold between two steps.
    ///
    /// # Panics
    /// When it does not.
    pub fn invariants(&self) {
        assert!(self.calls.len() <= self.config.in_flight_max, "calls in flight are bounded");
        let (mut asked, mut scans, mut leases, mut moments, mut resumed) = (0, 0, 0, 0, 0);
        let mut notices = 0;
        let mut sent = BTreeMap::new();
        for (call, in_flight) in &self.calls {
            self.check_call(*call, in_flight);
            asked += in_flight.questions.len();
            resumed += usize::from(in_flight.due_us.is_some());
            match &in_flight.task {
                Task::Read(reading) => {
                    assert_eq!(reading.pending(), in_flight.questions.len(), "each is answered");
                    let waits = !in_flight.questions.is_empty() || in_flight.due_us.is_some();
                    assert!(waits, "a read waits for something");
                }
                Task::Scan(scanning) => {
                    let open = scanning.open().count();
                    assert!(open > 0 || in_flight.stuck.is_some(), "a scan waits for a page");
                    assert!(in_flight.due_us.is_some(), "a scan is asked again");
                    scans += open;
                }
                Task::Lease(_) => {
                    assert!(in_flight.due_us.is_some(), "a lease is asked for again");
                    leases += 1;
                }
                Task::Stage(_) => assert!(in_flight.due_us.is_some(), "a piece is sent again"),
                Task::Notify(notifying) => {
                    self.check_notice(*call, in_flight, notifying.number);
                    notices += 1;
                }
                Task::Moment(moment) => {
                    assert!(in_flight.due_us.is_some(), "it is asked again");
                    moments += self.check_moment(*call, moment);
                }
                Task::Commit(submission) => {
                    if let Some(head) = submission.waits_for() {
                        *sent.entry(head).or_default() += 1;
                    }
                    let is_asking = !in_flight.questions.is_empty();
                    assert!(!(is_asking && submission.is_sent()), "the time comes first");
                    assert!(is_asking || in_flight.due_us.is_some(), "a commit is sent again");
                }
            }
        }
        assert_eq!(sent, self.limits.in_flight().collect(), "what nodes were sent is counted");
        assert_eq!(scans, self.scans.len(), "every page is for a call");
        assert_eq!(leases, self.leases.asking.len(), "every lease is for a call");
        assert_eq!(moments, self.moments.len(), "every moment is for a call");
        assert_eq!(notices, self.notices.sending.len(), "every notice is for a call");
        self.notices.invariants();
        assert_eq!(asked, self.questions.len(), "every question is of a call");
        let last = self.questions.last_key_value().map_or(0, |(number, _)| *number);
        assert!(
            last < Numbers::least(self.questions_begun + 1),
            "a number that is open is not given again"
        );
        self.check_stagings();
        self.check_unsettled();
        for (number, open) in &self.questions {
            let is_due = self.timers.contains(open.due_us, Timer::Question(*number));
            assert!(is_due, "every question is asked again");
        }
        let renewing = usize::from(self.leases.due_us.is_some());
        let watching = usize::from(self.watches.due_us.is_some());
        let timers = self.calls.len() + resumed + self.questions.len() + renewing + watching;
        assert_eq!(self.timers.len(), timers, "timers are of calls and questions");
        self.leases.invariants();
        self.watches.invariants();
        self.limits.invariants();
        self.unsettled.invariants();
        self.sizes.invariants();
    }

    fn check_notice(&self, call: CallId, in_flight: &InFlight, number: u64) {
        assert!(in_flight.due_us.is_some(), "a notice is sent again");
        assert_eq!(self.notices.sending.get(&number), Some(&call), "every notice is of a call");
    }

    /// Checks that transactions of unknown outcome are those of calls that commit.
    fn check_unsettled(&self) {
        let is_commit = |it: &&InFlight| matches!(it.task, Task::Commit(_));
        let commits = self.calls.values().filter(is_commit).count();
        assert_eq!(self.unsettled.calls().count(), commits, "F4: one call waits for each");
        for call in self.unsettled.undated() {
            let Some(Task::Commit(submission)) = self.calls.get(&call).map(|it| &it.task) else {
                panic!("a call waits for its transaction: {call:?}")
            };
            assert!(!submission.is_sent(), "F4: a node was told no time: {call:?}");
        }
        for (_, call) in self.unsettled.calls() {
            let in_flight = self.calls.get(&call).expect("a call waits for its transaction");
            assert!(matches!(in_flight.task, Task::Commit(_)), "it commits");
        }
    }

    /// What a call asked is open, and it ends in time.
    fn check_call(&self, call: CallId, in_flight: &InFlight) {
        assert!(in_flight.questions.len() <= QUESTIONS_MAX, "questions are bounded");
        for number in &in_flight.questions {
            let open = self.questions.get(number).expect("what a call asked is open");
            assert_eq!(open.call, call, "a question is of one call");
        }
        let deadline = (in_flight.deadline_us, Timer::Deadline(call));
        assert!(self.timers.contains(deadline.0, deadline.1), "every call ends");
        if let Some(due_us) = in_flight.due_us {
            assert!(self.timers.contains(due_us, Timer::Resume(call)), "it goes on");
        }
    }

    /// Each piece on its way is of one call, which its answers name.
    fn check_stagings(&self) {
        let number = |(call, it): (&CallId, &InFlight)| match &it.task {
            Task::Stage(staging) => Some((staging.number, *call)),
            Task::Read(_)
            | Task::Scan(_)
            | Task::Lease(_)
            | Task::Moment(_)
            | Task::Commit(_)
            | Task::Notify(_) => None,
        };
        let staging: BTreeMap<u64, CallId> = self.calls.iter().filter_map(number).collect();
        assert_eq!(staging, self.stagings, "an answer is of one piece");
    }
}
