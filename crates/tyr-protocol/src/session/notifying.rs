//! Notices that this client sends to who watches a key, and those that it gets (K6).
//!
//! ```text
//!   a call ─► Notify ─► the key's authority ─► Notified: the call is done
//!              ▲ silent, not here, or another map: again, under the same number
//!   Notice ─► told once ─► acknowledged by the user ─► Acknowledge
//!              └ heard again: acknowledged as before, if it was
//! ```
//!
//! Where another has become the authority the notice is sent anew there. A client that has heard
//! it from the one before knows it by its number, so its user hears it once; unless so many others
//! have come since that it was forgotten.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tyr_types::notice::check_notice;
use tyr_types::{Bytes, ErrorKind, NodeId, Notice, NoticeId, Notified};

use super::effect::{Answer, Effect, WatchNews};
use super::event::{CallId, NotifyCall};
use super::{Session, Task, fail};
use crate::abort::Abort;
use crate::key_watch::Message;
use crate::level::LEVEL_NOTIFYING;
use crate::map::DROPPED;
use crate::message::Body;

/// Who does not answer is asked again after so long, in microseconds.
const AGAIN_US: u64 = 1_000_000;

/// A node that is not the authority just now is asked again after so long.
const PAUSE_US: u64 = 100_000;

/// Notices that were heard and are known again, at most.
const HEARD_MAX: usize = 1_024;

/// A call that sends a notice.
#[derive(Clone, Debug)]
pub(super) struct Notifying {
    /// What answers name.
    pub number: u64,
    what: NotifyCall,
    /// Who was sent it last.
    asked: Option<NodeId>,
    pub refusal: Option<Abort>,
}

/// A notice that one of this client's watches has heard.
#[derive(Clone, Debug)]
struct Heard {
    from: NodeId,
    /// What the user has acknowledged it with.
    reply: Option<Bytes>,
}

/// The notices of this client.
#[derive(Clone, Debug, Default)]
pub(super) struct Notices {
    /// The calls that send one, by the numbers that answers name.
    pub sending: BTreeMap<u64, CallId>,
    /// Those that were heard, of each watch; at most [`HEARD_MAX`].
    heard: BTreeMap<(NoticeId, u64), Heard>,
    /// In which order.
    order: VecDeque<(NoticeId, u64)>,
}

impl Notices {
    pub fn invariants(&self) {
        assert_eq!(self.order.len(), self.heard.len(), "each is forgotten some time");
        assert!(self.heard.len() <= HEARD_MAX, "they are bounded");
    }
}

impl Session {
    /// A call sends a notice.
    pub(super) fn notify(&mut self, call: CallId, what: NotifyCall, effects: &mut Vec<Effect>) {
        let timeout = Duration::from_micros(what.timeout_us);
        if let Err(error) = check_notice(&what.payload, timeout) {
            let abort = Abort::new(error.kind(), error.message().to_owned());
            return fail(call, abort, effects);
        }
        self.questions_begun += 1;
        let number = self.numbers.of(self.questions_begun);
        self.notices.sending.insert(number, call);
        let until_us = self.now_us + what.timeout_us + self.config.deadline_us;
        let (asked, refusal) = (None, None);
        self.enter_until(call, Task::Notify(Notifying { number, what, asked, refusal }), until_us);
        self.send_notice(call, effects);
    }

    /// Sends the notice to the authority of its key, for the first time or again.
    pub(super) fn send_notice(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(Task::Notify(notifying)) = self.calls.get(&call).map(|it| &it.task) else {
            return;
        };
        let NotifyCall { blob, payload, timeout_us } = notifying.what.clone();
        if self.map.is_dropped(blob.keyspace) {
            return self.give_up(call, Abort::new(ErrorKind::NotFound, DROPPED), effects);
        }
        if self.map.chunk_size(blob.keyspace).is_none() {
            return self.is_stuck(call, effects);
        }
        if let Err(error) = self.map.check_level(LEVEL_NOTIFYING) {
            let abort = Abort::new(error.kind(), error.message().to_owned());
            return self.give_up(call, abort, effects);
        }
        let refusal = self.map.check_readable(&blob, 0).err();
        let authority = self.map.holders(&blob, 0).first().copied();
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Notify(notifying) = &mut in_flight.task else { return };
        in_flight.stuck = None;
        (notifying.asked, notifying.refusal) = (authority, refusal);
        let number = notifying.number;
        if let Some(to) = authority {
            let message = Message::Notify { number, blob, payload, timeout_us };
            self.send(to, Body::KeyWatch(message), effects);
        }
        self.resume_in(call, AGAIN_US);
    }

    /// No answer has come: it may be waited for, be lost, or never come.
    pub(super) fn resume_notice(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(Task::Notify(notifying)) = self.calls.get(&call).map(|it| &it.task) else {
            return;
        };
        if let Some(asked) = notifying.asked {
            self.ask_others_than(asked, effects);
        }
        self.send_notice(call, effects);
    }

    /// What became of a notice.
    pub(super) fn notified(&mut self, number: u64, notified: Notified, effects: &mut Vec<Effect>) {
        let Some(call) = self.notices.sending.get(&number).copied() else { return };
        self.leave(call, effects);
        effects.push(Effect::Done { call, answer: Answer::Notified(notified) });
    }

    /// A node does not take a notice, and says why. Whether there is such a notice.
    pub(super) fn notice_refused(
        &mut self,
        number: u64,
        abort: &Abort,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(call) = self.notices.sending.get(&number).copied() else { return false };
        self.give_up(call, abort.clone(), effects);
        true
    }

    /// A node is not the authority, or has no lease.
    pub(super) fn notice_not_here(&mut self, number: u64) {
        if let Some(call) = self.notices.sending.get(&number).copied() {
            self.resume_in(call, PAUSE_US);
        }
    }

    /// A watch of this client gets a notice.
    pub(super) fn hear_notice(
        &mut self,
        from: NodeId,
        watch: u64,
        notice: Notice,
        effects: &mut Vec<Effect>,
    ) {
        if !self.watches.contains(watch) {
            return self.send(from, Body::KeyWatch(Message::End { watch }), effects);
        }
        let id = notice.id;
        if let Some(heard) = self.notices.heard.get_mut(&(id, watch)) {
            heard.from = from;
            if let Some(reply) = heard.reply.clone() {
                let message = Message::Acknowledge { watch, id, reply };
                self.send(from, Body::KeyWatch(message), effects);
            }
            return;
        }
        if self.notices.order.len() == HEARD_MAX
            && let Some(oldest) = self.notices.order.pop_front()
        {
            self.notices.heard.remove(&oldest);
        }
        self.notices.order.push_back((id, watch));
        self.notices.heard.insert((id, watch), Heard { from, reply: None });
        effects.push(Effect::Watch { watch, news: WatchNews::Notice(notice) });
    }

    /// The user acknowledges a notice; again changes nothing.
    pub(super) fn acknowledge(
        &mut self,
        watch: u64,
        id: NoticeId,
        reply: Bytes,
        effects: &mut Vec<Effect>,
    ) {
        let Some(heard) = self.notices.heard.get_mut(&(id, watch)) else { return };
        let (to, reply) = (heard.from, heard.reply.get_or_insert(reply).clone());
        self.send(to, Body::KeyWatch(Message::Acknowledge { watch, id, reply }), effects);
    }
}
