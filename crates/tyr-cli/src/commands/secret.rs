//! `tyr secret`: draws what all nodes of a cluster know, and nobody else.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tyr::{Error, ErrorKind};
use tyr_net::access::Key;

use crate::failure::Outcome;
use crate::session::Session;

/// `tyr secret`
#[derive(Args, Debug)]
#[command(after_help = "\
256 random bits. With a file, nobody but its owner can read it, and one that is there is not \
overwritten.

Examples:
  tyr secret /etc/tyr/secret
  tyr secret | ssh db1 'umask 077; cat > /etc/tyr/secret'")]
pub struct SecretArguments {
    /// Where to write it; standard output if not given
    file: Option<PathBuf>,
}

/// Draws one.
pub fn run(session: &mut Session, arguments: &SecretArguments) -> Outcome {
    let key = Key::draw()?;
    let Some(path) = &arguments.file else {
        return session.output.record(&json!({"secret": key.as_str()}), key.as_str());
    };
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        writeln!(file, "{}", key.as_str())?;
        file.sync_all()
    };
    write().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::new(
            ErrorKind::AlreadyExists,
            format!("{} exists; it is left as it is", path.display()),
        ),
        _ => Error::io(format!("cannot write {}", path.display()), error),
    })?;
    session.output.record(&json!({"file": path.display().to_string()}), "")
}
