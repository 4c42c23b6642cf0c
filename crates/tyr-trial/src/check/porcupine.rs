//! The second check: Porcupine, a checker of linearizability by somebody else, in Go.
//!
//! The program in `porcupine/` reads the same lines. Without Go, or the module, there is no second
//! check, and that is said.

use std::path::{Path, PathBuf};
use std::process::Command;

use tyr_types::{Error, Result};

/// What the second check came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Second {
    /// It found nothing; what it looked at.
    Fine(String),
    /// What it found.
    Wrong(String),
    /// There is none, and why.
    Missing(String),
}

/// Where Go is, if not on the path.
const PLACES: [&str; 3] = ["go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go"];

/// Runs it on a history.
///
/// # Errors
/// `Unavailable` when it does not end as it should.
pub fn check(history: &Path) -> Result<Second> {
    let program = match build() {
        Ok(program) => program,
        Err(text) => return Ok(Second::Missing(text)),
    };
    let output = Command::new(&program).arg(history).output();
    let output = output.map_err(|error| Error::io(program.display().to_string(), error))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.code() {
        Some(0) => Ok(Second::Fine(text)),
        Some(1) => Ok(Second::Wrong(text)),
        Some(_) | None => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(Error::unavailable(format!("{} ended oddly: {errors}", program.display())))
        }
    }
}

/// The program, built if it is not yet, beside this one.
fn build() -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("porcupine");
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = own.parent().ok_or("this program lies in no folder")?;
    let program = folder.join("tyr-trial-porcupine");
    let is_go = |place: &&&str| Command::new(place).arg("version").output().is_ok();
    let go = PLACES.iter().find(is_go).ok_or("Go is not installed")?;
    let output = Command::new(go)
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(&source)
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(program),
        false => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(format!("Go does not build it: {}", errors.trim()))
        }
    }
}
