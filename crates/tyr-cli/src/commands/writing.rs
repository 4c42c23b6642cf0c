//! Commands that put bytes into blobs: `create`, `put`, `write`, `append`.

use clap::Args;
use serde_json::json;

use crate::commands::blob::BlobArguments;
use crate::commands::source::SourceArguments;
use crate::data::{parse_size, with_key};
use crate::failure::Outcome;
use crate::session::{Access, Session};

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
Whatever the size, it is one transaction: readers see the old content or the whole new one. What \
goes to a cluster is uploaded ahead, a few MiB at a time.

Examples:
  tyr put photos 2026/tree.jpg tree.jpg
  tyr put images disk.img disk.img
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
    let source = arguments.source.open(session)?;
    let size = keyspace.put_reader(&key, source)?;
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

/// Writes the source's bytes at an offset.
pub fn write(session: &mut Session, arguments: &WriteArguments) -> Outcome {
    let (_, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    let key = arguments.blob.key()?;
    let source = arguments.source.open(session)?;
    let len = keyspace.write_reader(&key, arguments.offset, source)?;
    let fields = json!({"keyspace": keyspace.name(), "offset": arguments.offset, "len": len});
    session.output.record(&with_key(&key, fields), "")
}

/// `tyr append`
#[derive(Args, Debug)]
#[command(after_help = "\
Prints the offset that the bytes got. With --at, the append fails with Conflict unless the blob \
ends there. On a cluster, so does one of more than 16 MiB when somebody else appends while it is \
uploaded.

Examples:
  date | tyr append logs today
  tyr append logs today --value 'one line' --at 29")]
pub struct AppendArguments {
    #[command(flatten)]
    blob: BlobArguments,
    #[command(flatten)]
    source: SourceArguments,
    /// Append only if the blob ends at this byte
    #[arg(long, value_name = "OFFSET", value_parser = parse_size)]
    at: Option<u64>,
}

/// Appends the source's bytes.
pub fn append(session: &mut Session, arguments: &AppendArguments) -> Outcome {
    let (_, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    let key = arguments.blob.key()?;
    let source = arguments.source.open(session)?;
    let offset = match arguments.at {
        None => keyspace.append_reader(&key, source)?,
        Some(expected) => keyspace.append_reader_at(&key, expected, source)?,
    };
    let fields = json!({"keyspace": keyspace.name(), "offset": offset});
    session.output.record(&with_key(&key, fields), &offset.to_string())
}
