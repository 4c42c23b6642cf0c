//! Notices: where they go, how often they are heard, and what comes of them (K6).

use super::*;
use crate::key_watch::Message;
use crate::level::LEVEL_WATCHING;
use crate::map::Change;
use tyr_types::{Key, Notice, NoticeId, Notified, WatchTarget, Watcher};

const SECOND_US: u64 = 1_000_000;

/// What another client says.
fn notice(number: u64) -> Notice {
    let id = NoticeId { client: 5, number };
    Notice { id, key: Key::new("a").unwrap(), payload: Bytes::from_static(b"word") }
}

fn notified() -> Notified {
    Notified { acknowledged: vec![], missed: vec![Watcher { client: 3, watch: 1 }] }
}

impl Client {
    fn notify(&mut self, timeout_us: u64) {
        let payload = Bytes::from_static(b"word");
        self.call(Call::Notify(NotifyCall { blob: blob("a"), payload, timeout_us }));
    }

    /// Who was sent the notice since the last look, and its number.
    fn notices_sent(&mut self) -> Vec<(NodeId, u64)> {
        let of_notice = |(to, body)| match body {
            Body::KeyWatch(Message::Notify { number, blob: it, payload, timeout_us }) => {
                assert_eq!((it, &payload[..], timeout_us), (blob("a"), &b"word"[..], SECOND_US));
                Some((to, number))
            }
            _ => None,
        };
        std::mem::take(&mut self.sent).into_iter().filter_map(of_notice).collect()
    }

    /// A watch of "a", of which this node tells.
    fn watching(&mut self, by: NodeId) -> u64 {
        let target = WatchTarget::key(blob("a").keyspace, &blob("a").key);
        self.call(Call::Watch { target });
        let Answer::Watching { watch } = self.answer() else { panic!("it is watched") };
        self.receive(by, Body::KeyWatch(Message::Watching { watch }));
        self.watched.clear();
        self.sent.clear();
        watch
    }

    fn hear_notice_of(&mut self, from: NodeId, watch: u64, notice: Notice) {
        self.receive(from, Body::KeyWatch(Message::Notice { watch, notice }));
    }

    fn acknowledged(&mut self) -> Vec<(NodeId, Body)> {
        std::mem::take(&mut self.sent)
    }
}

/// K6: a lost question is asked again, and so is who has become the authority.
#[test]
fn a_notice_goes_to_the_authority_until_it_is_answered() {
    let mut client = Client::new();
    client.notify(SECOND_US);
    let [(to, number)] = client.notices_sent()[..] else { panic!("one is asked") };
    assert_eq!(to, client.replicas("a", 0)[0]);
    client.pass(SECOND_US);
    assert_eq!(client.notices_sent(), [(to, number)], "the same again");
    let map = client.session.map.changed(&Change::Down(to)).unwrap();
    client.receive(NodeId(9), Body::NewerMap(Arc::new(map)));
    let second = client.replicas("a", 0)[0];
    assert_ne!(second, to);
    assert_eq!(client.notices_sent(), [(second, number)]);
    client.receive(second, Body::NotHere(Asked::Read(number)));
    client.pass(SECOND_US / 10);
    assert_eq!(client.notices_sent(), [(second, number)]);
    for _ in 0..2 {
        let message = Message::Notified { number, notified: notified() };
        client.receive(second, Body::KeyWatch(message));
    }
    assert_eq!(client.answer(), Answer::Notified(notified()));
    client.pass(100 * SECOND_US);
    assert_eq!(client.notices_sent(), []);
}

#[test]
fn a_notice_that_nobody_answers_is_unavailable_when_its_time_is_over() {
    let mut client = Client::new();
    client.notify(SECOND_US);
    client.pass(SECOND_US + client.session.config.deadline_us - 1);
    assert_eq!(client.done, []);
    client.pass(1);
    assert_eq!(client.refusal().kind, ErrorKind::Unavailable);
}

#[test]
fn a_notice_is_refused_that_is_out_of_bounds_or_of_a_later_level_or_not_permitted() {
    let mut client = Client::new();
    client.notify(100 * SECOND_US);
    assert_eq!(client.refusal().kind, ErrorKind::InvalidArgument);
    client.notify(SECOND_US);
    let [(to, number)] = client.notices_sent()[..] else { panic!("one is asked") };
    let abort = Abort::new(ErrorKind::PermissionDenied, "you may not write it");
    client.receive(to, Body::Refused { read: number, abort: abort.clone() });
    assert_eq!(client.refusal(), abort);
    let older = later(&map(), 1).speaking(LEVEL_WATCHING);
    client.receive(NodeId(1), Body::NewerMap(Arc::new(older)));
    client.notify(SECOND_US);
    let reason = client.refusal().reason;
    assert!(reason.contains("feature level 17"), "{reason}");
}

/// K6: the node repeats what is not acknowledged, and so does the next authority.
#[test]
fn a_watch_hears_a_notice_once_and_acknowledges_it_as_often_as_it_is_asked() {
    let mut client = Client::new();
    let by = client.replicas("a", 0)[0];
    let watch = client.watching(by);
    for _ in 0..2 {
        client.hear_notice_of(by, watch, notice(1));
    }
    assert_eq!(client.watched, [(watch, WatchNews::Notice(notice(1)))]);
    assert_eq!(client.acknowledged(), [], "its user has not");
    let (id, reply) = (notice(1).id, Bytes::from_static(b"done"));
    let message = Message::Acknowledge { watch, id, reply: reply.clone() };
    client.call(Call::Acknowledge { watch, id, reply });
    assert_eq!(client.answer(), Answer::Ended);
    assert_eq!(client.acknowledged(), [(by, Body::KeyWatch(message.clone()))]);
    client.call(Call::Acknowledge { watch, id, reply: Bytes::from_static(b"again") });
    client.answer();
    assert_eq!(client.acknowledged(), [(by, Body::KeyWatch(message.clone()))], "the first counts");
    let next = client.replicas("a", 0)[1];
    client.hear_notice_of(next, watch, notice(1));
    assert_eq!(client.acknowledged(), [(next, Body::KeyWatch(message))]);
    assert_eq!(client.watched.len(), 1);
    let id = notice(2).id;
    client.call(Call::Acknowledge { watch, id, reply: Bytes::new() });
    assert_eq!(client.acknowledged(), [], "nobody has heard that");
    client.hear_notice_of(by, watch + 1, notice(1));
    let end = Message::End { watch: watch + 1 };
    assert_eq!(client.acknowledged(), [(by, Body::KeyWatch(end))], "that is watched no more");
}

#[test]
fn notices_that_were_heard_are_bounded() {
    let mut client = Client::new();
    let by = client.replicas("a", 0)[0];
    let watch = client.watching(by);
    for number in 0..3_000 {
        client.hear_notice_of(by, watch, notice(number));
    }
    assert_eq!(client.watched.len(), 3_000);
    client.hear_notice_of(by, watch, notice(2_999));
    assert_eq!(client.watched.len(), 3_000);
    client.hear_notice_of(by, watch, notice(0));
    assert_eq!(client.watched.len(), 3_001, "that was forgotten: it is heard twice");
}
