//! Everything that continuous integration checks, in the order that fails soonest.
//!
//! Each step is a command that also works by hand; it is printed before it runs. All steps run,
//! so that one failure does not hide another. Nothing is written to the tree: cargo may not touch
//! `Cargo.lock` (`--locked`), and rustfmt only looks.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::target;
use crate::excerpt::{self, Excerpt};
use crate::tidy;

/// One thing to check.
struct Step {
    name: &'static str,
    action: Action,
}

enum Action {
    /// The rules of [`tidy`], without starting a process.
    Tidy,
    /// `cargo` with these words, from the root.
    Cargo(&'static [&'static str]),
    /// An example, as the tests built it, from an empty temporary folder: it may write there.
    Example(&'static str),
    /// A script of the repository.
    Script(&'static str),
}

/// The public crate with one of its two halves.
const fn half(feature: &str) -> [&str; 8] {
    let package = "--package=tyr";
    let all = "--no-default-features";
    ["clippy", "--locked", package, "--lib", all, feature, "--", "--deny=warnings"]
}

const STEPS: [Step; 10] = [
    Step { name: "tidy", action: Action::Tidy },
    Step { name: "format", action: Action::Cargo(&["fmt", "--all", "--check"]) },
    Step {
        name: "lint",
        action: Action::Cargo(&[
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--keep-going",
            "--",
            "--deny=warnings",
        ]),
    },
    // What an embedder and what a client builds.
    Step { name: "embedded", action: Action::Cargo(&half("--features=embedded")) },
    Step { name: "cluster", action: Action::Cargo(&half("--features=cluster")) },
    Step {
        name: "docs",
        // Libraries only: the library and the program `tyr` would write the same pages. With what
        // is private, for module docs tell how the parts of a folder fit together.
        action: Action::Cargo(&[
            "doc",
            "--locked",
            "--workspace",
            "--no-deps",
            "--lib",
            "--document-private-items",
            "--keep-going",
        ]),
    },
    Step {
        name: "tests",
        action: Action::Cargo(&["test", "--locked", "--workspace", "--no-fail-fast"]),
    },
    Step {
        name: "trial",
        // By name only: it is of no use beside other tests, and takes three minutes.
        action: Action::Cargo(&[
            "test",
            "--locked",
            "--workspace",
            "--test",
            "trial",
            "--",
            "--nocapture",
        ]),
    },
    // From the program of the commit before this one.
    Step { name: "upgrade", action: Action::Script(".ci/upgrade") },
    Step { name: "readme", action: Action::Example("readme") },
];

/// Runs every step, prints what the failed ones said once more and how long each took, and answers
/// whether all passed.
pub fn run(root: &Path) -> bool {
    if let Some(missing) = missing_tools() {
        eprintln!("{missing}");
        return false;
    }
    let start = Instant::now();
    let mut results: Vec<(&str, Duration, bool)> = Vec::new();
    let mut excerpts = Vec::new();
    for step in &STEPS {
        println!("\n== {}: {}", step.name, step.action);
        let start = Instant::now();
        let (is_good, excerpt) = perform(&step.action, root);
        results.push((step.name, start.elapsed(), is_good));
        if !is_good {
            excerpts.push((step.name, excerpt));
        }
    }
    for (name, excerpt) in excerpts {
        println!("\n== {name} failed; it said:");
        excerpt.lines().iter().for_each(|line| println!("{line}"));
    }
    println!();
    for (name, took, is_good) in &results {
        println!("{name:8} {:>7.1} s  {}", took.as_secs_f64(), word(*is_good));
    }
    let failed: Vec<&str> =
        results.iter().filter(|(_, _, is_good)| !is_good).map(|(name, _, _)| *name).collect();
    let total = start.elapsed().as_secs_f64();
    if failed.is_empty() {
        println!("all {} steps passed in {total:.1} s", results.len());
    } else {
        println!("failed: {} (of {} steps, {total:.1} s)", failed.join(", "), results.len());
    }
    failed.is_empty()
}

fn word(is_good: bool) -> &'static str {
    if is_good { "passed" } else { "FAILED" }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tidy => f.write_str("cargo xtask tidy"),
            Self::Cargo(words) => write!(f, "cargo {}", words.join(" ")),
            Self::Script(path) => f.write_str(path),
            Self::Example(name) => {
                write!(
                    f,
                    "cargo run --package=tyr --example={name} (built before, in an empty folder)"
                )
            }
        }
    }
}

fn perform(action: &Action, root: &Path) -> (bool, Excerpt) {
    match action {
        // What it finds stands above, and is short.
        Action::Tidy => (tidy::run(root), Excerpt::default()),
        Action::Cargo(words) => excerpt::run(&mut cargo(words, root), &mut io::stdout()),
        Action::Script(path) => {
            let mut script = Command::new(root.join(path));
            excerpt::run(script.current_dir(root), &mut io::stdout())
        }
        Action::Example(name) => {
            let folder = std::env::temp_dir().join(format!("tyr-xtask-{}", std::process::id()));
            if let Err(error) = std::fs::create_dir_all(&folder) {
                let text = format!("{}: cannot be created: {error}", folder.display());
                eprintln!("{text}");
                return (false, Excerpt::from(&*text));
            }
            let mut example =
                Command::new(root.join(target(root)).join("debug/examples").join(name));
            example.stdin(Stdio::null());
            let answer = excerpt::run(example.current_dir(&folder), &mut io::stdout());
            if let Err(error) = std::fs::remove_dir_all(&folder) {
                eprintln!("{}: stays behind: {error}", folder.display());
            }
            answer
        }
    }
}

/// `cargo` with these words on the repository at `root`.
fn cargo(words: &[&str], root: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.stdin(Stdio::null()).args(words).current_dir(root);
    if words[0] == "doc" {
        command.env("RUSTDOCFLAGS", "--deny=warnings");
    }
    command
}

/// What must be installed first, in words; `None` when all is there.
fn missing_tools() -> Option<String> {
    let is_there = |program: &str, words: &[&str]| {
        Command::new(program)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let wanted: [(&str, &[&str], &str); 6] = [
        ("cargo", &["fmt", "--version"], "rustfmt: rustup component add rustfmt"),
        ("cargo", &["clippy", "--version"], "clippy: rustup component add clippy"),
        ("cc", &["--version"], "a C compiler: apt-get install gcc, or your system's like"),
        ("c++", &["--version"], "a C++ compiler: apt-get install g++, or your system's like"),
        (
            "python3",
            &["-c", "import sys; sys.exit(sys.version_info < (3, 11))"],
            "Python 3.11 or later: apt-get install python3, or your system's like",
        ),
        (
            "javac",
            &["--release", "11", "--version"],
            "a JDK, 11 or later: apt-get install default-jdk-headless, or your system's like",
        ),
    ];
    let missing: Vec<String> = wanted
        .iter()
        .filter(|(program, words, _)| !is_there(program, words))
        .map(|(_, _, advice)| format!("  {advice}"))
        .collect();
    if missing.is_empty() {
        return None;
    }
    Some(format!("missing, install first:\n{}", missing.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_prints_as_a_command_that_can_be_typed() {
        for step in &STEPS {
            let command = step.action.to_string();
            let is_typed = command.starts_with("cargo ") || command.starts_with(".ci/");
            assert!(is_typed, "{}", step.name);
        }
    }

    #[test]
    fn no_step_may_change_the_lock_file() {
        for step in &STEPS {
            let Action::Cargo(words) = &step.action else { continue };
            assert!(words[0] == "fmt" || words.contains(&"--locked"), "{}", step.name);
        }
    }

    #[test]
    fn a_command_that_fails_is_a_failed_step() {
        let root = crate::root();
        let is_good = |words: &[&str]| excerpt::run(&mut cargo(words, &root), &mut io::sink()).0;
        assert!(is_good(&["--version"]));
        assert!(!is_good(&["no-such-verb-of-cargo"]));
    }
}
