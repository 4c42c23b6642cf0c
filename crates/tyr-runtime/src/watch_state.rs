//! What a watcher has yet to be told: changes as one, until it asks.
//!
//! Whoever drives the watches tells; the watcher takes what has come, or waits. However slow it is,
//! what is kept for it has a bound.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tyr_types::limits::NOTICES_OF_WATCH_MAX;
use tyr_types::{Changes, Error, ErrorKind, Notice, Result, WatchEvent};

#[derive(Default)]
struct Known {
    /// What has come and was not taken.
    event: Option<WatchEvent>,
    /// Why nothing will come any more.
    ended: Option<(ErrorKind, String)>,
    /// Those who wait. Those who have gone are forgotten when another comes.
    waiting: Vec<oneshot::Sender<()>>,
}

/// A watch as its watcher knows it. Its clones know the same, and take from each other.
#[derive(Clone, Default)]
pub struct WatchState(Arc<Mutex<Known>>);

impl fmt::Debug for WatchState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.lock();
        f.debug_struct("WatchState")
            .field("event", &known.event)
            .field("ended", &known.ended)
            .finish()
    }
}

impl WatchState {
    /// Something may have changed that is not told.
    pub fn begin(&self) {
        self.tell(|known| known.event.get_or_insert_default().is_anew = true);
    }

    /// Something has changed.
    pub fn change(&self, changes: &Changes) {
        self.tell(|known| known.event.get_or_insert_default().changes.merge(changes));
    }

    /// Somebody has sent a notice. Whether there was room: a user who takes none is not sent more
    /// than [`NOTICES_OF_WATCH_MAX`].
    pub fn notice(&self, notice: Notice) -> bool {
        let mut has_room = false;
        self.tell(|known| {
            let notices = &mut known.event.get_or_insert_default().notices;
            has_room = notices.len() < NOTICES_OF_WATCH_MAX;
            notices.extend(has_room.then_some(notice));
        });
        has_room
    }

    /// Nothing will be told any more.
    pub fn end(&self, error: &Error) {
        self.tell(|known| known.ended = Some((error.kind(), error.message().to_owned())));
    }

    fn tell(&self, news: impl FnOnce(&mut Known)) {
        let waiting = {
            let mut known = self.0.lock();
            news(&mut known);
            std::mem::take(&mut known.waiting)
        };
        for waiting in waiting {
            let _ = waiting.send(()); // Some have gone.
        }
    }

    /// Waits until there is something to tell, and takes it.
    ///
    /// # Errors
    /// Why nothing will be told any more, when all was told.
    pub async fn next(&self) -> Result<WatchEvent> {
        loop {
            let told = {
                let mut known = self.0.lock();
                if let Some(event) = known.event.take() {
                    return Ok(event);
                }
                if let Some((kind, reason)) = &known.ended {
                    return Err(Error::new(*kind, reason.clone()));
                }
                known.waiting.retain(|waiting| !waiting.is_closed());
                let (waiting, told) = oneshot::channel();
                known.waiting.push(waiting);
                told
            };
            let _ = told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tyr_types::{Key, NoticeId, Timestamp};

    use super::*;
    use crate::waiting::{block_on, block_on_within};

    fn of(is_anew: bool, changes: &Changes) -> WatchEvent {
        WatchEvent { is_anew, changes: changes.clone(), notices: Vec::new() }
    }

    #[test]
    fn notices_are_kept_in_order_until_they_are_taken_and_not_too_many() {
        let state = WatchState::default();
        let notice = |number| {
            let (id, key) = (NoticeId { client: 1, number }, Key::new("a").unwrap());
            Notice { id, key, payload: tyr_types::Bytes::new() }
        };
        for number in 0..NOTICES_OF_WATCH_MAX as u64 {
            assert!(state.notice(notice(number)));
        }
        assert!(!state.notice(notice(100)));
        let taken = block_on(state.next()).unwrap().notices;
        assert_eq!(taken.len(), NOTICES_OF_WATCH_MAX);
        assert!(taken.iter().map(|notice| notice.id.number).is_sorted());
        assert!(state.notice(notice(101)));
        assert_eq!(block_on(state.next()).unwrap().notices, [notice(101)]);
    }

    #[test]
    fn what_comes_before_it_is_asked_for_is_one_and_the_end_comes_last() {
        let state = WatchState::default();
        assert!(block_on_within(state.next(), Duration::ZERO).is_none());
        let mut changes = Changes::default();
        changes.add(Timestamp { clock: 3, ..Timestamp::ZERO }, &Key::new("a").unwrap());
        state.begin();
        state.change(&changes);
        state.change(&changes);
        let event = block_on(state.next()).unwrap();
        assert_eq!(event, of(true, &changes));
        let other = state.clone();
        let waiting = std::thread::spawn(move || block_on(other.next()));
        state.change(&changes);
        assert_eq!(waiting.join().unwrap().unwrap(), of(false, &changes));
        state.begin();
        state.end(&Error::not_found("it was dropped"));
        assert!(block_on(state.next()).unwrap().is_anew);
        for _ in 0..2 {
            assert_eq!(block_on(state.next()).unwrap_err().kind(), ErrorKind::NotFound);
        }
    }
}
