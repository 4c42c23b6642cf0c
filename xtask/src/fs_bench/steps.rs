//! What is done with files, each by calls of POSIX alone, and how long each took.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirEntryExt as _, FileExt as _, MetadataExt as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};

use super::Place;
use super::loads::Amounts;

/// One kind of thing that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes files, writes and closes them.
    Create,
    /// Looks at each by its path.
    Stat,
    /// Opens, reads and closes each.
    Read,
    /// Lists directories, and looks at each name.
    List,
    /// Gives each a new name in its directory.
    Rename,
    Unlink,
    /// Writes at the end of one file that all have open so.
    Append,
    /// Writes one file from its begin to its end, and syncs it.
    WriteAll,
    /// Reads it.
    ReadAll,
    /// Writes at random places in it.
    Overwrite,
    /// Reads there.
    ReadRandom,
    /// Renames a directory with so many files, there and back.
    RenameDirectory(usize),
}

/// Bytes of the one large file.
const LARGE_LEN: u64 = 256 << 20;

/// How often a directory is renamed.
const RENAMES: usize = 20;

/// What is written is everywhere the same.
static BYTES: [u8; 1 << 20] = [b'x'; 1 << 20];

impl Step {
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create + write + close",
            Self::Stat => "stat",
            Self::Read => "open + read + close",
            Self::List => "readdir + stat, an entry",
            Self::Rename => "rename",
            Self::Unlink => "unlink",
            Self::Append => "append",
            Self::WriteAll => "write in order",
            Self::ReadAll => "read in order",
            Self::Overwrite => "write at random",
            Self::ReadRandom => "read at random",
            Self::RenameDirectory(_) => "rename of a directory",
        }
    }

    /// Whether one thread does it, however many there are.
    pub fn is_of_one(self) -> bool {
        match self {
            Self::WriteAll | Self::ReadAll | Self::RenameDirectory(_) => true,
            Self::Create
            | Self::Stat
            | Self::Read
            | Self::List
            | Self::Rename
            | Self::Unlink
            | Self::Append
            | Self::Overwrite
            | Self::ReadRandom => false,
        }
    }

    /// Does it as the thread of this number; answers how long each operation took.
    pub fn run(self, files: &Files, thread: usize, amounts: &Amounts) -> io::Result<Vec<Duration>> {
        match self {
            Self::Create => {
                files.create(thread, amounts.files.div_ceil(files.threads), amounts.time)
            }
            Self::Stat => files.each(thread, amounts.time, |path| fs::metadata(path).map(drop)),
            Self::Read => {
                let mut buffer = vec![0; 1 << 20];
                files.each(thread, amounts.time, |path| {
                    let mut file = File::open(path)?;
                    while file.read(&mut buffer)? > 0 {}
                    Ok(())
                })
            }
            Self::List => files.list(thread, amounts.time),
            Self::Rename => files.rename(thread),
            Self::Unlink => files.each(thread, Duration::ZERO, fs::remove_file),
            Self::Append => files.append(amounts.time),
            Self::WriteAll => files.write_all(),
            Self::ReadAll => files.read_all(),
            Self::Overwrite | Self::ReadRandom => files.at_random(self, thread, amounts.time),
            Self::RenameDirectory(_) => files.rename_directory(),
        }
    }
}

/// The files of a load at a place.
pub struct Files {
    folder: PathBuf,
    is_synced: bool,
    threads: usize,
    is_apart: bool,
    len: usize,
    /// How many each thread has made.
    counts: Vec<usize>,
    /// What their names begin with.
    letter: char,
}

impl Files {
    pub fn new(place: &Place, threads: usize, is_apart: bool, len: usize) -> Self {
        let (folder, is_synced) = (place.folder.join("files"), place.is_synced);
        Self { folder, is_synced, threads, is_apart, len, counts: vec![0; threads], letter: 'f' }
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    fn directory(&self, thread: usize) -> PathBuf {
        match self.is_apart {
            true => self.folder.join(format!("d{thread}")),
            false => self.folder.join("all"),
        }
    }

    fn path(&self, thread: usize, index: usize, letter: char) -> PathBuf {
        self.directory(thread).join(format!("{letter}{thread}.{index}"))
    }

    fn large(&self) -> PathBuf {
        self.folder.join("large")
    }

    /// What has to be there, and is no part of what is measured.
    pub fn prepare(&self, step: Step) -> io::Result<()> {
        (0..self.threads).try_for_each(|thread| fs::create_dir_all(self.directory(thread)))?;
        if matches!(step, Step::ReadAll | Step::ReadRandom) {
            // Out of the kernel's pages, as far as it does as it is told.
            let file = File::open(self.large())?;
            file.sync_all()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
        Ok(())
    }

    /// Notes what a step has left.
    pub fn finish(&mut self, step: Step, results: &[Vec<Duration>]) {
        match step {
            Step::Create => self.counts = results.iter().map(Vec::len).collect(),
            Step::Rename => self.letter = 'g',
            Step::Unlink => self.counts.fill(0),
            Step::Stat
            | Step::Read
            | Step::List
            | Step::Append
            | Step::WriteAll
            | Step::ReadAll
            | Step::Overwrite
            | Step::ReadRandom
            | Step::RenameDirectory(_) => {}
        }
    }

    /// Makes a directory with so many empty files, by all threads.
    pub fn make_many(&mut self, count: usize) -> io::Result<()> {
        self.prepare(Step::Create)?;
        let (files, is_synced) = (&*self, self.is_synced);
        std::thread::scope(|scope| {
            let make = |thread| {
                scope.spawn(move || {
                    (thread..count).step_by(files.threads).try_for_each(|index| {
                        File::create_new(files.path(thread, index, files.letter)).map(drop)
                    })
                })
            };
            let threads: Vec<_> = (0..files.threads).map(make).collect();
            threads.into_iter().try_for_each(|it| it.join().expect("it does not panic"))
        })?;
        if is_synced { File::open(self.directory(0))?.sync_all() } else { Ok(()) }
    }

    pub fn remove(self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// A name was made, changed or taken: where that is wanted, it is on disk then.
    fn sync_directory(&self, thread: usize) -> io::Result<()> {
        match self.is_synced {
            true => File::open(self.directory(thread))?.sync_all(),
            false => Ok(()),
        }
    }

    fn create(&self, thread: usize, count: usize, time: Duration) -> io::Result<Vec<Duration>> {
        let (begun, mut took) = (Instant::now(), Vec::new());
        for index in 0..count {
            if begun.elapsed() > time {
                break;
            }
            let path = self.path(thread, index, self.letter);
            took.push(timed(|| {
                let mut file = File::create_new(&path)?;
                file.write_all(&BYTES[..self.len])?;
                if self.is_synced {
                    file.sync_all()?;
                }
                drop(file);
                self.sync_directory(thread)
            })?);
        }
        Ok(took)
    }

    /// Does something with each file, again and again until time is over.
    fn each(
        &self,
        thread: usize,
        time: Duration,
        mut work: impl FnMut(PathBuf) -> io::Result<()>,
    ) -> io::Result<Vec<Duration>> {
        let (begun, mut took) = (Instant::now(), Vec::new());
        loop {
            for index in 0..self.counts[thread] {
                let path = self.path(thread, index, self.letter);
                took.push(timed(|| work(path))?);
                if !time.is_zero() && begun.elapsed() > time {
                    break;
                }
            }
            if begun.elapsed() >= time || self.counts[thread] == 0 {
                if time.is_zero() {
                    self.sync_directory(thread)?;
                }
                return Ok(took);
            }
        }
    }

    fn rename(&self, thread: usize) -> io::Result<Vec<Duration>> {
        let rename = |index| {
            let (from, to) = (self.path(thread, index, 'f'), self.path(thread, index, 'g'));
            timed(|| fs::rename(from, to).and_then(|()| self.sync_directory(thread)))
        };
        (0..self.counts[thread]).map(rename).collect()
    }

    fn list(&self, thread: usize, time: Duration) -> io::Result<Vec<Duration>> {
        let (begun, mut took) = (Instant::now(), Vec::new());
        while begun.elapsed() < time {
            let mut last = Instant::now();
            for entry in fs::read_dir(self.directory(thread))? {
                let entry = entry?;
                assert!(entry.ino() == entry.metadata()?.ino(), "it is the same file");
                took.push(last.elapsed());
                last = Instant::now();
                if begun.elapsed() > time {
                    break;
                }
            }
        }
        Ok(took)
    }

    fn append(&self, time: Duration) -> io::Result<Vec<Duration>> {
        let mut file = OpenOptions::new().create(true).append(true).open(self.large())?;
        let (begun, mut took) = (Instant::now(), Vec::new());
        while begun.elapsed() < time {
            took.push(timed(|| {
                file.write_all(&BYTES[..self.len])?;
                if self.is_synced { file.sync_data() } else { Ok(()) }
            })?);
        }
        Ok(took)
    }

    fn write_all(&self) -> io::Result<Vec<Duration>> {
        let len = self.len.max(1 << 20);
        let mut file = File::create(self.large())?;
        let mut took = Vec::new();
        for _ in 0..LARGE_LEN / len as u64 {
            took.push(timed(|| file.write_all(&BYTES[..len]))?);
        }
        file.sync_all()?;
        Ok(took)
    }

    fn read_all(&self) -> io::Result<Vec<Duration>> {
        let (mut file, mut buffer) = (File::open(self.large())?, vec![0; self.len]);
        let mut took = Vec::new();
        for _ in 0..LARGE_LEN / self.len as u64 {
            took.push(timed(|| file.read_exact(&mut buffer))?);
        }
        Ok(took)
    }

    fn at_random(&self, step: Step, thread: usize, time: Duration) -> io::Result<Vec<Duration>> {
        let file = OpenOptions::new().read(true).write(true).open(self.large())?;
        let mut buffer = vec![0; self.len];
        let mut chance = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(thread as u64 + 1);
        let (begun, mut took) = (Instant::now(), Vec::new());
        while begun.elapsed() < time {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            let offset = chance % (LARGE_LEN / self.len as u64) * self.len as u64;
            took.push(timed(|| match step {
                Step::ReadRandom => file.read_exact_at(&mut buffer, offset),
                _ => {
                    file.write_all_at(&BYTES[..self.len], offset)?;
                    if self.is_synced { file.sync_data() } else { Ok(()) }
                }
            })?);
        }
        Ok(took)
    }

    fn rename_directory(&self) -> io::Result<Vec<Duration>> {
        let (from, to) = (self.directory(0), self.folder.join("moved"));
        let rename = |turn: usize| {
            let (from, to) = if turn.is_multiple_of(2) { (&from, &to) } else { (&to, &from) };
            timed(|| {
                fs::rename(from, to)?;
                if self.is_synced { File::open(&self.folder)?.sync_all() } else { Ok(()) }
            })
        };
        (0..RENAMES).map(rename).collect()
    }
}

fn timed(work: impl FnOnce() -> io::Result<()>) -> io::Result<Duration> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}
