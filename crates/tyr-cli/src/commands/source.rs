//! Where the bytes of a write come from: standard input, a file, or the command line.

use std::fs::File;
use std::io::{self, Cursor, IsTerminal, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use tyr::{Error, Result};

use crate::data;
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
    /// Opens it, with a progress bar that ends with the reader.
    pub fn open(&self, session: &Session) -> Result<Watched<Box<dyn Read>>> {
        let (reader, len) = self.reader()?;
        let is_quiet = session.output.is_json() || self.value.is_some();
        let bar = progress::bar(len, Unit::Bytes, is_quiet);
        Ok(Watched::new(reader, bar, session.interrupt.clone()))
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

/// Hands `take` what `reader` has, `len_max` bytes at a time, with how many came before; nothing at
/// all is one piece, too. Answers how many bytes it was.
pub fn each_piece(
    reader: &mut impl Read,
    len_max: usize,
    mut take: impl FnMut(u64, Bytes) -> Result<()>,
) -> Result<u64> {
    let mut len = 0;
    loop {
        let mut piece = Vec::new();
        let count = read_piece(reader, &mut piece, len_max)?;
        if count > 0 || len == 0 {
            take(len, Bytes::from(piece))?;
        }
        len += count as u64;
        if count < len_max {
            return Ok(len);
        }
    }
}

/// Fills `piece` from `reader` as far as it goes; answers how many bytes came.
pub fn read_piece(reader: &mut impl Read, piece: &mut Vec<u8>, len_max: usize) -> Result<usize> {
    piece.clear();
    reader
        .by_ref()
        .take(len_max as u64)
        .read_to_end(piece)
        .map_err(|error| Error::io("cannot read the data to write", error))
}
