//! `tyr log`: the shared log from a shell.
//!
//! [`upkeep`] makes logs and looks after them, [`writing`] appends, [`reading`] reads and follows,
//! [`groups`] has the groups of consumers, [`words`] how places and times are typed and printed.
//! What a log is, and how it is kept, is the affair of the crate `tyr-log`.

mod groups;
mod reading;
mod upkeep;
mod words;
mod writing;

use clap::{Args, Subcommand};
use tokio::runtime::Runtime;
use tyr_log::{KEYSPACE_DEFAULT, Log};

use crate::failure::Outcome;
use crate::session::{Access, Session};
use crate::telemetry::runtime;

/// What to do with logs.
#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// Make a log
    Create(upkeep::CreateArguments),
    /// Append lines, or all of a file as one entry
    Append(writing::AppendArguments),
    /// Read entries from some place on, or as a consumer of a group
    Read(reading::ReadArguments),
    /// Show the last entries, and with -f those that come
    Tail(reading::TailArguments),
    /// List the groups of consumers of a log, move one, or delete it
    Groups(groups::GroupsArguments),
    /// Forget entries and give their space back
    Trim(upkeep::TrimArguments),
    /// Change what of a log may go by itself
    Retention(upkeep::RetentionArguments),
    /// Show what there is of a log, or of all
    Status(upkeep::StatusArguments),
    /// Make a log take no more entries
    Seal(upkeep::SealArguments),
    /// Delete a log with all that is in it
    Delete(upkeep::DeleteArguments),
}

/// Does what the command line says.
pub fn run(session: &mut Session, command: LogCommand) -> Outcome {
    match command {
        LogCommand::Create(arguments) => upkeep::create(session, &arguments),
        LogCommand::Append(arguments) => writing::append(session, &arguments),
        LogCommand::Read(arguments) => reading::read(session, &arguments),
        LogCommand::Tail(arguments) => reading::tail(session, &arguments),
        LogCommand::Groups(arguments) => groups::run(session, &arguments),
        LogCommand::Trim(arguments) => upkeep::trim(session, &arguments),
        LogCommand::Retention(arguments) => upkeep::retention(session, &arguments),
        LogCommand::Status(arguments) => upkeep::status(session, &arguments),
        LogCommand::Seal(arguments) => upkeep::seal(session, &arguments),
        LogCommand::Delete(arguments) => upkeep::delete(session, &arguments),
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
    /// Opens it.
    fn open(&self, session: &Session, access: Access) -> Outcome<(Runtime, Log)> {
        let runtime = runtime()?;
        let store = session.open(access)?.into_async();
        let log = runtime.block_on(Log::open_in(&store, &self.place.keyspace, &self.log))?;
        Ok((runtime, log))
    }
}
