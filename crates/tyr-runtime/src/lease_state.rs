//! What a holder knows of a lease of a key: until when it is held, whether somebody waits for it.
//!
//! Whoever drives the leases tells; whoever holds one looks, or waits to be told.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

/// What is known.
#[derive(Default)]
struct Known {
    /// `None` where it is held until it is given back.
    until: Option<Instant>,
    is_recalled: bool,
    is_lost: bool,
    /// Those who wait for news. Those who have gone are forgotten when another comes.
    waiting: Vec<oneshot::Sender<()>>,
}

/// A lease as its holder knows it. Its clones know the same.
#[derive(Clone, Default)]
pub struct LeaseState(Arc<Mutex<Known>>);

impl fmt::Debug for LeaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.lock();
        f.debug_struct("LeaseState")
            .field("until", &known.until)
            .field("is_recalled", &known.is_recalled)
            .field("is_lost", &known.is_lost)
            .finish()
    }
}

impl LeaseState {
    /// It is held until then.
    pub fn hold_until(&self, until: Instant) {
        self.0.lock().until = Some(until);
    }

    /// Somebody waits for it.
    pub fn recall(&self) {
        self.tell(|known| known.is_recalled = true);
    }

    /// It is over.
    pub fn lose(&self) {
        self.tell(|known| known.is_lost = true);
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

    /// Whether it is held now.
    pub fn is_held(&self) -> bool {
        let known = self.0.lock();
        !known.is_lost && known.until.is_none_or(|until| Instant::now() < until)
    }

    /// Whether somebody waits for it.
    pub fn is_recalled(&self) -> bool {
        self.0.lock().is_recalled
    }

    /// Waits until somebody waits for it, or it is over.
    pub async fn recalled(&self) {
        self.wait_for(|known| known.is_recalled || known.is_lost).await;
    }

    /// Waits until it is over.
    pub async fn lost(&self) {
        self.wait_for(|known| known.is_lost).await;
    }

    async fn wait_for(&self, is_so: impl Fn(&Known) -> bool) {
        loop {
            let told = {
                let mut known = self.0.lock();
                if is_so(&known) {
                    return;
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

    use super::*;
    use crate::waiting::{block_on, block_on_within};

    #[test]
    fn who_waits_hears_of_a_recall_and_of_the_end() {
        let state = LeaseState::default();
        assert!(state.is_held() && !state.is_recalled());
        assert!(block_on_within(state.recalled(), Duration::ZERO).is_none());
        let other = state.clone();
        let waiting = std::thread::spawn(move || block_on(other.lost()));
        state.recall();
        block_on(state.recalled());
        assert!(state.is_held() && state.is_recalled());
        assert!(block_on_within(state.lost(), Duration::ZERO).is_none());
        state.lose();
        waiting.join().unwrap();
        block_on(state.recalled());
        assert!(!state.is_held());
    }

    #[test]
    fn a_lease_that_nobody_renews_is_not_held_after_its_time() {
        let state = LeaseState::default();
        state.hold_until(Instant::now() + Duration::from_secs(3600));
        assert!(state.is_held());
        state.hold_until(Instant::now());
        assert!(!state.is_held());
    }
}
