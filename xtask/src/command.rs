//! Programs that chores start, and where cargo puts what it builds.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command to its end; `false`, with words, when it does not start.
pub fn succeeds(command: &mut Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("{}: does not start: {error}", command.get_program().to_string_lossy());
            false
        }
    }
}

/// Where cargo builds what lies at `root`.
pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}
