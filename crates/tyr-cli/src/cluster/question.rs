//! A question before what cannot be undone, or costs safety: asked at a terminal, and answered with
//! `--yes` in a script.

use std::io::{self, BufRead, IsTerminal, Write};

use tyr::Error;

use crate::failure::{Failure, Outcome};

/// Shows `words` on standard error, and goes on only if the answer is yes.
///
/// # Errors
/// `Usage` when the answer is another one, or nobody can be asked.
pub fn ask(words: &str) -> Outcome {
    let is_terminal = io::stdin().is_terminal();
    ask_at(words, is_terminal, &mut io::stdin().lock(), &mut io::stderr())
}

fn ask_at(
    words: &str,
    is_terminal: bool,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> Outcome {
    if !is_terminal {
        return Err(Failure::Usage(format!(
            "{words}\nThis is asked about at a terminal; say --yes to accept it in a script"
        )));
    }
    let mut answer = String::new();
    write!(output, "{words}\nType yes to accept that: ").map_err(Failure::Output)?;
    output.flush().map_err(Failure::Output)?;
    let read = input.read_line(&mut answer);
    read.map_err(|error| Error::io("cannot read the answer", error))?;
    match answer.trim() {
        "yes" => Ok(()),
        _ => Err(Failure::Usage("nothing was changed: the answer was not yes".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(answer: &str, is_terminal: bool) -> (Outcome, String) {
        let mut shown = Vec::new();
        let outcome = ask_at("It is lost.", is_terminal, &mut answer.as_bytes(), &mut shown);
        (outcome, String::from_utf8(shown).unwrap())
    }

    #[test]
    fn only_yes_is_yes_and_a_script_has_to_say_so() {
        let (outcome, shown) = asked("yes\n", true);
        assert!(outcome.is_ok() && shown.starts_with("It is lost."), "{shown}");
        for answer in ["", "y\n", "no\n", "yes please\n"] {
            assert!(matches!(asked(answer, true).0, Err(Failure::Usage(_))), "{answer:?}");
        }
        let Err(Failure::Usage(text)) = asked("yes\n", false).0 else { panic!("it was not asked") };
        assert!(text.contains("It is lost.") && text.contains("--yes"), "{text}");
    }
}
