//! `tyr completions`: a script for the shell, made from the command line's own definition.

use clap::Args;
use clap_complete::Shell;

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

/// Prints the script for `program`, the whole command line.
pub fn run(
    session: &mut Session,
    arguments: &CompletionsArguments,
    program: &mut clap::Command,
) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, program, "tyr", &mut script);
    session.output.bytes(&script)
}
