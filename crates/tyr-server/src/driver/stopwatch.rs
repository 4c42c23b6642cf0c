//! What clients asked, what they were answered, and how long that took.
//!
//! Times count from when the driver takes a question up to when the answer goes to the network. The
//! engine has one of these, so nothing here is shared but the counters.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use tyr_protocol::commit::Decision;
use tyr_protocol::message::{Address, Body, Envelope};
use tyr_types::{ErrorKind, TransactionId};

use super::Answers;

/// Questions whose time is taken at once: as many as the gate lets in, transactions and reads,
/// and some whose askers are gone. More are counted when they are answered, but not timed.
const OPEN_MAX: usize = 32_768;

/// A question this old is forgotten when there is no room: nobody waits for it any more.
const OPEN_US_MAX: u64 = 60_000_000;

const _: () = assert!(crate::gate::READS_WAITING_MAX <= OPEN_MAX);

/// A question of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Question {
    Transaction(TransactionId),
    Read { client: u64, read: u64 },
}

/// Open questions, and when each came.
#[derive(Debug, Default)]
pub(super) struct Stopwatch {
    open: HashMap<Question, u64, RandomState>,
    /// When room was last looked for, so that it is not looked for at every question.
    cleared_us: u64,
}

impl Stopwatch {
    /// A message came in.
    pub fn asked(&mut self, envelope: &Envelope, now_us: u64) {
        let Address::Client(_) = envelope.from else { return };
        match &envelope.body {
            Body::Submit { transaction, .. } => {
                self.begin(Question::Transaction(transaction.id), now_us);
            }
            Body::Read(request) => {
                if let Address::Client(client) = request.asker {
                    self.begin(Question::Read { client, read: request.read }, now_us);
                }
            }
            Body::CancelRead { read } => {
                if let Address::Client(client) = envelope.from {
                    self.open.remove(&Question::Read { client, read: *read });
                }
            }
            // Nothing else is answered with what a client waits for.
            Body::Commit(_)
            | Body::Recovery(_)
            | Body::Movement(_)
            | Body::Upload(_)
            | Body::SnapshotEnded { .. }
            | Body::FetchMap
            | Body::Reply { .. }
            | Body::Part(_)
            | Body::Refused { .. }
            | Body::NewerMap(_)
            | Body::NotHere(_)
            | Body::NotUnderstood { .. }
            | Body::Renew { .. }
            | Body::Granted { .. }
            | Body::Prepare(_)
            | Body::Prepared { .. }
            | Body::Effective(_)
            | Body::CaughtUp { .. }
            | Body::Return { .. }
            | Body::ListKeys { .. }
            | Body::Scan(_)
            | Body::KeyLease(_)
            | Body::KeyWatch(_)
            | Body::Moment { .. }
            | Body::Keys { .. }
            | Body::Scanned { .. } => {}
        }
    }

    /// A message goes out.
    pub fn answered(&mut self, to: Address, body: &Body, answers: &Answers, now_us: u64) {
        let Address::Client(client) = to else { return };
        match body {
            Body::Reply { id, decision, .. } => {
                let begun_us = self.open.remove(&Question::Transaction(*id));
                match decision {
                    Decision::Commit(_) => {
                        answers.committed(begun_us.map(|it| now_us.saturating_sub(it)))
                    }
                    Decision::Abort(abort) => answers.aborted(abort.kind),
                }
            }
            Body::Part(part) => {
                let begun_us = self.open.remove(&Question::Read { client, read: part.read });
                answers.read(part.bytes.len() as u64, begun_us.map(|it| now_us.saturating_sub(it)));
            }
            Body::Refused { read, abort } => {
                self.open.remove(&Question::Read { client, read: *read });
                answers.refused(abort.kind);
            }
            Body::NotHere(_) => answers.sent_elsewhere(),
            Body::NotUnderstood { .. } => answers.refused(ErrorKind::Unavailable),
            Body::Commit(_)
            | Body::Recovery(_)
            | Body::Movement(_)
            | Body::Upload(_)
            | Body::Submit { .. }
            | Body::Read(_)
            | Body::CancelRead { .. }
            | Body::SnapshotEnded { .. }
            | Body::FetchMap
            | Body::NewerMap(_)
            | Body::Renew { .. }
            | Body::Granted { .. }
            | Body::Prepare(_)
            | Body::Prepared { .. }
            | Body::Effective(_)
            | Body::CaughtUp { .. }
            | Body::Return { .. }
            | Body::ListKeys { .. }
            | Body::Scan(_)
            | Body::KeyLease(_)
            | Body::KeyWatch(_)
            | Body::Moment { .. }
            | Body::Keys { .. }
            | Body::Scanned { .. } => {}
        }
    }

    /// A read goes to a thread that may wait: a watch for it alone.
    pub fn hand_on(&mut self, asker: Address, read: u64) -> Self {
        let Address::Client(client) = asker else { return Self::default() };
        let question = Question::Read { client, read };
        let open = self.open.remove(&question).map(|begun_us| (question, begun_us));
        debug_assert!(!self.open.contains_key(&question), "it is timed by one of the two");
        Self { open: open.into_iter().collect(), cleared_us: 0 }
    }

    fn begin(&mut self, question: Question, now_us: u64) {
        if self.open.len() >= OPEN_MAX && now_us >= self.cleared_us + OPEN_US_MAX {
            self.cleared_us = now_us;
            self.open.retain(|_, begun_us| *begun_us + OPEN_US_MAX > now_us);
        }
        // Who asks again has waited since the first time.
        if self.open.len() < OPEN_MAX {
            self.open.entry(question).or_insert(now_us);
        }
        debug_assert!(self.open.len() <= OPEN_MAX, "open questions are bounded");
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tyr_protocol::Abort;
    use tyr_protocol::commit::Outcomes;
    use tyr_protocol::message::ReadPart;
    use tyr_types::{ByteRange, Epoch, ErrorKind, Timestamp, Transaction};

    use super::*;

    const CLIENT: Address = Address::Client(7);

    fn submit(id: u128) -> Envelope {
        let transaction =
            Transaction { id: TransactionId(id), blobs: Vec::new(), reads: Vec::new() };
        let body = Body::Submit {
            transaction: transaction.into(),
            ends: Default::default(),
            begun_us: 0,
            is_retry: false,
            settled: 0,
        };
        Envelope { epoch: Epoch(1), incarnation: 0, from: CLIENT, body }
    }

    fn reply(id: u128, decision: Decision) -> Body {
        let (outcomes, clock) = (Outcomes::new(), Timestamp::ZERO);
        Body::Reply { id: TransactionId(id), decision, outcomes, clock }
    }

    #[test]
    fn a_transaction_is_timed_from_the_first_time_it_was_asked() {
        let (mut watch, answers) = (Stopwatch::default(), Answers::default());
        watch.asked(&submit(1), 1_000);
        watch.asked(&submit(1), 2_000);
        let committed = Decision::Commit(Timestamp::ZERO);
        watch.answered(CLIENT, &reply(1, committed.clone()), &answers, 3_000);
        watch.answered(Address::Node(tyr_types::NodeId(1)), &reply(1, committed), &answers, 9_000);
        let abort = Abort::new(ErrorKind::Conflict, "x");
        watch.answered(CLIENT, &reply(2, Decision::Abort(abort)), &answers, 3_000);
        let read = answers.statistics();
        assert_eq!((read.commits, read.commit_times.count()), (1, 1));
        assert_eq!(read.commit_times.sum_us, 2_000);
        assert_eq!(read.aborts[&"Conflict"], 1);
        assert!(watch.open.is_empty());
    }

    #[test]
    fn an_answer_to_a_question_that_is_not_known_is_counted_and_not_timed() {
        let (mut watch, answers) = (Stopwatch::default(), Answers::default());
        let part = ReadPart {
            read: 3,
            range: ByteRange { start: 0, end: 5 },
            at: None,
            version: Timestamp::ZERO,
            bytes: Bytes::from_static(b"hello"),
            size: None,
            clock: Timestamp::ZERO,
        };
        watch.answered(CLIENT, &Body::Part(part), &answers, 10);
        let read = answers.statistics();
        assert_eq!((read.reads, read.read_bytes, read.read_times.count()), (1, 5, 0));
    }

    #[test]
    fn there_are_only_so_many_open_questions_and_old_ones_make_room() {
        let mut watch = Stopwatch::default();
        (0..OPEN_MAX as u128 + 10).for_each(|id| watch.asked(&submit(id), OPEN_US_MAX));
        assert_eq!(watch.open.len(), OPEN_MAX);
        watch.asked(&submit(u128::MAX), 3 * OPEN_US_MAX);
        assert_eq!(watch.open.len(), 1);
    }
}
