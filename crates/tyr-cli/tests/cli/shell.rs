//! A folder with a store, and the binary to use it with.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A store's folder, and files beside it.
pub struct Shell {
    folder: TempDir,
}

impl Shell {
    /// Without a store.
    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder for temporary files") }
    }

    /// With a store that has the keyspace `ks`, buffered because tests are many.
    pub fn new() -> Self {
        let shell = Self::empty();
        shell.ok(["keyspace", "create", "ks", "--durability", "buffered"]);
        shell
    }

    /// The store's folder.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// A path beside the store.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command, ready to start.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tyr"));
        command
            .args(arguments)
            .env("TYR_DATA", self.data())
            .env("TMPDIR", self.folder.path())
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        command
    }

    /// Runs the command to its end, without input.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Output {
        self.command(arguments).output().expect("the binary starts")
    }

    /// Runs the command to its end, with this input.
    pub fn feed<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        input: &[u8],
    ) -> Output {
        let mut child = self.start(arguments);
        let mut stdin = child.stdin.take().expect("it was piped");
        let written = stdin.write_all(input);
        drop(stdin);
        let output = child.wait_with_output().expect("the binary ends");
        // A command that refuses its arguments does not read its input.
        assert!(written.is_ok() || !output.status.success(), "{written:?}");
        output
    }

    /// Starts the command with pipes on all sides.
    pub fn start<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Child {
        self.command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts")
    }

    /// Runs a command that must succeed; answers what it printed.
    pub fn ok<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Vec<u8> {
        succeeded(self.run(arguments))
    }

    /// The same with input.
    pub fn ok_fed<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        input: &[u8],
    ) -> Vec<u8> {
        succeeded(self.feed(arguments, input))
    }

    /// The same, printed as text.
    pub fn text<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> String {
        String::from_utf8(self.ok(arguments)).expect("the output is text")
    }

    /// Runs a command with `--json` that must succeed; answers its lines.
    pub fn json<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Vec<Value> {
        let mut command = self.command(arguments);
        let output = command.arg("--json").output().expect("the binary starts");
        lines(&succeeded(output))
    }

    /// Runs a command that must fail; answers the exit code, and the kind and message of the
    /// error as JSON has them.
    pub fn refused<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> (i32, String, String) {
        let output = self.command(arguments).arg("--json").output().expect("the binary starts");
        refusal(&output)
    }

    /// Asserts that `tyr check` finds nothing wrong.
    pub fn assert_clean(&self) {
        let output = self.run(["check"]);
        assert!(output.status.success(), "{}", describe(&output));
    }
}

/// The output of a command that succeeded.
pub fn succeeded(output: Output) -> Vec<u8> {
    assert!(output.status.success(), "{}", describe(&output));
    output.stdout
}

/// Exit code, kind and message of a command that failed with `--json`.
pub fn refusal(output: &Output) -> (i32, String, String) {
    assert!(!output.status.success(), "{}", describe(output));
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().expect("a failure says why");
    let error: Value = serde_json::from_str(last).expect("with --json an error is JSON");
    let field = |name: &str| error["error"][name].as_str().unwrap_or_default().to_owned();
    (output.status.code().expect("it ended by itself"), field("kind"), field("message"))
}

/// JSON lines.
pub fn lines(output: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(output).expect("JSON is text");
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

/// What a command printed, for messages of failed tests.
pub fn describe(output: &Output) -> String {
    format!(
        "{}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Bytes of every value, not repeating soon, the same for the same seed.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
    .take(len)
    .collect()
}

/// The files of a folder and those within, with their sizes, largest first.
pub fn files(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let entry = entry.expect("its entries can be read");
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            let len = entry.metadata().expect("a file has a size").len();
            found.push((entry.path(), len));
        }
    }
    found.sort_by_key(|(_, len)| std::cmp::Reverse(*len));
    found
}
