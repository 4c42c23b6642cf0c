//! What is checked of the library's folder before the library may touch it.
//!
//! On opening, fjall cuts journals and deletes folders that it takes for leftovers: a lost file of
//! a few bytes can cost a whole table, and some damaged files make it panic while it holds locks,
//! which ends the process. So whatever can be told from outside is told first, with the place, and
//! a folder with damage is left as it is.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use tyr_types::{Error, Result};
use xxhash_rust::xxh3::xxh3_128;

use super::Table;
use super::journal::{self, Ending, JournalBatch};

/// What the journals say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Preflight {
    /// The last batch in them.
    pub last: Option<JournalBatch>,
    /// A torn tail was cut: no table may hold anything with a sequence number above this one.
    pub seqno_max: Option<u64>,
    /// The torn tail: which journal, and its length without it.
    pub cut: Option<u64>,
}

fn damaged(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("index file {}: {what}", path.display()))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => damaged(path, "is missing"),
        _ => Error::io(format!("cannot read index file {}", path.display()), error),
    })
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let failed = |error| Error::io(format!("cannot list {}", folder.display()), error);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Checks everything, and cuts a torn tail unless `is_read_only`. Batches up to `synced` must be
/// there.
pub(super) fn check(folder: &Path, synced: u64, is_read_only: bool) -> Result<Preflight> {
    check_trees(folder)?;
    let result = check_journals(folder, synced)?;
    if let (Some((path, len)), false) = (&result.1, is_read_only) {
        let cut = || -> io::Result<()> {
            let file = OpenOptions::new().write(true).open(path)?;
            file.set_len(*len)?;
            file.sync_all()
        };
        cut().map_err(|error| Error::io(format!("cannot cut {}", path.display()), error))?;
    }
    Ok(result.0)
}

/// The trees: tree 0 is the library's own, the others our tables. Each names its current version
/// in a file with a checksum, which the library writes and does not read.
fn check_trees(folder: &Path) -> Result<()> {
    read(&folder.join("version"))?;
    File::open(folder.join("lock")).map_err(|_| damaged(&folder.join("lock"), "is missing"))?;
    let trees = folder.join("keyspaces");
    let expected: Vec<String> = (0..=Table::ALL.len()).map(|tree| tree.to_string()).collect();
    let found = names(&trees).map_err(|error| damaged(&trees, error))?;
    if found != expected {
        return Err(damaged(&trees, format!("holds {found:?} instead of {expected:?}")));
    }
    for tree in found {
        check_tree(&trees.join(tree))?;
    }
    Ok(())
}

fn check_tree(tree: &Path) -> Result<()> {
    let path = tree.join("current");
    let current = read(&path)?;
    let (Some(version), Some(checksum), 25) =
        (current.first_chunk::<8>(), current.get(8..24), current.len())
    else {
        return Err(damaged(&path, format!("is {} bytes long instead of 25", current.len())));
    };
    if current[24] != 0 {
        return Err(damaged(&path, "names an unknown kind of checksum"));
    }
    let version_path = tree.join(format!("v{}", u64::from_le_bytes(*version)));
    let version = read(&version_path)?;
    if xxh3_128(&version).to_le_bytes() != checksum {
        return Err(damaged(&version_path, "its checksum is not the one that `current` names"));
    }
    if !tree.join("tables").is_dir() {
        return Err(damaged(&tree.join("tables"), "is missing"));
    }
    Ok(())
}

type Tail = Option<(PathBuf, u64)>;

fn check_journals(folder: &Path, synced: u64) -> Result<(Preflight, Tail)> {
    let mut ids = Vec::new();
    for name in names(folder)? {
        if let Some(stem) = name.strip_suffix(".jnl") {
            let path = folder.join(&name);
            ids.push(stem.parse::<u64>().map_err(|_| damaged(&path, "has no number"))?);
        }
    }
    ids.sort_unstable();
    if ids.is_empty() {
        return Err(damaged(folder, "holds no journal"));
    }
    if let Some(gap) = ids.windows(2).find(|pair| pair[1] != pair[0] + 1) {
        return Err(damaged(&folder.join(format!("{}.jnl", gap[0] + 1)), "is missing"));
    }
    let mut result = Preflight::default();
    for (place, id) in ids.iter().enumerate() {
        let path = folder.join(format!("{id}.jnl"));
        let journal = read(&path)?;
        let (end, ending) = journal::walk(&journal, |at, batch| {
            journal::follows(result.last, batch)
                .map_err(|what| damaged(&path, format!("at byte {at}: {what}")))?;
            result.last = Some(batch);
            Ok(())
        })?;
        let Ending::Broken { at, seqno, is_followed } = ending else { continue };
        // A journal is synced before the next one begins, so only the last can be torn.
        let is_last = place + 1 == ids.len();
        let last = result.last.map_or(u64::MAX, |last| last.stamp.number);
        let seqno_max =
            result.last.map(|last| last.seqno).or(seqno.map(|seqno| seqno.saturating_sub(1)));
        if !is_last || last < synced || (is_followed && seqno_max.is_none()) {
            return Err(damaged(&path, format!("damaged at byte {at}, and later batches need it")));
        }
        result.seqno_max = seqno_max;
        result.cut = Some(end as u64);
        return Ok((result, Some((path, end as u64))));
    }
    Ok((result, None))
}
