//! Messages as bytes and back: what a wire would carry is what arrives.

use tyr_protocol::message::Envelope;
use tyr_protocol::wire::{self, Frame};

/// The message as it comes out of the wire format again, at somebody who speaks this level.
///
/// # Panics
/// When it cannot be encoded or decoded, or is another message then; or when who gets it does not
/// speak the level that it needs.
pub fn carried(envelope: Envelope, level: u8) -> Envelope {
    let mut outgoing = wire::Outgoing::speaking(level);
    wire::encode(&envelope, &mut outgoing).expect("a message of a machine can be encoded");
    let decoded = wire::decode(&outgoing.take_bytes()).expect("what was encoded can be decoded");
    assert_eq!(decoded, Frame::Message(envelope.clone()), "what was decoded is what was encoded");
    envelope
}
