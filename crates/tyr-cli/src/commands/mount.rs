//! `tyr mount`: a file system of a store, or the blobs of a keyspace, at a path of this machine.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tyr_fs::blocking::FileSystem;
#[cfg(target_os = "linux")]
use tyr_fs::{AccessTimes, FlatOptions, Mount, MountOptions};

use crate::data::parse_size;
use crate::failure::{Failure, Outcome};
use crate::session::{Access, Session};

/// How often it is looked whether somebody asked to stop.
const LOOK: Duration = Duration::from_millis(50);

/// `tyr mount`
#[derive(Args, Debug)]
#[command(after_help = "\
Needs /dev/fuse, and root or fusermount3 (Debian: fuse3). Runs until Ctrl-C or SIGTERM, and then \
unmounts: at once for who looks for files there, and it ends when the files that are open there \
have been closed.

With --flat the files are the blobs of a keyspace, not of a file system: the path is the key, and \
other programs use the same blobs by `tyr put`, `get`, `append` and the API at the same time. \
Directories are what keys begin with, up to a slash. There are no links, rights and times of files \
are not kept, and a rename copies the blob inside the store.

For mount(8) and /etc/fstab, this program is also the helper mount.tyr, by a link of that name: \
mount -t tyr home@STORE /mnt, with -o flat for a keyspace.

Examples:
  tyr fs create home && tyr mount home /mnt
  tyr keyspace create data && tyr mount --flat data /mnt")]
pub struct MountArguments {
    /// The file system, or with --flat the keyspace
    name: String,
    /// The directory that it appears at
    at: PathBuf,
    /// The blobs of a keyspace as files
    #[arg(long = "flat")]
    is_flat: bool,
    /// Nothing can be changed there
    #[arg(long = "read-only")]
    is_read_only: bool,
    /// Do not note when files are read; with --flat it never is
    #[arg(long = "noatime")]
    is_atime_kept: bool,
    /// Memory for files that the kernel knows; above it the kernel forgets those that it was told
    /// of first
    #[arg(long, value_parser = parse_size, default_value = "64MiB", value_name = "SIZE")]
    cache_size: u64,
    /// Out of the session of who calls: for `mount.tyr`, which ends before this does
    #[arg(long = "detached", hide = true)]
    is_detached: bool,
}

/// Mounts a file system until it is enough.
#[cfg(target_os = "linux")]
pub fn run(session: &mut Session, arguments: &MountArguments) -> Outcome {
    if arguments.is_detached {
        // It fails where it has one of its own already, which is as good.
        rustix::process::setsid().ok();
    }
    if session.is_cluster()? {
        // A mount of a cluster is small: in pages of 2 MiB what its threads read the kernel's
        // requests into is 64 MiB. Where this is not taken, it is only larger.
        rustix::thread::disable_transparent_huge_pages(true).ok();
    }
    match arguments.is_flat {
        true => mount_keyspace(session, arguments),
        false => mount_files(session, arguments),
    }
}

/// What cannot be done at the place.
#[cfg(target_os = "linux")]
fn failed(what: &str, arguments: &MountArguments, error: std::io::Error) -> Failure {
    tyr::Error::io(format!("cannot {what} {}", arguments.at.display()), error).into()
}

#[cfg(target_os = "linux")]
fn mount_files(session: &mut Session, arguments: &MountArguments) -> Outcome {
    let files = FileSystem::open(&session.open(Access::Write)?, &arguments.name)?;
    let access_times = match arguments.is_atime_kept {
        true => AccessTimes::Never,
        false => AccessTimes::Relative,
    };
    // A directory's store is open in one program at a time, which is this.
    let is_alone = !session.is_cluster()?;
    let (is_read_only, cache_bytes) = (arguments.is_read_only, arguments.cache_size as usize);
    let options = MountOptions { is_read_only, access_times, is_alone, cache_bytes };
    let mounted = tyr_fs::mount(&files, &arguments.at, &options);
    let mounted = mounted.map_err(|it| failed("mount at", arguments, it))?;
    stay(session, arguments, "file_system", mounted)?;
    Ok(files.close()?)
}

#[cfg(target_os = "linux")]
fn mount_keyspace(session: &mut Session, arguments: &MountArguments) -> Outcome {
    let name = &arguments.name;
    let opened = session.open_keyspace(name, Access::Write);
    let (store, keyspace) = opened.map_err(|failure| match failure {
        Failure::Store(error) if error.kind() == tyr::ErrorKind::NotFound => {
            let text = format!(
                "there is no keyspace \"{}\"; `tyr keyspace create {name}` makes it",
                name.escape_debug()
            );
            tyr::Error::not_found(text).into()
        }
        failure => failure,
    })?;
    let is_alone = !session.is_cluster()?;
    let (is_read_only, cache_bytes) = (arguments.is_read_only, arguments.cache_size as usize);
    let options = FlatOptions { is_read_only, is_alone, cache_bytes };
    let mounted = tyr_fs::mount_flat(&store, &keyspace, &arguments.at, &options);
    let mounted = mounted.map_err(|it| failed("mount at", arguments, it))?;
    stay(session, arguments, "keyspace", mounted)
}

/// Says that it is there, and unmounts it when it is enough.
#[cfg(target_os = "linux")]
fn stay(session: &mut Session, arguments: &MountArguments, kind: &str, mounted: Mount) -> Outcome {
    let (name, at) = (&arguments.name, arguments.at.display().to_string());
    session.interrupt.expect();
    let fields = json!({ kind: name, "mounted_at": at });
    session.output.record(&fields, &format!("{name} is mounted at {at}"))?;
    session.output.flush()?;
    while !session.interrupt.is_raised() && !mounted.is_over() {
        sleep(LOOK);
    }
    mounted.unmount().map_err(|it| failed("unmount", arguments, it))
}

/// Mounts are Linux's.
#[cfg(not(target_os = "linux"))]
pub fn run(_session: &mut Session, _arguments: &MountArguments) -> Outcome {
    Err(Failure::Usage("file systems are mounted on Linux only".to_owned()))
}
