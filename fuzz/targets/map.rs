//! Any bytes are a cluster map that fits together or an error; a map is written as it was.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use tyr_fuzz::assert_settled;
use tyr_protocol::wire::{Outgoing, decode_map, encode_map};

fuzz_target!(|bytes: &[u8]| {
    assert_settled(&Bytes::copy_from_slice(bytes), |bytes| {
        let map = decode_map(bytes)?;
        let mut outgoing = Outgoing::new();
        encode_map(&map, &mut outgoing);
        Ok(outgoing.take_bytes())
    });
});
