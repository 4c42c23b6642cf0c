//! Any message about a watch of keys.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use tyr_types::{Bytes, Changes, KeyspaceId, Notice, NoticeId, Notified, WatchTarget, Watcher};

use super::words::{blob_name, key, number_u32, number_u64, timestamp};
use crate::key_watch::Message;

/// One of them.
pub fn message() -> BoxedStrategy<Message> {
    let target = (number_u32(), vec(any::<u8>(), 0..6), any::<bool>()).prop_map(
        |(keyspace, prefix, is_exact)| WatchTarget {
            keyspace: KeyspaceId(keyspace),
            prefix: Bytes::from(prefix),
            is_exact,
        },
    );
    let changes = (timestamp(), btree_set(key(), 0..4), any::<bool>())
        .prop_map(|(at, keys, is_more)| Changes { at, keys: keys.into_iter().collect(), is_more });
    prop_oneof![
        (number_u64(), target).prop_map(|(watch, target)| Message::Ask { watch, target }),
        vec((number_u64(), number_u64()), 0..4).prop_map(|watches| Message::Renew { watches }),
        (number_u64(), number_u64()).prop_map(|(watch, told)| Message::Heard { watch, told }),
        number_u64().prop_map(|watch| Message::End { watch }),
        number_u64().prop_map(|watch| Message::Watching { watch }),
        (number_u64(), number_u64(), changes).prop_map(|(watch, told, changes)| Message::Changed {
            watch,
            told,
            changes
        }),
        vec(number_u64(), 0..4).prop_map(|unknown| Message::Renewed { unknown }),
        notice(),
    ]
    .boxed()
}

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..6).prop_map(Bytes::from)
}

fn id() -> impl Strategy<Value = NoticeId> {
    (number_u64(), number_u64()).prop_map(|(client, number)| NoticeId { client, number })
}

fn watcher() -> impl Strategy<Value = Watcher> {
    (number_u64(), number_u64()).prop_map(|(client, watch)| Watcher { client, watch })
}

fn notice() -> impl Strategy<Value = Message> {
    let notified = (vec((watcher(), bytes()), 0..4), vec(watcher(), 0..4))
        .prop_map(|(acknowledged, missed)| Notified { acknowledged, missed });
    prop_oneof![
        (number_u64(), blob_name(), bytes(), number_u64()).prop_map(
            |(number, blob, payload, timeout_us)| Message::Notify {
                number,
                blob,
                payload,
                timeout_us
            }
        ),
        (number_u64(), id(), key(), bytes()).prop_map(|(watch, id, key, payload)| {
            Message::Notice { watch, notice: Notice { id, key, payload } }
        }),
        (number_u64(), id(), bytes()).prop_map(|(watch, id, reply)| Message::Acknowledge {
            watch,
            id,
            reply
        }),
        (number_u64(), notified)
            .prop_map(|(number, notified)| Message::Notified { number, notified }),
    ]
}
