//! The command line as types, and which function does what it says; clap makes the parser and the
//! help from the types.
//!
//! The documentation comments here are the help that users read. Every command's help ends with
//! an example.

use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::bench::{BenchArguments, ChildArguments};
use crate::cluster::node::{self, NodeCommand};
use crate::cluster::status::{self, StatusArguments};
use crate::cluster::user::{self, UserCommand};
use crate::commands::arithmetic::{self, ApplyArguments, SwapArguments};
use crate::commands::balancer::{self, BalancerCommand};
use crate::commands::check::{self, CheckArguments};
use crate::commands::class::{self, ClassCommand};
use crate::commands::completions::{self, CompletionsArguments};
use crate::commands::copying::{self, CopyArguments};
use crate::commands::events::{self, EventsArguments};
use crate::commands::fs::{self, FsCommand};
use crate::commands::inspect::{self, InspectArguments};
use crate::commands::keyspace::{self, KeyspaceCommand};
use crate::commands::listing::{self, ListArguments, StatArguments};
use crate::commands::locations::{self, LocationsArguments};
use crate::commands::lock::{self, LockArguments};
use crate::commands::metadata::{self, MetadataCommand};
use crate::commands::mount::{self, MountArguments};
use crate::commands::notify::{self, NotifyArguments};
use crate::commands::reading::{self, CatArguments, GetArguments};
use crate::commands::reference::{self, ReferenceArguments};
use crate::commands::removal::{self, ClearArguments, RemoveArguments, TruncateArguments};
use crate::commands::seat::{self, SeatCommand};
use crate::commands::secret::{self, SecretArguments};
use crate::commands::snapshot::{self, SnapshotCommand};
use crate::commands::stretches::{self, StretchesArguments};
use crate::commands::txn::{self, TxnArguments};
use crate::commands::usage::{self, UsageArguments};
use crate::commands::watch::{self, WatchArguments};
use crate::commands::writing::{
    self, AppendArguments, CreateArguments, PutArguments, WriteArguments,
};
use crate::demo::DemoArguments;
use crate::dev::DevArguments;
use crate::failure::Outcome;
use crate::log::LogCommand;
use crate::serve::ServeArguments;
use crate::session::{Session, SessionArguments};
use crate::telemetry::TelemetryCommand;
use crate::zlog::ZlogCommand;
use crate::{bench, demo, dev, log, serve, telemetry, zlog};

const AFTER_HELP: &str = "\
Blobs are named by two arguments, KEYSPACE and KEY. Exit codes: 0 done, 1 a check found \
differences, 2 usage, 3 NotFound, 4 AlreadyExists, 5 Conflict, 6 Unavailable, 7 TimedOut, \
8 SnapshotTooOld, 9 InvalidArgument, 10 PermissionDenied, 11 QuotaExceeded, 12 Corrupt, \
130 Ctrl-C.

Example:
  export TYR_DATA=/tmp/store
  tyr keyspace create notes
  echo hello | tyr put notes greeting
  tyr get notes greeting";

/// Týr, a transactional blob store: large, mutable blobs with transactions over many of them,
/// writes at any byte, appends, and arithmetic done in place.
#[derive(Debug, Parser)]
#[command(name = "tyr", version, after_help = AFTER_HELP, disable_help_subcommand = true)]
pub struct Arguments {
    #[command(flatten)]
    pub session: SessionArguments,
    #[command(subcommand)]
    pub command: Command,
}

impl Arguments {
    /// The command line of this process.
    ///
    /// # Errors
    /// Help, the version, or what makes no sense.
    pub fn of_process() -> Result<Self, clap::Error> {
        let matches = Self::command().try_get_matches()?;
        let mut arguments = Self::from_arg_matches(&matches)?;
        let levels = std::iter::successors(Some(&matches), |it| Some(it.subcommand()?.1));
        let mut sources = levels.filter_map(|it| it.value_source("data"));
        arguments.session.is_data_said = sources.any(|it| it == ValueSource::CommandLine);
        Ok(arguments)
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make, list, show or drop keyspaces
    #[command(subcommand)]
    Keyspace(KeyspaceCommand),
    /// Make an empty blob; fails if it exists
    Create(CreateArguments),
    /// Make a blob's content that of a file or of standard input
    Put(PutArguments),
    /// Write a blob's bytes to standard output or a file
    Get(GetArguments),
    /// Write several blobs one after another, all at one version
    Cat(CatArguments),
    /// Write bytes into a blob at an offset
    Write(WriteArguments),
    /// Write bytes at the end of a blob
    Append(AppendArguments),
    /// Copy a blob, or a range of one, into another
    Cp(CopyArguments),
    /// Do arithmetic on a number in a blob
    Apply(ApplyArguments),
    /// Replace bytes of a blob if they are what is expected
    Cas(SwapArguments),
    /// Cut a blob, or extend it with zeros
    Truncate(TruncateArguments),
    /// Make a hole in a blob: zeros that take no space
    Clear(ClearArguments),
    /// Show the size and version of blobs
    Stat(StatArguments),
    /// List the blobs of a keyspace in key order
    Ls(ListArguments),
    /// Show which nodes hold the chunks of a blob
    Locations(LocationsArguments),
    /// Show which bytes of a blob are written, and not holes
    Stretches(StretchesArguments),
    /// Keep, list or drop snapshots that can be read later
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Delete blobs, all in one transaction
    Rm(RemoveArguments),
    /// Run a transaction from a script on standard input, all or nothing
    Txn(TxnArguments),
    /// Run a command while this process holds a lock, or show the lock
    Lock(LockArguments),
    /// Show which keys of a keyspace change, as they do
    Watch(WatchArguments),
    /// Send a notice to who watches a key, and show who acknowledged it
    Notify(NotifyArguments),
    /// Service metadata: what services agree on beside their data
    #[command(subcommand)]
    Meta(MetadataCommand),
    /// Object classes: methods that run beside blobs, in Lua
    #[command(subcommand)]
    Class(ClassCommand),
    /// Seats: services with a state in memory, each at one node at a time
    #[command(subcommand)]
    Seat(SeatCommand),
    /// The balancer of seats: a policy that says which node has which
    #[command(subcommand)]
    Balancer(BalancerCommand),
    /// File systems: directories, files and links in two keyspaces
    #[command(subcommand)]
    Fs(FsCommand),
    /// Mount a file system at a directory of this machine, until Ctrl-C
    Mount(MountArguments),
    /// Show how much there is of each keyspace, and how full the disks are
    Usage(UsageArguments),
    /// Verify every checksum and cross-reference of a store that nobody has open
    Check(CheckArguments),
    /// Show what is in a store, or what is known of one blob
    Inspect(InspectArguments),
    /// Measure this machine, with figures per operation
    Bench(BenchArguments),
    #[command(name = "bench-child", hide = true)]
    BenchChild(ChildArguments),
    /// Show Týr at work for 20 seconds, checking itself
    Demo(DemoArguments),
    /// The monitoring store: take measurements in, query them, verify them
    #[command(subcommand)]
    Telemetry(Box<TelemetryCommand>),
    /// The shared log: append entries, read and follow them, share them among consumers
    #[command(subcommand)]
    Log(Box<LogCommand>),
    /// The shared log of CORFU: positions from a sequencer, each written once
    #[command(subcommand)]
    Zlog(Box<ZlogCommand>),
    /// Run a node of a cluster until it is told to stop
    Serve(Box<ServeArguments>),
    /// Run a small cluster on this machine, for trying things
    Dev(DevArguments),
    /// Show how a cluster is
    Status(StatusArguments),
    /// Show what happened to a cluster: nodes that went and came back, keyspaces that were made
    Events(EventsArguments),
    /// List nodes of a cluster, and change who holds what
    #[command(subcommand)]
    Node(NodeCommand),
    /// Make users of a cluster, and say what they may do
    #[command(subcommand)]
    User(UserCommand),
    /// Draw a secret for a cluster
    Secret(SecretArguments),
    #[command(hide = true)]
    Reference(ReferenceArguments),
    /// Print a script that completes tyr's arguments in a shell
    Completions(CompletionsArguments),
}

impl Command {
    /// Does what it says.
    pub fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Keyspace(command) => keyspace::run(session, command),
            Self::Create(arguments) => writing::create(session, &arguments),
            Self::Put(arguments) => writing::put(session, &arguments),
            Self::Get(arguments) => reading::get(session, &arguments),
            Self::Cat(arguments) => reading::cat(session, &arguments),
            Self::Write(arguments) => writing::write(session, &arguments),
            Self::Append(arguments) => writing::append(session, &arguments),
            Self::Cp(arguments) => copying::copy(session, &arguments),
            Self::Apply(arguments) => arithmetic::apply(session, &arguments),
            Self::Cas(arguments) => arithmetic::compare_and_swap(session, &arguments),
            Self::Truncate(arguments) => removal::truncate(session, &arguments),
            Self::Clear(arguments) => removal::clear(session, &arguments),
            Self::Stat(arguments) => listing::stat(session, &arguments),
            Self::Ls(arguments) => listing::list(session, &arguments),
            Self::Locations(arguments) => locations::run(session, &arguments),
            Self::Stretches(arguments) => stretches::run(session, &arguments),
            Self::Snapshot(command) => snapshot::run(session, command),
            Self::Rm(arguments) => removal::remove(session, &arguments),
            Self::Txn(arguments) => txn::run(session, &arguments),
            Self::Lock(arguments) => lock::run(session, &arguments),
            Self::Watch(arguments) => watch::run(session, &arguments),
            Self::Notify(arguments) => notify::run(session, &arguments),
            Self::Meta(command) => metadata::run(session, command),
            Self::Class(command) => class::run(session, command),
            Self::Seat(command) => seat::run(session, command),
            Self::Balancer(command) => balancer::run(session, command),
            Self::Fs(command) => fs::run(session, command),
            Self::Mount(arguments) => mount::run(session, &arguments),
            Self::Usage(arguments) => usage::run(session, &arguments),
            Self::Check(arguments) => check::run(session, &arguments),
            Self::Inspect(arguments) => inspect::run(session, &arguments),
            Self::Bench(arguments) => bench::run(session, &arguments),
            Self::BenchChild(arguments) => bench::run_child(session, &arguments),
            Self::Demo(arguments) => demo::run(session, &arguments),
            Self::Telemetry(command) => telemetry::run(session, *command),
            Self::Log(command) => log::run(session, *command),
            Self::Zlog(command) => zlog::run(session, *command),
            Self::Serve(arguments) => serve::run(session, &arguments),
            Self::Dev(arguments) => dev::run(session, &arguments),
            Self::Status(arguments) => status::run(session, &arguments),
            Self::Events(arguments) => events::run(session, &arguments),
            Self::Node(command) => node::run(session, command),
            Self::User(command) => user::run(session, command),
            Self::Secret(arguments) => secret::run(session, &arguments),
            Self::Reference(arguments) => reference::run(session, &arguments),
            Self::Completions(arguments) => {
                completions::run(session, &arguments, &mut Arguments::command())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn each(command: &clap::Command, visit: &mut impl FnMut(&clap::Command)) {
        for sub in command.get_subcommands() {
            visit(sub);
            each(sub, visit);
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_reference_page_has_every_command_and_every_flag() {
        // What sets a node up has a page of its own.
        let page = concat!(
            include_str!("../../../docs/reference/cli.md"),
            include_str!("../../../docs/reference/configuration.md")
        );
        let mut seen = 0;
        let mut path = Vec::new();
        check_page(page, &Arguments::command(), &mut path, &mut seen);
        assert!(seen > 20, "only {seen} commands seen");
    }

    fn check_page(page: &str, command: &clap::Command, path: &mut Vec<String>, seen: &mut usize) {
        path.push(command.get_name().to_owned());
        if !command.has_subcommands() {
            let name = path.join(" ");
            assert!(page.contains(&format!("### {name}")), "no section on {name}");
            *seen += 1;
        }
        let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
        for flag in shown.filter_map(clap::Arg::get_long) {
            assert!(page.contains(&format!("--{flag}")), "no word on --{flag} of {path:?}");
        }
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            check_page(page, sub, path, seen);
        }
        path.pop();
    }

    #[test]
    fn the_help_of_every_command_has_an_example() {
        let mut seen = 0;
        each(&Arguments::command(), &mut |command| {
            if command.has_subcommands() || command.is_hide_set() {
                return;
            }
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{} has none", command.get_name());
            seen += 1;
        });
        assert!(seen > 20, "only {seen} commands seen");
    }
}
