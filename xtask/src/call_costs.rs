//! What a call costs in CPU time from each language, beside Rust: `cargo xtask call-costs`.
//!
//! All programs are open at the same time, each on a store of its own, and are told in turn to make
//! as many calls of a kind as take a second, so that what else the machine does meets all of them.
//! CPU time is that of a whole process, user and kernel, all threads, the program's own loop
//! included. Nothing here is asserted: figures are for docs/performance.md.

use std::path::Path;

use crate::callers::{Caller, Language, Workshop};
use crate::fs_bench::median;
use crate::processes::times;

/// What a store has by itself: none of what is read has to leave memory.
const CACHE_MIB: u64 = 128;

/// CPU seconds of a round. They are counted in ticks of 10 ms.
const ROUND: f64 = 1.0;

/// What calls of a kind may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Aim {
    /// So many microseconds over Rust.
    Over(f64),
    /// So many times what Rust takes.
    Times(f64),
}

struct Kind {
    word: &'static str,
    name: &'static str,
    /// Of C, C++, Java and Python.
    aims: [Aim; 4],
}

const fn over(c: f64, cpp: f64, java: f64, python: f64) -> [Aim; 4] {
    [Aim::Over(c), Aim::Over(cpp), Aim::Over(java), Aim::Over(python)]
}

const KINDS: [Kind; 5] = [
    Kind { word: "read", name: "read of 800 B", aims: over(0.1, 0.1, 0.3, 0.4) },
    Kind { word: "put", name: "put of 100 B", aims: over(0.1, 0.1, 0.3, 0.5) },
    Kind { word: "transaction", name: "transaction of 6 puts", aims: over(0.4, 0.4, 1.5, 2.5) },
    Kind { word: "async", name: "read of 800 B, 32 under way", aims: over(0.4, 0.5, 1.5, 6.0) },
    Kind { word: "large", name: "read of 4 MiB into own memory", aims: [Aim::Times(1.02); 4] },
];

struct Arguments {
    rounds: usize,
    only: Option<String>,
}

/// Measures, and prints a table.
pub fn run(root: &Path, words: &[&str]) -> bool {
    match parse(words).and_then(|arguments| measure(root, &arguments)) {
        Ok(()) => true,
        Err(text) => {
            eprintln!("{text}");
            false
        }
    }
}

fn parse(words: &[&str]) -> Result<Arguments, String> {
    let mut arguments = Arguments { rounds: 7, only: None };
    for pair in words.chunks(2) {
        let &[flag, value] = pair else { return Err(format!("{} wants a value", pair[0])) };
        match flag {
            "--rounds" => {
                let rounds = value.parse().ok().filter(|it| *it > 0);
                arguments.rounds = rounds.ok_or("--rounds wants a number above 0")?;
            }
            "--only" if KINDS.iter().any(|kind| kind.word == value) => {
                arguments.only = Some(value.to_owned());
            }
            "--only" => {
                let words = KINDS.map(|kind| kind.word).join(", ");
                return Err(format!("--only wants one of {words}"));
            }
            other => return Err(format!("there is no flag {other}")),
        }
    }
    Ok(arguments)
}

fn measure(root: &Path, arguments: &Arguments) -> Result<(), String> {
    let shop = Workshop::build(root, "call-costs").ok_or("nothing is measured: see above")?;
    let mut callers = Vec::new();
    for language in Language::ALL {
        callers.push(shop.start(shop.program(language), CACHE_MIB, 1)?);
    }
    let mut lines = Vec::new();
    for kind in &KINDS {
        if arguments.only.as_deref().is_some_and(|only| only != kind.word) {
            continue;
        }
        let counts: Result<Vec<u64>, String> =
            callers.iter_mut().map(|caller| calibrated(caller, kind.word)).collect();
        let mut rounds = vec![Vec::new(); callers.len()];
        for round in 0..arguments.rounds {
            for (at, count) in counts.clone()?.into_iter().enumerate() {
                rounds[at].push(seconds(&mut callers[at], kind.word, count)? * 1e6 / count as f64);
            }
            let last: Vec<String> =
                rounds.iter().map(|it: &Vec<f64>| format!("{:.2}", it[round])).collect();
            println!("{}, round {}: {} us", kind.name, round + 1, last.join(", "));
        }
        lines.push(line(kind, rounds.into_iter().filter_map(median).collect()));
    }
    for caller in callers {
        caller.end()?;
    }
    println!("\n{}", heading());
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// How many calls take a round. It warms caches, and what Java compiles, up.
fn calibrated(caller: &mut Caller, kind: &str) -> Result<u64, String> {
    let mut count = 16;
    loop {
        let seconds = seconds(caller, kind, count)?;
        if seconds >= ROUND / 2.0 {
            // The last doubling was made of calls that are warm.
            return Ok((count as f64 * ROUND / seconds).ceil() as u64);
        }
        count *= 2;
    }
}

/// CPU seconds of so many calls.
fn seconds(caller: &mut Caller, kind: &str, count: u64) -> Result<f64, String> {
    let now = |number| times(number).map(|(_, seconds)| seconds).ok_or("/proc does not tell");
    let number = caller.number();
    let before = now(number)?;
    caller.make(kind, count)?;
    Ok(now(number)? - before)
}

fn heading() -> String {
    let names = Language::ALL.map(|language| format!("| {} ", language.name())).concat();
    format!("| us of CPU a call {names}|\n|---{}|", "|--:".repeat(Language::ALL.len()))
}

/// A row: what Rust takes, and of each other language what it takes and how that is beside Rust.
fn line(kind: &Kind, medians: Vec<f64>) -> String {
    let rust = medians[0];
    let others = medians[1..].iter().zip(kind.aims).map(|(cost, aim)| {
        let beside = match aim {
            Aim::Over(aim) => format!("{:+.2}, aim {aim}", cost - rust),
            Aim::Times(aim) => format!("{:.2} times, aim {aim}", cost / rust),
        };
        format!("| {} ({beside}) ", figure(*cost))
    });
    format!("| {} | {} {}|", kind.name, figure(rust), others.collect::<String>())
}

/// Three digits or so.
fn figure(cost: f64) -> String {
    if cost < 100.0 { format!("{cost:.2}") } else { format!("{cost:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_each_language_beside_rust_and_its_aim() {
        assert_eq!(
            line(&KINDS[0], vec![0.3, 0.42, 0.41, 0.55, 0.9]),
            "| read of 800 B | 0.30 | 0.42 (+0.12, aim 0.1) | 0.41 (+0.11, aim 0.1) \
             | 0.55 (+0.25, aim 0.3) | 0.90 (+0.60, aim 0.4) |"
        );
        let large = line(&KINDS[4], vec![400.0, 404.0, 404.0, 404.0, 500.0]);
        assert!(large.contains("| 404 (1.01 times, aim 1.02) "), "{large}");
        let columns = |text: &str| text.lines().next().unwrap().matches('|').count();
        assert_eq!(columns(&heading()), columns(&large));
    }

    #[test]
    fn a_kind_and_a_number_of_rounds_may_be_asked_for() {
        let arguments = parse(&["--rounds", "3", "--only", "put"]).unwrap();
        assert_eq!((arguments.rounds, arguments.only.as_deref()), (3, Some("put")));
        assert!(parse(&["--rounds", "0"]).is_err());
        assert!(parse(&["--only", "mix"]).err().unwrap().contains("read, put"));
    }
}
