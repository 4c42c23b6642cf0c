//! Frames, hellos and questions by themselves.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::io::AsyncReadExt;
use tyr_protocol::map::{Change, Domain, Newcomer, Share};
use tyr_types::{
    Durability, ErrorKind, KeptName, KeyspaceConfig, KeyspaceId, KeyspaceName, NodeId,
};

use super::connection::{CallError, Connection};
use super::frame::{self, FRAME_LEN_MAX};
use super::hello::{HELLO_LEN_MAX, Hello, LEVEL, LEVEL_FIRST, MAGIC, Sender, VERSION, Welcome};
use super::message::{Answer, Ask, Fault, Question, Reply, Request};
use super::proposal::Proposal;

fn question(request: Request) -> Question {
    Question { actor: None, is_handed_on: false, patience_ms: 0, request }
}

async fn read(bytes: &[u8]) -> io::Result<Ask> {
    frame::receive(&mut &bytes[..], FRAME_LEN_MAX).await
}

fn hello() -> Hello {
    Hello { cluster: None, sender: Sender::Node(1), token: String::new() }
}

#[tokio::test]
async fn a_frame_with_any_byte_flipped_or_cut_off_is_refused() {
    let ask = Ask::Question { number: 7, question: question(Request::Status) };
    let frame = frame::encode(&ask).unwrap();
    assert!(read(&frame).await.is_ok());
    for at in 0..frame.len() {
        assert!(read(&frame[..at]).await.is_err(), "cut at {at}");
        let mut flipped = frame.clone();
        flipped[at] ^= 1;
        assert!(read(&flipped).await.is_err(), "flipped at {at}");
    }
}

#[tokio::test]
async fn a_length_that_lies_is_refused_before_anything_is_read() {
    let mut bytes = u32::MAX.to_le_bytes().to_vec();
    bytes.extend([0; 4]);
    assert_eq!(read(&bytes).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    let long = vec![0_u8; FRAME_LEN_MAX + 1];
    assert_eq!(frame::encode(&long).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_an_error(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
        bytes.extend(crc32c::crc32c(&body).to_le_bytes());
        bytes.extend(body);
        runtime.block_on(async {
            _ = read(&bytes).await;
            _ = frame::receive::<Reply>(&mut &bytes[..], FRAME_LEN_MAX).await;
            _ = frame::receive::<Hello>(&mut &bytes[..], HELLO_LEN_MAX).await;
        });
    }
}

#[test]
fn what_is_proposed_arrives_as_it_was() {
    let share = Share { weight: 50, domain: Some(Domain(3)) };
    let name = KeyspaceName::new("k").unwrap();
    let config = KeyspaceConfig::default().explicit();
    for change in [
        Change::Join(vec![Newcomer { node: NodeId(4), incarnation: 9, share, level: 3 }]),
        Change::Drain(NodeId(1)),
        Change::Remove(NodeId(1)),
        Change::SetWeight { node: NodeId(1), weight: 7 },
        Change::CancelMove,
        Change::Down(NodeId(2)),
        Change::CreateKeyspace { name, config, seed: 5 },
        Change::DropKeyspace(KeyspaceId(3)),
        Change::ForgetKeyspace(KeyspaceId(3)),
        Change::Keep { name: KeptName::new("monday").unwrap(), day_us: 1 << 50 },
        Change::DropKept(KeptName::new("monday").unwrap()),
    ] {
        let proposal = Proposal::try_from(change.clone()).unwrap();
        let frame = frame::encode(&proposal).unwrap();
        let proposal: Proposal = postcard::from_bytes(&frame[8..]).unwrap();
        assert_eq!(Change::try_from(proposal).unwrap(), change);
    }
    let own = Change::Return { node: NodeId(1), incarnation: 2, has_disk: true, level: 1 };
    assert_eq!(Proposal::try_from(own).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_keyspace_in_memory_is_refused_in_words_and_one_that_asks_for_less_than_sync_is_not() {
    let proposed = |durability| {
        let config = KeyspaceConfig { durability, ..KeyspaceConfig::default() }.explicit();
        let name = KeyspaceName::new("k").unwrap();
        Change::try_from(Proposal::try_from(Change::CreateKeyspace { name, config, seed: 5 })?)
    };
    for taken in [Durability::Sync, Durability::Buffered] {
        assert!(proposed(taken).is_ok());
    }
    let refused = proposed(Durability::Memory).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.message().contains("syncs every commit"), "{refused}");
}

/// The other end of a connection, which has said its welcome.
async fn welcomed() -> (Arc<Connection>, tokio::io::DuplexStream) {
    welcomed_by(Welcome { cluster: Some(5), refusal: None, level: LEVEL }).await
}

/// The same with this welcome.
async fn welcomed_by(
    welcome: impl serde::Serialize + Send + Sync + 'static,
) -> (Arc<Connection>, tokio::io::DuplexStream) {
    let (near, mut far) = tokio::io::duplex(1 << 16);
    let serving = tokio::spawn(async move {
        let mut begun = [0; 12];
        far.read_exact(&mut begun).await.unwrap();
        assert_eq!((&begun[..8], &begun[8..]), (&MAGIC[..], &VERSION.to_le_bytes()[..]));
        let heard: Hello = frame::receive(&mut far, HELLO_LEN_MAX).await.unwrap();
        assert_eq!(heard, hello());
        frame::send(&mut far, &welcome).await.unwrap();
        far
    });
    let connection = Connection::open(Box::new(near), &hello()).await.unwrap();
    assert_eq!(connection.cluster(), Some(5));
    (Arc::new(connection), serving.await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn answers_find_their_questions_in_any_order() {
    let (connection, mut far) = welcomed().await;
    let call = |connection: Arc<Connection>| {
        tokio::spawn(async move { connection.call(question(Request::Leader)).await })
    };
    let (first, second) = (call(Arc::clone(&connection)), call(connection));
    for _ in 0..2 {
        let Ask::Question { .. } = frame::receive(&mut far, FRAME_LEN_MAX).await.unwrap() else {
            panic!("nothing was cancelled")
        };
    }
    for number in [1, 0, 0, 17] {
        let result = Ok(Answer::Leader(Some(number as u16)));
        frame::send(&mut far, &Reply { number, result }).await.unwrap();
    }
    assert_eq!(first.await.unwrap().unwrap(), Answer::Leader(Some(0)));
    assert_eq!(second.await.unwrap().unwrap(), Answer::Leader(Some(1)));
}

/// An unknown question would end the connection at the other end, with all that waits on it.
#[tokio::test(start_paused = true)]
async fn who_says_nothing_of_a_level_is_not_asked_what_came_later_and_stays_connected() {
    let before = (Some(5_u128), None::<crate::refusal::Refusal>);
    let (connection, mut far) = welcomed_by(before).await;
    assert!(!connection.understands(&Request::Report));
    assert!(matches!(connection.call(question(Request::Report)).await, Err(CallError::NotSent(_))));
    let open = Arc::clone(&connection);
    let call = tokio::spawn(async move { open.call(question(Request::Leader)).await });
    let Ask::Question { number, question } = frame::receive(&mut far, FRAME_LEN_MAX).await.unwrap()
    else {
        panic!("nothing was cancelled")
    };
    assert_eq!((number, question.request.level()), (0, LEVEL_FIRST), "it is the first that came");
    let result = Ok(Answer::Leader(None));
    frame::send(&mut far, &Reply { number, result }).await.unwrap();
    assert_eq!(call.await.unwrap().unwrap(), Answer::Leader(None));
    let (connection, _far) = welcomed().await;
    assert!(connection.understands(&Request::Report));
}

/// Programs that know of no level read a welcome that tells one.
#[test]
fn a_welcome_with_a_level_is_read_by_programs_of_before() {
    let welcome = Welcome { cluster: Some(5), refusal: None, level: LEVEL };
    let bytes = postcard::to_stdvec(&welcome).unwrap();
    let read: (Option<u128>, Option<crate::refusal::Refusal>) =
        postcard::from_bytes(&bytes).unwrap();
    assert_eq!(read, (Some(5), None));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_waits_for_is_cancelled() {
    let (connection, mut far) = welcomed().await;
    let call = connection.call(question(Request::Leader));
    assert!(tokio::time::timeout(Duration::from_secs(3), call).await.is_err());
    assert!(connection.is_silent_for(Duration::from_secs(2)));
    let asked: Ask = frame::receive(&mut far, FRAME_LEN_MAX).await.unwrap();
    assert!(matches!(asked, Ask::Question { number: 0, .. }));
    let cancelled: Ask = frame::receive(&mut far, FRAME_LEN_MAX).await.unwrap();
    assert!(matches!(cancelled, Ask::Cancel { number: 0 }));
    let reply = Reply { number: 0, result: Err(Fault::NotLeader) };
    frame::send(&mut far, &reply).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(!connection.is_silent_for(Duration::from_secs(2)), "it is heard again");
}

#[tokio::test(start_paused = true)]
async fn who_waits_when_the_connection_breaks_is_told_and_who_asks_later_too() {
    let (connection, mut far) = welcomed().await;
    let waiting = Arc::clone(&connection);
    let call = tokio::spawn(async move { waiting.call(question(Request::Leader)).await });
    let _: Ask = frame::receive(&mut far, FRAME_LEN_MAX).await.unwrap();
    drop(far);
    assert!(matches!(call.await.unwrap(), Err(CallError::Lost(_))));
    let later = connection.call(question(Request::Leader)).await;
    assert!(matches!(later, Err(CallError::NotSent(_))));
    assert!(connection.is_closed());
}
