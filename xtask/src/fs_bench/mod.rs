//! What calls cost on mounted file systems: `cargo xtask fs-bench`.
//!
//! ```text
//!   mod       arguments, the mount, and which places are compared
//!   loads     groups of steps: how many threads, on which files
//!   steps     what a thread does, by calls of POSIX alone
//!   cpu       whose CPU is counted
//!   figures   medians, and the table
//! ```
//!
//! All places do the same, one after the other within each step, so that what else the machine
//! does meets all of them. Nothing here is asserted: figures are for docs/performance.md.

mod cpu;
mod figures;
mod loads;
mod steps;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use self::cpu::Servers;
pub use self::figures::median;
use self::loads::Amounts;
use crate::mounted::{built, mount, ran, unmount};

/// A directory in which things are done.
pub struct Place {
    pub name: String,
    pub folder: PathBuf,
    /// Who else works for it.
    pub servers: Servers,
    /// Whether what is made and written is brought to the disk by `fsync`, file and directory.
    pub is_synced: bool,
}

/// What is asked for on the command line.
struct Arguments {
    program: Option<PathBuf>,
    beside: Vec<Place>,
    amounts: Amounts,
    runs: usize,
    only: Option<String>,
}

/// Measures, and prints a table.
pub fn run(root: &Path, words: &[&str]) -> bool {
    let arguments = match parse(words) {
        Ok(arguments) => arguments,
        Err(text) => {
            eprintln!("{text}");
            return false;
        }
    };
    let Some(program) = arguments.program.clone().or_else(|| built(root, true)) else {
        return false;
    };
    let folder = std::env::temp_dir().join(format!("fs-bench-{}", std::process::id()));
    let measured = measure(&program, &folder, arguments);
    drop(fs::remove_dir_all(&folder));
    match measured {
        Ok(()) => true,
        Err(text) => {
            eprintln!("{text}");
            false
        }
    }
}

fn parse(words: &[&str]) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        program: None,
        beside: Vec::new(),
        amounts: Amounts::default(),
        runs: 1,
        only: None,
    };
    let amounts = &mut arguments.amounts;
    for pair in words.chunks(2) {
        let &[flag, value] = pair else { return Err(format!("{} wants a value", pair[0])) };
        let number = || value.parse::<usize>().map_err(|_| format!("{flag} wants a number"));
        match flag {
            "--tyr" => arguments.program = Some(PathBuf::from(value)),
            "--beside" => arguments.beside.push(beside(value)?),
            "--files" => amounts.files = number()?,
            "--threads" => amounts.threads = number()?.clamp(1, 64),
            "--renamed" => amounts.renamed = number()?,
            "--seconds" => amounts.time = Duration::from_secs(number()? as u64),
            "--runs" => arguments.runs = number()?.max(1),
            "--only" => arguments.only = Some(value.to_owned()),
            other => return Err(format!("there is no flag {other}")),
        }
    }
    Ok(arguments)
}

/// `NAME=DIR` or `NAME=DIR=PIDS`.
fn beside(value: &str) -> Result<Place, String> {
    let mut parts = value.splitn(3, '=');
    let (Some(name), Some(folder)) = (parts.next(), parts.next()) else {
        return Err(format!("--beside wants NAME=DIR or NAME=DIR=PIDS, and not {value}"));
    };
    let folder = PathBuf::from(folder);
    if !folder.is_dir() {
        return Err(format!("{} is no directory", folder.display()));
    }
    let folder = folder.join(format!("fs-bench-{}", std::process::id()));
    let servers = parts.next().map_or(Servers::None, |file| Servers::Listed(PathBuf::from(file)));
    Ok(Place { name: name.to_owned(), folder, servers, is_synced: false })
}

/// File systems that are made and mounted here, and how durable their keyspaces are.
const MOUNTS: [(&str, &str); 2] = [("tyr", "sync"), ("tyr buffered", "buffered")];

fn measure(program: &Path, folder: &Path, arguments: Arguments) -> Result<(), String> {
    let made = |folder: &Path| {
        fs::create_dir_all(folder).map_err(|it| format!("{}: {it}", folder.display()))
    };
    let mut mounts = Vec::new();
    let mut places = Vec::new();
    for (name, durability) in MOUNTS {
        let (at, store) = (folder.join(durability), folder.join(format!("store-{durability}")));
        made(&at)?;
        let tyr = |words: &[&str]| {
            let mut command = Command::new(program);
            command.args(words).env("TYR_DATA", &store).stdin(Stdio::null());
            command
        };
        ran(&mut tyr(&["fs", "create", "bench", "--durability", durability]))?;
        let child = mount(tyr(&["mount", "bench", &at.display().to_string()]))?;
        let servers = Servers::One(child.id());
        mounts.push(child);
        places.push(Place { name: name.to_owned(), folder: at, servers, is_synced: false });
    }
    for (name, is_synced) in [("local, synced", true), ("local", false)] {
        let (name, folder) = (name.to_owned(), folder.join(format!("local-{is_synced}")));
        places.push(Place { name, folder, servers: Servers::None, is_synced });
    }
    places.extend(arguments.beside);
    let only = arguments.only.as_deref();
    let measured = places
        .iter()
        .try_for_each(|place| made(&place.folder))
        .and_then(|()| loads::run(&places, &arguments.amounts, arguments.runs, only));
    for place in &places[MOUNTS.len()..] {
        drop(fs::remove_dir_all(&place.folder));
    }
    let ended: Vec<_> = mounts.into_iter().map(unmount).collect();
    figures::print(&places, &measured?);
    ended.into_iter().collect()
}
