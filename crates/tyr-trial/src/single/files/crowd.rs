//! Ten thousand tasks of a hundred programs make files in one directory while others list it: none
//! is refused, each file is there once, and a listing that goes on from a cookie shows each file
//! that was there before exactly once. So many calls wait for each other: each may take as long as
//! calls may take at most.
//!
//! ```text
//!   files of before ─► 100 programs, each 100 tasks ─► files, one after the other
//!        └──► a reader: the whole directory page by page, and from cookies of before, all the time
//!   in the end ─► every name is there once, and no other; `check` finds nothing
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tyr::blocking::Tyr;
use tyr_client::TIMEOUT_MAX;
use tyr_fs::blocking::{DirectoryEntry, FileSystem};
use tyr_fs::{Node, Options};
use tyr_types::{Error, Result};

use super::{NAME, ROOT, check, told, walked};
use crate::cluster::Cluster;
use crate::puppet::{self, FileOrder, Puppet};
use crate::random::Random;
use crate::single::{Extent, Ground};

const PROGRAMS: u64 = 100;

/// Of each program, at the same time.
const TASKS: u64 = 100;

/// Files of each task, in full.
const FILES: u64 = 200;

/// Files that are there before, and what their names begin with.
const OLD: u64 = 2_000;
const OLD_NAME: &str = "old-";

const DIRECTORY: &str = "/crowd";

/// Names that are listed at once: a page, or a part of one.
const PAGE: (u64, u64) = (10, 2_000);

pub(in crate::single) fn run(ground: &Ground, cluster: &mut Cluster, _: Extent) -> Result<String> {
    let each = ground.times(FILES);
    let addresses = cluster.control.addresses().to_vec();
    let store = Tyr::connect_options().timeout(TIMEOUT_MAX);
    let store = store.connect_blocking(addresses.join(","))?;
    let directory = Crowded::new(&store).map_err(|error| told(&error))?;
    let plan = puppet::Plan { addresses, timeout: Some(TIMEOUT_MAX), ..Default::default() };
    let programs = (0..PROGRAMS).map(|_| Puppet::start(&plan)).collect::<Result<Vec<_>>>()?;
    let begun = Instant::now();
    let (is_over, has_failed) = (AtomicBool::new(false), AtomicBool::new(false));
    let (made, read) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| directory.read_on(&is_over, &has_failed));
        let programs = (0..).zip(programs);
        let programs: Vec<_> = programs
            .map(|(number, program)| scope.spawn(move || make(program, number, each)))
            .collect();
        let made: Result<Vec<u64>> = programs
            .into_iter()
            .map(|program| program.join().map_err(|_| Error::unavailable("a thread panicked"))?)
            .collect();
        has_failed.store(made.is_err(), Ordering::Release);
        is_over.store(true, Ordering::Release);
        let made = made.map_err(|error| {
            let took = begun.elapsed().as_secs_f64();
            let there = match directory.files.find(DIRECTORY) {
                Ok(seen) => (seen.attributes.size - OLD).to_string(),
                Err(error) => format!("nobody can tell how many ({error})"),
            };
            error.context(format!("after {there} files in {took:.0} s"))
        });
        let read = reader.join().map_err(|_| Error::unavailable("the reader panicked"))?;
        Ok::<_, Error>((made?, read.map_err(|error| told(&error))?))
    })?;
    let (made, took) = (made.iter().sum::<u64>(), begun.elapsed().as_secs_f64());
    let text = format!(
        "{made} files made by {} tasks of {PROGRAMS} programs in {took:.0} s, {:.0} a second; \
         meanwhile {} listings and {} from a cookie, each with all {OLD} files of before",
        PROGRAMS * TASKS,
        made as f64 / took,
        read.listings,
        read.from_cookies,
    );
    let wrong = directory.wrong(each).map_err(|error| told(&error))?;
    check(&directory.files).map_err(|error| error.context(text.clone()))?;
    let text = format!(
        "{text}; {}",
        walked::walk(&ground.program, &plan.addresses, DIRECTORY, OLD + PROGRAMS * TASKS * each)?
    );
    match wrong.or((made != PROGRAMS * TASKS * each).then(|| "some were not made".to_owned())) {
        None => Ok(text),
        Some(wrong) => Err(Error::corrupt(format!("{text}; {wrong}"))),
    }
}

/// What one program makes.
fn make(mut program: Puppet, number: u64, each: u64) -> Result<u64> {
    program.ask(&FileOrder::Open { name: NAME.to_owned() }.into())?;
    let directory = DIRECTORY.to_owned();
    program.ask(&FileOrder::Crowd { directory, task: number * TASKS, tasks: TASKS, each }.into())
}

/// The directory that all make files in, and the order of those of before.
struct Crowded {
    files: FileSystem,
    directory: Node,
    old: Vec<DirectoryEntry>,
}

/// What a reader did.
#[derive(Default)]
struct Read {
    listings: u64,
    from_cookies: u64,
}

impl Crowded {
    fn new(store: &Tyr) -> tyr_fs::Result<Self> {
        let files = FileSystem::create(store, NAME, &Options::default())?;
        let directory = files.make_directory_at(DIRECTORY, ROOT)?.node;
        for number in 0..OLD {
            files.make_file_at(format!("{DIRECTORY}/{OLD_NAME}{number}"), ROOT)?;
        }
        let old = files.list_directory(&directory, 0, OLD as usize + 1)?.entries;
        Ok(Self { files, directory, old })
    }

    /// Lists the directory until all is over, and once more after that; nothing more when it is
    /// of no use, since somebody has failed.
    fn read_on(&self, is_over: &AtomicBool, has_failed: &AtomicBool) -> tyr_fs::Result<Read> {
        let (mut read, mut random) = (Read::default(), Random::of(1, "crowd", PROGRAMS));
        loop {
            let was_over = is_over.load(Ordering::Acquire);
            let seen = self.list(&mut random, has_failed)?;
            if has_failed.load(Ordering::Acquire) {
                return Ok(read);
            }
            let old = seen.keys().filter(|name| is_old(name));
            if let Some((name, times)) = seen.iter().find(|(_, times)| **times != 1) {
                let name = String::from_utf8_lossy(name);
                return Err(wrong(format!("a listing shows {name} {times} times")));
            }
            let old = old.count() as u64;
            if old != OLD {
                return Err(wrong(format!("a listing shows {old} of {OLD} files of before")));
            }
            read.listings += 1;
            for _ in 0..10 {
                self.go_on(&mut random)?;
                read.from_cookies += 1;
            }
            if was_over {
                return Ok(read);
            }
        }
    }

    /// The names of the directory, and how often each was shown; some of them when it is of no use.
    fn list(
        &self,
        random: &mut Random,
        has_failed: &AtomicBool,
    ) -> tyr_fs::Result<BTreeMap<Vec<u8>, u64>> {
        let (mut seen, mut cookie) = (BTreeMap::new(), 0);
        loop {
            let limit = random.between(PAGE.0, PAGE.1) as usize;
            let page = self.files.list_directory(&self.directory, cookie, limit)?;
            for entry in page.entries {
                cookie = entry.cookie;
                *seen.entry(entry.name.as_bytes().to_vec()).or_default() += 1;
            }
            if page.is_end || has_failed.load(Ordering::Acquire) {
                return Ok(seen);
            }
        }
    }

    /// Goes on from the cookie of a file of before: the next of those is behind it, and no other.
    fn go_on(&self, random: &mut Random) -> tyr_fs::Result<()> {
        let at = random.below(self.old.len() as u64) as usize;
        let (mut cookie, next) = (self.old[at].cookie, self.old.get(at + 1));
        loop {
            let limit = random.between(PAGE.0, PAGE.1) as usize;
            let page = self.files.list_directory(&self.directory, cookie, limit)?;
            let found = page.entries.iter().find(|entry| is_old(entry.name.as_bytes()));
            if found.is_some() || page.is_end {
                return match found.map(|entry| &entry.name) == next.map(|entry| &entry.name) {
                    true => Ok(()),
                    false => Err(wrong(format!("behind {:?} is {found:?}", self.old[at]))),
                };
            }
            cookie = page.entries.last().map_or(cookie, |entry| entry.cookie);
        }
    }

    /// What is wrong when all is over.
    fn wrong(&self, each: u64) -> tyr_fs::Result<Option<String>> {
        let seen = self.list(&mut Random::of(2, "crowd", PROGRAMS), &AtomicBool::new(false))?;
        let expected = OLD + PROGRAMS * TASKS * each;
        if seen.len() as u64 != expected {
            return Ok(Some(format!("{} names are there, not {expected}", seen.len())));
        }
        let missing = (0..PROGRAMS * TASKS)
            .flat_map(|task| (0..each).map(move |number| puppet::crowd_name(task, number)))
            .find(|name| !seen.contains_key(name.as_bytes()));
        if let Some(name) = missing {
            return Ok(Some(format!("{name} is not there")));
        }
        Ok(None)
    }
}

/// Whether a file was there before, by its name.
fn is_old(name: &[u8]) -> bool {
    name.starts_with(OLD_NAME.as_bytes())
}

fn wrong(text: String) -> tyr_fs::Error {
    tyr_fs::Error::new(tyr_fs::Errno::IO, text)
}
