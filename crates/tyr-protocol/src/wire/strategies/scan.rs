//! Any question for a page of blobs, and any page.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tyr_types::{KeyspaceId, ScanEntry, ScanPage, Stat};

use super::words::{byte_range, bytes, key, number_u64, timestamp};
use crate::message::{Body, ScanRequest};

/// Either.
pub fn message() -> BoxedStrategy<Body> {
    prop_oneof![asked(), answered()].boxed()
}

/// A question.
pub fn asked() -> BoxedStrategy<Body> {
    let keyspace = (1..4_u32).prop_map(KeyspaceId);
    let keys = (bytes(), bytes(), option::of(bytes()));
    let what = (any::<u32>(), option::of(bytes()), option::of(byte_range()), any::<bool>());
    (number_u64(), keyspace, keys, what, option::of(timestamp()))
        .prop_map(|(number, keyspace, (prefix, start, end), what, at)| {
            let (limit, delimiter, range, is_keys_only) = what;
            Body::Scan(Arc::new(ScanRequest {
                number,
                keyspace,
                prefix,
                start,
                end,
                limit,
                delimiter,
                range,
                is_keys_only,
                at,
            }))
        })
        .boxed()
}

/// A page.
pub fn answered() -> BoxedStrategy<Body> {
    let stat = (number_u64(), timestamp()).prop_map(|(size, version)| Stat { size, version });
    let entry = (key(), option::of(stat), bytes()).prop_map(|(key, stat, bytes)| ScanEntry {
        key,
        stat,
        bytes,
    });
    (number_u64(), vec(entry, 0..3), vec(bytes(), 0..3), option::of(bytes()))
        .prop_map(|(number, entries, groups, resume)| Body::Scanned {
            number,
            page: ScanPage { entries, groups, resume },
        })
        .boxed()
}
