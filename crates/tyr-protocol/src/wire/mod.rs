//! The wire: messages as bytes, and back.
//!
//! A connection begins with a [`Hello`] in each direction; then it is frames, one message each
//! ([`encode`], [`Decoder`], [`decode`]). What a node writes to its log, and the cluster map, are
//! written by the same means ([`encode_record`], [`encode_map`]).
//!
//! ```text
//!   Envelope ──encode──► Outgoing ═══ socket ═══► Decoder ──frame─► Envelope, or what is known
//!                                                                     of one that cannot be read
//! ```
//!
//! Decoding is total: any bytes give a value or an error that says what is wrong at which byte;
//! nothing panics, and memory is bounded by the bytes that came, times a small constant. A value
//! that a constructor would refuse is refused here. Payload bytes are copied at most once, large
//! ones never.
//!
//! The parts: [`encoded`] is how plain things are written, with two macros for all others;
//! [`input`] and [`output`] are the two ends; [`words`], [`pieces`], [`protocol`], [`map`] and
//! [`record`] say what each type looks like; [`frame`], [`head`] and [`hello`] are what is around.
//! [`crate::level`] says what came when. `docs/internals/wire.md` has the format byte for byte, and
//! how to change it.
//!
//! This module must not know what a message means, nor what a socket is.

mod encoded;
mod frame;
mod head;
mod hello;
mod input;
mod map;
mod output;
mod pieces;
mod protocol;
mod reads;
mod record;
mod words;

#[cfg(any(test, feature = "proptest"))]
pub mod strategies;
#[cfg(test)]
mod tests;

pub use self::frame::{
    Decoder, FRAME_LEN_MAX, Frame, READ_BUFFER_LEN, decode, decode_speaking, encode,
};
pub use self::hello::{Hello, MAGIC, REFUSAL_LEN_MAX, TOKEN_LEN_MAX, VERSION, refusal_bytes};
pub use self::map::{decode_map, encode_map};
pub use self::output::{Outgoing, SHARED_LEN_MIN};
pub use self::record::{decode_record, encode_record};
pub use crate::level::{
    LEVEL, LEVEL_ALONE, LEVEL_EXPECTING, LEVEL_FIRST, LEVEL_KNOWN, LEVEL_MIN, LEVEL_PLACED,
    level_of,
};
pub use crate::message::Unread;
