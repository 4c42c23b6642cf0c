//! Many who append and are cut off at any moment, with and without the sequencer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use crate::place::{Place, all_from, hasty, on, patient};
use tyr_testing::Kind;

/// What was acknowledged: positions, and what is there.
type Acknowledged = Arc<Mutex<BTreeMap<u64, String>>>;

/// Lives of each program, and entries of all that are to be acknowledged; more lives where a
/// machine is slow, but not for ever.
const LIVES: usize = 6;
const ENOUGH: usize = 20;
const LIVES_MAX: usize = 60;

/// Appends in three tasks by one handle, and is cut off at some moment; then starts again.
async fn live_and_die(place: Place, program: usize, slowness: u64, all: Acknowledged) {
    for life in 0..LIVES_MAX {
        if life >= LIVES && all.lock().await.len() > ENOUGH {
            return;
        }
        let log = place.open("orders", program % 2, patient()).await;
        let tasks: Vec<_> = (0..3)
            .map(|task| {
                let (log, all) = (log.clone(), Arc::clone(&all));
                tokio::spawn(async move {
                    for n in 0..50 {
                        let text = format!("{program} {life} {task} {n}");
                        let position = log.append(text.clone()).await.unwrap();
                        let twice = all.lock().await.insert(position, text);
                        assert_eq!(twice, None, "position {position} was acknowledged twice");
                    }
                })
            })
            .collect();
        // What a commit takes is another matter on a cluster.
        let moment = slowness * (30 + (program as u64 * 37 + life as u64 * 53) % 90);
        let moment = Duration::from_millis(moment);
        tokio::time::sleep(moment).await;
        for task in tasks {
            task.abort();
            if let Err(error) = task.await {
                assert!(error.is_cancelled(), "{error}");
            }
        }
        if life % 3 == 2 {
            log.close().await.unwrap();
        }
    }
}

#[test]
fn each_acknowledged_entry_is_there_once_whoever_dies_with_the_sequencer() {
    for (kind, slowness) in [(Kind::Embedded, 1), (Kind::Cluster, 6)] {
        lives_and_deaths(kind, slowness);
    }
}

fn lives_and_deaths(kind: Kind, slowness: u64) {
    on(kind, |place| async move {
        place.log("orders").await;
        let all = Acknowledged::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let follower = {
            let log = place.open("orders", 1, hasty()).await;
            let is_over = Arc::clone(&is_over);
            tokio::spawn(async move {
                let (mut reader, mut seen) = (log.reader(0), Vec::new());
                loop {
                    let was_over = is_over.load(Ordering::Acquire);
                    let more = reader.next().await.unwrap();
                    if more.is_empty() && was_over {
                        return seen;
                    }
                    seen.extend(more);
                }
            })
        };
        let programs: Vec<_> = (0..4)
            .map(|program| {
                tokio::spawn(live_and_die(place.clone(), program, slowness, Arc::clone(&all)))
            })
            .collect();
        for program in programs {
            program.await.unwrap();
        }
        is_over.store(true, Ordering::Release);
        let followed = follower.await.unwrap();
        let log = place.open("orders", 0, hasty()).await;
        let entries = all_from(&log, 0).await;
        // What the last dead had sent may still have come after that.
        assert!(entries.starts_with(&followed), "who follows sees what is there: {followed:?}");
        assert!(entries.windows(2).all(|two| two[0].position < two[1].position));
        let found: BTreeMap<u64, String> = entries
            .iter()
            .map(|it| (it.position, String::from_utf8(it.data.to_vec()).unwrap()))
            .collect();
        let texts: BTreeSet<&String> = found.values().collect();
        assert_eq!(texts.len(), found.len(), "no entry is there twice");
        let all = all.lock().await;
        for (position, text) in all.iter() {
            assert_eq!(found.get(position), Some(text), "position {position}");
            assert!(followed.iter().any(|it| it.position == *position), "{text} was not followed");
        }
        let status = log.status().await.unwrap();
        println!("{} acknowledged, {} there; {status:?}", all.len(), found.len());
        assert!(all.len() > ENOUGH && status.term > 0, "nobody died with the sequencer");
    });
}
