//! A process that is told lines and answers each with one. Dropping it kills the process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tyr_types::{Error, Result};

/// The process, and the pipes to it.
#[derive(Debug)]
pub(crate) struct Lines {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// What it is, in errors.
    name: String,
}

impl Lines {
    /// Starts it.
    ///
    /// # Errors
    /// `Unavailable` when the system refuses.
    pub(crate) fn start(mut command: Command, name: String) -> Result<Self> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| Error::io(name.clone(), error))?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::unavailable(format!("{name} without its pipes")));
        };
        Ok(Self { child, orders, answers: BufReader::new(answers), name })
    }

    /// Tells it a line.
    ///
    /// # Errors
    /// `Corrupt` when it ended by itself.
    pub(crate) fn send(&mut self, line: &str) -> Result<()> {
        let sent = writeln!(self.orders, "{line}").and_then(|()| self.orders.flush());
        sent.map_err(|error| self.ended(&error.to_string()))
    }

    /// Waits for its next line. What has no end of the line was not told.
    ///
    /// # Errors
    /// `Corrupt` when it ended by itself.
    pub(crate) fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(_) if line.ends_with('\n') => Ok(line),
            Ok(_) => Err(self.ended(&format!("its last words are {line:?}"))),
            Err(error) => Err(self.ended(&error.to_string())),
        }
    }

    /// That it ended by itself.
    pub(crate) fn ended(&self, text: &str) -> Error {
        Error::corrupt(format!("{} ended by itself: {text}", self.name))
    }

    /// Its number in the system.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // It may have ended by itself; who asks it next is told so.
            let _ = kill_process(pid, signal);
        }
    }

    /// Ends it as a loss of the process does.
    pub(crate) fn kill(&mut self) {
        // It is gone, one way or the other.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.kill();
    }
}
