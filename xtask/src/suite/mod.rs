//! Everything that continuous integration checks, in the order that fails soonest.
//!
//! Each step is a command that also works by hand; it is printed before it runs. All steps run,
//! so that one failure does not hide another. Tests wait much of their time, so what compiles but
//! runs nothing goes beside them. Nothing is written to the tree: cargo may not touch `Cargo.lock`
//! (`--locked`), and rustfmt only looks.

mod excerpt;
mod programs;

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::command::target;
use crate::tidy;
use excerpt::Excerpt;
use programs::{Listener, Program};

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
    /// The same for `cargo test --no-run`, which tells of [`programs`] that it builds.
    Build(&'static [&'static str]),
    /// Those programs.
    Programs,
    /// An example, as the tests built it, from an empty temporary folder: it may write there.
    Example(&'static str),
    /// A script of the repository, and its words.
    Script(&'static str, &'static [&'static str]),
}

/// Steps one after the other, and others beside them.
struct Stage {
    steps: &'static [Step],
    beside: &'static [Step],
}

/// The public crate with one of its two halves.
const fn half(feature: &str) -> [&str; 8] {
    let package = "--package=tyr";
    let all = "--no-default-features";
    ["clippy", "--locked", package, "--lib", all, feature, "--", "--deny=warnings"]
}

const fn cargo_step(name: &'static str, words: &'static [&'static str]) -> Step {
    Step { name, action: Action::Cargo(words) }
}

const STAGES: [Stage; 3] = [
    Stage {
        steps: &[
            Step { name: "tidy", action: Action::Tidy },
            cargo_step("format", &["fmt", "--all", "--check"]),
            cargo_step(
                "lint",
                &[
                    "clippy",
                    "--locked",
                    "--workspace",
                    "--all-targets",
                    "--keep-going",
                    "--",
                    "--deny=warnings",
                ],
            ),
            Step {
                name: "build",
                action: Action::Build(&[
                    "test",
                    "--locked",
                    "--workspace",
                    "--no-run",
                    "--message-format=json-render-diagnostics",
                ]),
            },
        ],
        beside: &[],
    },
    Stage {
        steps: &[
            Step { name: "tests", action: Action::Programs },
            cargo_step("doctests", &["test", "--locked", "--workspace", "--doc"]),
        ],
        beside: &[
            // What an embedder and what a client builds.
            cargo_step("embedded", &half("--features=embedded")),
            cargo_step("cluster", &half("--features=cluster")),
            // Libraries only: the library and the program `tyr` would write the same pages. With
            // what is private, for module docs tell how the parts of a folder fit together.
            cargo_step(
                "docs",
                &[
                    "doc",
                    "--locked",
                    "--workspace",
                    "--no-deps",
                    "--lib",
                    "--document-private-items",
                    "--keep-going",
                ],
            ),
            Step { name: "older", action: Action::Script(".ci/upgrade", &["--build"]) },
        ],
    },
    Stage {
        steps: &[
            // By name only: it is of no use beside other tests, and takes three minutes.
            cargo_step(
                "trial",
                &["test", "--locked", "--workspace", "--test", "trial", "--", "--nocapture"],
            ),
            // From the older program.
            Step { name: "upgrade", action: Action::Script(".ci/upgrade", &[]) },
            Step { name: "readme", action: Action::Example("readme") },
        ],
        beside: &[],
    },
];

/// A run of all steps.
struct Suite<'a> {
    root: &'a Path,
    /// What was built.
    programs: Mutex<Vec<Program>>,
}

/// What came of a step.
struct Ended {
    name: &'static str,
    took: Duration,
    is_good: bool,
    excerpt: Excerpt,
}

/// Runs every step, prints what the failed ones said once more and how long each took, and answers
/// whether all passed.
pub fn run(root: &Path) -> bool {
    if let Some(missing) = missing_tools() {
        eprintln!("{missing}");
        return false;
    }
    let start = Instant::now();
    let suite = Suite { root, programs: Mutex::default() };
    let mut all = Vec::new();
    for stage in &STAGES {
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            let (suite, beside) = (&suite, sender.clone());
            scope.spawn(move || {
                for step in stage.beside {
                    let mut said = Vec::new();
                    let ended = suite.perform_step(step, &mut said);
                    let _ = io::stdout().write_all(&said);
                    let _ = beside.send(ended);
                }
            });
            for step in stage.steps {
                let _ = sender.send(suite.perform_step(step, &mut io::stdout()));
            }
        });
        drop(sender);
        all.extend(receiver);
    }
    report(all, start.elapsed())
}

/// Prints what came of all; whether all passed.
fn report(all: Vec<Ended>, took: Duration) -> bool {
    let mut table = String::new();
    let (mut failed, count) = (Vec::new(), all.len());
    for Ended { name, took, is_good, excerpt } in all {
        let word = if is_good { "passed" } else { "FAILED" };
        table += &format!("{name:8} {:>7.1} s  {word}\n", took.as_secs_f64());
        if !is_good {
            failed.push(name);
            println!("\n== {name} failed; it said:");
            excerpt.lines().iter().for_each(|line| println!("{line}"));
        }
    }
    print!("\n{table}");
    let took = took.as_secs_f64();
    if failed.is_empty() {
        println!("all {count} steps passed in {took:.1} s");
    } else {
        println!("failed: {} (of {count} steps, {took:.1} s)", failed.join(", "));
    }
    failed.is_empty()
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tidy => f.write_str("cargo xtask tidy"),
            Self::Cargo(words) | Self::Build(words) => write!(f, "cargo {}", words.join(" ")),
            Self::Programs => f.write_str("cargo test --locked --workspace (several at a time)"),
            Self::Script(path, words) => f.write_str([&[*path], *words].concat().join(" ").trim()),
            Self::Example(name) => {
                write!(
                    f,
                    "cargo run --package=tyr --example={name} (built before, in an empty folder)"
                )
            }
        }
    }
}

impl Suite<'_> {
    fn perform_step(&self, step: &Step, out: &mut (impl Write + Send)) -> Ended {
        // What nobody reads any more is not told.
        let _ = writeln!(out, "\n== {}: {}", step.name, step.action);
        let start = Instant::now();
        let (is_good, excerpt) = self.perform(&step.action, out);
        Ended { name: step.name, took: start.elapsed(), is_good, excerpt }
    }

    fn perform(&self, action: &Action, out: &mut (impl Write + Send)) -> (bool, Excerpt) {
        let root = self.root;
        match action {
            // What it finds stands above, and is short.
            Action::Tidy => (tidy::run(root), Excerpt::default()),
            Action::Cargo(words) => excerpt::run(&mut cargo(words, root), out),
            Action::Build(words) => {
                let mut listener = Listener { out, programs: Vec::new() };
                let answer = excerpt::run(&mut cargo(words, root), &mut listener);
                *self.programs.lock().expect("nobody panicked") = listener.programs;
                answer
            }
            Action::Programs => {
                let programs = self.programs.lock().expect("nobody panicked");
                programs::run(&programs, out)
            }
            Action::Script(path, words) => {
                let mut script = Command::new(root.join(path));
                excerpt::run(script.args(*words).current_dir(root).stdin(Stdio::null()), out)
            }
            Action::Example(name) => example(name, root, out),
        }
    }
}

/// Runs an example, as the tests built it, from an empty temporary folder.
fn example(name: &str, root: &Path, out: &mut impl Write) -> (bool, Excerpt) {
    let folder = std::env::temp_dir().join(format!("tyr-xtask-{}", std::process::id()));
    if let Err(error) = std::fs::create_dir_all(&folder) {
        let text = format!("{}: cannot be created: {error}", folder.display());
        eprintln!("{text}");
        return (false, Excerpt::from(&*text));
    }
    let mut example = Command::new(root.join(target(root)).join("debug/examples").join(name));
    let answer = excerpt::run(example.stdin(Stdio::null()).current_dir(&folder), out);
    if let Err(error) = std::fs::remove_dir_all(&folder) {
        eprintln!("{}: stays behind: {error}", folder.display());
    }
    answer
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

    fn steps() -> impl Iterator<Item = &'static Step> {
        STAGES.iter().flat_map(|stage| stage.steps.iter().chain(stage.beside))
    }

    #[test]
    fn every_step_prints_as_a_command_that_can_be_typed() {
        for step in steps() {
            let command = step.action.to_string();
            let is_typed = command.starts_with("cargo ") || command.starts_with(".ci/");
            assert!(is_typed, "{}", step.name);
        }
    }

    #[test]
    fn no_step_may_change_the_lock_file() {
        for step in steps() {
            let (Action::Cargo(words) | Action::Build(words)) = &step.action else { continue };
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
