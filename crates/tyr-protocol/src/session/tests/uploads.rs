//! Pieces that are uploaded ahead of their transaction: to whom, and how often (U1, U2).

use tyr_types::{PieceId, PieceRef, Timestamp};

use super::*;
use crate::level::{LEVEL_COPYING, LEVEL_LEASING, LEVEL_LISTING};
use crate::upload::{Message, PieceSource, sum_of};

impl Client {
    fn stage(&mut self, bytes: &'static [u8]) -> CallId {
        let bytes = Bytes::from_static(bytes);
        self.call(Call::Stage { blob: blob("a"), chunk: 1, bytes })
    }

    /// What was said of pieces since the last look; everything else sent is forgotten.
    fn uploads(&mut self) -> Vec<(NodeId, Message)> {
        let of_piece = |(to, body)| match body {
            Body::Upload(message) => Some((to, message)),
            _ => None,
        };
        std::mem::take(&mut self.sent).into_iter().filter_map(of_piece).collect()
    }

    /// The piece that was just sent: to whom, under which number, and its name.
    fn staged(&mut self) -> (NodeId, u64, PieceRef) {
        match &self.uploads()[..] {
            [(to, Message::Stage { number, staged, bytes })] => {
                assert_eq!((staged.chunk, staged.piece.len), (1, bytes.len() as u32));
                assert_eq!(staged.piece.sum, sum_of(bytes));
                (*to, *number, staged.piece)
            }
            other => panic!("one piece is sent, not {other:?}"),
        }
    }
}

#[test]
fn a_piece_goes_once_to_one_that_holds_its_chunk_and_is_named_by_the_answer() {
    let mut client = Client::new();
    client.stage(b"abc");
    let (to, number, piece) = client.staged();
    assert!(client.replicas("a", 1).contains(&to));
    client.receive(to, Body::Upload(Message::Staged { number: number + 1 }));
    assert!(client.done.is_empty(), "that is of another");
    client.receive(to, Body::Upload(Message::Staged { number }));
    assert_eq!(client.answer(), Answer::Staged(piece));
    assert!(client.session.due_us().is_none(), "nothing is left of it");
}

#[test]
fn the_same_piece_goes_to_another_when_one_is_silent_or_not_ready() {
    let mut client = Client::new();
    client.stage(b"abc");
    let (first, number, piece) = client.staged();
    client.pass(1_300_000);
    let (second, again, same) = client.staged();
    assert_ne!(first, second);
    assert_eq!((number, piece), (again, same));
    client.receive(second, Body::NotHere(Asked::Read(number)));
    client.pass(60_000);
    let (third, ..) = client.staged();
    assert!(![first, second].contains(&third));
    let abort = Abort::new(ErrorKind::QuotaExceeded, "full");
    client.receive(third, Body::Refused { read: number, abort: abort.clone() });
    assert_eq!(client.answer(), Answer::Failed(abort));
}

#[test]
fn what_is_not_wanted_any_more_is_dropped() {
    let mut client = Client::new();
    let call = client.stage(b"abc");
    let (_, _, piece) = client.staged();
    client.step(Event::Cancel { call });
    let [(_, Message::Drop { chunk: 1, ids, .. })] = &client.uploads()[..] else {
        panic!("it is dropped")
    };
    assert_eq!(ids[..], [piece.id]);
}

#[test]
fn in_a_cluster_of_before_it_is_refused_with_who_is_to_be_upgraded() {
    let config = KeyspaceConfig { chunk_size: CHUNK, ..Default::default() };
    let map = ClusterMap::of(5, &[config]).speaking(LEVEL_LEASING);
    let mut client = Client::with(map, SessionConfig::default());
    client.stage(b"abc");
    let Answer::Failed(abort) = client.answer() else { panic!("nobody would read it") };
    assert!(abort.reason.contains("feature level 10"), "{}", abort.reason);
    assert!(client.uploads().is_empty());
}

fn source() -> PieceSource {
    let range = ByteRange { start: 5, end: 8 };
    PieceSource { blob: blob("b"), range, at: Timestamp::ZERO }
}

/// U5.
#[test]
fn a_piece_that_nodes_fill_is_named_by_its_client_and_told_by_the_answer() {
    let mut client = Client::new();
    client.call(Call::Copy { blob: blob("a"), chunk: 1, source: source() });
    let [(to, Message::Copy { number, id, chunk: 1, source: said, .. })] = &client.uploads()[..]
    else {
        panic!("it is asked for")
    };
    assert_eq!(*said, source());
    let piece = PieceRef { id: *id, len: 3, sum: 7 };
    for other in [
        Message::Staged { number: *number },
        Message::Copied { number: *number, piece: PieceRef { len: 4, ..piece } },
        Message::Copied { number: *number, piece: PieceRef { id: PieceId(3), ..piece } },
    ] {
        client.receive(*to, Body::Upload(other));
        assert!(client.done.is_empty(), "that is another");
    }
    client.receive(*to, Body::Upload(Message::Copied { number: *number, piece }));
    assert_eq!(client.answer(), Answer::Staged(piece));
    assert!(client.session.due_us().is_none(), "nothing is left of it");
}

#[test]
fn nodes_of_before_are_not_asked_to_fill_a_piece() {
    let config = KeyspaceConfig { chunk_size: CHUNK, ..Default::default() };
    let map = ClusterMap::of(5, &[config]).speaking(LEVEL_LISTING);
    let mut client = Client::with(map, SessionConfig::default());
    client.call(Call::Copy { blob: blob("a"), chunk: 1, source: source() });
    let Answer::Failed(abort) = client.answer() else { panic!("nobody would read it") };
    assert!(abort.reason.contains(&format!("feature level {LEVEL_COPYING}")), "{}", abort.reason);
    assert!(client.uploads().is_empty());
}
