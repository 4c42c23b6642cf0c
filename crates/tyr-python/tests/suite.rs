//! The tests in Python, with the library that cargo built beside this one: what is installed is
//! tried by `cargo xtask python`, which builds a wheel.
//!
//! Python's own `unittest` runs them, on folders and on a node in this process. python3, 3.11 or
//! later, is needed; without it the tests fail and say so.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tyr_testing::Cluster;

/// A folder in which Python finds the package `tyr`.
struct Site(tempfile::TempDir);

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("tyr");
        std::fs::create_dir(&package).unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/tyr");
        for source in std::fs::read_dir(sources).unwrap() {
            let source = source.unwrap();
            if source.file_type().unwrap().is_file() {
                let name = package.join(source.file_name());
                std::os::unix::fs::symlink(source.path(), name).unwrap();
            }
        }
        // Cargo puts the library of a package beside its tests.
        let built = std::env::current_exe().unwrap().parent().unwrap().join("lib_tyr.so");
        std::os::unix::fs::symlink(built, package.join("_tyr.abi3.so")).unwrap();
        Self(folder)
    }

    fn python(&self, words: &[&str]) -> Command {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
        let mut python = Command::new("sh");
        python.args(["-c", "ulimit -c unlimited; exec python3 \"$@\"", "python3"]);
        python.args(["-X", "dev", "-W", "error::ResourceWarning", "-B"]).args(words);
        let places = format!("{}:{}", self.0.path().display(), tests.display());
        python.current_dir(self.0.path()).env("PYTHONPATH", places);
        python
    }

    /// Where it crashed, if it did, and there is a debugger: Python itself tells only what its own
    /// threads were at.
    fn crash(&self) -> String {
        let files = std::fs::read_dir(self.0.path()).unwrap().flatten().map(|it| it.path());
        let is_core =
            |path: &PathBuf| path.file_name().unwrap().as_encoded_bytes().starts_with(b"core");
        let Some(core) = files.into_iter().find(is_core) else { return String::new() };
        let python =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let python = String::from_utf8(python.unwrap().stdout).unwrap();
        let told =
            Command::new("gdb").args(["-batch", "-ex", "bt 40", python.trim()]).arg(core).output();
        told.map_or_else(
            |_| String::new(),
            |told| String::from_utf8_lossy(&told.stdout).into_owned(),
        )
    }
}

fn run(cluster: &str, modules: &[&str]) {
    let site = Site::new();
    let is_there = "import sys; sys.exit(sys.version_info < (3, 11))";
    let found = Command::new("python3").args(["-c", is_there]).status();
    assert!(
        found.is_ok_and(|it| it.success()),
        "python3, 3.11 or later, is missing: install it (apt-get install python3)"
    );
    let words = [&["-m", "unittest"][..], modules].concat();
    let ran = site.python(&words).env("TYR_TEST_CLUSTER", cluster).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}: {said}\n{}", ran.status, site.crash());
    assert!(said.contains("\nOK\n"), "tests ran, and none was skipped: {said}");
    println!("{said}");
}

#[test]
fn python_does_what_the_public_crate_does() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::form(folder.path(), 1, |_| {});
    run(cluster.address(), &["test_blobs", "test_transactions", "test_aio", "test_streams"]);
}

#[test]
fn python_has_locks_watches_and_service_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::form(folder.path(), 1, |_| {});
    run(cluster.address(), &["test_locks", "test_watches", "test_metadata"]);
}

#[test]
fn wrong_input_of_every_kind_is_an_exception_with_words() {
    run("", &["test_wrong"]);
}

#[test]
fn a_cluster_that_dies_is_an_exception_in_time_and_ctrl_c_gets_through() {
    let (site, folder) = (Site::new(), tempfile::tempdir().unwrap());
    let cluster = Cluster::form(folder.path(), 1, |_| {});
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/dying.py");
    let mut python = site.python(&[&program.display().to_string(), cluster.address()]);
    let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "ready");
    drop(cluster);
    child.stdin.take().unwrap().write_all(b"dead\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert!(["interrupted", "ended"].contains(&&*said.next().unwrap().unwrap()));
}

/// `cargo xtask steady` does it with ten million calls, and looks at the memory.
#[test]
fn calls_of_many_kinds_some_of_them_cancelled_are_answered() {
    let site = Site::new();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/caller.py");
    let mut python = site.python(&[&program.display().to_string(), "store", "16", "7"]);
    python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = python.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"mix 4000\nasync 1000\n").unwrap();
    let ran = child.wait_with_output().unwrap();
    let complaints = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && complaints.is_empty(), "{}: {complaints}", ran.status);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "ready\ndone\ndone\n");
}

#[test]
fn the_lines_of_the_readme_run() {
    let site = Site::new();
    let readme = include_str!("../README.md");
    let program = readme.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let ran = site.python(&["-c", program]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "b'-3.5\\n' 1\n");
}
