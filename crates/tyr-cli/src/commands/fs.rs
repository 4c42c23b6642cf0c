//! `tyr fs`: file systems in a store.

use std::io::Read as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tyr::KeyspaceConfig;
use tyr_fs::blocking::{FileSystem, OpenFile};
use tyr_fs::{Access as Rights, Attributes, Kind, Node, Options, RenameMode, Repairs, Time};

use super::fs_quota::{self, FsQuotaArguments};
use super::fs_view::FsView;
use super::keyspace::DurabilityArgument;
use super::snapshot::MomentArguments;
use super::tree::{self, ExportArguments, ImportArguments};
use crate::failure::{Failure, Outcome};
use crate::output::table;
use crate::progress::{self, Unit};
use crate::session::{Access, Session};

/// Bytes that are read or written in one transaction.
const PART_LEN: u64 = 4 << 20;

/// Names that are listed at a time.
const PAGE_LEN: usize = 1_000;

/// What to do with file systems.
#[derive(Debug, Subcommand)]
pub enum FsCommand {
    /// Make a file system: the keyspaces NAME.meta and NAME.data
    Create(CreateArguments),
    /// List the file systems of the store
    #[command(after_help = "Example:\n  tyr fs list")]
    List,
    /// List a directory
    Ls(LsArguments),
    /// Write the content of a file to standard output
    #[command(after_help = "\
Examples:
  tyr fs cat home /letters/first
  tyr fs cat home /letters/first --at monday")]
    Cat(SeenArguments),
    /// Make the content of a file what standard input, or a file of this machine, has
    Put(PutArguments),
    /// Make a directory
    #[command(after_help = "Example:\n  tyr fs mkdir home /letters")]
    Mkdir(PathArguments),
    /// Take the name of a file away, or remove an empty directory
    #[command(after_help = "Example:\n  tyr fs rm home /letters/first")]
    Rm(PathArguments),
    /// Rename a file or a directory, in one step
    Mv(MvArguments),
    /// Let two files, or directories with all that is below them, change places in one step
    Swap(SwapArguments),
    /// Show what is known of a file
    #[command(after_help = "Example:\n  tyr fs stat home /letters/first")]
    Stat(SeenArguments),
    /// Limit what a file system may have, or show the limits and what there is
    Quota(FsQuotaArguments),
    /// Copy a tree of this machine into a file system
    Import(ImportArguments),
    /// Copy a tree of a file system to this machine
    Export(ExportArguments),
    /// Check that everything in a file system fits together
    Check(CheckArguments),
}

/// `tyr fs create`
#[derive(Args, Debug)]
#[command(after_help = "\
The root gets the rights 0755, and belongs to who made it.

Examples:
  tyr fs create home
  tyr fs create scratch --durability buffered")]
pub struct CreateArguments {
    /// The name of the file system
    name: String,
    /// When a call returns: when what it did is on disk, or before; then fsync brings it there. A
    /// cluster syncs every commit, and refuses `memory`
    #[arg(long, value_enum, default_value = "sync")]
    durability: DurabilityArgument,
    /// Replicas of everything, 1 to 9; capped by the number of nodes
    #[arg(long, default_value = "3", value_name = "N")]
    replication: u8,
}

/// A file in a file system.
#[derive(Args, Debug)]
pub struct PathArguments {
    /// The file system
    name: String,
    /// The path, from its root
    path: String,
}

/// A file in a file system as it is, or was.
#[derive(Args, Debug)]
pub struct SeenArguments {
    #[command(flatten)]
    place: PathArguments,
    #[command(flatten)]
    moment: MomentArguments,
}

/// `tyr fs ls`
#[derive(Args, Debug)]
#[command(after_help = "\
In the order that the directory has, which is no order of names.

Examples:
  tyr fs ls -l home /letters
  tyr fs ls home --at monday")]
pub struct LsArguments {
    /// The file system
    name: String,
    /// The directory
    #[arg(default_value = "/")]
    path: String,
    /// With kind, rights, names, owner, size and time
    #[arg(long = "long", short = 'l')]
    is_long: bool,
    #[command(flatten)]
    moment: MomentArguments,
}

/// `tyr fs put`
#[derive(Args, Debug)]
#[command(after_help = "\
A file of up to 64 KiB that is new comes with its content in one transaction; a longer one is \
written in parts of 4 MiB, which readers see as they come.

Example:
  tyr fs put home /letters/first letter.txt")]
pub struct PutArguments {
    #[command(flatten)]
    place: PathArguments,
    /// The file of this machine; standard input without it, or for `-`
    file: Option<PathBuf>,
}

/// `tyr fs mv`
#[derive(Args, Debug)]
#[command(after_help = "\
What has the new name is replaced, as rename(2) has it, unless said otherwise.

Examples:
  tyr fs mv home /letters /archive
  tyr fs mv --exchange home /site.new /site")]
pub struct MvArguments {
    /// The file system
    name: String,
    /// The path that it has
    from: String,
    /// The path that it gets
    to: String,
    /// Let both change places
    #[arg(long = "exchange")]
    is_exchanged: bool,
    /// Fail if there is something
    #[arg(long = "no-replace", conflicts_with = "is_exchanged")]
    is_kept: bool,
}

/// `tyr fs swap`
#[derive(Args, Debug)]
#[command(after_help = "\
Whoever looks sees both as they were, or both as they are then.

Example:
  tyr fs swap home /site /site.new")]
pub struct SwapArguments {
    /// The file system
    name: String,
    /// One path
    one: String,
    /// The other
    other: String,
}

/// `tyr fs check`
#[derive(Args, Debug)]
#[command(after_help = "\
Reads all names and records at one moment, while others may work. Exit code 1 names everything \
that does not fit together; with --repair, what is left.

Examples:
  tyr fs check home
  tyr fs check home --repair")]
pub struct CheckArguments {
    /// The file system
    name: String,
    /// Repair what can be, a transaction at a time, and say what was done
    #[arg(long = "repair")]
    is_repaired: bool,
}

/// Does what the command line says.
pub fn run(session: &mut Session, command: FsCommand) -> Outcome {
    match command {
        FsCommand::Create(arguments) => create(session, &arguments),
        FsCommand::List => list(session),
        FsCommand::Ls(arguments) => ls(session, &arguments),
        FsCommand::Cat(arguments) => cat(session, &arguments),
        FsCommand::Put(arguments) => put(session, arguments),
        FsCommand::Mkdir(arguments) => mkdir(session, &arguments),
        FsCommand::Rm(arguments) => rm(session, &arguments),
        FsCommand::Mv(arguments) => mv(session, &arguments),
        FsCommand::Swap(arguments) => swap(session, &arguments),
        FsCommand::Stat(arguments) => stat(session, &arguments),
        FsCommand::Quota(arguments) => fs_quota::run(session, &arguments),
        FsCommand::Import(arguments) => tree::import(session, &arguments),
        FsCommand::Export(arguments) => tree::export(session, &arguments),
        FsCommand::Check(arguments) => check(session, &arguments),
    }
}

fn open(session: &mut Session, name: &str) -> Outcome<FileSystem> {
    Ok(FileSystem::open(&session.open(Access::Write)?, name)?)
}

/// The file system as it is, or was at the moment that is asked for.
fn view(session: &mut Session, name: &str, moment: &MomentArguments) -> Outcome<FsView> {
    FsView::of(open(session, name)?, moment.name())
}

/// Rights of this process's user.
fn mine(mode: u32) -> Rights {
    let (owner, group) = (rustix::process::geteuid(), rustix::process::getegid());
    Rights { mode, owner: owner.as_raw(), group: group.as_raw() }
}

fn create(session: &mut Session, arguments: &CreateArguments) -> Outcome {
    let name = &arguments.name;
    let store = session.open(Access::Create)?;
    let keyspace_config = KeyspaceConfig {
        durability: arguments.durability.into(),
        replication: arguments.replication,
        ..KeyspaceConfig::default()
    };
    let options = Options { root: mine(0o755), keyspace_config, ..Options::default() };
    FileSystem::create(&store, name, &options)?.close()?;
    session.output.record(&json!({ "file_system": name }), "")
}

fn list(session: &mut Session) -> Outcome {
    let names = FileSystem::list(&session.open(Access::Read)?)?;
    names.iter().try_for_each(|name| session.output.record(&json!({ "file_system": name }), name))
}

fn ls(session: &mut Session, arguments: &LsArguments) -> Outcome {
    let files = view(session, &arguments.name, &arguments.moment)?;
    let found = files.find(&arguments.path)?;
    if found.node.kind != Kind::Directory {
        return show(session, arguments.is_long, &arguments.path, &found.attributes);
    }
    let mut cookie = 0;
    loop {
        session.interrupt.check()?;
        let page = files.list_directory(&found.node, cookie, PAGE_LEN)?;
        for entry in page.entries {
            cookie = entry.cookie;
            let attributes = match entry.attributes {
                Some(attributes) => attributes,
                // It may go between the listing and this.
                None => match files.attributes(&entry.node) {
                    Err(error) if error.errno() == tyr_fs::Errno::STALE => continue,
                    attributes => attributes?,
                },
            };
            show(session, arguments.is_long, &entry.name.to_string(), &attributes)?;
        }
        if page.is_end {
            return files.close();
        }
    }
}

/// A line of a listing.
fn show(session: &mut Session, is_long: bool, name: &str, attributes: &Attributes) -> Outcome {
    if session.output.is_json() {
        return session.output.json(&as_json(name, attributes));
    }
    if !is_long {
        return session.output.line(name);
    }
    let Attributes { kind, mode, links, owner, group, size, times, .. } = attributes;
    session.output.line(&format!(
        "{:<9} {mode:04o} {links:>3} {owner:>5} {group:>5} {size:>12} {} {name}",
        kind.name(),
        time_text(times.mtime)
    ))
}

fn time_text(time: Time) -> String {
    let (seconds, nanoseconds) = time.parts();
    format!("{seconds}.{nanoseconds:09}")
}

fn as_json(name: &str, attributes: &Attributes) -> Value {
    let Attributes { number, kind, mode, owner, group, links, size, times, device, version } =
        attributes;
    json!({
        "name": name, "number": number, "kind": kind.name(), "mode": format!("{mode:04o}"),
        "owner": owner, "group": group, "links": links, "size": size, "device": device,
        "mtime_ns": times.mtime.0, "ctime_ns": times.ctime.0, "atime_ns": times.atime.0,
        "btime_ns": times.btime.0, "version": version.map(|version| version.to_string()),
    })
}

fn cat(session: &mut Session, arguments: &SeenArguments) -> Outcome {
    let files = view(session, &arguments.place.name, &arguments.moment)?;
    let node = files.find(&arguments.place.path)?.node;
    let held = files.hold(&node)?;
    let mut offset = 0;
    loop {
        session.interrupt.check()?;
        let bytes = files.read(&node, offset, PART_LEN)?;
        if bytes.is_empty() {
            break;
        }
        offset += bytes.len() as u64;
        session.output.bytes(&bytes)?;
    }
    held.map_or(Ok(()), OpenFile::close)?;
    files.close()
}

fn put(session: &mut Session, arguments: PutArguments) -> Outcome {
    let PutArguments { place: PathArguments { name, path }, file } = arguments;
    let from = file.filter(|file| file.as_os_str() != "-");
    let named = from
        .as_ref()
        .map_or_else(|| "standard input".to_owned(), |file| file.display().to_string());
    let failed = |error| tyr::Error::io(format!("cannot read {named}"), error);
    let mut source: Box<dyn std::io::Read> = match &from {
        Some(file) => Box::new(std::fs::File::open(file).map_err(failed)?),
        None => Box::new(std::io::stdin()),
    };
    let mut read = || {
        let mut part = Vec::new();
        source.by_ref().take(PART_LEN).read_to_end(&mut part).map_err(failed)?;
        Ok::<_, tyr::Error>(part)
    };
    let files = open(session, &name)?;
    let bar = progress::bar(None, Unit::Bytes, session.output.is_json());
    let mut part = read()?;
    let mut written = part.len() as u64;
    files.store_at(&path, &part, mine(0o644))?;
    let node: Node = files.find(&path)?.node;
    while part.len() as u64 == PART_LEN {
        session.interrupt.check()?;
        part = read()?;
        let len = part.len() as u64;
        files.write(&node, written, part.clone())?;
        written += len;
        bar.set_position(written);
    }
    bar.finish_and_clear();
    files.close()?;
    session.output.record(&json!({ "path": path, "bytes": written }), "")
}

fn mkdir(session: &mut Session, arguments: &PathArguments) -> Outcome {
    let files = open(session, &arguments.name)?;
    files.make_directory_at(&arguments.path, mine(0o755))?;
    files.close()?;
    session.output.record(&json!({ "path": arguments.path }), "")
}

fn rm(session: &mut Session, arguments: &PathArguments) -> Outcome {
    let files = open(session, &arguments.name)?;
    match files.find_symlink(&arguments.path)?.node.kind {
        Kind::Directory => files.remove_directory_at(&arguments.path)?,
        _ => files.remove_file_at(&arguments.path)?,
    }
    files.close()?;
    session.output.record(&json!({ "removed": arguments.path }), "")
}

fn mv(session: &mut Session, arguments: &MvArguments) -> Outcome {
    let mode = match (arguments.is_exchanged, arguments.is_kept) {
        (true, _) => RenameMode::Exchange,
        (false, true) => RenameMode::NoReplace,
        (false, false) => RenameMode::Replace,
    };
    let files = open(session, &arguments.name)?;
    files.rename_at_with(&arguments.from, &arguments.to, mode)?;
    files.close()?;
    session.output.record(&json!({ "from": arguments.from, "to": arguments.to }), "")
}

fn swap(session: &mut Session, arguments: &SwapArguments) -> Outcome {
    let files = open(session, &arguments.name)?;
    files.swap_at(&arguments.one, &arguments.other)?;
    files.close()?;
    session.output.record(&json!({ "swapped": [arguments.one, arguments.other] }), "")
}

fn stat(session: &mut Session, arguments: &SeenArguments) -> Outcome {
    let PathArguments { name, path } = &arguments.place;
    let files = view(session, name, &arguments.moment)?;
    let attributes = files.find_symlink(path)?.attributes;
    files.close()?;
    if session.output.is_json() {
        return session.output.json(&as_json(path, &attributes));
    }
    let Attributes { number, kind, mode, owner, group, links, size, times, .. } = attributes;
    let rows = [
        ("kind", kind.name().to_owned()),
        ("number", number.to_string()),
        ("mode", format!("{mode:04o}")),
        ("owner, group", format!("{owner}, {group}")),
        ("names", links.to_string()),
        ("size", size.to_string()),
        ("changed", time_text(times.mtime)),
        ("anything changed", time_text(times.ctime)),
        ("read", time_text(times.atime)),
        ("made", time_text(times.btime)),
    ];
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|(what, value)| vec![what.to_owned(), value]).collect();
    session.output.line(&table(&[path, ""], &rows, &[]))
}

fn check(session: &mut Session, arguments: &CheckArguments) -> Outcome {
    let files = open(session, &arguments.name)?;
    let bar = progress::bar(None, Unit::Things("blobs"), session.output.is_json());
    let interrupt = session.interrupt.clone();
    let mut progress = |count| {
        bar.set_position(count);
        !interrupt.is_raised()
    };
    let checked = match arguments.is_repaired {
        true => files.repair(&mut progress),
        false => files.check(&mut progress).map(|report| Repairs { report, ..Repairs::default() }),
    };
    session.interrupt.check()?;
    let Repairs { done, report } = checked?;
    bar.finish_and_clear();
    files.close()?;
    let findings: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
    let repairs: Vec<_> = done.iter().map(ToString::to_string).collect();
    let fields = json!({
        "directories": report.directories, "names": report.names,
        "small_files": report.small_files, "large_files": report.large_files,
        "orphans": report.orphans, "bytes": report.bytes, "findings": findings,
        "repairs": repairs,
    });
    let sentence = format!(
        "{} directories, {} names, {} small and {} large files, {} without a name, {} bytes: {} \
         findings",
        report.directories,
        report.names,
        report.small_files,
        report.large_files,
        report.orphans,
        report.bytes,
        findings.len()
    );
    let done = repairs.iter().map(|repair| format!("repaired: {repair}"));
    let text: Vec<_> = done.chain(findings.iter().cloned()).chain([sentence]).collect();
    session.output.record(&fields, &text.join("\n"))?;
    match findings.len() {
        0 => Ok(()),
        count => Err(Failure::Differences(format!("{count} things do not fit together"))),
    }
}
