//! `tyr zlog`: a log in the design of CORFU from a shell.
//!
//! [`upkeep`] makes logs and looks after them, [`entries`] appends, reads and fills. What such a
//! log is, and how it is kept, is the affair of the crate `tyr-zlog`.

mod entries;
mod upkeep;

use clap::{Args, Subcommand};
use tokio::runtime::Runtime;
use tyr_zlog::{KEYSPACE_DEFAULT, Log, Opening};

use crate::failure::Outcome;
use crate::session::{Access, Session};
use crate::telemetry::runtime;

/// What to do with logs.
#[derive(Debug, Subcommand)]
pub enum ZlogCommand {
    /// Make a log
    Create(upkeep::CreateArguments),
    /// Append lines, or all of a file as one entry
    Append(entries::AppendArguments),
    /// Read entries from a position on
    Read(entries::ReadArguments),
    /// Show the last entries, and with -f those that come
    Tail(entries::TailArguments),
    /// Give up a position that was given out and not written
    Fill(entries::FillArguments),
    /// Forget entries and give their space back
    Trim(upkeep::TrimArguments),
    /// Show what there is of a log, or of all
    Status(upkeep::StatusArguments),
    /// Delete a log with all that is in it
    Delete(upkeep::DeleteArguments),
}

/// Does what the command line says.
pub fn run(session: &mut Session, command: ZlogCommand) -> Outcome {
    match command {
        ZlogCommand::Create(arguments) => upkeep::create(session, &arguments),
        ZlogCommand::Append(arguments) => entries::append(session, &arguments),
        ZlogCommand::Read(arguments) => entries::read(session, &arguments),
        ZlogCommand::Tail(arguments) => entries::tail(session, &arguments),
        ZlogCommand::Fill(arguments) => entries::fill(session, &arguments),
        ZlogCommand::Trim(arguments) => upkeep::trim(session, &arguments),
        ZlogCommand::Status(arguments) => upkeep::status(session, &arguments),
        ZlogCommand::Delete(arguments) => upkeep::delete(session, &arguments),
    }
}

/// Where logs are.
#[derive(Args, Debug)]
pub struct PlaceArguments {
    /// The keyspace of the log
    #[arg(long, default_value = KEYSPACE_DEFAULT, value_name = "NAME")]
    keyspace: String,
}

/// Which log.
#[derive(Args, Debug)]
pub struct NameArguments {
    /// The log's name
    log: String,
    #[command(flatten)]
    place: PlaceArguments,
}

impl NameArguments {
    /// Opens it. Also who reads may have to fill a hole.
    fn open(&self, session: &Session) -> Outcome<(Runtime, Log)> {
        self.open_as(session, Opening::default())
    }

    /// The same with a say in how it gets its positions.
    fn open_as(&self, session: &Session, opening: Opening) -> Outcome<(Runtime, Log)> {
        let runtime = runtime()?;
        let store = session.open(Access::Write)?.into_async();
        let opened = Log::open_as(&store, &self.place.keyspace, &self.log, opening);
        let log = runtime.block_on(opened)?;
        Ok((runtime, log))
    }
}
