//! Clients that watch: what they are told of they read, until the run is over.

use std::collections::{BTreeSet, VecDeque};

use tyr_protocol::session::{Answer, Call, WatchNews};
use tyr_types::{Bytes, NoticeId, Watcher};

use super::{Next, Runner};
use crate::checker::{HeardNotice, History, WatchedSince};
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
    /// The notices that it has yet to acknowledge, and with what.
    acknowledges: VecDeque<(u64, NoticeId, Bytes)>,
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
            acknowledges: VecDeque::new(),
        });
    }

    /// What a client that watches does next; `None` for one that does not, or is busy.
    pub(super) fn go_on_watching(&mut self, number: u16, now_us: u64) -> Option<Next> {
        let is_stopped = self.is_stopped;
        let client = &mut self.clients[usize::from(number)];
        let watching = client.watching.as_mut().filter(|_| client.doing.is_none())?;
        if let Some((watch, id, reply)) = watching.acknowledges.pop_front() {
            client.is_ending = true;
            return Some(Next::Call(Call::Acknowledge { watch, id, reply }));
        }
        if is_stopped {
            let watch = client.watching.take().and_then(|it| it.watch)?;
            client.is_locking = true;
            let own = self.history.watches.iter_mut();
            let own = own.filter(|it| (it.client, it.watcher.watch) == (number, watch));
            own.for_each(|it| it.until_us = it.until_us.min(now_us));
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
    pub fn watch_told(&mut self, client: u16, watcher: Watcher, news: &WatchNews, now_us: u64) {
        let watch = watcher.watch;
        self.note_watch(client, watcher, news, now_us);
        let watching = self.clients[usize::from(client)].watching.as_mut();
        let Some(watching) = watching.filter(|it| it.watch == Some(watch)) else { return };
        let is_all = match news {
            WatchNews::Began => true,
            WatchNews::Changed(changes) => changes.is_more,
            WatchNews::Ended(_) => return watching.watch = None,
            WatchNews::Notice(notice) => {
                let reply = notice.payload.clone();
                return watching.acknowledges.push_back((watch, notice.id, reply));
            }
        };
        for (place, want) in watching.what.wants.iter().enumerate() {
            let is_told = match news {
                WatchNews::Changed(changes) => changes.keys.contains(&want.blob.key),
                WatchNews::Began | WatchNews::Ended(_) | WatchNews::Notice(_) => false,
            };
            if is_all || is_told {
                watching.due.insert(place);
            }
        }
    }

    /// From when to when a client watches, and which notices it gets.
    fn note_watch(&mut self, client: u16, watcher: Watcher, news: &WatchNews, now_us: u64) {
        let watching = &self.clients[usize::from(client)].watching;
        let Some(watching) = watching.as_ref().filter(|it| it.watch == Some(watcher.watch)) else {
            return;
        };
        let History { watches, heard, .. } = &mut self.history;
        match news {
            WatchNews::Began if watches.iter().all(|it| it.watcher != watcher) => {
                let (target, until_us) = (watching.what.target.clone(), u64::MAX);
                let from_us = now_us;
                watches.push(WatchedSince { client, watcher, target, from_us, until_us });
            }
            WatchNews::Began | WatchNews::Changed(_) => {}
            WatchNews::Ended(_) => {
                let own = watches.iter_mut().filter(|it| it.watcher == watcher);
                own.for_each(|it| it.until_us = now_us);
            }
            WatchNews::Notice(notice) => {
                let payload = notice.payload.clone();
                heard.push(HeardNotice { watcher, payload, at_us: now_us });
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
