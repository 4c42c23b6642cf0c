//! Programs in C use the library as anybody would: the system's compiler, warnings as errors, the
//! header alone; on a folder, and against a node in this process.
//!
//! They run with the sanitizers for addresses and undefined behaviour, where the compiler has them.
//! With `TYR_C_UNDER` in the environment they run without, under that command: `cargo xtask
//! c-valgrind` sets it.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::Path;
use std::process::{Command, Output};

use tyr_testing::Cluster;

const SANITIZERS: &str = "-fsanitize=address,undefined";

/// A folder with the library by the names that programs know, and what is built from it.
struct Workshop(tempfile::TempDir);

impl Workshop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let built = std::env::current_exe().unwrap();
        // Cargo puts the library of a package beside its tests.
        let library = built.parent().unwrap().join("libtyr_c.so");
        for name in ["libtyr.so", "libtyr.so.1"] {
            std::os::unix::fs::symlink(&library, folder.path().join(name)).unwrap();
        }
        Self(folder)
    }

    fn compile(&self, source: &Path, options: &[&str], out: &str) -> Output {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pedantic", "-Werror"]);
        compiler.args(["-g", "-O1", "-pthread"]).args(options).arg(source);
        compiler.arg("-I").arg(here.join("include")).arg("-L").arg(self.0.path()).arg("-ltyr");
        compiler.arg(format!("-Wl,-rpath,{}", self.0.path().display()));
        compiler.arg("-o").arg(self.0.path().join(out)).output().unwrap()
    }

    /// What to compile with, and what to run under.
    fn checked(&self) -> (Vec<&'static str>, Vec<String>) {
        if let Ok(under) = std::env::var("TYR_C_UNDER") {
            return (Vec::new(), under.split_whitespace().map(str::to_owned).collect());
        }
        let probe = self.0.path().join("probe.c");
        std::fs::write(&probe, "int main(void) { return 0; }\n").unwrap();
        if self.compile(&probe, &[SANITIZERS], "probe").status.success() {
            (vec![SANITIZERS, "-fno-sanitize-recover=all"], Vec::new())
        } else {
            println!("cc has no sanitizers here: the programs run without");
            (Vec::new(), Vec::new())
        }
    }

    /// Compiles a program, and runs it on each of these places.
    fn run(&self, name: &str, places: &[String]) {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let (options, under) = self.checked();
        let compiled = self.compile(&here.join(format!("{name}.c")), &options, name);
        assert!(compiled.status.success(), "{name}.c: {}", text(&compiled));
        for place in places {
            let program = self.0.path().join(name).display().to_string();
            let words: Vec<&str> = under.iter().map(String::as_str).chain([&*program]).collect();
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).args([place, &format!("c-{name}")]);
            let ran = command.current_dir(self.0.path()).output().unwrap();
            assert!(ran.status.success(), "{name} on {place}: {}: {}", ran.status, text(&ran));
        }
    }

    fn folder(&self, name: &str) -> String {
        self.0.path().join(format!("store-{name}")).display().to_string()
    }
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
    run_everywhere("blocking");
}

#[test]
fn calls_that_are_started_are_answered_once_in_their_queue() {
    run_everywhere("queue");
}

#[test]
fn a_body_that_meets_a_conflict_runs_again() {
    run_everywhere("conflict");
}

#[test]
fn a_forked_child_gets_errors_and_the_parent_goes_on() {
    run_everywhere("fork");
}

#[test]
fn wrong_input_of_every_kind_is_an_error_with_words() {
    let workshop = Workshop::new();
    workshop.run("wrong", &[workshop.folder("wrong")]);
}

#[test]
fn the_lines_of_the_guide_run() {
    let workshop = Workshop::new();
    workshop.run("readme", &[workshop.folder("readme")]);
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
