//! An index on a medium that takes no writes, opened by a library that writes as it opens.
//!
//! ```text
//!   medium/index/                     temporary folder/
//!     0.jnl, version, lock   ──copy──►  0.jnl, version, lock
//!     keyspaces/1/current    ──copy──►  keyspaces/1/current
//!     keyspaces/1/v7         ──copy──►  keyspaces/1/v7
//!     keyspaces/1/tables/42  ◄──link──  keyspaces/1/tables/42
//! ```
//!
//! Tables, which are nearly all of it, are never changed once they are written, so links to them
//! do; journals (64 MiB at most, mostly) and manifests are copied. What the library writes goes
//! with the temporary folder when the store is closed.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tyr_types::{Error, Result};

/// The folder of tables in each tree.
const TABLES: &str = "tables";

/// A temporary folder with what the library needs of an index.
pub(super) struct Elsewhere {
    folder: PathBuf,
}

impl Elsewhere {
    /// Makes one of the index in `folder`.
    ///
    /// # Errors
    /// `Unavailable` when the disk of temporary files refuses, or what is in `folder` cannot be
    /// read.
    pub fn of(folder: &Path) -> Result<Self> {
        let from = fs::canonicalize(folder).map_err(|error| refused(folder, error))?;
        let made = Self { folder: new_folder()? };
        copy(&from, &made.folder).map_err(|error| refused(folder, error))?;
        Ok(made)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // Who clears temporary files finds it otherwise.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn refused(folder: &Path, error: io::Error) -> Error {
    let text = format!(
        "the index {} is on a medium that takes no writes, and cannot be opened from {} either",
        folder.display(),
        std::env::temp_dir().display()
    );
    Error::io(text, error)
}

/// A folder that nobody else has.
fn new_folder() -> Result<PathBuf> {
    let process = std::process::id();
    for number in 0..u32::MAX {
        let folder = std::env::temp_dir().join(format!("tyr-index-{process}-{number}"));
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io(folder.display().to_string(), error)),
            Ok(()) => return Ok(folder),
        }
    }
    Err(Error::unavailable("there is no name left for a temporary folder"))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let is_tables = from.file_name().is_some_and(|name| name == TABLES);
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy(&source, &target)?;
        } else if is_tables {
            symlink(&source, &target)?;
        } else {
            // Not with its mode, which may forbid to write.
            io::copy(&mut fs::File::open(&source)?, &mut fs::File::create(&target)?)?;
        }
    }
    Ok(())
}
