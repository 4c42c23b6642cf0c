//! The nodes that a demo works on: one of them is killed on the way, and started again.
//!
//! ```text
//!   0 ──── a third: kill -9 ──── two thirds: start again ──── end: all are ready
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;
use tyr::Error;

use crate::dev::{Children, Layout, Ports};
use crate::failure::Outcome;
use crate::session::Session;

/// How long the nodes have to form a cluster.
const READY_MAX: Duration = Duration::from_secs(60);
/// The node that is killed.
const VICTIM: u16 = 1;
/// Between two looks whether it is over.
const NAP: Duration = Duration::from_millis(50);

/// The nodes of a demo.
pub struct Nodes {
    children: Children,
    address: String,
    /// How long it was until the one that was started again took part; `None` when none was.
    back_after: Option<Duration>,
    is_killed: bool,
}

/// Nodes in trouble.
pub struct Trouble {
    thread: JoinHandle<Outcome<Nodes>>,
    is_over: Arc<AtomicBool>,
}

impl Nodes {
    /// Starts a cluster in this folder.
    ///
    /// # Errors
    /// `Unavailable` when it does not come about.
    pub fn start(folder: &Path, count: u16) -> Outcome<Self> {
        let layout = Layout::find_or_make(folder, count, Ports::Any)?;
        let mut children = Children::start(&layout, folder)?;
        let formed = children.wait_until_ready(READY_MAX);
        let address = layout.address();
        match formed {
            Ok(()) => Ok(Self { children, address, back_after: None, is_killed: false }),
            Err(error) => {
                children.stop();
                Err(error)
            }
        }
    }

    /// The cluster, as `--data` names it.
    pub fn address(&self) -> PathBuf {
        PathBuf::from(&self.address)
    }

    /// Kills one after a third of the time, and starts it again after two thirds.
    pub fn trouble(mut self, seconds: f64) -> Trouble {
        let is_over = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&is_over);
        let third = Duration::from_secs_f64(seconds / 3.0);
        let thread = thread::spawn(move || {
            if !sleep(third, &watched) {
                return Ok(self);
            }
            self.is_killed = self.children.kill(VICTIM);
            eprintln!("tyr: node {VICTIM} was killed");
            sleep(third, &watched);
            let begun = Instant::now();
            self.children.begin(VICTIM)?;
            while self.back_after.is_none() && begun.elapsed() < READY_MAX {
                if matches!(self.children.next(), Some(crate::dev::News::Ready)) {
                    self.back_after = Some(begun.elapsed());
                    eprintln!("tyr: node {VICTIM} is back");
                }
            }
            match self.back_after {
                Some(_) => Ok(self),
                None => {
                    let words = self.children.last_words();
                    self.children.stop();
                    Err(Error::unavailable(format!("node {VICTIM} does not return; {words}"))
                        .into())
                }
            }
        });
        Trouble { thread, is_over }
    }

    /// Ends the nodes, and says what happened to them.
    ///
    /// # Errors
    /// What the output says.
    pub fn report(self, session: &mut Session) -> Outcome {
        self.children.stop();
        if !self.is_killed {
            return Ok(());
        }
        let back_s = self.back_after.map(|after| after.as_secs_f64());
        let text = format!(
            "node {VICTIM} was killed on the way; started again, it took part after {:.1} s",
            back_s.unwrap_or(f64::NAN)
        );
        session.output.record(&json!({"killed": VICTIM, "back_after_s": back_s}), &text)
    }
}

impl Trouble {
    /// Waits until all nodes are there again.
    ///
    /// # Errors
    /// `Unavailable` when one does not return.
    pub fn end(self) -> Outcome<Nodes> {
        self.is_over.store(true, Ordering::Release);
        self.thread.join().expect("the thread that makes trouble does not panic")
    }
}

/// Sleeps; answers whether it is not over yet.
fn sleep(time: Duration, is_over: &AtomicBool) -> bool {
    let end = Instant::now() + time;
    while Instant::now() < end && !is_over.load(Ordering::Acquire) {
        thread::sleep(NAP);
    }
    !is_over.load(Ordering::Acquire)
}
