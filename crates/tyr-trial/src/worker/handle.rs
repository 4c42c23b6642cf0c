//! A worker as its caller has it. Dropping it kills the process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tyr_types::{Error, Result};

use super::order::{self, Order, Told};
use super::{Language, Mode};

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
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    name: &'static str,
}

impl Worker {
    /// Starts one: [`Worker::wait`] until it is connected.
    ///
    /// # Errors
    /// `Unavailable` when the system refuses.
    pub fn start(plan: &Plan) -> Result<Self> {
        let name = plan.language.name();
        let (program, words) =
            plan.command.split_first().ok_or_else(|| Error::invalid("a worker has a program"))?;
        let mut command = Command::new(program);
        command.args(words).arg(plan.mode.name()).arg(&plan.place).args(&plan.keyspaces);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| Error::io(format!("a worker in {name}"), error))?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::unavailable("a worker without its pipes"));
        };
        Ok(Self { child, orders, answers: BufReader::new(answers), name })
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
        let sent = writeln!(self.orders, "{order}").and_then(|()| self.orders.flush());
        sent.map_err(|error| self.ended(&error.to_string()))
    }

    /// Waits for the answer to what was sent.
    ///
    /// # Errors
    /// As [`Worker::ask`].
    pub fn hear(&mut self) -> Result<Vec<Told>> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            // What has no end of the line was not told.
            Ok(_) if line.ends_with('\n') => order::answered(&line),
            Ok(_) => Err(self.ended(&format!("its last words are {line:?}"))),
            Err(error) => Err(self.ended(&error.to_string())),
        }
    }

    /// Ends it as a loss of the process does.
    pub fn kill(&mut self) {
        // It is gone, one way or the other.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn ended(&self, text: &str) -> Error {
        Error::corrupt(format!("the worker in {} ended by itself: {text}", self.name))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}
