//! Any question for a page of blobs, and any page.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tyr_types::{KeyspaceId, ScanEntry, ScanPage, Stat};

use super::words::{byte_range, bytes, key, number_u64, timestamp};
use crate::message::{Body, ListRequest, ListedBlob, ScanRequest};

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

/// A question for keys, as programs of before ask it, or its answer.
pub fn keys() -> BoxedStrategy<Body> {
    let answered = (number_u64(), vec(listed_blob(), 0..3), any::<bool>())
        .prop_map(|(number, keys, is_end)| Body::Keys { number, keys, is_end });
    prop_oneof![keys_asked(), answered].boxed()
}

fn keys_asked() -> BoxedStrategy<Body> {
    let keyspace = (1..4_u32).prop_map(KeyspaceId);
    let what = (keyspace, bytes(), option::of(bytes()), any::<u32>(), option::of(timestamp()));
    (number_u64(), what)
        .prop_map(|(number, (keyspace, prefix, after, limit, at))| {
            Body::ListKeys(ListRequest { number, keyspace, prefix, after, limit, at })
        })
        .boxed()
}

fn listed_blob() -> BoxedStrategy<ListedBlob> {
    (bytes(), number_u64(), timestamp())
        .prop_map(|(key, size, version)| ListedBlob { key, size, version })
        .boxed()
}
