//! Following: a thread that waits for entries, until its log is sealed.
//!
//! It drops no wait: so who is never told of an entry never gets it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tyr_client::block_on;
use tyr_log::{Log, Start, Subscription};
use tyr_types::{Error, ErrorKind, Result};

use super::library::{Shelf, entries, places};
use super::reading::{answer, answer_end, stretch};
use super::{PAUSE, Stage};
use crate::history::{Book, Moment, Scribe, Step};
use crate::random::Random;

/// Entries that are asked for at a time.
const CHUNK: usize = 20;

/// Who follows a sealed log comes to its end within so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Of so many clients that open a log one follows it.
const ONE_IN: u64 = 2;

/// Somebody who follows a log.
pub struct Follower {
    thread: JoinHandle<()>,
    log: String,
    reader: u64,
}

/// Follows a log that was just opened, or decides not to.
pub fn begin(stage: &Stage, shelf: &mut Shelf, reader: u64, random: &mut Random) -> Result<()> {
    if shelf.follower.is_none() {
        let is_wanted = random.below(ONE_IN) == 0;
        shelf.follower = Some(if is_wanted { Some(start(stage, shelf, reader)?) } else { None });
    }
    Ok(())
}

fn start(stage: &Stage, shelf: &Shelf, reader: u64) -> Result<Follower> {
    let (book, log, workload) = (Arc::clone(&stage.book), shelf.log.clone(), stage.workload);
    let name = shelf.name.clone();
    let work = move || {
        let mut scribe = Scribe::new(&book, workload.name());
        // Where the log was trimmed further than it was, it begins anew.
        for times in 0.. {
            // Numbers of clients lie below these.
            if follow(&book, &log, &name, times << 48 | reader, &mut scribe) {
                break;
            }
        }
    };
    let thread = std::thread::Builder::new().name("follower".to_owned()).spawn(work);
    let thread = thread.map_err(|error| Error::io("a thread that follows a log", error))?;
    Ok(Follower { thread, log: shelf.name.clone(), reader })
}

/// Follows a log from its begin on; whether to its end.
fn follow(book: &Book, log: &Log, name: &str, reader: u64, scribe: &mut Scribe) -> bool {
    let Ok(mut subscription) = block_on(log.subscribe(&Start::Oldest)) else {
        std::thread::sleep(PAUSE);
        return false;
    };
    loop {
        let mut is_over = false;
        let steps = vec![stretch(name, reader, None)];
        let done = scribe.record("follow", Moment::Fresh, steps, |steps| {
            is_over = hear(&mut subscription, &mut steps[0])?;
            Ok(())
        });
        match done {
            Ok(()) if is_over => return true,
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return false,
            Err(error) => {
                book.note(format!("who follows {name} goes on after {error}"));
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Waits for entries; whether there will be no more.
fn hear(subscription: &mut Subscription, step: &mut Step) -> Result<bool> {
    let from = places(&subscription.cut());
    let more = block_on(subscription.next(CHUNK))?;
    if more.is_none() {
        answer_end(step, true);
    }
    let is_over = more.is_none();
    let seen = entries(&more.unwrap_or_default())?;
    answer(step, Some(from), &subscription.cut(), seen);
    Ok(is_over)
}

impl Follower {
    /// Waits until it has come to the end of its sealed log. That it does not is written down, and
    /// is wrong.
    pub fn end(self, scribe: &mut Scribe) {
        let begun = Instant::now();
        while !self.thread.is_finished() && begun.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
        }
        if self.thread.is_finished() {
            return;
        }
        let steps = vec![stretch(&self.log, self.reader, None)];
        let deaf = "who follows a sealed log has not come to its end";
        // It is in the history.
        let _ = scribe.record("deaf", Moment::Fresh, steps, |_| Err(Error::corrupt(deaf)));
    }
}
