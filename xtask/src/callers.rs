//! Programs in five languages that make calls as they are told, each on a store of its own: what
//! `cargo xtask steady` and `call-costs` look at.
//!
//! ```text
//!   caller FOLDER CACHE_MIB SEED      opens a store there        "ready"
//!   read COUNT                        800 bytes of a blob        "done"
//!   put COUNT                         100 bytes                  "done"
//!   transaction COUNT                 of 6 puts                  "done"
//!   async COUNT                       reads, 32 under way        "done"
//!   large COUNT                       4 MiB into own memory      "done"
//!   mix COUNT                         calls of many kinds, also started ones, some of which are
//!                                     cancelled, by a generator of the seed's
//!   the end of its input              closes everything; a handle that is left is an error
//! ```
//!
//! Stores are in the folder for temporary files. The blobs of the first five kinds are in a
//! keyspace of durability `memory`, that of the mix is `buffered`. The libraries are optimized, as
//! users have them.

use std::cell::Cell;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::command::{succeeds, target};
use crate::java::{jar, jdk};

/// Builds all libraries together, so that what they share is built once, with the same features.
const BUILD: [&str; 9] = [
    "build",
    "--locked",
    "--release",
    "--package=tyr-c",
    "--package=tyr-java",
    "--package=tyr-python",
    "--package=tyr-completion",
    "--lib",
    "--example=caller",
];

/// Heap of Java, which is there from the beginning: its memory is not what is looked at.
const HEAP: [&str; 3] = ["-Xms128m", "-Xmx128m", "-XX:+AlwaysPreTouch"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Rust,
    C,
    Cpp,
    Java,
    Python,
}

impl Language {
    pub const ALL: [Self; 5] = [Self::Rust, Self::C, Self::Cpp, Self::Java, Self::Python];

    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::C => "C",
            Self::Cpp => "C++",
            Self::Java => "Java",
            Self::Python => "Python",
        }
    }
}

/// What is built, and where.
pub struct Workshop {
    root: PathBuf,
    built: PathBuf,
    work: PathBuf,
    jar: PathBuf,
    /// Where the stores are, of which each has a number.
    stores: PathBuf,
    started: Cell<usize>,
}

/// A program that waits to be told.
pub struct Caller {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Workshop {
    /// Builds everything in a folder of this name among what cargo builds. One run at a time uses
    /// a name.
    pub fn build(root: &Path, name: &str) -> Option<Self> {
        let (built, work) = (target(root).join("release"), target(root).join(name));
        let jar = jar(root, &BUILD, "release", &work)?;
        let stores = std::env::temp_dir().join(format!("tyr-{name}"));
        let started = Cell::new(0);
        let shop = Self { root: root.to_owned(), built, work, jar, stores, started };
        match shop.furnish() {
            Ok(true) => Some(shop),
            Ok(false) => None,
            Err(error) => {
                eprintln!("{}: cannot be filled: {error}", shop.work.display());
                None
            }
        }
    }

    fn furnish(&self) -> io::Result<bool> {
        // What a run has left that was ended before its end.
        match fs::remove_dir_all(&self.stores) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir_all(&self.stores)?,
        }
        for name in ["libtyr.so", "libtyr.so.1"] {
            symlink(self.built.join("libtyr_c.so"), self.work.join(name))?;
        }
        let package = self.work.join("site/tyr");
        fs::create_dir_all(&package)?;
        for source in fs::read_dir(self.root.join("crates/tyr-python/python/tyr"))? {
            let source = source?;
            if source.file_type()?.is_file() {
                symlink(source.path(), package.join(source.file_name()))?;
            }
        }
        symlink(self.built.join("lib_tyr.so"), package.join("_tyr.abi3.so"))?;
        let tests = self.root.join("crates/tyr-java/tests/java");
        let mut javac = jdk("javac");
        javac.args(["--release", "11", "-d"]).arg(self.work.join("tests"));
        javac.arg("-cp").arg(&self.jar);
        let sources = ["Caller.java", "Expect.java", "io/github/tyrstore/Inside.java"];
        javac.args(sources.map(|it| tests.join(it)));
        let programs = self.root.join("crates/tyr-c/tests/programs");
        Ok(succeeds(&mut javac)
            && self.compile("c", &programs, &["-O2"])
            && self.compile("cpp", &programs, &["-O2"]))
    }

    /// Compiles the program in C or C++ for the sanitizers of addresses and undefined behaviour.
    pub fn compile_sanitized(&self, language: Language) -> Option<PathBuf> {
        let options = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        let suffix = if language == Language::C { "c" } else { "cpp" };
        let folder = self.root.join("crates/tyr-c/tests/programs");
        let name = format!("{suffix}-sanitized");
        let mut compile = self.compiler(suffix, &folder, &options, &name);
        succeeds(&mut compile).then(|| self.work.join(name))
    }

    fn compile(&self, suffix: &str, folder: &Path, options: &[&str]) -> bool {
        succeeds(&mut self.compiler(suffix, folder, options, suffix))
    }

    fn compiler(&self, suffix: &str, folder: &Path, options: &[&str], out: &str) -> Command {
        let (compiler, standard) =
            if suffix == "c" { ("cc", "-std=c11") } else { ("c++", "-std=c++20") };
        let mut command = Command::new(compiler);
        command.args([standard, "-D_GNU_SOURCE", "-g", "-pthread"]).args(options);
        command.arg(folder.join("caller").with_extension(suffix));
        command.arg("-I").arg(self.root.join("crates/tyr-c/include"));
        command.arg("-L").arg(&self.work).arg("-ltyr");
        command.arg(format!("-Wl,-rpath,{}", self.work.display()));
        command.arg("-o").arg(self.work.join(out));
        command
    }

    /// The program of a language.
    pub fn program(&self, language: Language) -> Command {
        match language {
            Language::Rust => Command::new(self.built.join("examples/caller")),
            Language::C => Command::new(self.work.join("c")),
            Language::Cpp => Command::new(self.work.join("cpp")),
            Language::Java => {
                let mut java = jdk("java");
                let tests = self.work.join("tests");
                let classes = format!("{}:{}", self.jar.display(), tests.display());
                java.args(HEAP).arg("-cp").arg(classes).arg("Caller");
                java
            }
            Language::Python => {
                let mut python = Command::new("python3");
                python.env("PYTHONPATH", self.work.join("site")).arg("-B");
                python.arg(self.root.join("crates/tyr-python/tests/python/caller.py"));
                python
            }
        }
    }

    /// Starts a program on a store in a folder that is made anew.
    pub fn start(&self, mut program: Command, cache_mib: u64, seed: u64) -> Result<Caller, String> {
        let folder = self.stores.join(self.started.replace(self.started.get() + 1).to_string());
        program.arg(&folder).args([cache_mib, seed].map(|it| it.to_string()));
        program.stdin(Stdio::piped()).stdout(Stdio::piped());
        let name = program.get_program().display().to_string();
        let mut child = program.spawn().map_err(|it| format!("{name} does not start: {it}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.ok_or("it has no output")?);
        let mut caller = Caller { child, input, output, folder };
        caller.expect("ready")?;
        Ok(caller)
    }
}

impl Caller {
    pub fn number(&self) -> u32 {
        self.child.id()
    }

    /// Has it make calls, and waits until they are made.
    pub fn make(&mut self, kind: &str, count: u64) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("it was told to end")?;
        // Where it has ended, its output says so too.
        drop(writeln!(input, "{kind} {count}").and_then(|()| input.flush()));
        self.expect("done").map_err(|text| format!("{kind} {count}: {text}"))
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|it| it.to_string())?;
        match line.trim_end() {
            "" => {
                let status = self.child.wait().map_err(|it| it.to_string())?;
                Err(format!("it ended with {status}; what it said is above"))
            }
            said if said == word => Ok(()),
            said => Err(format!("it said \"{said}\" instead of \"{word}\"")),
        }
    }

    /// Ends it, which has to be good, and removes its store.
    pub fn end(mut self) -> Result<(), String> {
        self.input = None;
        let status = self.child.wait().map_err(|it| it.to_string())?;
        if !status.success() {
            return Err(format!("it ended with {status}; what it said is above"));
        }
        let removed = fs::remove_dir_all(&self.folder);
        removed.map_err(|it| format!("{}: stays behind: {it}", self.folder.display()))
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        // Only where something went wrong before.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
