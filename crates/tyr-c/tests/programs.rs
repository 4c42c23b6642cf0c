//! Programs in C and C++ use the library as anybody would: the system's compilers, warnings as
//! errors, the headers alone; on a folder, and against a node in this process.
//!
//! They run with the sanitizers for addresses and undefined behaviour, where the compiler has them.
//! What the environment can say instead, as `cargo xtask c-valgrind` and `c-thorough` do:
//! `TYR_C_UNDER`, a command to run them under, without sanitizers; `TYR_C_SANITIZERS`, other ones;
//! `TYR_C_OPTIMIZED`, how they are optimized; `TYR_CC` and `TYR_CXX`, other compilers.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tyr_testing::{Cluster, form_secure};

const SANITIZERS: &str = "address,undefined";

/// What there is to say in each language. C++ is not optimized, for that takes most of a test's
/// time.
const C: [&str; 3] = ["-std=c11", "-D_GNU_SOURCE", "-O1"];
const CPP: [&str; 2] = ["-std=c++20", "-O0"];

/// A folder with the library by the names that programs know, what is built from it, and where its
/// headers are.
struct Workshop(tempfile::TempDir, PathBuf);

impl Workshop {
    fn new() -> Self {
        Self::with_headers("include")
    }

    /// With headers of a folder of this package.
    fn with_headers(headers: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let built = std::env::current_exe().unwrap();
        // Cargo puts the library of a package beside its tests.
        let library = built.parent().unwrap().join("libtyr_c.so");
        for name in ["libtyr.so", "libtyr.so.1"] {
            std::os::unix::fs::symlink(&library, folder.path().join(name)).unwrap();
        }
        Self(folder, Path::new(env!("CARGO_MANIFEST_DIR")).join(headers))
    }

    fn compile(&self, source: &Path, options: &[&str], out: &str) -> Output {
        let mut compiler = compiler_of(source);
        compiler.args(["-Wall", "-Wextra", "-pedantic", "-Werror"]);
        compiler.args(std::env::var("TYR_C_OPTIMIZED").map(|level| format!("-O{level}")));
        compiler.args(["-g", "-pthread"]).args(options).arg(source);
        compiler.arg("-I").arg(&self.1).arg("-L").arg(self.0.path()).arg("-ltyr");
        compiler.arg(format!("-Wl,-rpath,{}", self.0.path().display()));
        compiler.arg("-o").arg(self.0.path().join(out)).output().unwrap()
    }

    /// What to compile with, and what to run under.
    fn checked(&self, source: &str) -> (Vec<String>, Vec<String>) {
        if let Ok(under) = std::env::var("TYR_C_UNDER") {
            return (Vec::new(), under.split_whitespace().map(str::to_owned).collect());
        }
        let probe = self.0.path().join(format!("probe-{source}"));
        std::fs::write(&probe, "int main() { return 0; }\n").unwrap();
        let sanitizers = std::env::var("TYR_C_SANITIZERS").unwrap_or_else(|_| SANITIZERS.into());
        let sanitizers = format!("-fsanitize={sanitizers}");
        if self.compile(&probe, &[&sanitizers], "probe").status.success() {
            (vec![sanitizers, "-fno-sanitize-recover=all".into()], Vec::new())
        } else {
            println!("the compiler of {source} has no sanitizers here: it runs without");
            (Vec::new(), Vec::new())
        }
    }

    /// Compiles a program, and runs it on each of these places.
    fn run(&self, source: &str, places: &[String]) {
        for place in places {
            self.run_with(source, &[place.clone(), source.replace('.', "-")]);
        }
    }

    /// Compiles a program, and runs it with these arguments.
    fn run_with(&self, source: &str, arguments: &[String]) {
        self.run_told(source, arguments, "");
    }

    /// The same, with these lines as its input.
    fn run_told(&self, source: &str, arguments: &[String], lines: &str) {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let (options, under) = self.checked(source);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let name = source.replace('.', "-");
        let program = self.0.path().join(&name);
        if !program.exists() {
            let compiled = self.compile(&here.join(source), &options, &name);
            assert!(compiled.status.success(), "{source}: {}", text(&compiled));
        }
        let program = program.display().to_string();
        let words: Vec<&str> = under.iter().map(String::as_str).chain([&*program]).collect();
        let mut command = Command::new(words[0]);
        command.env("TSAN_OPTIONS", format!("suppressions={}", here.join("tsan.txt").display()));
        command.args(&words[1..]).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.current_dir(self.0.path()).spawn().unwrap();
        // A program that reads nothing may have ended before.
        drop(child.stdin.take().unwrap().write_all(lines.as_bytes()));
        let ran = child.wait_with_output().unwrap();
        assert!(ran.status.success(), "{source} {arguments:?}: {}: {}", ran.status, text(&ran));
    }

    fn folder(&self, name: &str) -> String {
        self.0.path().join(format!("store-{name}")).display().to_string()
    }
}

/// The compiler of a source's language, and what it is to be told.
fn compiler_of(source: &Path) -> Command {
    let is_c = source.extension().is_some_and(|extension| extension == "c");
    let (variable, otherwise) = if is_c { ("TYR_CC", "cc") } else { ("TYR_CXX", "c++") };
    let mut compiler = Command::new(std::env::var(variable).unwrap_or_else(|_| otherwise.into()));
    compiler.args(if is_c { &C[..] } else { &CPP[..] });
    compiler
}

fn text(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn run_everywhere(name: &str) {
    let (workshop, nodes) = (Workshop::new(), tempfile::tempdir().unwrap());
    let cluster = Cluster::form(nodes.path(), 1, |_| {});
    workshop.run(name, &[workshop.folder(name), cluster.address().to_owned()]);
}

#[test]
fn plain_calls_answer_as_the_public_crate_does() {
    run_everywhere("blocking.c");
}

#[test]
fn calls_that_are_started_are_answered_once_in_their_queue() {
    run_everywhere("queue.c");
}

#[test]
fn a_body_that_meets_a_conflict_runs_again() {
    run_everywhere("conflict.c");
}

#[test]
fn a_forked_child_gets_errors_and_the_parent_goes_on() {
    run_everywhere("fork.c");
}

#[test]
fn wrong_input_of_every_kind_is_an_error_with_words() {
    let workshop = Workshop::new();
    workshop.run("wrong.c", &[workshop.folder("wrong")]);
}

#[test]
fn the_lines_of_the_guides_run() {
    let workshop = Workshop::new();
    for source in ["readme.c", "readme.cpp"] {
        workshop.run(source, &[workshop.folder(source)]);
    }
}

#[test]
fn streams_copies_kept_snapshots_and_stamps_are_as_in_the_public_crate() {
    run_everywhere("streams.c");
}

#[test]
fn locks_watches_and_metadata_are_as_in_the_public_crate() {
    run_everywhere("services.c");
}

#[test]
fn a_cluster_with_tls_takes_who_has_the_certificates_and_the_key() {
    let (workshop, folder) = (Workshop::new(), tempfile::tempdir().unwrap());
    let cluster = form_secure(folder.path());
    let words = [cluster.address().to_owned(), folder.path().display().to_string()];
    workshop.run_with("secure.c", &words);
}

#[test]
fn calls_from_cpp_answer_or_throw() {
    run_everywhere("calls.cpp");
}

#[test]
fn coroutines_go_on_with_their_answers_and_may_be_destroyed_anywhere() {
    run_everywhere("loop.cpp");
}

/// `cargo xtask steady` does it with a million calls, and with ten million looks at the memory.
#[test]
fn calls_of_many_kinds_some_of_them_cancelled_leave_nothing() {
    let workshop = Workshop::new();
    for source in ["caller.c", "caller.cpp"] {
        let words = [workshop.folder(source), "16".into(), "7".into()];
        workshop.run_told(source, &words, "mix 4000\nasync 1000\n");
    }
}

/// A program that comes to call what the first header has not is to be kept beside that, as it was.
#[test]
fn programs_that_were_built_by_the_first_header_run_with_this_library() {
    let workshop = Workshop::with_headers("tests/first");
    for source in ["blocking.c", "queue.c", "streams.c"] {
        workshop.run(source, &[workshop.folder(source)]);
    }
}

#[test]
fn the_header_is_one_for_cpp_too() {
    let workshop = Workshop::new();
    let source = workshop.0.path().join("header.cpp");
    let program =
        "#include \"tyr.h\"\nint main() { return tyr_as_u64(tyr_u64(7)) == 7 ? 0 : 1; }\n";
    std::fs::write(&source, program).unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror"]).arg(&source);
    compiler.arg("-I").arg(here.join("include")).arg("-o").arg(workshop.0.path().join("header"));
    let compiled = compiler.output().unwrap();
    assert!(compiled.status.success(), "{}", text(&compiled));
    assert!(Command::new(workshop.0.path().join("header")).status().unwrap().success());
}
