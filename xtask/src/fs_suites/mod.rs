//! Other people's tests on a mounted file system: `cargo xtask fs-suites`.
//!
//! ```text
//!   folder in TMPDIR:  store/     a directory, or the folders of a cluster's nodes
//!                      at-0/      where it is mounted: each suite has a directory of its own below
//!                      at-1/      with `--place two`, where it is mounted once more
//!                      flat-0/    and so are the blobs of a keyspace
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

use self::suites::{Run, SUITES, Suite};
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
    /// One of a keyspace.
    flat: PathBuf,
    /// A directory of another one.
    beside: PathBuf,
}

fn in_folder(program: &Path, folder: &Path, arguments: &Arguments<'_>) -> Result<bool, String> {
    let count = if arguments.place == Place::Two { 2 } else { 1 };
    let ground = |number| {
        let place = |name: &str| folder.join(format!("{name}-{number}"));
        let ground = Ground { at: place("at"), flat: place("flat"), beside: place("beside") };
        for folder in [&ground.at, &ground.flat, &ground.beside] {
            fs::create_dir_all(folder).map_err(|it| format!("{}: {it}", folder.display()))?;
        }
        Ok(ground)
    };
    let grounds = (0..count).map(ground).collect::<Result<Vec<_>, String>>()?;
    // A directory's store is open in one program at a time: the keyspace is in another.
    let (cluster, stores) = match arguments.place {
        Place::Embedded => {
            (None, ["store", "store-flat"].map(|name| folder.join(name).into_os_string()))
        }
        Place::Cluster | Place::Two => {
            let cluster = Cluster::start(program, &folder.join("store"))?;
            let address = OsString::from(&cluster.address);
            (Some(cluster), [address.clone(), address])
        }
    };
    let on = |store: &OsString, words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).env("TYR_DATA", store).stdin(Stdio::null());
        command
    };
    let tyr = |words: &[&str]| on(&stores[0], words);
    ran(&mut tyr(&["fs", "create", "suites"]))?;
    ran(&mut on(&stores[1], &["keyspace", "create", "suites-flat"]))?;
    let mount_at = |it: &Ground| {
        let [at, flat] = [&it.at, &it.flat].map(|at| at.display().to_string());
        let files = mount(tyr(&["mount", "suites", &at]))?;
        Ok([files, mount(on(&stores[1], &["mount", "--flat", "suites-flat", &flat]))?])
    };
    let mounts = grounds.iter().map(mount_at).collect::<Result<Vec<_>, String>>()?;
    let is_chosen = |it: &&Suite| arguments.names.is_empty() || arguments.names.contains(&it.name);
    let results: Vec<_> =
        SUITES.iter().filter(is_chosen).map(|suite| (suite, run_suite(suite, &grounds))).collect();
    mounts.into_iter().flatten().try_for_each(unmount)?;
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
    let run = match suite.run {
        Run::Each(run) => run_at_each(suite, grounds, run),
        Run::Together(run) => run_together(suite, grounds, run),
    };
    let end = match run {
        Ok(()) => End::Passed,
        Err(text) => {
            println!("== {} FAILED: {text}", suite.name);
            End::Failed(text)
        }
    };
    (start.elapsed(), end)
}

fn made(folder: PathBuf) -> Result<PathBuf, String> {
    fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// At each mount of the file system in a directory of its own, at the same time.
fn run_at_each(
    suite: &Suite,
    grounds: &[Ground],
    run: fn(&Path, &Path) -> Result<(), String>,
) -> Result<(), String> {
    let run_at = |number: usize, ground: &Ground| {
        run(&made(ground.at.join(format!("{}-{number}", suite.name)))?, &ground.beside)
    };
    std::thread::scope(|scope| {
        let runs: Vec<_> = grounds
            .iter()
            .enumerate()
            .map(|(number, ground)| scope.spawn(move || run_at(number, ground)))
            .collect();
        let ended = runs.into_iter().map(|it| it.join().unwrap_or(Err("it panicked".to_owned())));
        ended.collect()
    })
}

/// In the same directory at all mounts of the file system; and then in the keyspace, which has none
/// that all mounts see before something is in it.
fn run_together(
    suite: &Suite,
    grounds: &[Ground],
    run: fn(&[PathBuf], &Path) -> Result<(), String>,
) -> Result<(), String> {
    let folders: Vec<_> = grounds.iter().map(|ground| ground.at.join(suite.name)).collect();
    made(folders[0].clone())?;
    run(&folders, &grounds[0].beside)?;
    let flat: Vec<_> = grounds.iter().map(|ground| ground.flat.clone()).collect();
    run(&flat, &grounds[0].beside)
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
