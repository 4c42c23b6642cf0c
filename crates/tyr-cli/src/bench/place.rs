//! Where the store of a measurement is: in this process, or on a node of its own, the only one of
//! its cluster. Both are opened and closed the same way, so that one measurement is of either.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tyr::blocking::Tyr;
use tyr::{Error, Result};

use super::cluster::Processes;
use super::meter;
use crate::dev::{Children, Layout, Ports};
use crate::failure::Outcome;

/// How long a node may take until it serves: one that was killed reads its log first.
const READY_MAX: Duration = Duration::from_secs(600);

/// A folder with a store in it.
pub struct Place {
    dir: PathBuf,
    /// Where the node is, if there is one.
    layout: Option<Layout>,
}

impl Place {
    /// A store that is opened in this process.
    pub fn here(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), layout: None }
    }

    /// The store of a node that runs on this machine while it is open.
    pub fn on_a_node(dir: &Path) -> Outcome<Self> {
        let failed = |error| Error::io(format!("cannot make {}", dir.display()), error);
        fs::create_dir_all(dir).map_err(failed)?;
        let layout = Layout::find_or_make(dir, 1, Ports::Any)?;
        Ok(Self { dir: dir.to_owned(), layout: Some(layout) })
    }

    /// What lies there, of the store and around it.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Opens the store, or starts the node and waits until it serves.
    pub fn open(&self) -> Outcome<Opened> {
        let Some(layout) = &self.layout else {
            return Ok(Opened { store: Tyr::open(&self.dir)?, node: None });
        };
        let mut node = Children::start(layout, &self.dir)?;
        let store =
            node.wait_until_ready(READY_MAX).and_then(|()| Ok(Tyr::connect(layout.address())?));
        match store {
            Ok(store) => Ok(Opened { store, node: Some(node) }),
            Err(failure) => {
                node.stop();
                Err(failure)
            }
        }
    }

    /// CPU time of this process and of all nodes that have ended, so far.
    pub fn cpu_of_ended() -> Duration {
        meter::process_cpu() + Processes::ended_cpu()
    }
}

/// A store that is open.
pub struct Opened {
    /// The store.
    pub store: Tyr,
    node: Option<Children>,
}

impl Opened {
    /// CPU time of the node so far; none where there is no node.
    pub fn node_cpu(&self) -> Duration {
        let ids = self.node.as_ref().map(Children::ids).unwrap_or_default();
        Processes::new(ids).nodes_cpu()
    }

    /// A line of the status of the node, or of this process where there is no node, in MiB.
    pub fn node_memory_mib(&self, name: &str) -> f64 {
        meter::memory_mib_of(self.who_stores(), name)
    }

    /// Bytes that the node, or this process where there is no node, has had read from the disk.
    pub fn bytes_read(&self) -> Option<u64> {
        meter::bytes_read_of(self.who_stores())
    }

    fn who_stores(&self) -> u32 {
        let id = self.node.as_ref().and_then(|node| node.ids().first().copied());
        id.unwrap_or_else(std::process::id)
    }

    /// Kills the node, as a loss of power would.
    ///
    /// # Errors
    /// `Unavailable` when there is none that runs.
    pub fn kill(&mut self) -> Outcome {
        let was_running = self.node.as_mut().is_some_and(|node| node.kill(0));
        let failed = || Error::unavailable("the node that was to be killed had ended");
        was_running.then_some(()).ok_or_else(|| failed().into())
    }

    /// Closes the store, and stops the node. Handles to the store must be gone.
    pub fn close(self) -> Result<()> {
        let Self { store, node } = self;
        let closed = store.close();
        if let Some(node) = node {
            node.stop();
        }
        closed
    }
}
