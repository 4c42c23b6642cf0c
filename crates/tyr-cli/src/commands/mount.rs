//! `tyr mount`: a file system of a store at a path of this machine.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tyr_fs::blocking::FileSystem;
#[cfg(target_os = "linux")]
use tyr_fs::{AccessTimes, MountOptions};

use crate::data::parse_size;
use crate::failure::Outcome;
use crate::session::{Access, Session};

/// How often it is looked whether somebody asked to stop.
const LOOK: Duration = Duration::from_millis(50);

/// `tyr mount`
#[derive(Args, Debug)]
#[command(after_help = "\
Needs /dev/fuse, and root or fusermount3 (Debian: fuse3). Runs until Ctrl-C or SIGTERM, and then \
unmounts: at once for who looks for files there, and it ends when the files that are open there \
have been closed.

For mount(8) and /etc/fstab, this program is also the helper mount.tyr, by a link of that name: \
mount -t tyr home@STORE /mnt.

Example:
  tyr fs create home && tyr mount home /mnt")]
pub struct MountArguments {
    /// The file system
    name: String,
    /// The directory that it appears at
    at: PathBuf,
    /// Nothing can be changed there
    #[arg(long = "read-only")]
    is_read_only: bool,
    /// Do not note when files are read
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
    let files = FileSystem::open(&session.open(Access::Write)?, &arguments.name)?;
    let at = arguments.at.display().to_string();
    let failed = |what: &str, error| tyr::Error::io(format!("cannot {what} {at}"), error);
    let access_times = match arguments.is_atime_kept {
        true => AccessTimes::Never,
        false => AccessTimes::Relative,
    };
    // A directory's store is open in one program at a time, which is this.
    let is_alone = !session.is_cluster()?;
    let (is_read_only, cache_bytes) = (arguments.is_read_only, arguments.cache_size as usize);
    let options = MountOptions { is_read_only, access_times, is_alone, cache_bytes };
    let mounted = tyr_fs::mount(&files, &arguments.at, &options);
    let mounted = mounted.map_err(|it| failed("mount at", it))?;
    session.interrupt.expect();
    let fields = json!({ "file_system": arguments.name, "mounted_at": at });
    session.output.record(&fields, &format!("{} is mounted at {at}", arguments.name))?;
    session.output.flush()?;
    while !session.interrupt.is_raised() && !mounted.is_over() {
        sleep(LOOK);
    }
    mounted.unmount().map_err(|it| failed("unmount", it))?;
    Ok(files.close()?)
}

/// Mounts are Linux's.
#[cfg(not(target_os = "linux"))]
pub fn run(_session: &mut Session, _arguments: &MountArguments) -> Outcome {
    Err(crate::failure::Failure::Usage("file systems are mounted on Linux only".to_owned()))
}
