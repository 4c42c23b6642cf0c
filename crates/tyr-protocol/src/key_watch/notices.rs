//! Notices at a node: who was sent them, and who has acknowledged (K6).
//!
//! ```text
//!   Notify ─► sent to all who watch ─► repeated, less and less often ─► answered ─► forgotten,
//!                                      └ acknowledged by all, or the time is over ┘  10 s later
//! ```
//!
//! The answer may be lost: it is kept for a while, for who asks again.

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::limits::{NOTICES_OF_NODE_MAX, WATCHERS_OF_NOTICE_MAX};
use tyr_types::{BlobName, Bytes, ErrorKind, Notice, NoticeId, Notified, Watcher};

use super::Message;
use crate::abort::Abort;

/// Who has not acknowledged a notice is sent it again after so long, in microseconds, then after
/// twice as long.
const REPEAT_US: u64 = 250_000;

/// An answer is kept for so long, in microseconds, for who asks again: that is each second.
const KEPT_US: u64 = 10_000_000;

/// What is said, and to which client.
type Said = Vec<(u64, Message)>;

/// A notice as a client has sent it.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Which it is, and whose.
    pub id: NoticeId,
    /// To who watches this key.
    pub blob: BlobName,
    /// What is said.
    pub payload: Bytes,
    /// How long they have to acknowledge it, in microseconds.
    pub timeout_us: u64,
}

#[derive(Clone, Debug)]
struct Pending {
    blob: BlobName,
    payload: Bytes,
    /// Those who have not acknowledged it; nobody once it is answered.
    waiting: BTreeSet<Watcher>,
    notified: Notified,
    is_answered: bool,
    /// When it is answered whoever has not acknowledged it; then when it is forgotten.
    until_us: u64,
    /// When it is repeated, and after how long again.
    repeat: (u64, u64),
}

impl Pending {
    fn due_us(&self) -> u64 {
        if self.is_answered { self.until_us } else { self.until_us.min(self.repeat.0) }
    }

    fn send(&self, id: NoticeId, said: &mut Said) {
        for Watcher { client, watch } in &self.waiting {
            let notice = Notice { id, key: self.blob.key.clone(), payload: self.payload.clone() };
            said.push((*client, Message::Notice { watch: *watch, notice }));
        }
    }

    fn answer(&self, id: NoticeId, said: &mut Said) {
        let (number, notified) = (id.number, self.notified.clone());
        said.push((id.client, Message::Notified { number, notified }));
    }

    /// Answers if all have acknowledged, or `is_over`.
    fn conclude(&mut self, now_us: u64, id: NoticeId, is_over: bool, said: &mut Said) {
        if self.is_answered || !(is_over || self.waiting.is_empty()) {
            return;
        }
        self.notified.missed.extend(std::mem::take(&mut self.waiting));
        (self.is_answered, self.payload) = (true, Bytes::new());
        self.until_us = now_us + KEPT_US;
        self.answer(id, said);
    }
}

/// The notices at a node.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    pending: BTreeMap<NoticeId, Pending>,
    due: BTreeSet<(u64, NoticeId)>,
}

impl Notices {
    /// Whether there is this notice: who asks again asks for nothing new.
    pub fn contains(&self, id: NoticeId) -> bool {
        self.pending.contains_key(&id)
    }

    /// A client sends a notice to these, who watch; or asks again what became of it.
    ///
    /// # Errors
    /// `Unavailable` when there are too many notices, or too many who watch.
    pub fn send(
        &mut self,
        now_us: u64,
        sent: Sent,
        watchers: impl FnOnce() -> BTreeSet<Watcher>,
        said: &mut Said,
    ) -> Result<(), Abort> {
        let Sent { id, blob, payload, timeout_us } = sent;
        if let Some(pending) = self.pending.get(&id) {
            if pending.is_answered {
                pending.answer(id, said);
            }
            return Ok(());
        }
        if self.pending.len() >= NOTICES_OF_NODE_MAX {
            return Err(Abort::new(ErrorKind::Unavailable, TOO_MANY));
        }
        let waiting = watchers();
        if waiting.len() > WATCHERS_OF_NOTICE_MAX {
            return Err(Abort::at(&blob, ErrorKind::Unavailable, TOO_MANY_WATCH));
        }
        let mut pending = Pending {
            blob,
            payload,
            waiting,
            notified: Notified::default(),
            is_answered: false,
            until_us: now_us.saturating_add(timeout_us),
            repeat: (now_us + REPEAT_US, 2 * REPEAT_US),
        };
        pending.send(id, said);
        pending.conclude(now_us, id, false, said);
        self.due.insert((pending.due_us(), id));
        self.pending.insert(id, pending);
        Ok(())
    }

    /// Who watches has acknowledged a notice.
    pub fn acknowledge(
        &mut self,
        now_us: u64,
        watcher: Watcher,
        id: NoticeId,
        reply: Bytes,
        said: &mut Said,
    ) {
        self.change(id, |pending| {
            if pending.waiting.remove(&watcher) {
                pending.notified.acknowledged.push((watcher, reply));
                pending.conclude(now_us, id, false, said);
            }
        });
    }

    /// Somebody watches no more: nobody waits for that one.
    pub fn end(&mut self, now_us: u64, watcher: Watcher, said: &mut Said) {
        let of_watcher = self.pending.iter().filter(|(_, it)| it.waiting.contains(&watcher));
        let ids: Vec<NoticeId> = of_watcher.map(|(id, _)| *id).collect();
        for id in ids {
            self.change(id, |pending| {
                pending.waiting.remove(&watcher);
                pending.notified.missed.push(watcher);
                pending.conclude(now_us, id, false, said);
            });
        }
    }

    /// Only notices to these keys are answered from now on.
    pub fn retain(&mut self, is_kept: impl Fn(&BlobName) -> bool) {
        self.pending.retain(|_, pending| is_kept(&pending.blob));
        self.due.retain(|(_, id)| self.pending.contains_key(id));
    }

    /// Time has passed.
    pub fn tick(&mut self, now_us: u64, said: &mut Said) {
        while let Some((due_us, id)) = self.due.first().copied()
            && due_us <= now_us
        {
            let pending = self.pending.get_mut(&id).expect("what is due is there");
            let is_over = pending.until_us <= now_us;
            if is_over && pending.is_answered {
                self.due.remove(&(due_us, id));
                self.pending.remove(&id);
                continue;
            }
            self.change(id, |pending| match is_over {
                true => pending.conclude(now_us, id, true, said),
                false => {
                    let (_, pause_us) = pending.repeat;
                    pending.repeat = (now_us + pause_us, 2 * pause_us);
                    pending.send(id, said);
                }
            });
        }
    }

    fn change(&mut self, id: NoticeId, change: impl FnOnce(&mut Pending)) {
        let Some(pending) = self.pending.get_mut(&id) else { return };
        self.due.remove(&(pending.due_us(), id));
        change(pending);
        self.due.insert((pending.due_us(), id));
    }

    /// Checks what must hold between two steps.
    ///
    /// # Panics
    /// When it does not.
    pub fn invariants(&self) {
        assert!(self.pending.len() <= NOTICES_OF_NODE_MAX, "they are bounded");
        assert_eq!(self.due.len(), self.pending.len(), "each is due some time");
        for (id, pending) in &self.pending {
            assert!(self.due.contains(&(pending.due_us(), *id)), "K6: what is due is noticed");
            let is_waited_for = !pending.waiting.is_empty();
            assert_eq!(is_waited_for, !pending.is_answered, "K6: it is answered when all have");
        }
    }
}

const TOO_MANY: &str = "the node has as many notices as it may; try again in some seconds";

const TOO_MANY_WATCH: &str = "more watch the key than a notice can reach, 1,024; let some watch \
                              another key";

#[cfg(test)]
mod tests {
    use tyr_types::{Key, KeyspaceId};

    use super::*;

    const SECOND_US: u64 = 1_000_000;

    fn id(number: u64) -> NoticeId {
        NoticeId { client: 9, number }
    }

    fn watcher(client: u64) -> Watcher {
        Watcher { client, watch: 7 }
    }

    #[derive(Default)]
    struct Stand {
        notices: Notices,
        now_us: u64,
        said: Said,
    }

    impl Stand {
        fn send(&mut self, number: u64, watchers: &[u64]) -> Result<(), Abort> {
            let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("a").unwrap() };
            let payload = Bytes::from_static(b"word");
            let sent = Sent { id: id(number), blob, payload, timeout_us: SECOND_US };
            let watchers = || watchers.iter().copied().map(watcher).collect();
            self.notices.send(self.now_us, sent, watchers, &mut self.said)
        }

        fn acknowledge(&mut self, client: u64, number: u64) {
            let reply = Bytes::from(vec![client as u8]);
            let (now_us, watcher) = (self.now_us, watcher(client));
            self.notices.acknowledge(now_us, watcher, id(number), reply, &mut self.said);
        }

        fn pass(&mut self, us: u64) {
            self.now_us += us;
            self.notices.tick(self.now_us, &mut self.said);
        }

        /// The clients that were sent a notice since this was asked last, and the answers.
        fn told(&mut self) -> (Vec<u64>, Vec<(u64, Notified)>) {
            self.notices.invariants();
            let (mut sent, mut answers) = (Vec::new(), Vec::new());
            for (client, message) in self.said.drain(..) {
                match message {
                    Message::Notice { watch: 7, notice } => {
                        assert_eq!(&notice.payload[..], b"word");
                        sent.push(client);
                    }
                    Message::Notified { number, notified } => {
                        assert_eq!(client, 9);
                        answers.push((number, notified));
                    }
                    other => panic!("{other:?} is none of its business"),
                }
            }
            (sent, answers)
        }
    }

    fn notified(acknowledged: &[u64], missed: &[u64]) -> Notified {
        let reply = |client: &u64| (watcher(*client), Bytes::from(vec![*client as u8]));
        Notified {
            acknowledged: acknowledged.iter().map(reply).collect(),
            missed: missed.iter().copied().map(watcher).collect(),
        }
    }

    /// K6.
    #[test]
    fn who_watches_gets_it_and_it_is_answered_when_all_have_acknowledged() {
        let mut stand = Stand::default();
        stand.send(1, &[1, 2]).unwrap();
        assert_eq!(stand.told(), (vec![1, 2], vec![]));
        stand.send(1, &[1, 2, 3]).unwrap();
        assert_eq!(stand.told(), (vec![], vec![]), "the same again changes nothing");
        stand.acknowledge(2, 1);
        stand.acknowledge(2, 1);
        stand.acknowledge(5, 1);
        assert_eq!(stand.told(), (vec![], vec![]));
        stand.acknowledge(1, 1);
        let answer = (1, notified(&[2, 1], &[]));
        assert_eq!(stand.told(), (vec![], vec![answer.clone()]));
        stand.send(1, &[3]).unwrap();
        assert_eq!(stand.told(), (vec![], vec![answer]), "the first answer may be lost");
        stand.send(2, &[]).unwrap();
        assert_eq!(stand.told(), (vec![], vec![(2, notified(&[], &[]))]), "nobody watches");
    }

    /// K6: messages may be lost, and clients be gone.
    #[test]
    fn who_does_not_acknowledge_gets_it_again_until_the_time_is_over() {
        let mut stand = Stand::default();
        stand.send(1, &[1, 2]).unwrap();
        stand.acknowledge(2, 1);
        stand.told();
        stand.pass(REPEAT_US);
        assert_eq!(stand.told(), (vec![1], vec![]));
        stand.pass(REPEAT_US);
        assert_eq!(stand.told(), (vec![], vec![]), "less often then");
        stand.pass(REPEAT_US);
        assert_eq!(stand.told(), (vec![1], vec![]));
        stand.pass(SECOND_US);
        assert_eq!(stand.told(), (vec![], vec![(1, notified(&[2], &[1]))]));
        stand.acknowledge(1, 1);
        assert_eq!(stand.told(), (vec![], vec![]), "too late");
    }

    #[test]
    fn nobody_waits_for_who_watches_no_more() {
        let mut stand = Stand::default();
        stand.send(1, &[1, 2]).unwrap();
        stand.acknowledge(1, 1);
        stand.told();
        stand.notices.end(stand.now_us, watcher(2), &mut stand.said);
        stand.notices.end(stand.now_us, watcher(1), &mut stand.said);
        assert_eq!(stand.told(), (vec![], vec![(1, notified(&[1], &[2]))]));
    }

    #[test]
    fn they_are_bounded_forgotten_and_let_go() {
        let mut stand = Stand::default();
        for number in 0..NOTICES_OF_NODE_MAX as u64 {
            stand.send(number, &[1]).unwrap();
        }
        let refused = stand.send(u64::MAX, &[1]).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Unavailable);
        stand.pass(SECOND_US);
        stand.pass(KEPT_US - 1);
        assert!(stand.notices.contains(id(0)));
        stand.pass(1);
        assert!(!stand.notices.contains(id(0)));
        let all: Vec<u64> = (0..=WATCHERS_OF_NOTICE_MAX as u64).collect();
        let refused = stand.send(1, &all).unwrap_err();
        assert!(refused.reason.contains("1,024"), "{}", refused.reason);
        stand.send(2, &[1]).unwrap();
        stand.notices.retain(|_| false);
        assert!(!stand.notices.contains(id(2)));
        stand.notices.invariants();
    }
}
