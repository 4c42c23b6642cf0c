//! Writes down beside the log how far it is durable, at most 100 ms after it became so, while
//! nobody waits for it: damage there is then told from what a crash may leave.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use tyr_types::{Error, ErrorKind, Result};

/// How often a mark is written while anything becomes durable; the rest of the 100 ms is for the
/// disk.
const PERIOD: Duration = Duration::from_millis(60);

/// The thread that writes the marks.
#[derive(Debug)]
pub struct Marking {
    /// Dropped to end it.
    going: Sender<()>,
    thread: JoinHandle<()>,
}

impl Marking {
    /// Begins to write marks.
    ///
    /// # Errors
    /// `Unavailable` when the system gives no thread.
    pub fn start(mark: impl Fn() -> Result<()> + Send + 'static) -> Result<Self> {
        let (going, end) = mpsc::channel();
        let run = move || {
            let mut has_failed = false;
            while end.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let marked = mark();
                if let (Err(error), false) = (&marked, has_failed) {
                    tracing::warn!(%error, "how far the log is durable could not be noted");
                }
                has_failed = marked.is_err();
            }
        };
        let spawned = std::thread::Builder::new().name("tyr-marker".to_owned()).spawn(run);
        let thread = spawned.map_err(|error| {
            let text = "cannot start thread tyr-marker";
            Error::new(ErrorKind::Unavailable, text).with_source(error)
        })?;
        Ok(Self { going, thread })
    }

    /// Writes no more.
    ///
    /// # Errors
    /// `Unavailable` when the thread panicked.
    pub fn end(self) -> Result<()> {
        drop(self.going);
        let panicked = |_| Error::unavailable("the thread that marks the log panicked");
        self.thread.join().map_err(panicked)
    }
}
