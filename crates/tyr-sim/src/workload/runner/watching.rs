//! Clients that watch: what they are told of they read, until the run is over.

use std::collections::BTreeSet;

use tyr_protocol::session::{Answer, Call, WatchNews};

use super::{Next, Runner};
use crate::workload::{Watched, Work};

/// Who watches looks so often whether it was told something, in microseconds.
const LOOK_US: u64 = 20_000;

/// A client that watches.
pub(super) struct Watching {
    what: Watched,
    workload: usize,
    watch: Option<u64>,
    /// Whether the answer to the call is due.
    is_asked: bool,
    /// What it has been told of and not read yet, by its place in what is wanted.
    due: BTreeSet<usize>,
    /// What it reads now.
    reading: Option<usize>,
}

impl Runner {
    /// A client watches from now on.
    pub(super) fn begin_watching(&mut self, client: u16, workload: usize, what: Watched) {
        self.clients[usize::from(client)].watching = Some(Watching {
            what,
            workload,
            watch: None,
            is_asked: false,
            due: BTreeSet::new(),
            reading: None,
        });
    }

    /// What a client that watches does next; `None` for one that does not, or is busy.
    pub(super) fn go_on_watching(&mut self, number: u16, now_us: u64) -> Option<Next> {
        let is_stopped = self.is_stopped;
        let client = &mut self.clients[usize::from(number)];
        let watching = client.watching.as_mut().filter(|_| client.doing.is_none())?;
        if is_stopped {
            let watch = client.watching.take().and_then(|it| it.watch)?;
            client.is_locking = true;
            return Some(Next::Call(Call::EndWatch { watch }));
        }
        if watching.watch.is_none() {
            watching.is_asked = true;
            return Some(Next::Call(Call::Watch { target: watching.what.target.clone() }));
        }
        let Some(place) = watching.due.pop_first() else {
            return Some(Next::Wait(now_us + LOOK_US));
        };
        watching.reading = Some(place);
        let (workload, want) = (watching.workload, watching.what.wants[place].clone());
        self.take_up(number, workload, Work::Read(want), now_us, false);
        None
    }

    /// The answer to a call to watch; whether it was that.
    pub(super) fn watched(&mut self, number: u16, answer: &Answer) -> bool {
        let client = &mut self.clients[usize::from(number)];
        let Some(watching) = client.watching.as_mut().filter(|it| it.is_asked) else {
            return false;
        };
        watching.is_asked = false;
        if let Answer::Watching { watch } = answer {
            watching.watch = Some(*watch);
        }
        true
    }

    /// What a client watches has news.
    pub fn watch_told(&mut self, client: u16, watch: u64, news: &WatchNews) {
        let watching = self.clients[usize::from(client)].watching.as_mut();
        let Some(watching) = watching.filter(|it| it.watch == Some(watch)) else { return };
        let is_all = match news {
            WatchNews::Began => true,
            WatchNews::Changed(changes) => changes.is_more,
            WatchNews::Ended(_) => return watching.watch = None,
        };
        for (place, want) in watching.what.wants.iter().enumerate() {
            let is_told = match news {
                WatchNews::Changed(changes) => changes.keys.contains(&want.blob.key),
                WatchNews::Began | WatchNews::Ended(_) => false,
            };
            if is_all || is_told {
                watching.due.insert(place);
            }
        }
    }

    /// A read of a client has ended: where nothing was seen it reads once more.
    pub(super) fn has_looked(&mut self, client: u16, is_answered: bool, now_us: u64) {
        let client = &mut self.clients[usize::from(client)];
        if let Some(watching) = &mut client.watching {
            let place = watching.reading.take();
            watching.due.extend(place.filter(|_| !is_answered));
            client.next_us = now_us + LOOK_US; // It does not rest.
        }
    }
}
