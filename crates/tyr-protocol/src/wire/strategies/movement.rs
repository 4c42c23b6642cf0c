//! Any message of data movement.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::words::{number_u64, timestamp};
use super::{chunk_copy, chunk_name, remembered};
use crate::movement::{Message, Summary};

/// One of them.
pub fn movement_message() -> BoxedStrategy<Message> {
    prop_oneof![
        option::of(chunk_name()).prop_map(|after| Message::List { after }),
        (option::of(chunk_name()), vec(chunk_name(), 0..4), option::of(chunk_name()))
            .prop_map(|(after, chunks, next)| Message::Listed { after, chunks, next }),
        (number_u64(), chunk_name(), chunk_copy())
            .prop_map(|(read, chunk, copy)| Message::Copied { read, chunk, copy }),
        number_u64().prop_map(|after| Message::Recall { after }),
        (timestamp(), option::of(chunk_name()))
            .prop_map(|(since, after)| Message::ListSince { since, after }),
        (
            timestamp(),
            option::of(chunk_name()),
            vec((chunk_name(), timestamp()), 0..4),
            vec(chunk_name(), 0..4),
            option::of(chunk_name())
        )
            .prop_map(|(since, after, unchanged, changed, next)| {
                Message::ListedSince { since, after, unchanged, changed, next }
            }),
        (timestamp(), option::of(chunk_name()))
            .prop_map(|(since, after)| Message::Summarize { since, after }),
        (
            timestamp(),
            option::of(chunk_name()),
            (number_u64(), any::<u128>()),
            vec(chunk_name(), 0..4),
            option::of(chunk_name())
        )
            .prop_map(|(since, after, (chunks, sum), changed, next)| {
                let unchanged = Summary { chunks, sum };
                Message::Summarized { since, after, unchanged, changed, next }
            }),
        (number_u64(), vec(remembered(), 0..4), option::of(number_u64()))
            .prop_map(|(after, outcomes, next)| Message::Recalled { after, outcomes, next }),
    ]
    .boxed()
}
