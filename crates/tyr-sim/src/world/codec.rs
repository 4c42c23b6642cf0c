//! Messages as bytes and back: what a wire would carry is what arrives.

use tyr_protocol::message::Envelope;
use tyr_protocol::wire::{self, Frame};

/// The message as it comes out of the wire format again, at somebody who speaks this level: what is
/// only told may be left out for it.
///
/// # Panics
/// When it cannot be encoded or decoded, or is another message then; or when who gets it does not
/// speak the level that it needs.
pub fn carried(envelope: Envelope, level: u8) -> Envelope {
    let mut outgoing = wire::Outgoing::speaking(level);
    wire::encode(&envelope, &mut outgoing).expect("a message of a machine can be encoded");
    let frame = outgoing.take_bytes();
    let decoded = match wire::decode(&frame).expect("what was encoded can be decoded") {
        Frame::Message(decoded) => decoded,
        Frame::Unread(unread) => panic!("this program reads what it writes: {unread:?}"),
    };
    if level == wire::LEVEL {
        assert_eq!(decoded, envelope, "what was decoded is what was encoded");
        return decoded;
    }
    wire::encode(&decoded, &mut outgoing).expect("it was encoded before");
    assert_eq!(outgoing.take_bytes(), frame, "what was decoded is what was encoded");
    decoded
}
