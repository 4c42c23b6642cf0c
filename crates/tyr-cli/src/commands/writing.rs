//! Commands that put bytes into blobs: `create`, `put`, `write`, `append`.

use bytes::Bytes;
use clap::Args;
use serde_json::json;
use tyr::{Error, limits};

use crate::commands::blob::BlobArguments;
use crate::commands::source::{SourceArguments, read_piece};
use crate::data::{parse_size, with_key};
use crate::failure::Outcome;
use crate::session::{Access, Session};

/// Bytes of one operation of a long `write`: one extent.
const PIECE_LEN: usize = limits::EXTENT_LEN_MAX as usize;

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
Whatever the size, it is one transaction: readers see the old content or the whole new one.

Examples:
  tyr put photos 2026/tree.jpg tree.jpg
  tar c src | tyr put backups src.tar
  tyr put notes greeting --value hello")]
pub struct PutArguments {
    #[command(flatten)]
    blob: BlobArguments,
    #[command(flatten)]
    source: SourceArguments,
}

/// Makes a blob's content that of the source.
pub fn put(session: &mut Session, arguments: &PutArguments) -> Outcome {
    let (_, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    let key = arguments.blob.key()?;
    let size = keyspace.put_reader(&key, arguments.source.open(session)?)?;
    let fields = json!({"keyspace": keyspace.name(), "size": size});
    session.output.record(&with_key(&key, fields), "")
}

/// `tyr write`
#[derive(Args, Debug)]
#[command(after_help = "\
The blob is made if it is missing, and grows if need be; a gap reads as zeros. Whatever the size, \
it is one transaction.

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
}

/// Writes the source's bytes at an offset, in one transaction of as many pieces as it takes.
pub fn write(session: &mut Session, arguments: &WriteArguments) -> Outcome {
    let (store, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    let key = arguments.blob.key()?;
    let mut reader = arguments.source.open(session)?;
    let mut transaction = store.begin();
    let mut end = arguments.offset;
    loop {
        let mut piece = Vec::new();
        let count = read_piece(&mut reader, &mut piece, PIECE_LEN)?;
        // Nothing at all is still a write: it makes the blob.
        if count > 0 || end == arguments.offset {
            transaction.write(&keyspace, &key, end, Bytes::from(piece))?;
        }
        end = end.checked_add(count as u64).ok_or_else(|| {
            Error::invalid(format!("a blob ends at byte {} at the latest", limits::BLOB_SIZE_MAX))
        })?;
        if count < PIECE_LEN {
            break;
        }
    }
    transaction.commit()?;
    let fields = json!({
        "keyspace": keyspace.name(),
        "offset": arguments.offset,
        "len": end - arguments.offset,
    });
    session.output.record(&with_key(&key, fields), "")
}

/// `tyr append`
#[derive(Args, Debug)]
#[command(after_help = "\
Prints the offset that the bytes got. With --at, the append fails with Conflict unless the blob \
ends there.

Examples:
  date | tyr append logs today
  tyr append logs today --value 'one line' --at 29")]
pub struct AppendArguments {
    #[command(flatten)]
    blob: BlobArguments,
    #[command(flatten)]
    source: SourceArguments,
    /// Append only if the blob ends at this byte; at most 64 MiB
    #[arg(long, value_name = "OFFSET", value_parser = parse_size)]
    at: Option<u64>,
}

/// Appends the source's bytes.
pub fn append(session: &mut Session, arguments: &AppendArguments) -> Outcome {
    let (_, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    let key = arguments.blob.key()?;
    let mut reader = arguments.source.open(session)?;
    let offset = match arguments.at {
        None => keyspace.append_reader(&key, reader)?,
        Some(expected) => {
            let len_max = limits::READ_LEN_MAX as usize;
            let mut piece = Vec::new();
            if read_piece(&mut reader, &mut piece, len_max + 1)? > len_max {
                return Err(Error::invalid(format!(
                    "an append at a given offset takes at most {len_max} bytes"
                ))
                .into());
            }
            keyspace.append_at(&key, expected, piece)?
        }
    };
    let fields = json!({"keyspace": keyspace.name(), "offset": offset});
    session.output.record(&with_key(&key, fields), &offset.to_string())
}
