//! `tyr completions`: a script for the shell, made from the command line's own definition.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::failure::Outcome;
use crate::session::Session;

/// `tyr completions`
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tyr completions bash > ~/.local/share/bash-completion/completions/tyr
  tyr completions fish > ~/.config/fish/completions/tyr.fish")]
pub struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub fn run(session: &mut Session, arguments: &CompletionsArguments) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "tyr", &mut script);
    session.output.bytes(&script)
}
