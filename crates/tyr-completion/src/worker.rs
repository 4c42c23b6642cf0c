//! The thread that drives calls whose answer was not there at once.
//!
//! Whoever has an answer, a committer or a socket's thread, only puts the call back into line here:
//! it holds locks then, and must not run what the call does next.

use std::sync::mpsc::{Sender, channel};

use async_task::Runnable;
use parking_lot::Mutex;
use tyr::{Error, Result};

/// A thread, from the first call on that needs it.
#[derive(Debug, Default)]
pub struct Worker(Mutex<Option<Sender<Runnable>>>);

impl Worker {
    /// Where calls are put into line. The thread ends when all who can do so are gone.
    ///
    /// # Errors
    /// `Unavailable` when no thread can be started.
    pub fn line(&self) -> Result<Sender<Runnable>> {
        let mut line = self.0.lock();
        if let Some(line) = &*line {
            return Ok(line.clone());
        }
        let (sender, receiver) = channel::<Runnable>();
        let work = move || {
            for call in receiver {
                call.run();
            }
        };
        let started = std::thread::Builder::new().name("tyr-completion".into()).spawn(work);
        started.map_err(|error| Error::io("cannot start the thread of a queue", error))?;
        Ok(line.insert(sender).clone())
    }
}
