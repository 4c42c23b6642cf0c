//! What `libtyr` needs beside what cargo does: its header, its names, its place in a prefix.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::command::{succeeds, target};

/// The names of the shared library; the first is what programs ask for.
const SHARED: [&str; 2] = ["libtyr.so.1", "libtyr.so"];

/// What a program that links statically needs besides.
const PRIVATE_LIBRARIES: &str = "-lgcc_s -lpthread -ldl -lm";

/// What valgrind is asked for. A mutex that glibc keeps is reachable at the end; a loss is not.
const VALGRIND: &str = "valgrind --quiet --error-exitcode=9 --leak-check=full \
                        --errors-for-leak-kinds=definite --fair-sched=yes";

/// Writes the header anew from the sources.
pub fn write_header(root: &Path) -> bool {
    let words = ["test", "--locked", "--quiet", "-p", "tyr-c", "--test", "header"];
    cargo(root, &words, "TYR_HEADER", "write")
}

/// Runs the programs of the tests under valgrind.
pub fn run_under_valgrind(root: &Path) -> bool {
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|it| it.status.success()) {
        eprintln!("valgrind is missing, install it first: apt-get install valgrind");
        return false;
    }
    let words = ["test", "--locked", "-p", "tyr-c", "--test", "programs", "--", "--test-threads=1"];
    cargo(root, &words, "TYR_C_UNDER", VALGRIND)
}

/// Builds the library and installs it into `prefix`.
pub fn install(root: &Path, prefix: &Path) -> bool {
    let words = ["build", "--locked", "--release", "-p", "tyr-c", "--lib"];
    if !cargo(root, &words, "CARGO_INCREMENTAL", "0") {
        return false;
    }
    match place(&target(root).join("release"), &root.join("crates/tyr-c/include/tyr.h"), prefix) {
        Ok(()) => {
            println!("installed libtyr into {}", prefix.display());
            true
        }
        Err(error) => {
            eprintln!("{}: cannot install there: {error}", prefix.display());
            false
        }
    }
}

fn place(built: &Path, header: &Path, prefix: &Path) -> io::Result<()> {
    let libraries = prefix.join("lib");
    for folder in [libraries.join("pkgconfig"), prefix.join("include")] {
        std::fs::create_dir_all(folder)?;
    }
    let prefix = prefix.canonicalize()?;
    std::fs::copy(header, prefix.join("include/tyr.h"))?;
    std::fs::copy(built.join("libtyr_c.a"), libraries.join("libtyr.a"))?;
    for name in SHARED {
        match std::fs::remove_file(libraries.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::copy(built.join("libtyr_c.so"), libraries.join(SHARED[0]))?;
    std::os::unix::fs::symlink(SHARED[0], libraries.join(SHARED[1]))?;
    std::fs::write(libraries.join("pkgconfig/tyr.pc"), pkg_config(&prefix))
}

/// The file by which pkg-config knows the library.
fn pkg_config(prefix: &Path) -> String {
    let (prefix, version) = (prefix.display(), env!("CARGO_PKG_VERSION"));
    format!(
        "prefix={prefix}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
         Name: tyr\nDescription: a transactional blob store\nVersion: {version}\n\
         Libs: -L${{libdir}} -ltyr\nLibs.private: {PRIVATE_LIBRARIES}\n\
         Cflags: -I${{includedir}}\n"
    )
}

fn cargo(root: &Path, words: &[&str], variable: &str, value: impl AsRef<OsStr>) -> bool {
    let mut cargo = Command::new("cargo");
    succeeds(cargo.current_dir(root).args(words).env(variable, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_the_library_by_both_names_and_a_second_install_replaces_it() {
        let folder = tempfile::tempdir().unwrap();
        let (built, prefix) = (folder.path().join("built"), folder.path().join("prefix"));
        std::fs::create_dir(&built).unwrap();
        let header = built.join("tyr.h");
        for round in ["one", "two"] {
            for name in ["libtyr_c.a", "libtyr_c.so", "tyr.h"] {
                std::fs::write(built.join(name), round).unwrap();
            }
            place(&built, &header, &prefix).unwrap();
            for name in ["lib/libtyr.so", "lib/libtyr.so.1", "lib/libtyr.a", "include/tyr.h"] {
                assert_eq!(std::fs::read_to_string(prefix.join(name)).unwrap(), round, "{name}");
            }
        }
        let described = std::fs::read_to_string(prefix.join("lib/pkgconfig/tyr.pc")).unwrap();
        let prefix = prefix.canonicalize().unwrap();
        assert!(described.starts_with(&format!("prefix={}\n", prefix.display())), "{described}");
    }
}
