//! Whether many calls are as clean as few: `cargo xtask steady`.
//!
//! The programs in C and C++ make calls of many kinds, some of them cancelled, under valgrind and
//! with the sanitizers of addresses and undefined behaviour. And those of every language make so
//! many that what each call would leave behind is seen in the memory that is resident: it is noted
//! after the first calls, when caches are warm, and compared with that at the end.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::c;
use crate::callers::{Caller, Language, Workshop};
use crate::processes::{Memory, memory};

/// The smallest cache that a store takes is 8 MiB: it is full of recent operations soon.
const CACHE_MIB: u64 = 16;

/// After so many calls caches are warm, and memory is noted.
const WARM: u64 = 100_000;

/// By how much resident memory may have grown when all calls are made: 1.7 bytes a call of ten
/// million, where the smallest object that a call could leave takes 16 and more. It is not less: a
/// store that folds its log for the first time, after 64 MiB, takes 10 MiB and keeps them, and Java
/// compiles on and on.
const ROOM_KIB: u64 = 16 << 10;

/// How often is told how far it is.
const STEPS: u64 = 20;

struct Arguments {
    /// Calls of each language whose memory is looked at.
    calls: u64,
    /// Calls under valgrind, and under the sanitizers.
    checked: u64,
    seed: u64,
    only: Option<String>,
}

/// Runs everything, or what `--only` names a part of, and tells at the end what was good.
pub fn run(root: &Path, words: &[&str]) -> bool {
    let arguments = match parse(words) {
        Ok(arguments) => arguments,
        Err(text) => {
            eprintln!("{text}");
            return false;
        }
    };
    let Some(shop) = Workshop::build(root, "steady") else { return false };
    println!("seed {}", arguments.seed);
    let mut told = Vec::new();
    for (name, check) in checks() {
        if arguments.only.as_ref().is_some_and(|only| !name.contains(&**only)) {
            continue;
        }
        println!("\n== {name}");
        let start = Instant::now();
        let answer = match &check {
            Check::UnderValgrind(language) => under_valgrind(root, &shop, *language, &arguments),
            Check::Sanitized(language) => sanitized(&shop, *language, &arguments),
            Check::Resident(language) => resident(&shop, *language, &arguments),
        };
        told.push((name, start.elapsed().as_secs(), answer));
    }
    println!();
    for (name, seconds, answer) in &told {
        match answer {
            Ok(text) => println!("{name:24} {seconds:>6} s  good: {text}"),
            Err(text) => println!("{name:24} {seconds:>6} s  FAILED: {text}"),
        }
    }
    println!("seed {}", arguments.seed);
    !told.is_empty() && told.iter().all(|(_, _, answer)| answer.is_ok())
}

enum Check {
    UnderValgrind(Language),
    Sanitized(Language),
    Resident(Language),
}

fn checks() -> Vec<(String, Check)> {
    let mut all = Vec::new();
    for language in [Language::C, Language::Cpp] {
        let name = language.name();
        all.push((format!("{name}, sanitized"), Check::Sanitized(language)));
        all.push((format!("{name}, valgrind"), Check::UnderValgrind(language)));
    }
    for language in Language::ALL {
        all.push((format!("{}, resident", language.name()), Check::Resident(language)));
    }
    all
}

fn parse(words: &[&str]) -> Result<Arguments, String> {
    let clock = std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_secs());
    let mut arguments =
        Arguments { calls: 10_000_000, checked: 1_000_000, seed: clock, only: None };
    for pair in words.chunks(2) {
        let &[flag, value] = pair else { return Err(format!("{} wants a value", pair[0])) };
        let number = || value.parse::<u64>().map_err(|_| format!("{flag} wants a number"));
        match flag {
            "--calls" => arguments.calls = number()?,
            "--checked" => arguments.checked = number()?,
            "--seed" => arguments.seed = number()?,
            "--only" => arguments.only = Some(value.to_owned()),
            other => return Err(format!("there is no flag {other}")),
        }
    }
    if arguments.calls < 2 * WARM {
        return Err(format!("--calls wants {} at least: memory is noted after {WARM}", 2 * WARM));
    }
    Ok(arguments)
}

fn under_valgrind(
    root: &Path,
    shop: &Workshop,
    language: Language,
    arguments: &Arguments,
) -> Result<String, String> {
    let valgrind = c::valgrind(root).ok_or("valgrind is missing")?;
    let mut words = valgrind.split_whitespace();
    let mut command = Command::new(words.next().expect("it has a name"));
    command.args(words).arg(shop.program(language).get_program());
    checked(shop, command, arguments)
}

fn sanitized(shop: &Workshop, language: Language, arguments: &Arguments) -> Result<String, String> {
    let program = shop.compile_sanitized(language).ok_or("it does not compile so")?;
    checked(shop, Command::new(program), arguments)
}

/// What is wrong, a program of these says itself, and ends with an error.
fn checked(shop: &Workshop, program: Command, arguments: &Arguments) -> Result<String, String> {
    let mut caller = shop.start(program, CACHE_MIB, arguments.seed)?;
    in_steps(0, arguments.checked, &mut caller, |_, _| ())?;
    caller.end()?;
    Ok(format!("{} calls", grouped(arguments.checked)))
}

fn resident(shop: &Workshop, language: Language, arguments: &Arguments) -> Result<String, String> {
    let mut program = shop.program(language);
    // glibc has an arena for each of some threads and keeps the most that was ever in use of each:
    // calls of C took 44 MB more in nine millions so. With one arena they took 13 MB more in three
    // millions, and nothing in the seven after them.
    program.env("MALLOC_ARENA_MAX", "1");
    let mut caller = shop.start(program, CACHE_MIB, arguments.seed)?;
    let number = caller.number();
    caller.make("mix", WARM)?;
    let before = memory(number).ok_or("/proc does not tell its memory")?;
    println!("{:>12} calls: {}", grouped(WARM), in_words(before));
    in_steps(WARM, arguments.calls, &mut caller, |made, memory| {
        println!("{:>12} calls: {}", grouped(made), in_words(memory));
    })?;
    let after = memory(number).ok_or("/proc does not tell its memory")?;
    caller.end()?;
    compared(before, after)
}

fn compared(before: Memory, after: Memory) -> Result<String, String> {
    let text = format!("{}; before {}", in_words(after), in_words(before));
    if after.resident > before.resident + ROOM_KIB {
        return Err(format!("{text}: more than {} KiB above", grouped(ROOM_KIB)));
    }
    Ok(text)
}

/// Makes the rest of so many calls, and tells from time to time.
fn in_steps(
    from: u64,
    to: u64,
    caller: &mut Caller,
    mut tell: impl FnMut(u64, Memory),
) -> Result<(), String> {
    let (number, start) = (caller.number(), Instant::now());
    for step in 0..STEPS {
        let at = |step: u64| from + (to - from) * step / STEPS;
        caller.make("mix", at(step + 1) - at(step))?;
        eprintln!("{:>3} %, {} s", (step + 1) * 100 / STEPS, start.elapsed().as_secs());
        tell(at(step + 1), memory(number).ok_or("/proc does not tell its memory")?);
    }
    Ok(())
}

fn in_words(memory: Memory) -> String {
    let Memory { resident, anonymous } = memory;
    format!("{} KiB resident, {} KiB of no file", grouped(resident), grouped(anonymous))
}

/// A number as people read it: 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_has_grown_beyond_the_room_is_told() {
        let of = |resident| Memory { resident, anonymous: 1 };
        assert!(compared(of(90_000), of(90_000 + ROOM_KIB)).is_ok());
        assert!(compared(of(90_000), of(50_000)).is_ok());
        let error = compared(of(90_000), of(90_001 + ROOM_KIB)).unwrap_err();
        assert!(error.contains("106,385 KiB resident") && error.contains("90,000"), "{error}");
    }

    #[test]
    fn words_of_the_command_line_are_numbers_and_a_part_of_a_name() {
        let arguments = parse(&["--calls", "200000", "--seed", "7", "--only", "Java"]).unwrap();
        assert_eq!((arguments.calls, arguments.checked, arguments.seed), (200_000, 1_000_000, 7));
        assert_eq!(arguments.only.as_deref(), Some("Java"));
        assert!(parse(&["--calls", "many"]).err().unwrap().contains("wants a number"));
        assert!(parse(&["--calls", "5"]).err().unwrap().contains("200000"));
        assert!(parse(&["--cals", "5"]).is_err() && parse(&["--calls"]).is_err());
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let texts = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
    }
}
