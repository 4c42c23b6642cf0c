//! A worker as its caller has it. Dropping it kills the process.

use std::process::Command;

use tyr_types::{Error, Result};

use super::order::{self, Order, Told};
use super::{Language, Mode};
use crate::lines::Lines;

/// What a worker is started as.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it is written in.
    pub language: Language,
    /// How it calls its library.
    pub mode: Mode,
    /// Program and words that come before those of every worker.
    pub command: Vec<String>,
    /// The cluster's address with its options, or a folder.
    pub place: String,
    /// The keyspaces that blobs lie in.
    pub keyspaces: Vec<String>,
}

/// A program that is a client.
#[derive(Debug)]
pub struct Worker {
    lines: Lines,
}

impl Worker {
    /// Starts one: [`Worker::wait`] until it is connected.
    ///
    /// # Errors
    /// `Unavailable` when the system refuses.
    pub fn start(plan: &Plan) -> Result<Self> {
        let (program, words) =
            plan.command.split_first().ok_or_else(|| Error::invalid("a worker has a program"))?;
        let mut command = Command::new(program);
        command.args(words).arg(plan.mode.name()).arg(&plan.place).args(&plan.keyspaces);
        let name = format!("the worker in {}", plan.language.name());
        Ok(Self { lines: Lines::start(command, name)? })
    }

    /// Waits until it is connected.
    ///
    /// # Errors
    /// `Corrupt` when it is not, and ended: its last words are among those of this process.
    pub fn wait(&mut self) -> Result<()> {
        self.hear().map(drop)
    }

    /// Has it do something, and waits for the answer.
    ///
    /// # Errors
    /// What it answers; `Corrupt` when it ended by itself.
    pub fn ask(&mut self, order: &Order) -> Result<Vec<Told>> {
        self.send(order)?;
        self.hear()
    }

    /// Has it begin something.
    ///
    /// # Errors
    /// `Corrupt` when it ended by itself.
    pub fn send(&mut self, order: &Order) -> Result<()> {
        self.lines.send(&order.to_string())
    }

    /// Waits for the answer to what was sent.
    ///
    /// # Errors
    /// As [`Worker::ask`].
    pub fn hear(&mut self) -> Result<Vec<Told>> {
        order::answered(&self.lines.hear()?)
    }

    /// Ends it as a loss of the process does.
    pub fn kill(&mut self) {
        self.lines.kill();
    }
}
