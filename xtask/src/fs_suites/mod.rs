//! Other people's tests on a mounted file system: `cargo xtask fs-suites`.
//!
//! ```text
//!   folder in TMPDIR:  store/   what `tyr mount` serves
//!                      at/      where: each suite has a directory of its own below
//!                      beside/  another file system, for what goes from one to the other
//! ```
//!
//! [`suites`] has what is run; here is where it runs: the mount before, and behind it that
//! everything still fits together. A suite whose program is not installed is left out, and said so.

mod suites;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use self::suites::{SUITES, Suite};
use crate::mounted::{built, mount, ran, unmount};

/// How a suite ended.
enum End {
    Passed,
    /// What has to be installed.
    LeftOut(&'static str),
    Failed(String),
}

/// Where suites run.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn at(&self) -> PathBuf {
        self.folder.join("at")
    }

    fn beside(&self) -> PathBuf {
        self.folder.join("beside")
    }
}

/// Runs the suites of these names, or all. `--tyr PROGRAM` takes a program that was built before.
pub fn run(root: &Path, words: &[&str]) -> bool {
    let (program, names) = match words {
        ["--tyr", program, names @ ..] => (PathBuf::from(program), names),
        names => match built(root, false) {
            Some(program) => (program, names),
            None => return false,
        },
    };
    if let Some(unknown) = names.iter().find(|name| SUITES.iter().all(|it| it.name != **name)) {
        let known: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
        eprintln!("there is no suite {unknown}: there are {}", known.join(", "));
        return false;
    }
    let folder = std::env::temp_dir().join(format!("fs-suites-{}", std::process::id()));
    let place = Place { folder };
    let is_good = match in_place(&program, &place, names) {
        Ok(is_good) => is_good,
        Err(text) => {
            eprintln!("{text}");
            false
        }
    };
    if is_good {
        drop(fs::remove_dir_all(&place.folder));
    } else {
        eprintln!("the store is kept: {}", place.folder.display());
    }
    is_good
}

fn in_place(program: &Path, place: &Place, names: &[&str]) -> Result<bool, String> {
    for folder in [place.at(), place.beside()] {
        fs::create_dir_all(&folder).map_err(|it| format!("{}: {it}", folder.display()))?;
    }
    let tyr = |words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).env("TYR_DATA", place.folder.join("store")).stdin(Stdio::null());
        command
    };
    ran(&mut tyr(&["fs", "create", "suites"]))?;
    let at = place.at();
    let mounted = mount(tyr(&["mount", "suites", &at.display().to_string()]))?;
    let chosen = SUITES.iter().filter(|it| names.is_empty() || names.contains(&it.name));
    let results: Vec<_> = chosen.map(|suite| (suite, run_suite(suite, place))).collect();
    unmount(mounted)?;
    ran(&mut tyr(&["fs", "check", "suites"]))?;
    ran(&mut tyr(&["check"]))?;
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

fn run_suite(suite: &Suite, place: &Place) -> (Duration, End) {
    println!("\n== {}: {}", suite.name, suite.what);
    let start = Instant::now();
    let is_there = Command::new("sh")
        .args(["-c", &format!("command -v {}", suite.program)])
        .stdout(Stdio::null())
        .status();
    if !is_there.is_ok_and(|status| status.success()) {
        return (start.elapsed(), End::LeftOut(suite.install));
    }
    let folder = place.at().join(suite.name);
    let made = fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()));
    let end = match made.and_then(|()| (suite.run)(&folder, &place.beside())) {
        Ok(()) => End::Passed,
        Err(text) => {
            println!("== {} FAILED: {text}", suite.name);
            End::Failed(text)
        }
    };
    (start.elapsed(), end)
}
