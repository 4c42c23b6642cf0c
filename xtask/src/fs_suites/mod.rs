//! Other people's tests on a mounted file system: `cargo xtask fs-suites`.
//!
//! ```text
//!   folder in TMPDIR:  store/     a directory, or the folders of a cluster's nodes
//!                      at-0/      where it is mounted: each suite has a directory of its own below
//!                      at-1/      with `--place two`, where it is mounted once more
//!                      beside-0/  another file system, for what goes from one to the other
//! ```
//!
//! [`suites`] has what is run; here is where it runs: the mounts before, and behind it that
//! everything still fits together. A suite whose program is not installed is left out, and said so.

mod suites;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use self::suites::{SUITES, Suite};
use crate::mounted::{Cluster, built, mount, ran, unmount};

/// How a suite ended.
enum End {
    Passed,
    /// What has to be installed.
    LeftOut(&'static str),
    Failed(String),
}

/// What the file system is in, and how often it is mounted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A directory, and once.
    Embedded,
    /// A cluster of three nodes, and once.
    Cluster,
    /// The same, and twice: each suite runs at both mounts at the same time.
    Two,
}

const PLACES: [(&str, Place); 3] =
    [("embedded", Place::Embedded), ("cluster", Place::Cluster), ("two", Place::Two)];

/// What is asked for on the command line.
struct Arguments<'a> {
    program: Option<PathBuf>,
    place: Place,
    /// None are all.
    names: &'a [&'a str],
}

impl<'a> Arguments<'a> {
    fn parse(mut words: &'a [&'a str]) -> Result<Self, String> {
        let (mut program, mut place) = (None, Place::Embedded);
        loop {
            words = match words {
                ["--tyr", path, rest @ ..] => {
                    program = Some(PathBuf::from(path));
                    rest
                }
                ["--place", name, rest @ ..] => {
                    let found = PLACES.iter().find(|(it, _)| it == name);
                    let text =
                        || format!("there is no place {name}: {}", listed(&PLACES.map(|it| it.0)));
                    place = found.ok_or_else(text)?.1;
                    rest
                }
                names => {
                    let is_known = |name: &&&str| SUITES.iter().any(|it| it.name == **name);
                    let unknown = names.iter().find(|name| !is_known(name));
                    let known = || listed(&SUITES.map(|suite| suite.name));
                    return match unknown {
                        None => Ok(Self { program, place, names }),
                        Some(name) => Err(format!("there is no suite {name}: {}", known())),
                    };
                }
            }
        }
    }
}

fn listed(names: &[&str]) -> String {
    format!("there are {}", names.join(", "))
}

/// Runs the suites of these names, or all.
pub fn run(root: &Path, words: &[&str]) -> bool {
    let arguments = match Arguments::parse(words) {
        Ok(arguments) => arguments,
        Err(text) => {
            eprintln!("{text}");
            return false;
        }
    };
    let Some(program) = arguments.program.clone().or_else(|| built(root, false)) else {
        return false;
    };
    let folder = std::env::temp_dir().join(format!("fs-suites-{}", std::process::id()));
    let is_good = match in_folder(&program, &folder, &arguments) {
        Ok(is_good) => is_good,
        Err(text) => {
            eprintln!("{text}");
            false
        }
    };
    if is_good {
        drop(fs::remove_dir_all(&folder));
    } else {
        eprintln!("the store is kept: {}", folder.display());
    }
    is_good
}

/// Where a suite runs.
struct Ground {
    /// A mount of the file system.
    at: PathBuf,
    /// A directory of another one.
    beside: PathBuf,
}

fn in_folder(program: &Path, folder: &Path, arguments: &Arguments<'_>) -> Result<bool, String> {
    let count = if arguments.place == Place::Two { 2 } else { 1 };
    let ground = |number| {
        let at = folder.join(format!("at-{number}"));
        let ground = Ground { at, beside: folder.join(format!("beside-{number}")) };
        for folder in [&ground.at, &ground.beside] {
            fs::create_dir_all(folder).map_err(|it| format!("{}: {it}", folder.display()))?;
        }
        Ok(ground)
    };
    let grounds = (0..count).map(ground).collect::<Result<Vec<_>, String>>()?;
    let folder = folder.join("store");
    let (cluster, store) = match arguments.place {
        Place::Embedded => (None, folder.into_os_string()),
        Place::Cluster | Place::Two => {
            let cluster = Cluster::start(program, &folder)?;
            let address = OsString::from(&cluster.address);
            (Some(cluster), address)
        }
    };
    let tyr = |words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).env("TYR_DATA", &store).stdin(Stdio::null());
        command
    };
    ran(&mut tyr(&["fs", "create", "suites"]))?;
    let mount_at = |it: &Ground| mount(tyr(&["mount", "suites", &it.at.display().to_string()]));
    let mounts = grounds.iter().map(mount_at).collect::<Result<Vec<_>, String>>()?;
    let is_chosen = |it: &&Suite| arguments.names.is_empty() || arguments.names.contains(&it.name);
    let results: Vec<_> =
        SUITES.iter().filter(is_chosen).map(|suite| (suite, run_suite(suite, &grounds))).collect();
    mounts.into_iter().try_for_each(unmount)?;
    ran(&mut tyr(&["fs", "check", "suites"]))?;
    if cluster.is_none() {
        ran(&mut tyr(&["check"]))?;
    }
    println!();
    for (suite, (took, end)) in &results {
        let seconds = took.as_secs_f64();
        match end {
            End::Passed => println!("{:10} {seconds:>7.1} s  passed", suite.name),
            End::LeftOut(what) => println!("{:10}            left out: {what}", suite.name),
            End::Failed(text) => println!("{:10} {seconds:>7.1} s  FAILED: {text}", suite.name),
        }
    }
    Ok(results.iter().all(|(_, (_, end))| !matches!(end, End::Failed(_))))
}

/// Runs a suite at all mounts at the same time.
fn run_suite(suite: &Suite, grounds: &[Ground]) -> (Duration, End) {
    println!("\n== {}: {}", suite.name, suite.what);
    let start = Instant::now();
    let is_there = Command::new("sh")
        .args(["-c", &format!("command -v {}", suite.program)])
        .stdout(Stdio::null())
        .status();
    if !is_there.is_ok_and(|status| status.success()) {
        return (start.elapsed(), End::LeftOut(suite.install));
    }
    let run_at = |number: usize, ground: &Ground| {
        let folder = ground.at.join(format!("{}-{number}", suite.name));
        fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        (suite.run)(&folder, &ground.beside)
    };
    let end = std::thread::scope(|scope| {
        let runs: Vec<_> = grounds
            .iter()
            .enumerate()
            .map(|(number, ground)| scope.spawn(move || run_at(number, ground)))
            .collect();
        let ended = runs.into_iter().map(|it| it.join().unwrap_or(Err("it panicked".to_owned())));
        match ended.collect::<Result<Vec<()>, String>>() {
            Ok(_) => End::Passed,
            Err(text) => {
                println!("== {} FAILED: {text}", suite.name);
                End::Failed(text)
            }
        }
    });
    (start.elapsed(), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_told_with_what_there_is() {
        let error = |words: &[&str]| Arguments::parse(words).err().unwrap();
        assert!(error(&["--place", "moon"]).contains("there are embedded, cluster, two"));
        assert!(error(&["--place", "two", "fsx", "xfs"]).contains("no suite xfs: there are pjd"));
        let arguments = Arguments::parse(&["--place", "two", "--tyr", "/tyr", "fsx"]).ok().unwrap();
        assert!(arguments.place == Place::Two && arguments.names == ["fsx"]);
    }
}
