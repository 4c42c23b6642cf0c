//! The audit file: lines appended, a new file when it is long, so many of them kept.
//!
//! `audit.log` is written; `audit.log.1` is the one before, and so on. When nothing can be written
//! the node goes on, and says so once: who fills the disk must not stop the store that way.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing_subscriber::fmt::MakeWriter;
use tyr::Error;

use crate::failure::Outcome;

/// Where what is audited goes, and how much of it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPlan {
    /// The file.
    pub path: PathBuf,
    /// Its length at most, but for the last line.
    pub len_max: u64,
    /// Files that are kept, this one among them.
    pub files: usize,
}

impl AuditPlan {
    /// Opens the file to append to it, making it if it is missing.
    ///
    /// # Errors
    /// What the system says.
    pub fn try_open(&self) -> io::Result<File> {
        OpenOptions::new().create(true).append(true).open(&self.path)
    }

    fn numbered(&self, number: usize) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        name.into()
    }

    /// Makes room for a new file: each gets the next number, and the last one goes.
    fn shift(&self) -> io::Result<()> {
        if self.files <= 1 {
            return fs::remove_file(&self.path);
        }
        for number in (1..self.files - 1).rev() {
            let from = self.numbered(number);
            if from.exists() {
                fs::rename(from, self.numbered(number + 1))?;
            }
        }
        fs::rename(&self.path, self.numbered(1))
    }
}

/// The file that is written. Clones are the same one.
#[derive(Clone, Debug)]
pub struct AuditFile(Arc<Mutex<Writing>>);

#[derive(Debug)]
struct Writing {
    plan: AuditPlan,
    file: File,
    len: u64,
    /// Whether the last write failed; said once.
    is_failing: bool,
}

impl AuditFile {
    /// Opens it.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be opened.
    pub fn open(plan: AuditPlan) -> Outcome<Self> {
        let place = plan.path.display().to_string();
        let opened = plan.try_open().and_then(|file| Ok((file.metadata()?.len(), file)));
        let (len, file) = opened.map_err(|error| Error::io(place, error))?;
        Ok(Self(Arc::new(Mutex::new(Writing { plan, file, len, is_failing: false }))))
    }

    /// Opens it anew: somebody moved it away.
    pub fn reopen(&self) {
        let mut writing = self.writing();
        let reopened = writing.reopen();
        writing.note(&reopened);
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writing {
    fn reopen(&mut self) -> io::Result<()> {
        self.file = self.plan.try_open()?;
        self.len = self.file.metadata()?.len();
        Ok(())
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.len > 0 && self.len + line.len() as u64 > self.plan.len_max {
            // What stands there already must not be lost because it cannot be renamed.
            self.plan.shift()?;
            self.reopen()?;
        }
        self.file.write_all(line)?;
        self.len += line.len() as u64;
        Ok(())
    }

    fn note(&mut self, result: &io::Result<()>) {
        if let Err(error) = result
            && !self.is_failing
        {
            // Not by tracing, which we are called from.
            eprintln!("tyr: {}: the audit file fails: {error}", self.plan.path.display());
        }
        self.is_failing = result.is_err();
    }
}

/// Writes one line.
#[derive(Debug)]
pub struct LineWriter<'a>(MutexGuard<'a, Writing>);

impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let appended = self.0.append(line);
        self.0.note(&appended);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for AuditFile {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        LineWriter(self.writing())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_makes_room_for_a_new_one_and_so_many_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let plan = AuditPlan { path: path.clone(), len_max: 10, files: 3 };
        let file = AuditFile::open(plan.clone()).unwrap();
        for line in ["one....\n", "two....\n", "three..\n", "four...\n"] {
            file.make_writer().write_all(line.as_bytes()).unwrap();
        }
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(read(path.clone()), "four...\n");
        assert_eq!(read(plan.numbered(1)), "three..\n");
        assert_eq!(read(plan.numbered(2)), "two....\n");
        assert!(!plan.numbered(3).exists());
    }

    #[test]
    fn it_goes_on_where_it_was_and_where_it_was_moved_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let plan = AuditPlan { path: path.clone(), len_max: 1000, files: 1 };
        for _ in 0..2 {
            let file = AuditFile::open(plan.clone()).unwrap();
            file.make_writer().write_all(b"line\n").unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "line\nline\n");
        let file = AuditFile::open(plan).unwrap();
        fs::rename(&path, folder.path().join("elsewhere")).unwrap();
        file.reopen();
        file.make_writer().write_all(b"new\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
    }
}
