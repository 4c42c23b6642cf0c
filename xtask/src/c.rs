//! What `libtyr` needs beside what cargo does: its headers, its names, its place in a prefix.

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
                        --show-leak-kinds=definite --errors-for-leak-kinds=definite \
                        --fair-sched=yes";

/// What is installed below `include`, from the folder of that name.
const HEADERS: [&str; 2] = ["tyr.h", "tyr.hpp"];

/// Parts of `tyr.hpp`, in a folder.
const PARTS: &str = "tyr";

/// Writes the header anew from the sources.
pub fn write_header(root: &Path) -> bool {
    let words = ["test", "--locked", "--quiet", "-p", "tyr-c", "--test", "header"];
    cargo(root, &words, "TYR_HEADER", "write")
}

/// Runs the programs of the tests under valgrind.
pub fn run_under_valgrind(root: &Path) -> bool {
    let Some(valgrind) = valgrind(root) else { return false };
    let words = ["test", "--locked", "-p", "tyr-c", "--test", "programs", "--", "--test-threads=1"];
    cargo(root, &words, "TYR_C_UNDER", valgrind)
}

/// How programs are run under valgrind; `None`, with words, where it is missing.
pub fn valgrind(root: &Path) -> Option<String> {
    if !is_there("valgrind") {
        eprintln!("valgrind is missing, install it first: apt-get install valgrind");
        return None;
    }
    let known = root.join("crates/tyr-c/tests/programs/valgrind.supp");
    Some(format!("{VALGRIND} --suppressions={}", known.display()))
}

/// Runs the programs of the tests as nobody has the patience to in each test run: under the
/// sanitizer for threads, with clang, and from a prefix by pkg-config and CMake.
pub fn run_thoroughly(root: &Path) -> bool {
    let programs = |variables: &[(&str, &str)]| {
        let words = ["test", "--locked", "-p", "tyr-c", "--test", "programs"];
        let mut cargo = Command::new("cargo");
        cargo.current_dir(root).args(words).env("TYR_C_OPTIMIZED", "2");
        succeeds(cargo.envs(variables.iter().copied()))
    };
    println!("\n== under the sanitizer for threads");
    let mut is_good = programs(&[("TYR_C_SANITIZERS", "thread")]);
    if is_there("clang++") {
        println!("\n== with clang");
        is_good &= programs(&[("TYR_CC", "clang"), ("TYR_CXX", "clang++")]);
    } else {
        println!("\n== without clang, which is not installed: apt-get install clang");
    }
    println!("\n== from a prefix");
    let folder = std::env::temp_dir().join(format!("tyr-prefix-{}", std::process::id()));
    is_good &= install(root, &folder) && use_from(root, &folder);
    if let Err(error) = std::fs::remove_dir_all(&folder) {
        eprintln!("{}: stays behind: {error}", folder.display());
    }
    is_good
}

/// Builds the programs of the guides from a prefix in every way that they show, and runs them.
fn use_from(root: &Path, prefix: &Path) -> bool {
    let programs = root.join("crates/tyr-c/tests/programs");
    let script = format!(
        "set -eux; export PKG_CONFIG_PATH={prefix}/lib/pkgconfig; cd {prefix}; \
         cc -std=c11 {programs}/readme.c -o c-shared $(pkg-config --cflags --libs tyr) \
            -Wl,-rpath,{prefix}/lib; \
         cc -std=c11 {programs}/readme.c -o c-static $(pkg-config --cflags tyr) lib/libtyr.a \
            {PRIVATE_LIBRARIES}; \
         c++ -std=c++20 {programs}/readme.cpp -o cpp-shared \
            $(pkg-config --cflags --libs tyr) -pthread -Wl,-rpath,{prefix}/lib; \
         if command -v cmake; then \
            mkdir source; cp {programs}/readme.cpp {programs}/CMakeLists.txt source/; \
            cmake -S source -B built -DCMAKE_PREFIX_PATH={prefix}; cmake --build built; \
            cp built/weather cpp-cmake; cp built/weather-static cpp-cmake-static; \
         fi; \
         for program in c-* cpp-*; do ./$program data-$program; done; \
         ! ldd c-static | grep libtyr",
        prefix = prefix.display(),
        programs = programs.display()
    );
    succeeds(Command::new("bash").arg("-c").arg(script))
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success())
}

/// Builds the library and installs it into `prefix`.
pub fn install(root: &Path, prefix: &Path) -> bool {
    let words = ["build", "--locked", "--release", "-p", "tyr-c", "--lib"];
    if !cargo(root, &words, "CARGO_INCREMENTAL", "0") {
        return false;
    }
    match place(&target(root).join("release"), &root.join("crates/tyr-c/include"), prefix) {
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

fn place(built: &Path, headers: &Path, prefix: &Path) -> io::Result<()> {
    let (libraries, parts) = (prefix.join("lib"), prefix.join("include").join(PARTS));
    for folder in [&libraries.join("pkgconfig"), &libraries.join("cmake/tyr"), &parts] {
        std::fs::create_dir_all(folder)?;
    }
    let prefix = prefix.canonicalize()?;
    for name in HEADERS {
        std::fs::copy(headers.join(name), prefix.join("include").join(name))?;
    }
    for part in std::fs::read_dir(headers.join(PARTS))? {
        let part = part?;
        std::fs::copy(part.path(), parts.join(part.file_name()))?;
    }
    std::fs::copy(built.join("libtyr_c.a"), libraries.join("libtyr.a"))?;
    for name in SHARED {
        match std::fs::remove_file(libraries.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::copy(built.join("libtyr_c.so"), libraries.join(SHARED[0]))?;
    std::os::unix::fs::symlink(SHARED[0], libraries.join(SHARED[1]))?;
    std::fs::write(libraries.join("pkgconfig/tyr.pc"), pkg_config(&prefix))?;
    std::fs::write(libraries.join("cmake/tyr/tyr-config.cmake"), cmake_config())?;
    std::fs::write(libraries.join("cmake/tyr/tyr-config-version.cmake"), cmake_version())
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

/// The file by which CMake knows the library: `tyr::tyr`, and `tyr::static` for who links all.
fn cmake_config() -> String {
    let libraries = PRIVATE_LIBRARIES.replace("-l", "").replace(' ', ";");
    format!(
        "get_filename_component(_tyr_prefix \"${{CMAKE_CURRENT_LIST_DIR}}/../../..\" ABSOLUTE)\n\
         find_package(Threads REQUIRED)\n\
         if(NOT TARGET tyr::tyr)\n  \
           add_library(tyr::tyr SHARED IMPORTED)\n  \
           set_target_properties(tyr::tyr PROPERTIES\n    \
             IMPORTED_LOCATION \"${{_tyr_prefix}}/lib/{}\"\n    \
             IMPORTED_SONAME \"{}\"\n    \
             INTERFACE_INCLUDE_DIRECTORIES \"${{_tyr_prefix}}/include\"\n    \
             INTERFACE_LINK_LIBRARIES Threads::Threads)\n  \
           add_library(tyr::static STATIC IMPORTED)\n  \
           set_target_properties(tyr::static PROPERTIES\n    \
             IMPORTED_LOCATION \"${{_tyr_prefix}}/lib/libtyr.a\"\n    \
             INTERFACE_INCLUDE_DIRECTORIES \"${{_tyr_prefix}}/include\"\n    \
             INTERFACE_LINK_LIBRARIES \"Threads::Threads;{libraries}\")\n\
         endif()\n",
        SHARED[0], SHARED[0]
    )
}

/// Which versions a program may ask CMake for: those up to this one, of the same major version.
fn cmake_version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let major = version.split('.').next().unwrap_or_default();
    format!(
        "set(PACKAGE_VERSION \"{version}\")\n\
         if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)\n  \
           set(PACKAGE_VERSION_COMPATIBLE FALSE)\n\
         elseif(NOT \"${{PACKAGE_FIND_VERSION_MAJOR}}\" STREQUAL \"{major}\")\n  \
           set(PACKAGE_VERSION_COMPATIBLE FALSE)\n\
         else()\n  \
           set(PACKAGE_VERSION_COMPATIBLE TRUE)\n\
         endif()\n"
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
        std::fs::create_dir_all(built.join("tyr")).unwrap();
        for round in ["one", "two"] {
            for name in ["libtyr_c.a", "libtyr_c.so", "tyr.h", "tyr.hpp", "tyr/store.hpp"] {
                std::fs::write(built.join(name), round).unwrap();
            }
            place(&built, &built, &prefix).unwrap();
            let libraries = ["lib/libtyr.so", "lib/libtyr.so.1", "lib/libtyr.a"];
            let headers = ["include/tyr.h", "include/tyr.hpp", "include/tyr/store.hpp"];
            for name in libraries.iter().chain(&headers) {
                assert_eq!(std::fs::read_to_string(prefix.join(name)).unwrap(), round, "{name}");
            }
        }
        let described = std::fs::read_to_string(prefix.join("lib/pkgconfig/tyr.pc")).unwrap();
        let prefix = prefix.canonicalize().unwrap();
        assert!(described.starts_with(&format!("prefix={}\n", prefix.display())), "{described}");
        let cmake = prefix.join("lib/cmake/tyr/tyr-config.cmake");
        assert!(std::fs::read_to_string(cmake).unwrap().contains("/lib/libtyr.so.1\""));
    }
}
