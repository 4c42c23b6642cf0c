//! Commands that put bytes into blobs: `create`, `put`, `write`, `append`.

use std::io::Read;

use clap::Args;
use serde_json::json;
use tyr::blocking::{Keyspace, Tyr};
use tyr::{Error, Key, limits};

use crate::commands::blob::BlobArguments;
use crate::commands::pieces::{PiecesArguments, write_pieces};
use crate::commands::source::{SourceArguments, each_piece, read_piece};
use crate::data::{parse_size, with_key};
use crate::failure::Outcome;
use crate::session::{Access, Session};

/// Bytes of one operation of a long `write`: one extent.
const OPERATION_LEN: usize = limits::EXTENT_LEN_MAX as usize;

/// `tyr create`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr create notes greeting")]
pub struct CreateArguments {
    #[command(flatten)]
    blob: BlobArguments,
}

/// Makes an empty blob.
pub fn create(session: &mut Session, arguments: &CreateArguments) -> Outcome {
    let (_, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    let key = arguments.blob.key()?;
    keyspace.create(&key)?;
    session.output.record(&with_key(&key, json!({"keyspace": keyspace.name()})), "")
}

/// `tyr put`
#[derive(Args, Debug)]
#[command(after_help = "\
Whatever the size, it is one transaction: readers see the old content or the whole new one. On a \
cluster that goes up to 16 MiB; --pieces goes further.

Examples:
  tyr put photos 2026/tree.jpg tree.jpg
  tyr put --pieces images disk.img disk.img
  tar c src | tyr put backups src.tar
  tyr put notes greeting --value hello")]
pub struct PutArguments {
    #[command(flatten)]
    blob: BlobArguments,
    #[command(flatten)]
    source: SourceArguments,
    #[command(flatten)]
    pieces: PiecesArguments,
}

/// Makes a blob's content that of the source.
pub fn put(session: &mut Session, arguments: &PutArguments) -> Outcome {
    let (_, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    let key = arguments.blob.key()?;
    let mut source = arguments.source.open(session)?;
    let size = match arguments.pieces.is_wanted {
        false => keyspace.put_reader(&key, source)?,
        true => write_pieces(&mut source, |before, piece| match before {
            0 => keyspace.put(&key, piece),
            // Somebody else who writes it meanwhile is noticed.
            _ => keyspace.append_at(&key, before, piece).map(drop),
        })?,
    };
    let fields = json!({"keyspace": keyspace.name(), "size": size});
    session.output.record(&with_key(&key, fields), "")
}

/// `tyr write`
#[derive(Args, Debug)]
#[command(after_help = "\
The blob is made if it is missing, and grows if need be; a gap reads as zeros. Whatever the size, \
it is one transaction. On a cluster that goes up to 16 MiB; --pieces goes further.

Examples:
  tyr write disks vm1 4096 sector.bin
  tyr write disks vm1 0 --value hex:eb3c90")]
pub struct WriteArguments {
    #[command(flatten)]
    blob: BlobArguments,
    /// Where the first byte goes
    #[arg(value_parser = parse_size)]
    offset: u64,
    #[command(flatten)]
    source: SourceArguments,
    #[command(flatten)]
    pieces: PiecesArguments,
}

/// Writes the source's bytes at an offset.
pub fn write(session: &mut Session, arguments: &WriteArguments) -> Outcome {
    let (store, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    let key = arguments.blob.key()?;
    let mut source = arguments.source.open(session)?;
    let len = match arguments.pieces.is_wanted {
        false => write_at_once(&store, &keyspace, &key, arguments.offset, &mut source)?,
        true => write_pieces(&mut source, |before, piece| {
            keyspace.write(&key, end_of(arguments.offset, before)?, piece)
        })?,
    };
    let fields = json!({"keyspace": keyspace.name(), "offset": arguments.offset, "len": len});
    session.output.record(&with_key(&key, fields), "")
}

/// Writes it in one transaction, of as many operations as it takes; answers how many bytes it was.
fn write_at_once(
    store: &Tyr,
    keyspace: &Keyspace,
    key: &Key,
    offset: u64,
    source: &mut impl Read,
) -> tyr::Result<u64> {
    let mut transaction = store.begin();
    // Nothing at all is still a write: it makes the blob.
    let len = each_piece(source, OPERATION_LEN, |before, operation| {
        transaction.write(keyspace, key, end_of(offset, before)?, operation).map(drop)
    })?;
    transaction.commit()?;
    Ok(len)
}

/// Where `len` bytes from `offset` on end.
fn end_of(offset: u64, len: u64) -> tyr::Result<u64> {
    offset.checked_add(len).ok_or_else(|| {
        Error::invalid(format!("a blob ends at byte {} at the latest", limits::BLOB_SIZE_MAX))
    })
}

/// `tyr append`
#[derive(Args, Debug)]
#[command(after_help = "\
Prints the offset that the bytes got. With --at, the append fails with Conflict unless the blob \
ends there. On a cluster it takes up to 16 MiB; --pieces goes further, and fails with Conflict \
when somebody else appends between two pieces.

Examples:
  date | tyr append logs today
  tyr append logs today --value 'one line' --at 29")]
pub struct AppendArguments {
    #[command(flatten)]
    blob: BlobArguments,
    #[command(flatten)]
    source: SourceArguments,
    #[command(flatten)]
    pieces: PiecesArguments,
    /// Append only if the blob ends at this byte; at most 64 MiB, or any size with --pieces
    #[arg(long, value_name = "OFFSET", value_parser = parse_size)]
    at: Option<u64>,
}

/// Appends the source's bytes.
pub fn append(session: &mut Session, arguments: &AppendArguments) -> Outcome {
    let (_, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    let key = arguments.blob.key()?;
    let mut source = arguments.source.open(session)?;
    let offset = match (arguments.pieces.is_wanted, arguments.at) {
        (true, expected) => append_pieces(&keyspace, &key, expected, &mut source)?,
        (false, None) => keyspace.append_reader(&key, source)?,
        (false, Some(expected)) => append_at(&keyspace, &key, expected, &mut source)?,
    };
    let fields = json!({"keyspace": keyspace.name(), "offset": offset});
    session.output.record(&with_key(&key, fields), &offset.to_string())
}

fn append_pieces(
    keyspace: &Keyspace,
    key: &Key,
    expected: Option<u64>,
    source: &mut impl Read,
) -> tyr::Result<u64> {
    let mut end = expected;
    let len = write_pieces(source, |_, piece| {
        let len = piece.len() as u64;
        let offset = match end {
            None => keyspace.append(key, piece)?,
            Some(end) => keyspace.append_at(key, end, piece)?,
        };
        end = Some(end_of(offset, len)?);
        Ok(())
    })?;
    Ok(end.unwrap_or_default() - len)
}

fn append_at(
    keyspace: &Keyspace,
    key: &Key,
    expected: u64,
    source: &mut impl Read,
) -> tyr::Result<u64> {
    let len_max = limits::READ_LEN_MAX as usize;
    let mut content = Vec::new();
    if read_piece(source, &mut content, len_max + 1)? > len_max {
        return Err(Error::invalid(format!(
            "an append at a given offset takes at most {len_max} bytes; --pieces takes more"
        )));
    }
    keyspace.append_at(key, expected, content)
}
