//! Which steps there are: on how many files, by how many threads, in one directory or several.

use std::io;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::Place;
use super::cpu::Sample;
use super::figures::{Figure, Row};
use super::steps::{Files, Step};

/// How much is done.
pub struct Amounts {
    /// Files that are made in a step, unless time is over before.
    pub files: usize,
    pub time: Duration,
    pub threads: usize,
    /// Files in the largest directory that is renamed.
    pub renamed: usize,
}

impl Default for Amounts {
    fn default() -> Self {
        let time = Duration::from_secs(2);
        Self { files: 20_000, time, threads: 8, renamed: 100_000 }
    }
}

/// Steps on the same files, in order.
struct Load {
    name: &'static str,
    /// How many threads; as many as are asked for, without it.
    threads: Option<usize>,
    /// Whether each thread has a directory of its own.
    is_apart: bool,
    /// Bytes of each file, or of each call.
    len: usize,
    steps: &'static [Step],
}

impl Load {
    const fn new(name: &'static str, len: usize, steps: &'static [Step]) -> Self {
        Self { name, threads: None, is_apart: false, len, steps }
    }

    const fn by_one(self) -> Self {
        Self { threads: Some(1), ..self }
    }
}

const ALL: &[Step] =
    &[Step::Create, Step::Stat, Step::Read, Step::List, Step::Rename, Step::Unlink];

const LOADS: [Load; 9] = [
    Load::new("4 KiB, 1 thread", 4_096, ALL).by_one(),
    Load::new("4 KiB", 4_096, ALL),
    Load { is_apart: true, ..Load::new("4 KiB, own directories", 4_096, ALL) },
    Load::new("32 KiB", 32 << 10, &[Step::Create, Step::Read, Step::Unlink]),
    Load::new("100 B, to one file", 100, &[Step::Append]),
    Load::new("1 MiB, 1 thread", 1 << 20, &[Step::WriteAll, Step::ReadAll]).by_one(),
    Load::new("4 KiB, in one file", 4_096, &[Step::WriteAll, Step::Overwrite, Step::ReadRandom]),
    Load::new("10 files", 0, &[Step::RenameDirectory(10)]),
    Load::new("many files", 0, &[Step::RenameDirectory(usize::MAX)]),
];

/// Does all at all places; with a word, the loads that have it in their name.
pub fn run(
    places: &[Place],
    amounts: &Amounts,
    runs: usize,
    only: Option<&str>,
) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for load in LOADS.iter().filter(|load| only.is_none_or(|word| load.name.contains(word))) {
        let names = load.steps.iter().map(|step| format!("{}, {}", step.name(), load.name));
        let row = |step| Row { step, figures: vec![Vec::new(); places.len()] };
        let mut of_load: Vec<_> = names.map(row).collect();
        for _ in 0..runs {
            once(load, places, amounts, &mut of_load)?;
        }
        rows.extend(of_load);
    }
    Ok(rows)
}

fn once(load: &Load, places: &[Place], amounts: &Amounts, rows: &mut [Row]) -> Result<(), String> {
    let threads = load.threads.unwrap_or(amounts.threads);
    let files = |place| Files::new(place, threads, load.is_apart, load.len);
    let mut files: Vec<_> = places.iter().map(files).collect();
    for (step, row) in load.steps.iter().zip(rows) {
        for (index, files) in files.iter_mut().enumerate() {
            let place = &places[index];
            let figure = measured(*step, place, files, amounts)
                .map_err(|error| format!("{}, {}: {error}", row.step, place.name))?;
            println!("{}", figure.line(&place.name, &row.step));
            row.figures[index].push(figure);
        }
    }
    for files in files {
        files.remove().map_err(|error| format!("what was made cannot be removed: {error}"))?;
    }
    Ok(())
}

/// A step at a place, by all its threads at once.
fn measured(step: Step, place: &Place, files: &mut Files, amounts: &Amounts) -> io::Result<Figure> {
    if let Step::RenameDirectory(count) = step {
        files.make_many(count.min(amounts.renamed))?;
    }
    files.prepare(step)?;
    let threads = match step.is_of_one() {
        true => 1,
        false => files.threads(),
    };
    let barrier = Barrier::new(threads + 1);
    let shared = &*files;
    let (before, begun, results) = thread::scope(|scope| {
        let work = |index| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                step.run(shared, index, amounts)
            })
        };
        let threads: Vec<_> = (0..threads).map(work).collect();
        let before = Sample::now(&place.servers);
        let begun = Instant::now();
        barrier.wait();
        let join = |it: thread::ScopedJoinHandle<'_, _>| it.join().expect("it does not panic");
        let results: Vec<io::Result<Vec<Duration>>> = threads.into_iter().map(join).collect();
        (before, begun, results)
    });
    let time = begun.elapsed();
    let spent = before.until(&Sample::now(&place.servers));
    let results = results.into_iter().collect::<io::Result<Vec<_>>>()?;
    files.finish(step, &results);
    Ok(Figure::of(results.concat(), time, spent))
}
