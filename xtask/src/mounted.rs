//! File systems of the program built here, and clusters below them, for a chore.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::command::{succeeds, target};

/// The program, built now: optimized or not.
pub fn built(root: &Path, is_optimized: bool) -> Option<PathBuf> {
    let mut words = vec!["build", "--locked", "--package=tyr-cli"];
    words.extend(is_optimized.then_some("--release"));
    let is_built = succeeds(Command::new("cargo").args(words).current_dir(root));
    let program = if is_optimized { "release/tyr" } else { "debug/tyr" };
    is_built.then(|| target(root).join(program))
}

/// Starts `tyr mount`; it is there when this returns.
pub fn mount(command: Command) -> Result<Child, String> {
    let (child, line) = started(command)?;
    match line.contains("is mounted at") {
        true => Ok(child),
        false => Err("nothing was mounted: see above".to_owned()),
    }
}

/// Starts a program that goes on, and answers its first line, by which it says that it is ready.
fn started(mut command: Command) -> Result<(Child, String), String> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|it| it.to_string())?;
    let stdout = child.stdout.take().ok_or("it has no output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).map_err(|it| it.to_string())?;
    Ok((child, line))
}

/// Ends `tyr mount` as Ctrl-C does.
pub fn unmount(mut child: Child) -> Result<(), String> {
    ran(&mut interrupt(&child))?;
    let status = child.wait().map_err(|it| it.to_string())?;
    status.success().then_some(()).ok_or_else(|| format!("tyr mount ended with {status}"))
}

fn interrupt(child: &Child) -> Command {
    let mut command = Command::new("kill");
    command.args(["-INT", &child.id().to_string()]);
    command
}

/// A cluster of three nodes on this machine, by `tyr dev`. It ends with this.
pub struct Cluster {
    child: Child,
    /// What its clients are told.
    pub address: String,
}

impl Cluster {
    /// Starts the nodes, which keep what they have in this folder.
    pub fn start(program: &Path, folder: &Path) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.args(["dev", "--port", "0", "--folder"]).arg(folder).stdin(Stdio::null());
        let (child, line) = started(command)?;
        let address = line.split_whitespace().find(|word| word.starts_with("tyr://"));
        let address = address.unwrap_or_default().to_owned();
        let cluster = Self { child, address };
        match cluster.address.is_empty() {
            false => Ok(cluster),
            true => Err("no cluster was formed: see above".to_owned()),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(text) = ran(&mut interrupt(&self.child)) {
            eprintln!("{text}");
        }
        let _ = self.child.wait();
    }
}

/// Runs a command that has to succeed; it is printed first.
pub fn ran(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let words: Vec<_> = command.get_args().map(|it| it.to_string_lossy()).collect();
    println!("$ {program} {}", words.join(" "));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program} ended with {status}")),
        Err(error) => Err(format!("{program} does not start: {error}")),
    }
}
