//! Chores of this repository, as verbs: `cargo xtask tidy`, `cargo xtask test`.
//!
//! In Rust, because everyone who builds Týr has Rust. Nothing here knows what Týr does: it knows
//! how the repository is laid out, and which commands show that it is in order.

mod arrays;
mod c;
mod call_costs;
mod callers;
mod command;
mod fs_bench;
mod fs_suites;
mod java;
mod mounted;
mod processes;
mod python;
mod steady;
mod suite;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Chores of this repository.

  cargo xtask test    everything that continuous integration checks; never writes to the tree
  cargo xtask header  writes crates/tyr-c/include/tyr.h anew from the sources
  cargo xtask install-c DIR
                      builds libtyr and installs it, its headers, and its files for
                      pkg-config and CMake into DIR
  cargo xtask c-valgrind
                      the programs in C and C++ under valgrind, which must be installed
  cargo xtask c-thorough
                      the same under the sanitizer for threads, with clang if it is installed, and
                      the guides' programs from a prefix, by pkg-config and CMake
  cargo xtask steady [--calls N] [--checked N] [--seed N] [--only WORD]
                      a million calls (--checked) of C and C++ under valgrind and the sanitizers,
                      and whether resident memory is after ten million (--calls) of every language
                      what it was after a hundred thousand; WORD is a part of what is printed
  cargo xtask call-costs [--rounds N] [--only KIND]
                      what calls cost in CPU time from each language beside Rust; minutes
  cargo xtask python  builds the wheel for Python, installs it into an empty environment, and runs
                      its tests there, those with fsspec and Zarr among them
  cargo xtask arrays [MINUTES] [--without transactions|snapshots]
                      the wheel with xarray, pyarrow and duckdb from PyPI, in programs that share a
                      cluster whose nodes are killed; ten minutes unless told
  cargo xtask java [JDK...]
                      builds the jar for Java and its reference, and runs its tests on it, also with
                      the Java of these folders
  cargo xtask install-java DIR
                      builds the jar with an optimized library and puts it and its pom into DIR
  cargo xtask fs-suites [--tyr PROGRAM] [--place embedded|cluster|two] [SUITE...]
                      other people's tests on a mounted file system: of a directory, a cluster, or
                      a cluster and mounted twice, where each runs at both at the same time:
                      needs /dev/fuse, and root; suites that are not installed are left out
  cargo xtask fs-bench [--tyr PROGRAM] [--beside NAME=DIR[=PIDS]]... [--files N] [--seconds S]
                       [--threads T] [--renamed N] [--runs R] [--only WORD]
                      what calls cost on a mounted file system, on the file system of TMPDIR, synced
                      and not, and in these directories; PIDS is a file with the processes that
                      serve one, one a line: needs /dev/fuse, and root
  cargo xtask tidy    the rules of STYLE.md that no compiler knows: crate edges, file lengths,
                      module docs, links, README.md, dependencies, decisions
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_good = match words.as_slice() {
        ["test"] => suite::run(&root()),
        ["tidy"] => tidy::run(&root()),
        ["header"] => c::write_header(&root()),
        ["install-c", prefix] => c::install(&root(), Path::new(prefix)),
        ["fs-suites", words @ ..] => fs_suites::run(&root(), words),
        ["fs-bench", words @ ..] => fs_bench::run(&root(), words),
        ["c-valgrind"] => c::run_under_valgrind(&root()),
        ["c-thorough"] => c::run_thoroughly(&root()),
        ["steady", words @ ..] => steady::run(&root(), words),
        ["call-costs", words @ ..] => call_costs::run(&root(), words),
        ["python"] => python::run(&root()),
        ["arrays", words @ ..] => arrays::run(&root(), words),
        ["java", jdks @ ..] => java::run(&root(), jdks),
        ["install-java", folder] => java::install(&root(), Path::new(folder)),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            true
        }
        [] => {
            eprint!("{HELP}");
            false
        }
        [other, ..] => {
            eprint!("no chore is called \"{}\"\n\n{HELP}", other.escape_debug());
            false
        }
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The repository's root: the folder above this crate's, which cargo names when it runs this. Where
/// it was built may have been another clone's, with the same folder to build in.
fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().expect("xtask lies in a folder of the repository").to_owned()
}
