//! What a watcher has yet to be told: changes as one, until it asks.
//!
//! Whoever drives the watches tells; the watcher takes what has come, or waits. However slow it is,
//! what is kept for it has a bound.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tyr_types::{Changes, Error, ErrorKind, Result, WatchEvent};

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

    use tyr_types::{Key, Timestamp};

    use super::*;
    use crate::waiting::{block_on, block_on_within};

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
        assert_eq!(event, WatchEvent { is_anew: true, changes: changes.clone() });
        let other = state.clone();
        let waiting = std::thread::spawn(move || block_on(other.next()));
        state.change(&changes);
        assert_eq!(waiting.join().unwrap().unwrap(), WatchEvent { is_anew: false, changes });
        state.begin();
        state.end(&Error::not_found("it was dropped"));
        assert!(block_on(state.next()).unwrap().is_anew);
        for _ in 0..2 {
            assert_eq!(block_on(state.next()).unwrap_err().kind(), ErrorKind::NotFound);
        }
    }
}
