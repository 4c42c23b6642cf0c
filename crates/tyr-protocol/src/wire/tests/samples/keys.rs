//! What is said of leases, watches and notices.

use super::*;

pub(super) fn watch_messages() -> [(&'static str, key_watch::Message); 7] {
    use key_watch::Message::{Ask, Changed, End, Heard, Renew, Renewed, Watching};
    let (watch, told) = (300, 2);
    let prefix = Bytes::from_static(b"a/");
    let target = WatchTarget { keyspace: KeyspaceId(1), prefix, is_exact: false };
    let keys = vec![Key::new("a/b").unwrap(), Key::new("a/c").unwrap()];
    let changes = Changes { at: at(25), keys, is_more: true };
    [
        ("watch-ask", Ask { watch, target }),
        ("watch-renew", Renew { watches: vec![(300, 2), (7, 0)] }),
        ("watch-heard", Heard { watch, told }),
        ("watch-end", End { watch }),
        ("watch-watching", Watching { watch }),
        ("watch-changed", Changed { watch, told, changes }),
        ("watch-renewed", Renewed { unknown: vec![300] }),
    ]
}

pub(super) fn notice_messages() -> [(&'static str, key_watch::Message); 4] {
    use key_watch::Message::{Acknowledge, Notice, Notified, Notify};
    let (number, watch, timeout_us) = (300, 7, 2_000_000);
    let id = NoticeId { client: 1 << 40, number };
    let [payload, reply] = [&b"flush"[..], b"ok"].map(Bytes::from_static);
    let notice = tyr_types::Notice { id, key: Key::new("a/b").unwrap(), payload: payload.clone() };
    let notified = tyr_types::Notified {
        acknowledged: vec![(Watcher { client: 300, watch }, reply.clone())],
        missed: vec![Watcher { client: 2, watch: 1 }],
    };
    [
        ("watch-notify", Notify { number, blob: blob("a/b"), payload, timeout_us }),
        ("watch-notice", Notice { watch, notice }),
        ("watch-acknowledge", Acknowledge { watch, id, reply }),
        ("watch-notified", Notified { number, notified }),
    ]
}

pub(super) fn lease_messages() -> [(&'static str, key_lease::Message); 8] {
    use key_lease::Message::{Ask, AskGroup, GiveBack, Granted, Recall, Renew, Renewed, Waits};
    let (lease, mode, wish) = (7, LeaseMode::Exclusive, Wish::Wait);
    let (duration_us, sent_us) = (10_000_000, 300);
    [
        ("lease-ask", Ask { lease, blob: blob("a"), mode, duration_us, sent_us, wish }),
        ("lease-renew", Renew { sent_us, leases: vec![7, 300] }),
        ("lease-give-back", GiveBack { lease }),
        ("lease-granted", Granted { lease, sent_us }),
        ("lease-waits", Waits { lease }),
        ("lease-renewed", Renewed { sent_us, held: vec![7], unknown: vec![300] }),
        ("lease-recall", Recall { lease }),
        (
            "lease-ask-group",
            AskGroup { lease, group: blob("a/"), mode, duration_us, sent_us, wish },
        ),
    ]
}
