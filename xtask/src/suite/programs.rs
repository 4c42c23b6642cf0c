//! The programs of tests that cargo has built, run some at a time.
//!
//! Cargo runs them one after the other. Many of them wait most of the time: for a disk, for the end
//! of a lease, for a cluster that loses a node. Doctests are left to cargo.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use super::excerpt::{self, Excerpt};

/// Programs that run at the same time.
const AT_ONCE: usize = 2;

/// A program with tests.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// Its package and target, as cargo calls them.
    name: String,
    executable: PathBuf,
    /// The folder of its package, where cargo runs it.
    folder: PathBuf,
}

/// Takes the programs that cargo tells of, by `--message-format=json-render-diagnostics`, from what
/// it says; all else is passed on. It is given whole lines.
pub struct Listener<'a, W> {
    pub out: &'a mut W,
    pub programs: Vec<Program>,
}

impl<W: Write> Write for Listener<'_, W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match serde_json::from_slice::<Value>(line) {
            Ok(message) if message["reason"].is_string() => self.programs.extend(program(&message)),
            // A program that is not understood would not be run, and nobody would know.
            Err(error) if line.starts_with(b"{\"reason\"") => return Err(error.into()),
            _ => self.out.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Runs the tests of these programs; each says what it has to say when it ends. Answers whether all
/// passed, and what tells why not.
pub fn run(programs: &[Program], out: &mut (impl Write + Send)) -> (bool, Excerpt) {
    if programs.is_empty() {
        return (false, Excerpt::from("error: no program with tests was built"));
    }
    let (next, excerpts) = (Mutex::new(programs.iter()), Mutex::new(Vec::new()));
    let out = Mutex::new(out);
    let work = || {
        while let Some(program) = { next.lock().expect("nobody panicked").next() } {
            let (is_good, excerpt) = perform(program, &out);
            if !is_good {
                let name = Excerpt::from(&*format!("error: tests of {} failed", program.name));
                excerpts.lock().expect("nobody panicked").extend([excerpt, name]);
            }
        }
    };
    thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let excerpts = excerpts.into_inner().expect("nobody panicked");
    (excerpts.is_empty(), Excerpt::of_all(excerpts))
}

fn perform(program: &Program, out: &Mutex<&mut (impl Write + Send)>) -> (bool, Excerpt) {
    let Program { name, executable, folder } = program;
    // What nobody reads any more is not told.
    let tell = |said: &[u8]| drop(out.lock().expect("nobody panicked").write_all(said));
    tell(format!("     Running {name} ({})\n", executable.display()).as_bytes());
    let mut command = Command::new(executable);
    // As cargo sets it: tests of a package look for its files there.
    command.stdin(Stdio::null()).current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
    let mut said = Vec::new();
    let answer = excerpt::run(&mut command, &mut said);
    tell(&[format!("     Ended {name}\n").as_bytes(), &said].concat());
    answer
}

/// The program with tests that a message of cargo tells of.
fn program(message: &Value) -> Option<Program> {
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let executable = message["executable"].as_str().filter(|_| is_test)?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let package = folder.file_name()?.to_string_lossy();
    let (kind, target) = (&message["target"]["kind"][0], message["target"]["name"].as_str()?);
    let target = match kind.as_str()? {
        "test" => format!("test {target}"),
        "bin" => format!("program {target}"),
        _ => "library".to_owned(),
    };
    let name = format!("{package}, {target}");
    Some(Program { name, executable: executable.into(), folder: folder.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(is_test: bool, executable: &str) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/r/crates/tyr-fs/Cargo.toml",
                "target":{{"kind":["test"],"name":"files"}},"profile":{{"test":{is_test}}},
                "executable":{executable}}}"#
        )
    }

    #[test]
    fn what_cargo_says_of_programs_with_tests_is_taken_and_all_else_passed_on() {
        let mut out = Vec::new();
        let mut listener = Listener { out: &mut out, programs: Vec::new() };
        for line in [
            &*message(true, r#""/t/debug/deps/files-01""#),
            "   Compiling tyr-fs v0.1.0",
            &message(false, r#""/t/debug/tyr""#),
            &message(true, "null"),
            r#"{"reason":"build-finished","success":true}"#,
        ] {
            listener.write_all(line.as_bytes()).unwrap();
        }
        assert!(listener.write_all(br#"{"reason":"compiler-art"#).is_err());
        let (executable, folder) = ("/t/debug/deps/files-01".into(), "/r/crates/tyr-fs".into());
        let program = Program { name: "tyr-fs, test files".into(), executable, folder };
        assert_eq!(listener.programs, [program]);
        assert_eq!(out, b"   Compiling tyr-fs v0.1.0");
    }

    #[test]
    fn a_program_that_fails_is_told_with_what_it_said() {
        let mut said = Vec::new();
        let program = Program {
            name: "tyr-x, library".into(),
            executable: "false".into(),
            folder: crate::root(),
        };
        let (is_good, _) = run(&[program], &mut said);
        assert!(!is_good);
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("Running tyr-x, library (false)"), "{said}");
    }
}
