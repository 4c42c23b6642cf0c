//! `tyr fs import`, `tyr fs export`: trees of files from this machine into a file system, and back.
//!
//! Both go down one directory after the other, over an explicit stack. A file with several names
//! that all lie in the tree is one file with several names on the other side, too.

use std::collections::HashMap;
use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;
use tyr_fs::blocking::FileSystem;
use tyr_fs::{Access as Rights, Attributes, Errno, Kind, Name, NewAttributes, NewFile, Node, Time};

use super::fs_view::FsView;
use super::snapshot::MomentArguments;
use crate::failure::Outcome;
use crate::progress::{self, Unit};
use crate::session::{Access, Session};

/// Bytes that are read or written at a time.
const PART_LEN: u64 = 4 << 20;

/// Names that are listed at a time.
const PAGE_LEN: usize = 1_000;

/// `tyr fs import`
#[derive(Args, Debug)]
#[command(after_help = "\
Directories that are there already are gone on with; a file that is there already ends the import. \
Files come with mode, owner, group, mtime and all their names; sockets and devices are left out. \
What was imported when Ctrl-C ends it stays.

Example:
  tyr fs import home /var/www /site")]
pub struct ImportArguments {
    /// The file system
    name: String,
    /// The directory of this machine
    from: PathBuf,
    /// The directory in the file system, which is made where there is none
    #[arg(default_value = "/")]
    to: String,
}

/// `tyr fs export`
#[derive(Args, Debug)]
#[command(after_help = "\
Directories that are there already are gone on with; a file that is there already ends the export. \
Files come with mode, mtime and all their names, and for root with owner and group; sockets, pipes \
and devices are left out.

Examples:
  tyr fs export home /site /tmp/site
  tyr snapshot keep monday && tyr fs export home /site /tmp/site --at monday")]
pub struct ExportArguments {
    /// The file system
    name: String,
    /// The directory in the file system
    from: String,
    /// The directory of this machine, which is made where there is none
    to: PathBuf,
    #[command(flatten)]
    moment: MomentArguments,
}

/// What was copied so far.
#[derive(Default)]
struct Copied {
    directories: u64,
    files: u64,
    bytes: u64,
    left_out: u64,
}

/// A copy that is being made.
struct Transfer<'a, Files> {
    session: &'a mut Session,
    files: Files,
    bar: ProgressBar,
    copied: Copied,
}

fn failed(what: &str, path: &Path, error: io::Error) -> tyr::Error {
    tyr::Error::io(format!("cannot {what} {}", path.display()), error)
}

fn open(session: &Session, name: &str) -> Outcome<FileSystem> {
    Ok(FileSystem::open(&session.open(Access::Write)?, name)?)
}

impl<'a, Files> Transfer<'a, Files> {
    fn begin(session: &'a mut Session, files: Files) -> Self {
        let bar = progress::bar(None, Unit::Bytes, session.output.is_json());
        Self { session, files, bar, copied: Copied::default() }
    }

    fn end(self, close: impl FnOnce(Files) -> Outcome) -> Outcome {
        let Copied { directories, files, bytes, left_out } = self.copied;
        self.bar.finish_and_clear();
        close(self.files)?;
        let fields = json!({
            "directories": directories, "files": files, "bytes": bytes, "left_out": left_out,
        });
        let text =
            format!("{directories} directories, {files} files, {bytes} bytes; {left_out} left out");
        self.session.output.record(&fields, &text)
    }

    fn count(&mut self, bytes: u64) -> Outcome {
        self.copied.bytes += bytes;
        self.bar.inc(bytes);
        self.session.interrupt.check()
    }
}

/// Copies a tree of this machine into a file system.
pub fn import(session: &mut Session, arguments: &ImportArguments) -> Outcome {
    let from = arguments.from.as_path();
    let metadata = fs::metadata(from).map_err(|error| failed("read", from, error))?;
    let files = open(session, &arguments.name)?;
    let mut copy = Transfer::begin(session, files);
    let root = match copy.files.find(&arguments.to) {
        Err(error) if error.errno() == Errno::NOENT => {
            copy.files.make_directory_at(&arguments.to, rights(&metadata))?.node
        }
        found => found?.node,
    };
    let mut linked: HashMap<(u64, u64), Node> = HashMap::new();
    let mut stack = vec![(from.to_owned(), root)];
    while let Some((path, directory)) = stack.pop() {
        copy.copied.directories += 1;
        let names = fs::read_dir(&path).map_err(|error| failed("list", &path, error))?;
        for found in names {
            copy.session.interrupt.check()?;
            let path = found.map_err(|error| failed("list", &path, error))?.path();
            let name = Name::new(path.file_name().unwrap_or_default().as_bytes())?;
            let metadata =
                fs::symlink_metadata(&path).map_err(|error| failed("read", &path, error))?;
            if metadata.is_dir() {
                stack.push((path, copy.import_directory(&directory, &name, &metadata)?));
                continue;
            }
            let identity = (metadata.dev(), metadata.ino());
            if let Some(node) = linked.get(&identity) {
                copy.files.link(node, &directory, &name)?;
                continue;
            }
            let Some(node) = copy.import_file(&directory, &name, &path, &metadata)? else {
                copy.copied.left_out += 1;
                continue;
            };
            copy.copied.files += 1;
            if metadata.nlink() > 1 {
                linked.insert(identity, node);
            }
        }
    }
    copy.end(|files| Ok(files.close()?))
}

fn rights(metadata: &fs::Metadata) -> Rights {
    Rights { mode: metadata.mode() & 0o7777, owner: metadata.uid(), group: metadata.gid() }
}

impl Transfer<'_, FileSystem> {
    fn import_directory(
        &mut self,
        directory: &Node,
        name: &Name,
        metadata: &fs::Metadata,
    ) -> Outcome<Node> {
        match self.files.make_directory(directory, name, rights(metadata)) {
            Err(error) if error.errno() == Errno::EXIST => {
                let node = self.files.lookup(directory, name)?.node;
                if node.kind != Kind::Directory {
                    return Err(error.into());
                }
                Ok(node)
            }
            made => Ok(made?.node),
        }
    }

    /// A file but a directory; `None` for one that is left out.
    fn import_file(
        &mut self,
        directory: &Node,
        name: &Name,
        path: &Path,
        metadata: &fs::Metadata,
    ) -> Outcome<Option<Node>> {
        let access = rights(metadata);
        let kind = metadata.file_type();
        let node = if kind.is_symlink() {
            let target = fs::read_link(path).map_err(|error| failed("read", path, error))?;
            let target = target.as_os_str().as_bytes();
            self.files.make_symlink(directory, name, target, access)?.node
        } else if kind.is_file() {
            self.import_bytes(directory, name, path, access)?
        } else {
            return Ok(None);
        };
        let mtime = u32::try_from(metadata.mtime_nsec()).unwrap_or_default();
        let mtime = Some(Time::new(metadata.mtime(), mtime));
        let new = NewAttributes { mtime, ..NewAttributes::default() };
        self.files.set_attributes(&node, new)?;
        Ok(Some(node))
    }

    fn import_bytes(
        &mut self,
        directory: &Node,
        name: &Name,
        path: &Path,
        access: Rights,
    ) -> Outcome<Node> {
        let mut file = File::open(path).map_err(|error| failed("read", path, error))?;
        let mut read = |len: u64| {
            let mut part = Vec::new();
            let done = (&mut file).take(len).read_to_end(&mut part);
            done.map_err(|error| failed("read", path, error))?;
            Ok::<_, tyr::Error>(part)
        };
        let part = read(tyr_fs::SMALL_LEN_MAX)?;
        let mut offset = part.len() as u64;
        let new = NewFile::regular(access);
        let is_small = offset < tyr_fs::SMALL_LEN_MAX;
        let node = self.files.store_file(directory, name, new, part)?.node;
        self.count(offset)?;
        if is_small {
            return Ok(node);
        }
        loop {
            let part = read(PART_LEN)?;
            let len = part.len() as u64;
            if len == 0 {
                return Ok(node);
            }
            self.files.write(&node, offset, part)?;
            offset += len;
            self.count(len)?;
        }
    }
}

/// Copies a tree of a file system to this machine.
pub fn export(session: &mut Session, arguments: &ExportArguments) -> Outcome {
    let files = open(session, &arguments.name)?;
    let view = FsView::of(files, arguments.moment.name())?;
    let mut copy = Transfer::begin(session, view);
    let root = copy.files.find(&arguments.from)?.node;
    let mut linked: HashMap<u64, PathBuf> = HashMap::new();
    // Directories get mode and time behind what is in them.
    let mut finished = Vec::new();
    let mut stack = vec![(root, arguments.to.clone())];
    while let Some((directory, path)) = stack.pop() {
        copy.copied.directories += 1;
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            made => made.map_err(|error| failed("make", &path, error))?,
        }
        finished.push((copy.files.attributes(&directory)?, path.clone()));
        let (mut cookie, mut is_end) = (0, false);
        while !is_end {
            let page = copy.files.list_directory(&directory, cookie, PAGE_LEN)?;
            is_end = page.is_end;
            for entry in page.entries {
                copy.session.interrupt.check()?;
                cookie = entry.cookie;
                let at = path.join(std::ffi::OsStr::from_bytes(entry.name.as_bytes()));
                match entry.node.kind {
                    Kind::Directory => stack.push((entry.node, at)),
                    Kind::Regular | Kind::Symlink => {
                        copy.export_file(&entry.node, &at, &mut linked)?;
                    }
                    Kind::Fifo | Kind::CharDevice | Kind::BlockDevice | Kind::Socket => {
                        copy.copied.left_out += 1;
                    }
                }
            }
        }
    }
    for (attributes, path) in finished.iter().rev() {
        finish(attributes, path)?;
    }
    copy.end(FsView::close)
}

impl Transfer<'_, FsView> {
    fn export_file(
        &mut self,
        node: &Node,
        at: &Path,
        linked: &mut HashMap<u64, PathBuf>,
    ) -> Outcome {
        if let Some(first) = linked.get(&node.number) {
            return Ok(fs::hard_link(first, at).map_err(|error| failed("make", at, error))?);
        }
        let attributes = self.files.attributes(node)?;
        self.copied.files += 1;
        if attributes.links > 1 {
            linked.insert(node.number, at.to_owned());
        }
        if node.kind == Kind::Symlink {
            let target = self.files.read_link(node)?;
            let target = std::ffi::OsStr::from_bytes(&target);
            let made = std::os::unix::fs::symlink(target, at);
            return Ok(made.map_err(|error| failed("make", at, error))?);
        }
        let options = OpenOptions::new().write(true).create_new(true).mode(0o600).clone();
        let mut file = options.open(at).map_err(|error| failed("make", at, error))?;
        let mut offset = 0;
        while offset < attributes.size {
            let bytes = self.files.read(node, offset, PART_LEN)?;
            if bytes.is_empty() {
                break;
            }
            file.write_all(&bytes).map_err(|error| failed("write", at, error))?;
            offset += bytes.len() as u64;
            self.count(bytes.len() as u64)?;
        }
        drop(file);
        finish(&attributes, at)
    }
}

/// Mode, time, and for root owner and group.
fn finish(attributes: &Attributes, at: &Path) -> Outcome {
    let failed = |error| failed("set the attributes of", at, error);
    if rustix::process::geteuid().is_root() {
        let (owner, group) = (Some(attributes.owner), Some(attributes.group));
        std::os::unix::fs::chown(at, owner, group).map_err(failed)?;
    }
    let file = File::open(at).map_err(failed)?;
    file.set_times(FileTimes::new().set_modified(time_of(attributes.times.mtime)))
        .map_err(failed)?;
    Ok(fs::set_permissions(at, Permissions::from_mode(attributes.mode)).map_err(failed)?)
}

fn time_of(time: Time) -> SystemTime {
    let (seconds, nanoseconds) = time.parts();
    let fraction = Duration::from_nanos(u64::from(nanoseconds));
    let whole = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { UNIX_EPOCH - whole + fraction } else { UNIX_EPOCH + whole + fraction }
}
