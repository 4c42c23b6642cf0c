//! A file system of the program built here, mounted for a chore.

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
pub fn mount(mut command: Command) -> Result<Child, String> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|it| it.to_string())?;
    let stdout = child.stdout.take().ok_or("it has no output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).map_err(|it| it.to_string())?;
    match line.contains("is mounted at") {
        true => Ok(child),
        false => Err("nothing was mounted: see above".to_owned()),
    }
}

/// Ends it as Ctrl-C does.
pub fn unmount(mut child: Child) -> Result<(), String> {
    ran(Command::new("kill").args(["-INT", &child.id().to_string()]))?;
    let status = child.wait().map_err(|it| it.to_string())?;
    status.success().then_some(()).ok_or_else(|| format!("tyr mount ended with {status}"))
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
