//! What a command said of its failure, kept while all it says is printed.
//!
//! Continuous integration prints thousands of lines, and whoever asks what failed often sees the
//! last of them only: the suite repeats these there.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// Of what one failed test printed, the last lines: a panic stands there.
const OF_A_TEST: usize = 30;

/// After the first line of an error of cargo or rustc.
const OF_AN_ERROR: usize = 8;

/// Of a command that said nothing known.
const OF_ANOTHER: usize = 30;

/// Of all that is kept.
const IN_ALL: usize = 200;

/// The lines that tell why a command failed.
#[derive(Default)]
pub struct Excerpt {
    kept: Vec<String>,
    /// What the test that is told of has printed so far, while failures are listed.
    failure: Option<VecDeque<String>>,
    /// How many more lines belong to an error.
    error: usize,
    last: VecDeque<String>,
}

/// Runs a command to its end, copies what it says to `out`, and answers whether it succeeded and
/// what tells why not.
pub fn run(command: &mut Command, out: &mut impl Write) -> (bool, Excerpt) {
    let mut excerpt = Excerpt::default();
    let is_good = listen(command, out, &mut excerpt).unwrap_or_else(|error| {
        let name = command.get_program().to_string_lossy();
        let text = format!("{name}: does not run: {error}");
        // What nobody reads any more is not told either.
        let _ = writeln!(out, "{text}");
        excerpt = Excerpt::from(&*text);
        false
    });
    (is_good, excerpt)
}

fn listen(command: &mut Command, out: &mut impl Write, excerpt: &mut Excerpt) -> io::Result<bool> {
    let (reader, writer) = io::pipe()?;
    let child = command.stdout(writer.try_clone()?).stderr(writer).spawn();
    // The command holds ends to write to, without which reading ends.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child?;
    let (mut reader, mut line) = (BufReader::new(reader), Vec::new());
    while reader.read_until(b'\n', &mut line)? > 0 {
        out.write_all(&line)?;
        excerpt.take(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(child.wait()?.success())
}

impl Excerpt {
    fn take(&mut self, line: &str) {
        push(&mut self.last, line, OF_ANOTHER);
        if line == "failures:" || line.starts_with("---- ") {
            self.end_failure();
            self.failure = Some(VecDeque::from([line.to_owned()]));
        } else if line.starts_with("test result: ") {
            if self.failure.is_some() {
                self.end_failure();
                self.kept.push(line.to_owned());
            }
        } else if let Some(failure) = &mut self.failure {
            push(failure, line, OF_A_TEST);
        } else if line.starts_with("error: ") || line.starts_with("error[") {
            self.error = OF_AN_ERROR;
            self.kept.push(line.to_owned());
        } else if self.error > 0 {
            self.error -= 1;
            self.kept.push(line.to_owned());
        }
    }

    fn end_failure(&mut self) {
        self.kept.extend(self.failure.take().into_iter().flatten());
    }

    /// All of several, one after the other.
    pub fn of_all(excerpts: impl IntoIterator<Item = Self>) -> Self {
        let kept = excerpts.into_iter().flat_map(Self::lines).collect();
        Self { kept, ..Self::default() }
    }

    /// What to repeat, a line each.
    pub fn lines(mut self) -> Vec<String> {
        self.end_failure();
        if self.kept.is_empty() {
            return self.last.into();
        }
        let more = self.kept.len().saturating_sub(IN_ALL);
        self.kept.truncate(IN_ALL);
        if more > 0 {
            self.kept.push(format!("... and {more} lines more, above"));
        }
        self.kept
    }
}

impl From<&str> for Excerpt {
    fn from(text: &str) -> Self {
        let mut excerpt = Self::default();
        text.lines().for_each(|line| excerpt.take(line));
        excerpt
    }
}

/// The first line stays: it has the test's name.
fn push(lines: &mut VecDeque<String>, line: &str, most: usize) {
    lines.push_back(line.to_owned());
    if lines.len() > most {
        lines.remove(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &str) -> Vec<String> {
        Excerpt::from(text).lines()
    }

    #[test]
    fn of_tests_what_the_failed_ones_said_is_kept() {
        let text = "\
test good ... ok
test bad ... FAILED

failures:

---- bad stdout ----
thread 'bad' panicked at src/lib.rs:3:5:
nothing is right

failures:
    bad

test result: FAILED. 1 passed; 1 failed
     Running unittests src/other.rs
test other ... ok

test result: ok. 1 passed
error: 1 target failed:
    `-p one --lib`";
        let kept = excerpt(text);
        assert!(kept.contains(&"---- bad stdout ----".to_owned()));
        assert!(kept.contains(&"nothing is right".to_owned()));
        assert!(kept.contains(&"    `-p one --lib`".to_owned()));
        assert!(!kept.iter().any(|line| line.contains("other") || line.contains("ok")), "{kept:?}");
    }

    #[test]
    fn of_a_test_that_says_much_its_name_and_its_end_are_kept() {
        let mut text = "failures:\n---- loud stdout ----\n".to_owned();
        (0..1000).for_each(|at| text += &format!("line {at}\n"));
        text += "test result: FAILED.";
        let kept = excerpt(&text);
        assert_eq!(kept[1], "---- loud stdout ----");
        assert_eq!(kept[kept.len() - 2], "line 999");
        assert_eq!(kept.len(), 1 + OF_A_TEST + 1);
    }

    #[test]
    fn of_errors_that_are_many_the_first_are_kept() {
        let kept = excerpt(&"error: it is wrong\n".repeat(1000));
        assert_eq!(kept.len(), IN_ALL + 1);
        assert_eq!(kept[IN_ALL], "... and 800 lines more, above");
    }

    #[test]
    fn a_command_is_heard_whichever_way_it_speaks() {
        let (mut command, mut out) = (Command::new("sh"), Vec::new());
        command.args(["-c", "echo one; echo two >&2; exit 3"]);
        let (is_good, excerpt) = run(&mut command, &mut out);
        assert!(!is_good);
        assert_eq!(excerpt.lines(), ["one", "two"]);
        assert_eq!(out, b"one\ntwo\n");
        let (is_good, excerpt) = run(&mut Command::new("/no/such/program"), &mut out);
        assert!(!is_good);
        assert!(excerpt.lines()[0].contains("does not run"));
    }
}
