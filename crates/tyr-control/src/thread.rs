//! The thread on which control connections run, in a node and in a client.

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tyr_types::{Error, Result};

/// A thread on which control connections run. Dropping it ends it.
pub struct Thread {
    /// Runs what is given to it on the thread.
    pub handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Thread {
    /// Starts it.
    ///
    /// # Errors
    /// `Unavailable` when there is no thread to be had.
    pub fn start() -> Result<Self> {
        let no_thread = |error| Error::io("no thread for control connections", error);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let run = move || {
            // Ends when it is told to, or nobody is left to tell.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("tyr-control".to_owned()).spawn(run);
        Ok(Self { handle, stop: Some(stop), thread: Some(thread.map_err(no_thread)?) })
    }

    /// Ends it with all that runs on it.
    pub fn close(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.close();
    }
}
