//! The package for Python as users have it: a wheel, in an empty environment, and tried there.
//!
//! Cargo's own tests run the same tests on the library alone (`crates/tyr-python/tests/suite.rs`).
//! What needs packages of others is only here: fsspec, Zarr and their tests, and the types by mypy.
//! pip gets them from PyPI.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, target};

/// Where the package lies.
const PACKAGE: &str = "crates/tyr-python";

/// What builds a wheel.
const BUILDERS: [&str; 1] = ["maturin>=1.9,<2"];

/// What the tests need besides the wheel.
const TESTERS: [&str; 5] = ["pytest", "pytest-asyncio", "mypy", "typing_extensions", "numpy"];

/// The tests that Python alone can run.
const UNITTESTS: [&str; 8] = [
    "test_blobs",
    "test_transactions",
    "test_wrong",
    "test_aio",
    "test_streams",
    "test_locks",
    "test_watches",
    "test_metadata",
];

/// Builds the wheel without optimizations, installs it, and runs every test.
pub fn run(root: &Path) -> bool {
    let work = target(root).join("python");
    wheel(root, &work).is_some_and(|wheel| try_out(root, &work.join("user"), &wheel))
}

/// Builds the wheel without optimizations in this folder, which is cleared; answers where it lies.
pub fn wheel(root: &Path, work: &Path) -> Option<PathBuf> {
    let version = ["-c", "import sys, venv; sys.exit(sys.version_info < (3, 11))"];
    if !Command::new("python3").args(version).status().is_ok_and(|it| it.success()) {
        eprintln!("python3, 3.11 or later, with venv is missing: apt-get install python3-venv");
        return None;
    }
    match std::fs::remove_dir_all(work) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            eprintln!("{}: cannot be cleared: {error}", work.display());
            return None;
        }
        _ => {}
    }
    let (builder, wheels) = (work.join("builder"), work.join("wheels"));
    let is_built = environment(root, &builder, &BUILDERS) && build(root, &builder, &wheels);
    if is_built { wheel_in(&wheels) } else { None }
}

fn build(root: &Path, builder: &Path, wheels: &Path) -> bool {
    let manifest = root.join(PACKAGE).join("Cargo.toml");
    let mut maturin = Command::new(builder.join("bin/maturin"));
    maturin.args(["build", "--locked", "--profile", "dev", "--manifest-path"]).arg(manifest);
    maturin.arg("--interpreter").arg(builder.join("bin/python"));
    maturin.arg("--compatibility").arg("linux").arg("--out").arg(wheels);
    succeeds(maturin.current_dir(root))
}

fn wheel_in(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let found =
        entries.map(|entry| entry.path()).find(|it| it.extension() == Some(OsStr::new("whl")));
    if found.is_none() {
        eprintln!("{}: maturin has left no wheel there", folder.display());
    }
    found
}

fn try_out(root: &Path, user: &Path, wheel: &Path) -> bool {
    let wheel = format!("{}[fsspec,zarr]", wheel.display());
    let words: Vec<&str> = std::iter::once(&*wheel).chain(TESTERS).collect();
    if !environment(root, user, &words) {
        return false;
    }
    let tests = root.join(PACKAGE).join("tests/python");
    let python = |words: &[&str]| {
        let mut python = Command::new(user.join("bin/python"));
        // Not from the sources: what is tried is what was installed.
        python.args(words).current_dir(&tests).env_remove("PYTHONPATH");
        python.env("PYTHONDONTWRITEBYTECODE", "1");
        python
    };
    let unittests = [&["-X", "dev", "-m", "unittest"][..], &UNITTESTS].concat();
    let pytests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto"];
    let pytests = [&pytests[..], &["test_fsspec.py", "test_zarr.py"]].concat();
    let steps: [&[&str]; 4] = [
        &unittests,
        &pytests,
        &[
            "-m",
            "mypy",
            "--strict",
            "--ignore-missing-imports",
            "-p",
            "tyr",
            "--cache-dir=/dev/null",
        ],
        &["-m", "mypy.stubtest", "tyr._tyr", "--ignore-missing-stub"],
    ];
    let results: Vec<bool> = steps.iter().map(|words| succeeds(&mut python(words))).collect();
    let readme = std::fs::read_to_string(root.join(PACKAGE).join("README.md")).unwrap_or_default();
    let is_told = lines_of(&readme).is_some_and(|lines| {
        let empty = user.join("empty");
        std::fs::create_dir_all(&empty).is_ok()
            && succeeds(python(&["-c", lines]).current_dir(empty))
    });
    results.iter().all(|is_good| *is_good) && is_told
}

/// The first lines of Python in a document.
fn lines_of(document: &str) -> Option<&str> {
    document.split("```python\n").nth(1)?.split("```").next()
}

/// Makes a fresh environment with these packages.
pub fn environment(root: &Path, folder: &Path, packages: &[&str]) -> bool {
    let mut python = Command::new("python3");
    python.current_dir(root).args(["-m", "venv"]).arg(folder);
    let mut pip = Command::new(folder.join("bin/pip"));
    pip.current_dir(root).args(["install", "--quiet", "--disable-pip-version-check"]);
    succeeds(&mut python) && succeeds(pip.args(packages))
}

/// Runs a command, which is printed first.
pub fn succeeds(command: &mut Command) -> bool {
    println!("\n== {command:?}");
    command::succeeds(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_document_are_its_first_block_of_python() {
        let document = "text\n```sh\nls\n```\n```python\nimport tyr\n```\n```python\nlater\n```\n";
        assert_eq!(lines_of(document), Some("import tyr\n"));
        assert_eq!(lines_of("none"), None);
    }

    #[test]
    fn a_folder_without_a_wheel_has_none() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tyr.txt"), "").unwrap();
        assert_eq!(wheel_in(folder.path()), None);
        let wheel = folder.path().join("tyr.whl");
        std::fs::write(&wheel, "").unwrap();
        assert_eq!(wheel_in(folder.path()), Some(wheel));
    }
}
