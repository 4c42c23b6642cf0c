//! The commands on blobs and keyspaces, one file a family.
//!
//! Each file holds the arguments of its commands and what they do. What they share is how a blob
//! is named ([`blob`]) and where its bytes come from ([`source`]).

pub mod arithmetic;
pub mod blob;
pub mod check;
pub mod completions;
pub mod inspect;
pub mod keyspace;
pub mod listing;
pub mod pieces;
pub mod reading;
pub mod reference;
pub mod removal;
pub mod secret;
pub mod source;
pub mod txn;
pub mod writing;

use crate::arguments::Command;
use crate::cluster::{node, status, user};
use crate::failure::Outcome;
use crate::session::Session;
use crate::{bench, demo, dev, serve, telemetry};

/// Does what the command line says.
pub fn run(session: &mut Session, command: Command) -> Outcome {
    match command {
        Command::Keyspace(command) => keyspace::run(session, command),
        Command::Create(arguments) => writing::create(session, &arguments),
        Command::Put(arguments) => writing::put(session, &arguments),
        Command::Get(arguments) => reading::get(session, &arguments),
        Command::Cat(arguments) => reading::cat(session, &arguments),
        Command::Write(arguments) => writing::write(session, &arguments),
        Command::Append(arguments) => writing::append(session, &arguments),
        Command::Apply(arguments) => arithmetic::apply(session, &arguments),
        Command::Cas(arguments) => arithmetic::compare_and_swap(session, &arguments),
        Command::Truncate(arguments) => removal::truncate(session, &arguments),
        Command::Stat(arguments) => listing::stat(session, &arguments),
        Command::Ls(arguments) => listing::list(session, &arguments),
        Command::Rm(arguments) => removal::remove(session, &arguments),
        Command::Txn(arguments) => txn::run(session, &arguments),
        Command::Check(arguments) => check::run(session, &arguments),
        Command::Inspect(arguments) => inspect::run(session, &arguments),
        Command::Bench(arguments) => bench::run(session, &arguments),
        Command::BenchChild(arguments) => bench::run_child(session, &arguments),
        Command::Demo(arguments) => demo::run(session, &arguments),
        Command::Telemetry(command) => telemetry::run(session, *command),
        Command::Serve(arguments) => serve::run(session, &arguments),
        Command::Dev(arguments) => dev::run(session, &arguments),
        Command::Status(arguments) => status::run(session, &arguments),
        Command::Node(command) => node::run(session, command),
        Command::User(command) => user::run(session, command),
        Command::Secret(arguments) => secret::run(session, &arguments),
        Command::Reference(arguments) => reference::run(session, &arguments),
        Command::Completions(arguments) => completions::run(session, &arguments),
    }
}
