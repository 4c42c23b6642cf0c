//! Any content of a frame is a message or an error; a message is written as the bytes it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tyr_fuzz::{assert_settled, sealed};
use tyr_protocol::wire::{Outgoing, decode, encode};

fuzz_target!(|content: &[u8]| {
    assert_settled(&sealed(content), |frame| {
        let envelope = decode(frame)?;
        let mut outgoing = Outgoing::new();
        encode(&envelope, &mut outgoing)?;
        Ok(outgoing.take_bytes())
    });
});
