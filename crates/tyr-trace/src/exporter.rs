//! The thread that sends spans to the collector, a batch at a time.
//!
//! A batch that the collector may take later is tried again after a pause, which grows while that
//! goes on; meanwhile spans wait in the outbox as far as there is room. The log has one line when
//! that begins, and one when it is over. At a clean stop what is there is sent, within
//! [`FLUSH_MAX`].

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Builder;
use tyr_types::{Error, NodeId, Result};

use super::collector::{Collector, Failure};
use super::outbox::Outbox;
use super::span::EndedSpan;
use super::{TraceOptions, otlp};
use tyr_runtime::clock;

/// A span waits at most so long for others to be sent with it.
const BATCH_EVERY: Duration = Duration::from_secs(1);

/// The pause after a failure, at first and at last.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// A node that stops waits so long at most for the collector.
const FLUSH_MAX: Duration = Duration::from_millis(1500);

/// Sends what lies in an outbox. Dropping it stops it.
#[derive(Debug)]
pub struct Exporter {
    outbox: Arc<Outbox>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread works with.
struct Work {
    node: NodeId,
    outbox: Arc<Outbox>,
    collector: Collector,
    batch: Vec<EndedSpan>,
}

impl Exporter {
    /// Sends what comes to `outbox` of this node.
    ///
    /// # Errors
    /// `Unavailable` when there is no thread to be had.
    pub fn start(node: NodeId, options: &TraceOptions, outbox: Arc<Outbox>) -> Result<Self> {
        let no_thread = |error| Error::io("no thread for traces", error);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
        let collector = Collector::at(options.endpoint.clone());
        let mut work = Work { node, outbox: Arc::clone(&outbox), collector, batch: Vec::new() };
        let run = move || {
            runtime.block_on(work.run());
            // A name that is being looked up is not waited for.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("tyr-trace".to_owned()).spawn(run);
        Ok(Self { outbox, thread: Mutex::new(Some(thread.map_err(no_thread)?)) })
    }

    /// Where spans are put for it.
    pub fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    /// Sends what is there, within [`FLUSH_MAX`], and ends. Does nothing the second time.
    pub fn close(&self) {
        self.outbox.close();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::warn!("the thread that sends traces panicked");
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.close();
    }
}

impl Work {
    async fn run(&mut self) {
        let outbox = Arc::clone(&self.outbox);
        let too_late = async {
            outbox.closed().await;
            tokio::time::sleep(FLUSH_MAX).await;
        };
        tokio::select! {
            () = self.send_all() => {}
            () = too_late => {}
        }
        self.outbox.give_up(self.batch.len());
    }

    /// Sends until nothing comes any more, and what came is sent or cannot be.
    async fn send_all(&mut self) {
        let mut pause = PAUSE_MIN;
        loop {
            if self.batch.is_empty() {
                self.outbox.wait(BATCH_EVERY).await;
            }
            let is_last = self.outbox.is_closed();
            if self.batch.is_empty() {
                self.batch = self.outbox.take();
            }
            if self.batch.is_empty() {
                match is_last {
                    true => return,
                    false => continue,
                }
            }
            match self.collector.post(otlp::request(self.node, &self.batch)).await {
                Ok(refused) => {
                    self.settle(refused);
                    pause = PAUSE_MIN;
                    if self.outbox.set_failing(false) {
                        tracing::info!("the collector takes traces again");
                    }
                }
                Err(Failure::Never(why)) => {
                    self.settle(u64::MAX);
                    self.complain(&why);
                }
                Err(Failure::Later(why)) => {
                    self.complain(&why);
                    if is_last {
                        return;
                    }
                    self.outbox.rest(jittered(pause)).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// The collector has taken the batch but for so many spans.
    fn settle(&mut self, refused: u64) {
        let len = self.batch.len() as u64;
        let refused = refused.min(len);
        self.outbox.note_sent(len - refused, refused);
        self.batch.clear();
    }

    fn complain(&self, why: &str) {
        if self.outbox.set_failing(true) {
            tracing::warn!(
                collector = self.collector.authority(),
                why,
                "the collector does not take traces; they wait while there is room, and are \
                 dropped after that"
            );
        }
    }
}

/// Half of the pause to all of it, so that nodes that failed together do not come back together.
fn jittered(pause: Duration) -> Duration {
    let permille = 500 + clock::random_u64() % 501;
    Duration::from_millis(u64::try_from(pause.as_millis()).unwrap_or(0) * permille / 1000)
}

#[cfg(test)]
mod tests;
