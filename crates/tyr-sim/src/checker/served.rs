//! The probe: after everything was mended, whatever is asked is served, and soon.

use tyr_protocol::map::ClusterMap;
use tyr_types::ErrorKind;

use super::history::{Attempted, Deed, Entry, Fate, Found};

/// Checks that each of these deeds ended within so many microseconds as it has to on a cluster that
/// is whole: nothing is refused, but in keyspaces that were dropped, where everything is.
///
/// # Errors
/// The first that did not.
pub fn probes_are_served(probes: &[Entry], within_us: u64, map: &ClusterMap) -> Result<(), String> {
    for entry in probes {
        let Some(end_us) = entry.end_us else {
            return Err(format!("not served when all was mended: {} never ended", entry.name()));
        };
        let lasted_us = end_us - entry.start_us;
        if lasted_us > within_us {
            return Err(format!(
                "not served in time when all was mended: {} took {lasted_us} us",
                entry.name()
            ));
        }
        if let Some(wrong) = wrong(entry, is_dropped(entry, map)) {
            return Err(format!("not served when all was mended: {} {wrong}", entry.name()));
        }
    }
    Ok(())
}

fn is_dropped(entry: &Entry, map: &ClusterMap) -> bool {
    let read = entry.seen().iter().map(|seen| seen.want.blob.keyspace);
    let written = match &entry.deed {
        Deed::Transaction(attempted) => attempted.blobs.as_slice(),
        Deed::Read(_) | Deed::Snapshot(_) | Deed::Moment(_) | Deed::ReadMany(_) => &[],
    };
    let mut keyspaces = read.chain(written.iter().map(|it| it.blob.keyspace));
    keyspaces.any(|keyspace| map.is_dropped(keyspace))
}

/// What is wrong with how it ended.
fn wrong(entry: &Entry, is_dropped: bool) -> Option<String> {
    let refused = entry.seen().iter().find_map(|seen| match &seen.found {
        Found::Refused(abort) => Some(abort),
        Found::Nothing | Found::Bytes { .. } | Found::Absent => None,
    });
    let abort = match &entry.deed {
        Deed::Transaction(Attempted { fate: Fate::Aborted(abort), .. }) => Some(abort),
        Deed::Transaction(Attempted { fate: Fate::Unknown, .. }) => {
            return Some("was not told its outcome".to_owned());
        }
        Deed::Transaction(_)
        | Deed::Read(_)
        | Deed::Snapshot(_)
        | Deed::Moment(_)
        | Deed::ReadMany(_) => refused,
    };
    match (abort, is_dropped) {
        (Some(abort), true) if abort.kind == ErrorKind::NotFound => None,
        (Some(abort), _) => {
            Some(format!("was refused as {} ({})", abort.kind.name(), abort.reason))
        }
        // What was read of a keyspace before it was dropped may be read on.
        (None, true) if matches!(entry.deed, Deed::Transaction(_)) => {
            Some("was done in a keyspace that was dropped".to_owned())
        }
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use tyr_protocol::Abort;
    use tyr_protocol::map::Change;
    use tyr_types::{BlobName, Key, KeyspaceConfig, KeyspaceId, Operation, Timestamp};

    use super::*;
    use crate::workload::on;

    fn commit(end_us: Option<u64>, fate: Fate) -> Entry {
        let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("probe/0").unwrap() };
        let blobs = vec![on(&blob, [Operation::Truncate { len: 8 }])];
        let deed = Deed::Transaction(Attempted {
            id: None,
            reads: Vec::new(),
            blobs,
            fate,
            answers: Vec::new(),
            calls: Vec::new(),
        });
        Entry { client: 9, workload: 0, start_us: 100, end_us, deed, pages: Vec::new() }
    }

    fn refused(kind: ErrorKind) -> Fate {
        Fate::Aborted(Abort::new(kind, "no"))
    }

    #[test]
    fn what_is_late_refused_or_never_ends_is_not_served() {
        let map = ClusterMap::of(3, &[KeyspaceConfig::default()]);
        let judge = |entry| probes_are_served(&[entry], 50, &map);
        let done = || Fate::Committed(Timestamp::ZERO);
        assert_eq!(judge(commit(Some(150), done())), Ok(()));
        assert!(judge(commit(Some(151), done())).unwrap_err().contains("took 51 us"));
        assert!(judge(commit(None, Fate::Pending)).unwrap_err().contains("never ended"));
        assert!(judge(commit(Some(120), Fate::Unknown)).unwrap_err().contains("not told"));
        let aborted = judge(commit(Some(120), refused(ErrorKind::Unavailable)));
        assert!(aborted.unwrap_err().contains("refused as"));
    }

    #[test]
    fn a_keyspace_that_was_dropped_takes_nothing_and_says_so() {
        let map = ClusterMap::of(3, &[KeyspaceConfig::default()]);
        let map = map.changed(&Change::DropKeyspace(KeyspaceId(1))).unwrap();
        let judge = |fate| probes_are_served(&[commit(Some(120), fate)], 50, &map);
        assert_eq!(judge(refused(ErrorKind::NotFound)), Ok(()));
        assert!(judge(refused(ErrorKind::Unavailable)).is_err());
        assert!(judge(Fate::Committed(Timestamp::ZERO)).unwrap_err().contains("was dropped"));
    }
}
