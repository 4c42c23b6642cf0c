//! What a puppet does with a file system of `tyr-fs`.

use std::error::Error as _;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tyr::blocking::Tyr;
use tyr_fs::blocking::{FileSystem, OpenFile};
use tyr_fs::{Access, Errno, Name, NewFile, RenameMode};
use tyr_types::{Error, ErrorKind, Result};

use super::payload;

/// Whose everything is that a puppet makes.
const MINE: Access = Access { mode: 0o755, owner: 0, group: 0 };

/// What is to be done with a file system. Paths are from its root; payloads and places in them are
/// counted in words, as [`payload`] has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum FileOrder {
    /// Opens it.
    Open {
        /// Its name.
        name: String,
    },
    /// Makes a directory.
    MakeDirectory {
        /// Where.
        path: String,
    },
    /// Makes a file with a payload.
    Make {
        /// Where.
        path: String,
        /// By which its words are known.
        value: u64,
        /// How many words.
        len: u64,
    },
    /// Appends a payload to a file; answers where, unless it is part of a transaction.
    Append {
        /// The file.
        path: String,
        /// By which its words are known.
        value: u64,
        /// How many words.
        len: u64,
    },
    /// Writes a payload over a file.
    Write {
        /// The file.
        path: String,
        /// From which word on.
        at: u64,
        /// By which its words are known.
        value: u64,
        /// How many words.
        len: u64,
    },
    /// Makes a file so long.
    Truncate {
        /// The file.
        path: String,
        /// Words.
        len: u64,
    },
    /// Renames a file or a directory.
    Rename {
        /// Its name.
        from: String,
        /// Its next name.
        to: String,
        /// Whether what has that name gets this one, or goes.
        is_exchange: bool,
    },
    /// Gives a file one more name.
    Link {
        /// A name.
        from: String,
        /// The other.
        to: String,
    },
    /// Takes a name from a file.
    Remove {
        /// The name.
        path: String,
    },
    /// Removes an empty directory.
    RemoveDirectory {
        /// The directory.
        path: String,
    },
    /// Opens a file, and never closes it.
    Hold {
        /// The file.
        path: String,
    },
    /// Makes empty files in a directory, by so many tasks at the same time; answers how many.
    Crowd {
        /// Where.
        directory: String,
        /// The first task: names are by task and file.
        task: u64,
        /// How many tasks.
        tasks: u64,
        /// Files of each.
        each: u64,
    },
    /// Does all of these in one transaction.
    Together {
        /// What, one after the other.
        orders: Vec<Self>,
    },
}

/// Does what an order says, by calls that file systems and transactions have alike. They share no
/// trait, and one for two users would repeat each call three times.
macro_rules! change {
    ($files:expr, $order:expr) => {
        match $order {
            FileOrder::MakeDirectory { path } => $files.make_directory_at(path, MINE).map(drop),
            FileOrder::Make { path, value, len } => {
                $files.store_at(path, &payload(*value, *len), MINE)
            }
            FileOrder::Write { path, at, value, len } => {
                let node = $files.find(path)?.node;
                $files.write(&node, 8 * at, payload(*value, *len))
            }
            FileOrder::Truncate { path, len } => $files.truncate(&$files.find(path)?.node, 8 * len),
            FileOrder::Rename { from, to, is_exchange } => {
                let mode = match is_exchange {
                    true => RenameMode::Exchange,
                    false => RenameMode::Replace,
                };
                $files.rename_at_with(from, to, mode)
            }
            FileOrder::Link { from, to } => $files.link_at(from, to),
            FileOrder::Remove { path } => $files.remove_file_at(path),
            FileOrder::RemoveDirectory { path } => $files.remove_directory_at(path),
            FileOrder::Append { path, value, len } => {
                let node = $files.find(path)?.node;
                $files.append(&node, payload(*value, *len)).map(drop)
            }
            FileOrder::Open { .. }
            | FileOrder::Hold { .. }
            | FileOrder::Crowd { .. }
            | FileOrder::Together { .. } => {
                let text = format!("{:?} is no part of a transaction", $order);
                Err(tyr_fs::Error::new(Errno::INVAL, text))
            }
        }
    };
}

/// The file system that a puppet has open, and the files.
#[derive(Debug, Default)]
pub(crate) struct Files {
    files: Option<FileSystem>,
    held: Vec<OpenFile>,
}

impl Files {
    /// Does what an order says.
    pub(crate) fn follow(&mut self, store: &Tyr, order: FileOrder) -> Result<u64> {
        self.act(store, order).map_err(|error| told(&error))
    }

    fn act(&mut self, store: &Tyr, order: FileOrder) -> tyr_fs::Result<u64> {
        if let FileOrder::Open { name } = order {
            self.files = Some(FileSystem::open(store, &name)?);
            return Ok(0);
        }
        let files = self.files.as_ref().ok_or_else(|| {
            tyr_fs::Error::new(Errno::INVAL, "this puppet has no file system open yet")
        })?;
        match &order {
            FileOrder::Append { path, value, len } => {
                let node = files.find(path)?.node;
                return Ok(files.append(&node, payload(*value, *len))? / 8);
            }
            FileOrder::Hold { path } => {
                let node = files.find(path)?.node;
                self.held.push(files.open_file(&node)?);
            }
            FileOrder::Crowd { directory, task, tasks, each } => {
                return crowd(files, directory, *task..*task + *tasks, *each);
            }
            FileOrder::Together { orders } => {
                files
                    .transact(|together| orders.iter().try_for_each(|it| change!(together, it)))?;
            }
            order => change!(files, order)?,
        }
        Ok(0)
    }
}

/// Stack of a task that makes files.
const TASK_STACK: usize = 512 << 10;

/// Makes files by tasks, each on a thread of its own; answers how many.
fn crowd(files: &FileSystem, directory: &str, tasks: Range<u64>, each: u64) -> tyr_fs::Result<u64> {
    let directory = files.find(directory)?.node;
    let make = |task: u64| {
        (0..each).try_for_each(|number| {
            let name = Name::new(crowd_name(task, number))?;
            files.make_file(&directory, &name, NewFile::regular(MINE)).map(drop)
        })
    };
    std::thread::scope(|scope| {
        let tasks = tasks.map(|task| {
            let thread = std::thread::Builder::new().stack_size(TASK_STACK);
            thread.spawn_scoped(scope, move || make(task))
        });
        let mut made = 0;
        for task in tasks.collect::<Vec<_>>() {
            let broke = |what: String| tyr_fs::Error::new(Errno::IO, what);
            let task = task.map_err(|error| broke(format!("no thread for a task: {error}")))?;
            task.join().map_err(|_| broke("a task panicked".to_owned()))??;
            made += each;
        }
        Ok(made)
    })
}

/// The name of a file that a task of a crowd makes.
pub(crate) fn crowd_name(task: u64, number: u64) -> String {
    format!("{task}-{number}")
}

/// An error as the trial knows it: of the kind of the store's, if it was one of those.
pub fn told(error: &tyr_fs::Error) -> Error {
    let of_the_store = error.source().and_then(|source| source.downcast_ref::<Error>());
    let kind = match of_the_store {
        Some(source) => source.kind(),
        None if error.errno() == Errno::AGAIN => ErrorKind::Conflict,
        None => ErrorKind::Corrupt,
    };
    Error::new(kind, format!("{:?}: {}", error.errno(), error.text()))
}
