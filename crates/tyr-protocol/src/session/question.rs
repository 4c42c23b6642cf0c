//! Questions on their way: each is sent to one replica after another until one answers.
//!
//! A question keeps its number when it is sent again, so any answer will do, also a late one: it
//! was given after the call began. Those that were asked too and did not answer are told to stop.

use tyr_types::{BlobName, ErrorKind, NodeId};

use super::event::{Began, CallId};
use super::gather::Question;
use super::reading::{Ask, Target};
use super::routing::{Sent, Tries, Try, pause_us};
use super::timer::Timer;
use super::{Effect, QUESTIONS_MAX, Session, Task};
use crate::abort::Abort;
use crate::message::{Address, Body, ReadPart, ReadRequest};
use crate::read::Kind;

/// A question without an answer.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub call: CallId,
    pub target: Target,
    pub blob: BlobName,
    pub question: Question,
    tries: Tries,
    /// The last one sent; `None` while nobody is to be asked, or all have refused.
    sent: Option<Sent>,
    /// When it is sent again.
    pub due_us: u64,
    pub refusal: Option<Abort>,
}

impl Session {
    /// Asks a question for a call.
    pub(super) fn ask(&mut self, call: CallId, ask: Ask, effects: &mut Vec<Effect>) {
        self.questions_begun += 1;
        let number = self.numbers.of(self.questions_begun);
        let Ask { target, blob, question } = ask;
        let (tries, due_us) = (Tries::new(), self.now_us);
        let open = Open { call, target, blob, question, tries, sent: None, due_us, refusal: None };
        let before = self.questions.insert(number, open);
        debug_assert!(before.is_none(), "an answer is of one question: {number}");
        let in_flight = self.calls.get_mut(&call).expect("calls in flight ask");
        in_flight.questions.insert(number);
        debug_assert!(in_flight.questions.len() <= QUESTIONS_MAX, "questions are bounded");
        self.send_question(number, effects);
    }

    /// Sends a question to the next replica.
    fn send_question(&mut self, number: u64, effects: &mut Vec<Effect>) {
        let Some(open) = self.questions.get_mut(&number) else { return };
        let holders = self.map.holders(&open.blob, open.question.chunk);
        if let Err(abort) = self.map.check_readable(&open.blob, open.question.chunk) {
            return self.not_readable(number, abort, effects);
        }
        // Only the authority's clock counts (R6).
        let is_for_authority = open.question.kind == Kind::Clock && open.tries.is_empty();
        let nodes = if is_for_authority { &holders[..holders.len().min(1)] } else { &holders[..] };
        let to = self.routing.choose(nodes, &open.tries, self.now_us);
        self.timers.clear(open.due_us, Timer::Question(number));
        let (first_us, max_us) = (self.config.read_retry_us, self.config.retry_max_us);
        let round = open.tries.len() / holders.len().max(1) + 1;
        let salt = self.client ^ number;
        open.due_us = self.now_us + pause_us(first_us, max_us, round as u32, salt);
        self.timers.set(open.due_us, Timer::Question(number));
        open.sent = to.map(|to| Sent { to, epoch: self.map.epoch, at_us: self.now_us });
        let Some(to) = to else {
            return self.fetch_map(None, effects);
        };
        debug_assert!(holders.contains(&to), "R1: only who holds it may answer: {to:?}");
        open.tries.push(Try { node: to, is_open: true });
        let request = ReadRequest {
            read: number,
            asker: Address::Client(self.client),
            blob: open.blob.clone(),
            range: open.question.range,
            is_attributes: open.question.is_attributes,
            kind: open.question.kind,
            is_copy: false,
        };
        self.send(to, Body::Read(request), effects);
    }

    /// A node is down that alone has what is asked for. The map may be an old one: the read is
    /// refused when the next look shows the same.
    fn not_readable(&mut self, number: u64, abort: Abort, effects: &mut Vec<Effect>) {
        let Some(open) = self.questions.get_mut(&number) else { return };
        let call = open.call;
        if open.refusal.as_ref() == Some(&abort) {
            return self.give_up(call, abort, effects);
        }
        open.refusal = Some(abort);
        self.timers.clear(open.due_us, Timer::Question(number));
        (open.sent, open.due_us) = (None, self.now_us + self.config.read_retry_us);
        self.timers.set(open.due_us, Timer::Question(number));
        self.fetch_map(None, effects);
    }

    /// Nobody answered a question in time: another replica is asked.
    pub(super) fn is_late(&mut self, number: u64, effects: &mut Vec<Effect>) {
        let Some(open) = self.questions.get(&number) else { return };
        if let Some(sent) = open.sent {
            let is_only = self.map.holders(&open.blob, open.question.chunk).len() == 1;
            self.routing.is_late(sent.to, self.now_us);
            if is_only {
                self.ask_others_than(sent.to, effects);
            }
        }
        self.send_question(number, effects);
    }

    /// A part arrived.
    pub(super) fn answered(&mut self, from: NodeId, part: ReadPart, effects: &mut Vec<Effect>) {
        let number = part.read;
        let is_answer = |open: &Open| open.question.is_answered_by(&part);
        if !self.questions.get(&number).is_some_and(is_answer) {
            return; // Doubled, late, or not understood.
        }
        let Some(open) = self.close(number, from, effects) else { return };
        if let Some(size) = part.size {
            self.sizes.note(&open.blob, size.unwrap_or(0));
        }
        let began = open.question.is_beginning().then(|| match open.tries[..] {
            [only] if only.node == from => {
                Began { read: number, nodes: [from].into_iter().collect() }
            }
            _ => {
                let asked = open.tries.iter().map(|tried| tried.node);
                self.may_keep(&open.blob, number, asked.chain([from]))
            }
        });
        let Some(in_flight) = self.calls.get_mut(&open.call) else { return };
        let taken = match &mut in_flight.task {
            Task::Read(reading) => reading.take(open.target, &open.question, part, began),
            // They ask otherwise.
            Task::Scan(_) | Task::Lease(_) | Task::Stage(_) | Task::Moment(_) | Task::Notify(_) => {
                return;
            }
            Task::Commit(_) => return, // The time; it was observed.
        };
        match taken {
            Ok(()) => self.advance(open.call, effects),
            Err(abort) => self.give_up(open.call, abort, effects),
        }
    }

    /// A node does not answer a read, and says why.
    pub(super) fn refused(
        &mut self,
        from: NodeId,
        number: u64,
        abort: Abort,
        effects: &mut Vec<Effect>,
    ) {
        let Some(open) = self.questions.get_mut(&number) else {
            if self.watch_refused(number, &abort, effects)
                || self.notice_refused(number, &abort, effects)
            {
                return;
            }
            self.lease_refused(number, abort.clone(), effects);
            self.moment_refused(number, &abort, effects);
            return self.scan_refused(number, abort, effects);
        };
        let call = open.call;
        match abort.kind {
            // Another replica may do better.
            ErrorKind::Unavailable
            | ErrorKind::TimedOut
            | ErrorKind::Corrupt
            | ErrorKind::SnapshotTooOld => {
                open.refusal = Some(abort);
                self.ask_another(from, number, effects);
            }
            ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::Conflict
            | ErrorKind::InvalidArgument
            | ErrorKind::PermissionDenied
            | ErrorKind::QuotaExceeded => self.give_up(call, abort, effects),
        }
    }

    /// A node does not hold what is asked for, or has no lease.
    pub(super) fn not_here(&mut self, from: NodeId, number: u64, effects: &mut Vec<Effect>) {
        self.scan_not_here(from, number);
        self.lease_not_here(from, number);
        self.notice_not_here(number);
        self.moment_not_here(number, effects);
        self.ask_another(from, number, effects);
    }

    /// `from` has refused: those not asked yet are asked now, and all again after the pause;
    /// unless nobody has the versions, or whole bytes, any more.
    fn ask_another(&mut self, from: NodeId, number: u64, effects: &mut Vec<Effect>) {
        let Some(open) = self.questions.get_mut(&number) else { return };
        let Some(sent) = open.sent else { return }; // All have refused; the pause is running.
        // Who was not asked refuses for the one who was, and handed the question on.
        let is_asked = open.tries.iter().any(|tried| tried.node == from);
        let from = if is_asked { from } else { sent.to };
        let tries = open.tries.iter_mut().filter(|tried| tried.node == from);
        tries.for_each(|tried| tried.is_open = false);
        if sent.to != from {
            return; // Another is being asked already.
        }
        let holders = self.map.holders(&open.blob, open.question.chunk);
        let is_tried = |node: &NodeId| open.tries.iter().any(|tried| tried.node == *node);
        if !holders.iter().all(is_tried) {
            return self.send_question(number, effects);
        }
        open.sent = None;
        let is_final =
            |abort: &&Abort| matches!(abort.kind, ErrorKind::SnapshotTooOld | ErrorKind::Corrupt);
        // Who does not hold the chunk any more may be gone, and never answer.
        let may_answer = |tried: &Try| tried.is_open && holders.contains(&tried.node);
        let is_refused = !open.tries.iter().any(may_answer);
        let call = open.call;
        match open.refusal.as_ref().filter(is_final).cloned() {
            Some(abort) if is_refused => self.is_gone(call, abort, effects),
            Some(_) | None => {} // The pause is running.
        }
    }

    /// Nobody has the versions of a read any more: it starts again, or fails.
    fn is_gone(&mut self, call: CallId, abort: Abort, effects: &mut Vec<Effect>) {
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Read(reading) = &mut in_flight.task else {
            return self.give_up(call, abort, effects);
        };
        let began = reading.began();
        if abort.kind != ErrorKind::SnapshotTooOld || !reading.restart() {
            began.iter().for_each(|began| self.end(began, effects));
            return self.give_up(call, abort, effects);
        }
        for number in std::mem::take(&mut in_flight.questions) {
            self.withdraw(number, effects);
        }
        began.iter().for_each(|began| self.end(began, effects));
        self.advance(call, effects);
    }

    /// The map is newer: questions to nodes that do not hold the chunk any more go elsewhere.
    pub(super) fn reroute_questions(&mut self, effects: &mut Vec<Effect>) {
        let must_move = |open: &Open| {
            let holders = self.map.holders(&open.blob, open.question.chunk);
            open.sent.is_none_or(|sent| !holders.contains(&sent.to))
        };
        let moved = self.questions.iter().filter(|(_, open)| must_move(open));
        let moved: Vec<u64> = moved.map(|(number, _)| *number).collect();
        moved.into_iter().for_each(|number| self.send_question(number, effects));
    }

    /// A question is answered; the others that were asked may stop.
    fn close(&mut self, number: u64, from: NodeId, effects: &mut Vec<Effect>) -> Option<Open> {
        let open = self.questions.remove(&number)?;
        self.timers.clear(open.due_us, Timer::Question(number));
        if let Some(in_flight) = self.calls.get_mut(&open.call) {
            in_flight.questions.remove(&number);
        }
        let mut asked: Vec<NodeId> = open.still_asked().filter(|node| *node != from).collect();
        // Where another answered than the one asked, that one has passed the question on.
        if open.tries.len() == 1 {
            asked.clear();
        }
        for node in asked {
            self.send(node, Body::CancelRead { read: number }, effects);
        }
        Some(open)
    }

    /// A question is not asked any more.
    pub(super) fn withdraw(&mut self, number: u64, effects: &mut Vec<Effect>) {
        let Some(open) = self.questions.remove(&number) else { return };
        self.timers.clear(open.due_us, Timer::Question(number));
        for node in open.still_asked() {
            self.send(node, Body::CancelRead { read: number }, effects);
        }
        if open.question.is_beginning() {
            let asked = open.tries.iter().map(|tried| tried.node);
            let began = self.may_keep(&open.blob, number, asked);
            self.end(&began, effects);
        }
    }

    /// Tells the nodes that a snapshot is not needed any more (V1).
    pub(super) fn end(&mut self, began: &Began, effects: &mut Vec<Effect>) {
        for node in &began.nodes {
            self.send(*node, Body::SnapshotEnded { read: began.read }, effects);
        }
    }

    /// The nodes that may keep a snapshot that a read of `blob` began: those asked, and the
    /// authority, to which they may have passed it on.
    fn may_keep(&self, blob: &BlobName, read: u64, asked: impl Iterator<Item = NodeId>) -> Began {
        let authority = self.map.holders(blob, 0).first().copied();
        let mut began = Began { read, nodes: asked.chain(authority).collect() };
        began.nodes.sort_unstable();
        began.nodes.dedup();
        began
    }

    /// Why a call was refused last, by any node.
    pub(super) fn last_refusal(&self, call: CallId) -> Option<Abort> {
        let in_flight = self.calls.get(&call)?;
        let mut open = in_flight.questions.iter().filter_map(|number| self.questions.get(number));
        match &in_flight.task {
            Task::Commit(submission) => submission.refusal.clone(),
            Task::Lease(leasing) => leasing.lateness(),
            Task::Stage(staging) => staging.refusal.clone(),
            Task::Notify(notifying) => notifying.refusal.clone(),
            Task::Read(_) | Task::Scan(_) | Task::Moment(_) => {
                open.find_map(|open| open.refusal.clone())
            }
        }
    }
}

impl Open {
    /// The nodes that may still answer, each once.
    fn still_asked(&self) -> impl Iterator<Item = NodeId> + '_ {
        let is_first = |index: usize, tried: &Try| {
            !self.tries[..index].iter().any(|other| other.is_open && other.node == tried.node)
        };
        let open = self.tries.iter().enumerate();
        let open = open.filter(move |(index, tried)| tried.is_open && is_first(*index, tried));
        open.map(|(_, tried)| tried.node)
    }
}
