//! Any content of a frame is a message or an error; a message is written as the bytes it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tyr_fuzz::{assert_settled, sealed};
use tyr_protocol::wire::{Frame, Outgoing, decode, encode};
use tyr_types::Error;

fuzz_target!(|content: &[u8]| {
    assert_settled(&sealed(content), |frame| {
        let Frame::Message(envelope) = decode(frame)? else {
            return Err(Error::corrupt("it is of a later release"));
        };
        let mut outgoing = Outgoing::new();
        encode(&envelope, &mut outgoing)?;
        Ok(outgoing.take_bytes())
    });
});
