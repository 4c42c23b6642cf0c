//! The jar for Java as users have it, and tried as that.
//!
//! Cargo's own tests run the same tests on the classes alone (`crates/tyr-java/tests/suite.rs`).
//! Nothing but a JDK is needed: no Maven, and nothing from the network.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, target};

/// Where the package lies.
const PACKAGE: &str = "crates/tyr-java";

/// The tests that need no cluster.
const TESTS: [&str; 5] =
    ["BlobsTest", "TransactionsTest", "FuturesTest", "VirtualTest", "WrongTest"];

/// What the JVM says where native code has done what it may not.
const COMPLAINTS: [&str; 2] = ["WARNING in native method", "FATAL ERROR in native"];

/// Builds the jar with the library of the tests and runs every test on it, also with these JDKs.
pub fn run(root: &Path, others: &[&str]) -> bool {
    let work = target(root).join("java");
    // As `cargo test` has built it already; cargo puts that beside what is for debugging.
    let words = ["build", "--locked", "--profile", "test", "-p", "tyr-java", "--lib"];
    let Some(jar) = jar(root, &words, "debug", &work) else { return false };
    let tests = work.join("tests");
    let mut compile = jdk("javac");
    compile.args(["--release", "11", "-d"]).arg(&tests).arg("-cp").arg(&jar);
    compile.args(sources(&root.join(PACKAGE).join("tests/java")));
    let homes = others.iter().map(|home| Some(Path::new(home)));
    let homes: Vec<Option<&Path>> = std::iter::once(None).chain(homes).collect();
    succeeds(&mut compile)
        && documents(root, &work)
        && homes.iter().all(|home| try_out(*home, &jar, &tests) && tell(root, *home, &jar, &work))
}

/// Builds the jar with an optimized library, and puts it and its pom into a folder.
pub fn install(root: &Path, folder: &Path) -> bool {
    let work = target(root).join("java-release");
    let words = ["build", "--locked", "--release", "-p", "tyr-java", "--lib"];
    let Some(jar) = jar(root, &words, "release", &work) else { return false };
    let pom = root.join(PACKAGE).join("java/pom.xml");
    let name = jar.file_name().expect("a jar has a name").to_owned();
    let placed = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::copy(&jar, folder.join(&name)))
        .and_then(|_| std::fs::copy(pom, folder.join("pom.xml")));
    match placed {
        Ok(_) => {
            println!("installed {} into {}", name.display(), folder.display());
            true
        }
        Err(error) => {
            eprintln!("{}: cannot install there: {error}", folder.display());
            false
        }
    }
}

/// Builds the library with these words for cargo, and a jar with it in a folder that is made anew.
pub fn jar(root: &Path, words: &[&str], profile: &str, work: &Path) -> Option<PathBuf> {
    if !jdk("javac").arg("--version").output().is_ok_and(|it| it.status.success()) {
        eprintln!("a JDK, 11 or later, is missing: apt-get install default-jdk-headless");
        return None;
    }
    match std::fs::remove_dir_all(work) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            eprintln!("{}: cannot be cleared: {error}", work.display());
            return None;
        }
        _ => {}
    }
    let (classes, native) = (work.join("classes"), work.join("native"));
    let mut compile = jdk("javac");
    compile.args(["--release", "11", "-Xlint:all,-options", "-Werror", "-d"]).arg(&classes);
    compile.args(sources(&root.join(PACKAGE).join("java/src/main/java")));
    let is_built = succeeds(Command::new("cargo").current_dir(root).args(words))
        && place(&target(root).join(profile).join("libtyr_java.so"), &native)
        && succeeds(&mut compile);
    if !is_built {
        return None;
    }
    let manifest = work.join("manifest");
    if let Err(error) = std::fs::write(&manifest, "Automatic-Module-Name: io.github.tyrstore\n") {
        eprintln!("{}: cannot be written: {error}", manifest.display());
        return None;
    }
    let jar = work.join(concat!("tyr-client-", env!("CARGO_PKG_VERSION"), ".jar"));
    let mut pack = jdk("jar");
    pack.args(["--create", "--file"]).arg(&jar).arg("--manifest").arg(&manifest);
    pack.arg("-C").arg(&classes).arg(".").arg("-C").arg(&native).arg(".");
    succeeds(&mut pack).then_some(jar)
}

/// Puts a library where Java looks for that of this machine.
fn place(library: &Path, native: &Path) -> bool {
    let folder =
        native.join(format!("META-INF/native/{}-{}", std::env::consts::OS, std::env::consts::ARCH));
    let placed = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::copy(library, folder.join("libtyr_java.so")));
    if let Err(error) = &placed {
        eprintln!("{}: cannot be put into {}: {error}", library.display(), folder.display());
    }
    placed.is_ok()
}

/// Makes the reference, which refuses what is documented wrongly.
fn documents(root: &Path, work: &Path) -> bool {
    let mut javadoc = jdk("javadoc");
    javadoc.args(["--release", "11", "-quiet", "-Werror", "-Xdoclint:all,-missing", "-d"]);
    javadoc.arg(work.join("reference"));
    succeeds(javadoc.args(sources(&root.join(PACKAGE).join("java/src/main/java"))))
}

fn java(home: Option<&Path>, jar: &Path, others: &[&Path]) -> Command {
    let mut java = match home {
        Some(home) => Command::new(home.join("bin/java")),
        None => jdk("java"),
    };
    let mut path = OsString::from(jar);
    for other in others {
        path.push(":");
        path.push(other);
    }
    java.arg("-cp").arg(path);
    java
}

fn try_out(home: Option<&Path>, jar: &Path, tests: &Path) -> bool {
    let mut java = java(home, jar, &[tests]);
    java.args(["-Xcheck:jni", "Suite"]).args(TESTS);
    println!("\n== {java:?}");
    match java.output() {
        Ok(ran) => {
            let said = [&ran.stdout[..], &ran.stderr[..]].concat();
            let said = String::from_utf8_lossy(&said);
            println!("{said}");
            ran.status.success() && !COMPLAINTS.iter().any(|it| said.contains(it))
        }
        Err(error) => {
            eprintln!("java does not start: {error}");
            false
        }
    }
}

/// Runs the lines of README.md in an empty folder.
fn tell(root: &Path, home: Option<&Path>, jar: &Path, work: &Path) -> bool {
    let readme = std::fs::read_to_string(root.join(PACKAGE).join("README.md")).unwrap_or_default();
    let Some(lines) = lines_of(&readme) else {
        eprintln!("{PACKAGE}/README.md has no lines of Java");
        return false;
    };
    let folder = work.join("empty");
    let _ = std::fs::remove_dir_all(&folder);
    let source = folder.join("Weather.java");
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&source, lines));
    written.is_ok() && succeeds(java(home, jar, &[]).arg(source).current_dir(folder))
}

/// The first lines of Java in a document.
fn lines_of(document: &str) -> Option<&str> {
    document.split("```java\n").nth(1)?.split("```").next()
}

/// A program of the JDK: that of `JAVA_HOME`, or of the path.
pub fn jdk(name: &str) -> Command {
    match std::env::var_os("JAVA_HOME") {
        Some(home) => Command::new(Path::new(&home).join("bin").join(name)),
        None => Command::new(name),
    }
}

/// All files of Java in a folder, in order.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension() == Some(OsStr::new("java")) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Runs a command, whose program is printed first: its words are many files.
fn succeeds(command: &mut Command) -> bool {
    println!("\n== {} ...", command.get_program().display());
    command::succeeds(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_document_are_its_first_block_of_java() {
        let document = "text\n```sh\nls\n```\n```java\nclass A {}\n```\n```java\nlater\n```\n";
        assert_eq!(lines_of(document), Some("class A {}\n"));
        assert_eq!(lines_of("none"), None);
    }

    #[test]
    fn sources_are_found_in_every_folder_and_the_library_where_java_looks() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        for name in ["a/b/C.java", "A.java", "a/text.txt"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let found = sources(folder.path());
        assert_eq!(found, [folder.path().join("A.java"), deep.join("C.java")]);
        let native = folder.path().join("native");
        assert!(place(&folder.path().join("A.java"), &native));
        let arch = std::env::consts::ARCH;
        let name = format!("META-INF/native/linux-{arch}/libtyr_java.so");
        assert_eq!(std::fs::read_to_string(native.join(name)).unwrap(), "A.java");
        assert!(!place(&folder.path().join("none"), &native));
    }
}
