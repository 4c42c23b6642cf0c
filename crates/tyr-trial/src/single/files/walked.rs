//! Every name of a file system is looked at through a mount that may remember few of them: the
//! mount's memory has a bound all the same.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::process::Signal;
use tyr_types::{Error, Result};

use super::NAME;
use crate::cluster::Program;
use crate::cluster::process::peak_resident_len;
use crate::lines::Lines;

/// Memory for files that the kernel knows, and what else the mount may have.
const CACHE_SIZE: &str = "16MiB";
const MEMORY_MAX: u64 = 80 << 20;

/// Threads that look: each waits for the cluster.
const WALKERS: usize = 16;

/// Mounts the file system and looks at each name of one of its directories; answers what was seen,
/// or why nothing was.
///
/// # Errors
/// `Corrupt` when there are others than so many names, or it took too much memory; `Unavailable`
/// where it cannot be mounted.
pub fn walk(
    program: &Program,
    addresses: &[String],
    directory: &str,
    names: u64,
) -> Result<String> {
    let Program::Serve(tyr) = program else {
        return Ok("not walked through a mount: there is no `tyr` beside this program".to_owned());
    };
    if !Path::new("/dev/fuse").exists() || !rustix::process::geteuid().is_root() {
        return Ok("not walked through a mount: that needs root and /dev/fuse".to_owned());
    }
    let place = tempfile::tempdir().map_err(|error| Error::io("a place to mount at", error))?;
    let mut command = Command::new(tyr);
    command.args(["mount", NAME, "--cache-size", CACHE_SIZE]).arg(place.path());
    command.env("TYR_DATA", format!("tyr://{}", addresses.join(",")));
    let mut mount = Lines::start(command, "a mount".to_owned())?;
    // It says so when it is there.
    mount.hear()?;
    let begun = Instant::now();
    let looked = look_at_all(&place.path().join(directory.trim_start_matches('/')));
    let (took, memory) = (begun.elapsed().as_secs_f64(), peak_resident_len(mount.pid()));
    mount.signal(Signal::TERM);
    // Nothing more is said until it has unmounted and ends.
    let _ = mount.hear();
    let looked = looked.map_err(|error| Error::io("names of a mount", error))?;
    let text = format!(
        "{looked} names were looked at through a mount with {CACHE_SIZE} for them in {took:.0} s, \
         which took at most {:.1} MiB",
        memory as f64 / f64::from(1 << 20),
    );
    match (looked == names, memory <= MEMORY_MAX) {
        (true, true) => Ok(text),
        (true, false) => Err(Error::corrupt(format!("{text}: more than {MEMORY_MAX} bytes"))),
        (false, _) => Err(Error::corrupt(format!("{text}: there are {names}"))),
    }
}

/// Asks for the attributes of every file in a directory; answers how many there are.
fn look_at_all(directory: &PathBuf) -> std::io::Result<u64> {
    let (entries, looked) = (Mutex::new(std::fs::read_dir(directory)?), AtomicU64::new(0));
    let look = || -> std::io::Result<()> {
        loop {
            let entry = entries.lock().expect("nobody panicked").next();
            let Some(entry) = entry else { return Ok(()) };
            entry?.metadata()?;
            looked.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let walkers: Vec<_> = (0..WALKERS).map(|_| scope.spawn(look)).collect();
        walkers.into_iter().try_for_each(|walker| {
            walker.join().map_err(|_| std::io::Error::other("a thread panicked"))?
        })
    })?;
    Ok(looked.into_inner())
}
