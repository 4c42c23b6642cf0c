//! Commands that read bytes of blobs: `get`, `cat`.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tyr::blocking::{Keyspace, Reader, Snapshot, Tyr};
use tyr::{ByteRange, Bytes, Error, Key, ReadRequest, limits};

use crate::commands::blob::{BlobArguments, BlobsArguments};
use crate::commands::listing::no_blob;
use crate::commands::snapshot::MomentArguments;
use crate::data::{parse_size, to_base64, with_key};
use crate::failure::{Failure, Outcome};
use crate::progress::{self, Unit, Watched};
use crate::session::{Access, Session};

/// Bytes copied at a time.
const PIECE_LEN: usize = 1 << 20;

/// Which bytes.
#[derive(Args, Clone, Copy, Debug)]
pub struct RangeArguments {
    /// The first byte
    #[arg(long, default_value = "0", value_parser = parse_size)]
    offset: u64,
    /// How many bytes; fewer come when the blob ends before. Default: all
    #[arg(long, value_parser = parse_size)]
    len: Option<u64>,
}

impl RangeArguments {
    fn range(self) -> tyr::Result<ByteRange> {
        match self.len {
            Some(len) => ByteRange::at(self.offset, len),
            None => ByteRange::at(self.offset, 0).map(|_| ByteRange::from(self.offset)),
        }
    }
}

/// `tyr get`
#[derive(Args, Debug)]
#[command(after_help = "\
The bytes are those of one version, however long it takes. With --json they come as base64, at \
most 64 MiB.

Examples:
  tyr get photos 2026/tree.jpg -o tree.jpg
  tyr get backups src.tar | tar t
  tyr get disks vm1 --offset 4KiB --len 512 | xxd")]
pub struct GetArguments {
    #[command(flatten)]
    blob: BlobArguments,
    #[command(flatten)]
    range: RangeArguments,
    #[command(flatten)]
    moment: MomentArguments,
    /// The file to write; standard output if missing
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Where a blob is read: in a keyspace as it is now, or was when a snapshot was kept.
struct Source {
    kept: Option<Snapshot>,
    keyspace: Keyspace,
}

impl Source {
    fn reader(&self, key: &Key, range: ByteRange) -> tyr::Result<Reader> {
        match &self.kept {
            Some(kept) => kept.reader(&self.keyspace, key, range),
            None => self.keyspace.reader(key, range),
        }
    }

    fn size(&self, key: &Key) -> tyr::Result<u64> {
        let stat = match &self.kept {
            Some(kept) => kept.stat(&self.keyspace, key)?,
            None => self.keyspace.stat(key)?,
        };
        Ok(stat.size)
    }

    fn read(&self, key: &Key, offset: u64, len: u64) -> tyr::Result<Bytes> {
        match &self.kept {
            Some(kept) => kept.read(&self.keyspace, key, offset, len),
            None => self.keyspace.read(key, offset, len),
        }
    }
}

/// Writes a blob's bytes out.
pub fn get(session: &mut Session, arguments: &GetArguments) -> Outcome {
    let (store, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Read)?;
    let from = Source { kept: arguments.moment.kept(&store)?, keyspace };
    let key = arguments.blob.key()?;
    let range = arguments.range.range()?;
    match &arguments.output {
        Some(path) => get_to_file(session, &from, &key, range, path),
        None if session.output.is_json() => get_as_json(session, &from, &key, range),
        None => {
            let reader = from.reader(&key, range)?;
            copy(session, reader, None)?;
            Ok(())
        }
    }
}

fn get_to_file(
    session: &mut Session,
    from: &Source,
    key: &Key,
    range: ByteRange,
    path: &Path,
) -> Outcome {
    let reader = from.reader(key, range)?;
    let complain = |error| Error::io(format!("cannot write {}", path.display()), error);
    let mut file = File::create(path).map_err(complain)?;
    let len = copy(session, reader, Some((&mut file, path)))?;
    file.sync_all().map_err(complain)?;
    let fields = json!({
        "keyspace": from.keyspace.name(),
        "len": len,
        "file": path.to_string_lossy(),
    });
    session.output.record(&with_key(key, fields), "")
}

fn get_as_json(session: &mut Session, from: &Source, key: &Key, range: ByteRange) -> Outcome {
    let size = from.size(key)?;
    let wanted = range.intersection(ByteRange { start: 0, end: size }).len();
    if wanted > limits::READ_LEN_MAX {
        return Err(Error::invalid(format!(
            "{wanted} bytes do not go into one JSON object, at most {} do; use --output FILE, or \
             --offset and --len",
            limits::READ_LEN_MAX
        ))
        .into());
    }
    let bytes = from.read(key, range.start, wanted)?;
    let fields = json!({
        "keyspace": from.keyspace.name(),
        "offset": range.start,
        "len": bytes.len(),
        "base64": to_base64(&bytes),
    });
    session.output.json(&with_key(key, fields))
}

/// Copies all of `reader` to `file`, or to standard output; answers how many bytes.
fn copy(
    session: &mut Session,
    reader: Reader,
    mut file: Option<(&mut File, &Path)>,
) -> Outcome<u64> {
    let is_quiet = session.output.is_json() || (file.is_none() && io::stdout().is_terminal());
    let bar = progress::bar(Some(reader.remaining()), Unit::Bytes, is_quiet);
    let mut reader = Watched::new(reader, bar, session.interrupt.clone());
    let mut buffer = vec![0; PIECE_LEN];
    let mut total = 0;
    loop {
        let count = reader.read(&mut buffer).map_err(read_failure)?;
        if count == 0 {
            return Ok(total);
        }
        total += count as u64;
        match &mut file {
            None => session.output.bytes(&buffer[..count])?,
            Some((file, path)) => file
                .write_all(&buffer[..count])
                .map_err(|error| Error::io(format!("cannot write {}", path.display()), error))?,
        }
    }
}

/// The store's own error, where the reader wrapped one.
fn read_failure(error: io::Error) -> Failure {
    match error.downcast::<Error>() {
        Ok(error) => error.into(),
        Err(error) => Error::io("cannot read the blob", error).into(),
    }
}

/// `tyr cat`
#[derive(Args, Debug)]
#[command(after_help = "\
The blobs are read at one version. With --len, all of them are read in one call (64 MiB at most \
each), which sees everything committed before it began; an absent blob is an error.

Examples:
  tyr cat logs monday tuesday wednesday
  tyr cat series a b c --offset 0 --len 16")]
pub struct CatArguments {
    #[command(flatten)]
    blobs: BlobsArguments,
    #[command(flatten)]
    range: RangeArguments,
    #[command(flatten)]
    moment: MomentArguments,
}

/// Writes several blobs out, at one version.
pub fn cat(session: &mut Session, arguments: &CatArguments) -> Outcome {
    let (store, keyspace) = session.open_keyspace(&arguments.blobs.keyspace, Access::Read)?;
    let keys = arguments.blobs.keys()?;
    let range = arguments.range.range()?;
    if arguments.range.len.is_some() || session.output.is_json() {
        let kept = arguments.moment.kept(&store)?;
        return cat_many(session, &store, &Source { kept, keyspace }, keys, range);
    }
    let snapshot = arguments.moment.snapshot(&store)?;
    for key in &keys {
        let reader = snapshot.reader(&keyspace, key, range)?;
        copy(session, reader, None)?;
    }
    Ok(())
}

fn cat_many(
    session: &mut Session,
    store: &Tyr,
    from: &Source,
    keys: Vec<Key>,
    range: ByteRange,
) -> Outcome {
    let range =
        ByteRange { start: range.start, end: range.end.min(range.start + limits::READ_LEN_MAX) };
    let keyspace = &from.keyspace;
    let found = match &from.kept {
        Some(_) => {
            let read = |key| from.read(key, range.start, range.len()).map(Some);
            keys.iter().map(read).collect::<tyr::Result<Vec<_>>>()?
        }
        None => {
            let shared = keyspace.clone().into_async();
            let request = |key: &Key| {
                let (keyspace, key) = (shared.clone(), key.clone());
                ReadRequest { keyspace, key, range }
            };
            store.read_many(&keys.iter().map(request).collect::<Vec<_>>())?
        }
    };
    for (key, bytes) in keys.iter().zip(found) {
        let Some(bytes) = bytes else { return Err(no_blob(keyspace, key).into()) };
        if session.output.is_json() {
            let fields = json!({
                "keyspace": keyspace.name(),
                "offset": range.start,
                "len": bytes.len(),
                "base64": to_base64(&bytes),
            });
            session.output.json(&with_key(key, fields))?;
        } else {
            session.output.bytes(&bytes)?;
        }
    }
    Ok(())
}
