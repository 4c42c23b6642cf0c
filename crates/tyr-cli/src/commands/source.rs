//! Where the bytes of a write come from: standard input, a file, or the command line.

use std::fs::File;
use std::io::{self, Cursor, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use tyr::{Error, Result};

use crate::data;
use crate::failure::Outcome;
use crate::progress::{self, Unit, Watched};
use crate::session::Session;

/// Bytes to write.
#[derive(Args, Debug)]
pub struct SourceArguments {
    /// The file to read; `-` or nothing for standard input
    file: Option<PathBuf>,

    /// The bytes themselves instead of a file: text, hex:00ff, or base64:AP8=
    #[arg(long, short, value_name = "DATA", conflicts_with = "file")]
    value: Option<String>,
}

impl SourceArguments {
    /// The bytes of this file; of standard input where it is `-`.
    pub fn of_file(file: PathBuf) -> Self {
        Self { file: Some(file), value: None }
    }

    /// Opens it, with a progress bar that ends with the reader.
    pub fn open(&self, session: &Session) -> Result<Watched<Box<dyn Read>>> {
        let (reader, len) = self.reader()?;
        let is_quiet = session.output.is_json() || self.value.is_some();
        let bar = progress::bar(len, Unit::Bytes, is_quiet);
        Ok(Watched::new(reader, bar, session.interrupt.clone()))
    }

    /// All of them, but no more than `max` and one: who takes at most `max` refuses it with its
    /// length then. `what` they are is said where they cannot be read.
    pub fn read_all(&self, session: &Session, max: u64, what: &str) -> Outcome<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.open(session)?.take(max + 1).read_to_end(&mut bytes);
        session.interrupt.check()?;
        read.map_err(|error| Error::io(format!("cannot read {what}"), error))?;
        Ok(bytes)
    }

    fn reader(&self) -> Result<(Box<dyn Read>, Option<u64>)> {
        if let Some(value) = &self.value {
            let bytes = data::parse_bytes(value)?;
            let len = bytes.len() as u64;
            return Ok((Box::new(Cursor::new(bytes)), Some(len)));
        }
        match self.file.as_deref() {
            Some(path) if path != Path::new("-") => open_file(path),
            Some(_) | None => {
                if io::stdin().is_terminal() {
                    eprintln!("tyr: reading from the terminal; end with Ctrl-D");
                }
                Ok((Box::new(io::stdin()), None))
            }
        }
    }
}

fn open_file(path: &Path) -> Result<(Box<dyn Read>, Option<u64>)> {
    let complain = |error| Error::io(format!("cannot read {}", path.display()), error);
    let file = File::open(path).map_err(complain)?;
    let metadata = file.metadata().map_err(complain)?;
    if metadata.is_dir() {
        let text = format!("cannot read {}: it is a directory, not a file", path.display());
        return Err(Error::unavailable(text));
    }
    // Pipes and devices say 0.
    let len = metadata.is_file().then_some(metadata.len());
    Ok((Box::new(file), len))
}
