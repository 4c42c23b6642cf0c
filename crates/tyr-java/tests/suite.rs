//! The tests in Java, with the library that cargo built beside this one: the jar is tried by `cargo
//! xtask java`, which builds it.
//!
//! They need nothing but a JDK, 11 or later, of `JAVA_HOME` or the path; without one they fail and
//! say so. The JVM checks what the native library asks of it (`-Xcheck:jni`).

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;
use tyr_testing::Cluster;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/java/src/main/java");
const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/java");

/// What the JVM says where native code has done what it may not.
const COMPLAINTS: [&str; 3] = ["WARNING in native method", "FATAL ERROR in native", "WARNING: JNI"];

/// Everything, compiled once for all tests.
static CLASSES: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let mut compile = jdk("javac");
    compile.args(["--release", "11", "-Xlint:all,-options", "-Werror", "-d"]).arg(folder.path());
    let compiled = compile.args(sources(SOURCES)).args(sources(TESTS)).output();
    let compiled = compiled.unwrap_or_else(|error| {
        panic!("a JDK, 11 or later, is missing (apt-get install default-jdk-headless): {error}")
    });
    assert!(compiled.status.success(), "{}", said(&compiled));
    folder
});

/// A program of the JDK.
fn jdk(name: &str) -> Command {
    match std::env::var_os("JAVA_HOME") {
        Some(home) => Command::new(Path::new(&home).join("bin").join(name)),
        None => Command::new(name),
    }
}

fn sources(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(path.to_str().unwrap()));
        } else if path.extension().is_some_and(|it| it == "java") {
            found.push(path);
        }
    }
    found
}

fn java(options: &[&str]) -> Command {
    // Cargo puts the library of a package beside its tests.
    let built = std::env::current_exe().unwrap().parent().unwrap().join("libtyr_java.so");
    let mut java = jdk("java");
    java.arg(format!("-Dtyr.library={}", built.display())).arg("-Xmx256m");
    java.args(options).arg("-cp").arg(CLASSES.path());
    java
}

fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(&[&out[..], b"\n", &err[..]].concat()).into_owned()
}

/// Runs a program to its end, which says last that all is well.
fn run(options: &[&str], words: &[&str]) -> String {
    let ran = java(options).args(words).output().unwrap();
    let text = said(&ran);
    assert!(ran.status.success(), "{}: {text}", ran.status);
    assert!(text.lines().any(|line| line == "OK"), "it ran to its end: {text}");
    assert!(!COMPLAINTS.iter().any(|it| text.contains(it)), "the JVM complains: {text}");
    text
}

#[test]
fn java_does_what_the_public_crate_does() {
    run(&["-Xcheck:jni"], &["Suite", "BlobsTest", "TransactionsTest"]);
}

#[test]
fn calls_are_started_and_cancelled() {
    run(&["-Xcheck:jni"], &["Suite", "FuturesTest", "VirtualTest"]);
}

#[test]
fn wrong_input_of_every_kind_is_an_exception_with_words() {
    run(&["-Xcheck:jni"], &["Suite", "WrongTest"]);
}

#[test]
fn a_cluster_does_what_a_folder_does() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::form(folder.path(), 1, |_| {});
    let address = format!("-Dtyr.test.cluster={}", cluster.address());
    run(&["-Xcheck:jni", &address], &["Suite", "ClusterTest"]);
}

#[test]
fn a_cluster_that_dies_is_an_exception_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::form(folder.path(), 1, |_| {});
    let mut dying = java(&["-Xcheck:jni"]);
    dying.args(["Dying", cluster.address()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = dying.spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "ready");
    drop(cluster);
    child.stdin.take().unwrap().write_all(b"dead\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(said.next().unwrap().unwrap(), "told");
}

#[test]
fn what_is_forgotten_is_given_back_and_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store").display().to_string();
    let told = run(&["-Xcheck:jni", "-Dtyr.leaks=true"], &["Leaking", &store]);
    assert!(told.contains("a snapshot was made here and never closed"), "{told}");
    assert!(told.contains("a transaction was made here and never closed"), "{told}");
    assert_eq!(told.matches("Throwable: a ").count(), 2, "no more than these: {told}");
    assert!(told.contains("Leaking.forget"), "{told}");
    let silent = run(&[], &["Leaking", &store]);
    assert!(!silent.contains("never closed"), "{silent}");
}

/// `cargo xtask steady` does it with ten million calls, and compares more closely.
#[test]
fn many_calls_take_no_more_memory_than_some() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store").display().to_string();
    let mut caller = java(&["-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch"]);
    caller.args(["Caller", &store, "16", "7"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = caller.spawn().unwrap();
    let (mut told, said) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut said = BufReader::new(said).lines();
    assert_eq!(said.next().unwrap().unwrap(), "ready");
    let mut resident_kib = || {
        writeln!(told, "mix 8000").unwrap();
        assert_eq!(said.next().unwrap().unwrap(), "done");
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap()
    };
    let before = resident_kib();
    let after = [resident_kib(), resident_kib(), resident_kib()];
    drop(told);
    assert!(child.wait().unwrap().success(), "all handles are given back");
    assert!(after[2] < before + (40 << 10), "it has grown: {before}, then {after:?} KiB");
}

#[test]
fn the_lines_of_the_readme_run() {
    let readme = include_str!("../README.md");
    let program = readme.split("```java\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("Weather.java");
    std::fs::write(&source, program).unwrap();
    // Java runs a program of one file as it is.
    let mut java = java(&[]);
    let ran = java.arg(&source).current_dir(folder.path()).output().unwrap();
    assert!(ran.status.success(), "{}", said(&ran));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "-3.5\n1\n");
}

#[test]
fn the_pom_has_the_version_of_the_crate() {
    let pom = include_str!("../java/pom.xml");
    let version = format!("<version>{}</version>", env!("CARGO_PKG_VERSION"));
    assert!(pom.contains(&version), "{version}");
}
