//! Whether everything in a file system fits together: what is counted, what refers to what, and
//! that every file has a name or is an orphan.
//!
//! All of it is read at one moment, while others go on: what a transaction changes together is seen
//! together, so whatever does not fit is damage. [`survey`] gathers, [`verdict`]
//! compares, [`repair`] makes what does not fit together fit again.

mod repair;
mod survey;
mod verdict;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::blocking::FileSystem;
use crate::error::Result;

pub use self::repair::Repairs;
pub(crate) use self::survey::Survey;

/// Something that is not as it has to be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Where: a path, or a number.
    pub place: String,
    /// What.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Directories, with the root.
    pub directories: u64,
    /// Names of all other files.
    pub names: u64,
    /// Files that lie in their entries.
    pub small_files: u64,
    /// Files with an inode.
    pub large_files: u64,
    /// Files without a name that are still open, or being deleted.
    pub orphans: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// What is not as it has to be, by place.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl FileSystem {
    /// Checks all of the file system, as it is at one moment of now. `progress` is told how many
    /// blobs were looked at so far, and may say that it is enough by answering `false`.
    ///
    /// # Errors
    /// `EIO` when the store does not answer, or it takes longer than a snapshot can be read;
    /// `EINTR` when it was enough. Damage is in the report.
    pub fn check(&self, progress: &mut dyn FnMut(u64) -> bool) -> Result<Report> {
        let survey = Survey::of(self, progress)?;
        Ok(survey.verdict())
    }
}
