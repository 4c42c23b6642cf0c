//! Any bytes in a log are a record or an error; a record is written as the bytes it was.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use tyr_fuzz::assert_settled;
use tyr_protocol::wire::{Outgoing, decode_record, encode_record};

fuzz_target!(|bytes: &[u8]| {
    assert_settled(&Bytes::copy_from_slice(bytes), |bytes| {
        let record = decode_record(bytes)?;
        let mut outgoing = Outgoing::new();
        encode_record(&record, &mut outgoing);
        Ok(outgoing.take_bytes())
    });
});
