//! A puppet as its workload has it. Dropping it kills the process.

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tyr_types::{Error, Result};

use super::{Answer, Order};
use crate::lines::Lines;

/// What a puppet must be told when it starts.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Where nodes of the cluster are reached.
    pub addresses: Vec<String>,
    /// The keyspaces that blobs are spread over; none for who has no blobs of its own.
    pub keyspaces: Vec<String>,
    /// How long a call may take; as long as calls of other clients of a trial if nothing is said.
    pub timeout: Option<Duration>,
}

/// A client in a process of its own.
#[derive(Debug)]
pub struct Puppet {
    lines: Lines,
}

impl Puppet {
    /// Starts one. It connects when it is first told to do something.
    ///
    /// # Errors
    /// `Unavailable` when the system refuses.
    pub fn start(plan: &Plan) -> Result<Self> {
        let program = std::env::current_exe();
        let program = program.map_err(|error| Error::io("where this program is", error))?;
        let mut command = Command::new(program);
        command.args(["puppet", "--at", &plan.addresses.join(",")]);
        if !plan.keyspaces.is_empty() {
            command.args(["--keyspaces", &plan.keyspaces.join(",")]);
        }
        if let Some(timeout) = plan.timeout {
            command.args(["--timeout-ms", &timeout.as_millis().to_string()]);
        }
        Ok(Self { lines: Lines::start(command, "a client's process".to_owned())? })
    }

    /// The one that is there, or a new one.
    ///
    /// # Errors
    /// As [`Puppet::start`].
    pub fn of<'a>(place: &'a mut Option<Self>, plan: &Plan) -> Result<&'a mut Self> {
        let puppet = place.take().map_or_else(|| Self::start(plan), Ok)?;
        Ok(place.insert(puppet))
    }

    /// Has it do something, and waits for the answer.
    ///
    /// # Errors
    /// What it was answered; `Corrupt` when it ended by itself.
    pub fn ask(&mut self, order: &Order) -> Result<u64> {
        self.send(order)?;
        self.hear()
    }

    /// The same where the answer is several numbers.
    ///
    /// # Errors
    /// As [`Puppet::ask`].
    pub fn ask_all(&mut self, order: &Order) -> Result<Vec<u64>> {
        self.send(order)?;
        self.hear_all()
    }

    /// Has it begin something.
    ///
    /// # Errors
    /// `Corrupt` when it ended by itself.
    pub fn send(&mut self, order: &Order) -> Result<()> {
        let line = serde_json::to_string(order).expect("numbers and texts are JSON");
        self.lines.send(&line)
    }

    /// Waits for the answer to what was sent.
    ///
    /// # Errors
    /// As [`Puppet::ask`].
    pub fn hear(&mut self) -> Result<u64> {
        match *self.hear_all()? {
            [number] => Ok(number),
            ref other => Err(Error::corrupt(format!("a client answered {other:?}, not a number"))),
        }
    }

    /// The same where the answer is several numbers.
    ///
    /// # Errors
    /// As [`Puppet::ask`].
    pub fn hear_all(&mut self) -> Result<Vec<u64>> {
        let line = self.lines.hear()?;
        let answer = serde_json::from_str::<Answer>(&line);
        answer.map_err(|error| self.lines.ended(&format!("{error} in {line:?}")))?.result()
    }

    /// It does nothing until [`Puppet::resume`].
    pub fn pause(&self) {
        self.lines.signal(Signal::STOP);
    }

    /// It goes on.
    pub fn resume(&self) {
        self.lines.signal(Signal::CONT);
    }

    /// Ends it as a loss of the process does.
    pub fn kill(&mut self) {
        self.lines.kill();
    }
}
