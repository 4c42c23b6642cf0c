//! Has the programs of workers built, from the sources in `workers/` and the libraries that cargo
//! has put beside this program, as they are in this build.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tyr_types::{Error, Result};

use super::Language;

/// Where the sources of everything lie.
const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A folder with what was built.
#[derive(Clone, Debug)]
pub struct Workshop {
    folder: PathBuf,
}

impl Workshop {
    /// A workshop in this folder, which is made.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be.
    pub fn new(folder: PathBuf) -> Result<Self> {
        made(&folder)?;
        Ok(Self { folder })
    }

    /// Builds the worker in this language; answers the program and its first words.
    ///
    /// # Errors
    /// `Unavailable`, with what to do, when a compiler or a library is missing or refuses.
    pub fn build(&self, language: Language) -> Result<Vec<String>> {
        match language {
            Language::C => self.c(),
            Language::Python => self.python(),
            Language::Java => self.java(),
            Language::Rust => Ok(vec![text(&own()?), "worker".to_owned()]),
        }
    }

    fn c(&self) -> Result<Vec<String>> {
        let library = library("libtyr_c.so", "tyr-c")?;
        let folder = self.folder.join("c");
        made(&folder)?;
        for name in ["libtyr.so", "libtyr.so.1"] {
            linked(&library, &folder.join(name))?;
        }
        let program = folder.join("worker");
        let mut compile = Command::new("cc");
        compile.args(["-std=c11", "-D_GNU_SOURCE", "-O1", "-g"]);
        compile.args(["-Wall", "-Wextra", "-pedantic", "-Werror"]);
        compile.arg(source("tyr-trial/workers/worker.c")).arg("-I").arg(source("tyr-c/include"));
        compile.arg("-L").arg(&folder).arg("-ltyr").arg("-o").arg(&program);
        compile.arg(format!("-Wl,-rpath,{}", folder.display()));
        run(&mut compile)?;
        Ok(vec![text(&program)])
    }

    fn python(&self) -> Result<Vec<String>> {
        let library = library("lib_tyr.so", "tyr-python")?;
        let package = self.folder.join("python/tyr");
        made(&package)?;
        for file in files(&source("tyr-python/python/tyr"), "py")? {
            linked(&file, &package.join(file.file_name().unwrap_or_default()))?;
        }
        linked(&library, &package.join("_tyr.abi3.so"))?;
        let path = format!("PYTHONPATH={}", self.folder.join("python").display());
        let program = text(&source("tyr-trial/workers/worker.py"));
        Ok(["env", &path, "python3", "-B", &program].map(str::to_owned).into())
    }

    fn java(&self) -> Result<Vec<String>> {
        let library = library("libtyr_java.so", "tyr-java")?;
        let classes = self.folder.join("java");
        made(&classes)?;
        let mut compile = jdk("javac");
        compile.args(["--release", "11", "-nowarn", "-d"]).arg(&classes);
        compile.args(files(&source("tyr-java/java/src/main/java"), "java")?);
        run(compile.arg(source("tyr-trial/workers/Worker.java")))?;
        let java = jdk("java").get_program().to_string_lossy().into_owned();
        let library = format!("-Dtyr.library={}", library.display());
        // Many of them run at once, and none does much.
        let words = [&*java, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", &library];
        let words = words.into_iter().map(str::to_owned);
        Ok(words.chain(["-cp".to_owned(), text(&classes), "Worker".to_owned()]).collect())
    }
}

fn own() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| Error::io("where this program is", error))
}

/// A library that cargo has built.
fn library(name: &str, package: &str) -> Result<PathBuf> {
    let own = own()?;
    let folder = own.parent().ok_or_else(|| Error::invalid("this program lies in no folder"))?;
    // Cargo puts a library there whatever it is built for, and into the folder only if asked.
    let library = folder.join("deps").join(name);
    match library.exists() {
        true => Ok(library),
        false => Err(Error::unavailable(format!(
            "{} is missing: build it first (cargo build -p {package})",
            library.display()
        ))),
    }
}

/// A program of the JDK: that of `JAVA_HOME`, or of the path.
fn jdk(name: &str) -> Command {
    match std::env::var_os("JAVA_HOME") {
        Some(home) => Command::new(Path::new(&home).join("bin").join(name)),
        None => Command::new(name),
    }
}

fn source(path: &str) -> PathBuf {
    Path::new(CRATES).join(path)
}

/// All files that end so in a folder and those below, in order.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let trouble = |error| Error::io(folder.display().to_string(), error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(trouble)? {
        let path = entry.map_err(trouble)?.path();
        if path.is_dir() {
            found.extend(files(&path, extension)?);
        } else if path.extension() == Some(OsStr::new(extension)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn made(folder: &Path) -> Result<()> {
    let made = std::fs::create_dir_all(folder);
    made.map_err(|error| Error::io(folder.display().to_string(), error))
}

fn linked(original: &Path, name: &Path) -> Result<()> {
    let linked = std::fs::canonicalize(original)
        .and_then(|original| std::os::unix::fs::symlink(original, name));
    linked.map_err(|error| Error::io(name.display().to_string(), error))
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| Error::io(program.clone(), error))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(Error::unavailable(format!("{program} does not build a worker: {said}")))
        }
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
