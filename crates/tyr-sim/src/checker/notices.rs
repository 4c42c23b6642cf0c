//! Notices: who watches gets them, and who acknowledged is told (K6).

use super::history::{History, Noticed, WatchedSince};

/// Checks each notice that was answered: that who watched from before it until after its answer is
/// named, once, and who is said to have acknowledged it had got it.
///
/// # Errors
/// One of whom that is not so.
pub fn notices_reach_who_watches(history: &History) -> Result<(), String> {
    for noticed in &history.notices {
        let (Some(notified), Some(end_us)) = (&noticed.notified, noticed.end_us) else { continue };
        let named = |watch: &WatchedSince| {
            let is_it = |it: &tyr_types::Watcher| *it == watch.watcher;
            let acknowledged = notified.acknowledged.iter().filter(|(it, _)| is_it(it)).count();
            acknowledged + notified.missed.iter().filter(|it| is_it(it)).count()
        };
        for watch in &history.watches {
            let is_there = watch.from_us < noticed.start_us && end_us < watch.until_us;
            let times = named(watch);
            if times > 1 || (is_there && watch.covers(&noticed.blob) && times == 0) {
                return Err(format!(
                    "{} names client {} {times} times, which watched from {} us on",
                    text(noticed, end_us),
                    watch.client,
                    watch.from_us
                ));
            }
        }
        for (watcher, reply) in &notified.acknowledged {
            let mut heard = history.heard.iter().filter(|it| it.watcher == *watcher);
            if !heard
                .any(|it| it.at_us <= end_us && it.payload == *reply && *reply == noticed.payload)
            {
                let text = text(noticed, end_us);
                return Err(format!(
                    "{text} was acknowledged by {watcher:?}, which had not got it"
                ));
            }
        }
    }
    Ok(())
}

fn text(noticed: &Noticed, end_us: u64) -> String {
    let Noticed { client, blob, start_us, .. } = noticed;
    format!("a notice of client {client} to \"{}\" ({start_us}..{end_us} us)", blob.key)
}

#[cfg(test)]
mod tests {
    use tyr_types::{BlobName, Bytes, Key, KeyspaceId, Notified, WatchTarget, Watcher};

    use super::super::history::HeardNotice;
    use super::*;

    const WATCHER: Watcher = Watcher { client: 2, watch: 7 };

    /// A client watches from 10 to 90; a notice is sent at 20 and answered so at 30; it was got at
    /// this time.
    fn found(notified: Notified, got_us: Option<u64>) -> String {
        let payload = Bytes::from_static(b"1");
        let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("a").unwrap() };
        let target = WatchTarget::key(blob.keyspace, &blob.key);
        let (client, from_us, until_us) = (1, 10, 90);
        let watches = vec![WatchedSince { client, watcher: WATCHER, target, from_us, until_us }];
        let mut history = History { watches, ..History::default() };
        let (start_us, end_us) = (20, Some(30));
        let notified = Some(notified);
        let heard = |at_us| HeardNotice { watcher: WATCHER, payload: payload.clone(), at_us };
        history.heard = got_us.map(heard).into_iter().collect();
        let noticed = Noticed { client: 0, blob, payload, start_us, end_us, notified };
        history.notices = vec![noticed];
        notices_reach_who_watches(&history).err().unwrap_or_default()
    }

    fn acknowledged() -> Notified {
        let acknowledged = vec![(WATCHER, Bytes::from_static(b"1"))];
        Notified { acknowledged, missed: vec![] }
    }

    #[test]
    fn who_watches_and_is_not_named_is_noticed_and_so_is_who_had_not_got_it() {
        assert_eq!(found(acknowledged(), Some(25)), "");
        assert_eq!(found(Notified { missed: vec![WATCHER], ..Notified::default() }, None), "");
        let text = found(Notified::default(), Some(25));
        assert!(text.contains("names client 1 0 times"), "{text}");
        let twice = Notified { missed: vec![WATCHER], ..acknowledged() };
        assert!(found(twice, Some(25)).contains("2 times"));
        for got_us in [None, Some(31)] {
            assert!(found(acknowledged(), got_us).contains("had not got it"));
        }
    }
}
