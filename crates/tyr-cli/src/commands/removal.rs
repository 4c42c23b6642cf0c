//! Commands that take bytes away: `truncate`, `clear`, `rm`.

use clap::Args;
use serde_json::json;
use tyr::{Error, Key};

use crate::commands::blob::{BlobArguments, BlobsArguments};
use crate::data::{key_text, parse_size, with_key};
use crate::failure::Outcome;
use crate::session::{Access, Session};

/// `tyr truncate`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr truncate disks vm1 10GiB")]
pub struct TruncateArguments {
    #[command(flatten)]
    blob: BlobArguments,
    /// The new size; what lies beyond is cut, what is missing reads as zeros
    #[arg(value_parser = parse_size)]
    len: u64,
}

/// Sets a blob's size.
pub fn truncate(session: &mut Session, arguments: &TruncateArguments) -> Outcome {
    let (_, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    let key = arguments.blob.key()?;
    keyspace.truncate(&key, arguments.len)?;
    let fields = json!({"keyspace": keyspace.name(), "size": arguments.len});
    session.output.record(&with_key(&key, fields), "")
}

/// `tyr clear`
#[derive(Args, Debug)]
#[command(after_help = "\
The bytes read as zeros from then on, and take no space. The blob's size stays, also where OFFSET \
and LEN reach behind its end.

Example:
  tyr clear disks vm1 4GiB 512MiB")]
pub struct ClearArguments {
    #[command(flatten)]
    blob: BlobArguments,
    /// Where the hole begins
    #[arg(value_parser = parse_size)]
    offset: u64,
    /// How long it is
    #[arg(value_parser = parse_size)]
    len: u64,
}

/// Makes a hole in a blob that is there.
pub fn clear(session: &mut Session, arguments: &ClearArguments) -> Outcome {
    let (store, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    let key = arguments.blob.key()?;
    let mut transaction = store.begin();
    transaction.expect_present(&keyspace, &key)?;
    transaction.clear(&keyspace, &key, arguments.offset, arguments.len)?;
    transaction.commit()?;
    let fields = json!({
        "keyspace": keyspace.name(),
        "offset": arguments.offset,
        "len": arguments.len,
    });
    session.output.record(&with_key(&key, fields), "")
}

/// `tyr rm`
#[derive(Args, Debug)]
#[command(after_help = "\
All are deleted in one transaction. Blobs that are not there are reported with exit code 3 after \
the others are deleted; with --force they are passed over.

Example:
  tyr rm notes draft-1 draft-2")]
pub struct RemoveArguments {
    #[command(flatten)]
    blobs: BlobsArguments,
    /// Do not mind blobs that are not there
    #[arg(long = "force", short = 'f')]
    is_forced: bool,
}

/// Deletes blobs.
pub fn remove(session: &mut Session, arguments: &RemoveArguments) -> Outcome {
    let (store, keyspace) = session.open_keyspace(&arguments.blobs.keyspace, Access::Write)?;
    let keys = arguments.blobs.keys()?;
    let mut transaction = store.begin();
    let mut ids = Vec::with_capacity(keys.len());
    for key in &keys {
        ids.push(transaction.delete(&keyspace, key)?);
    }
    let committed = transaction.commit()?;
    let mut absent: Vec<&Key> = Vec::new();
    for (key, id) in keys.iter().zip(ids) {
        let existed = committed.existed(id).unwrap_or(false);
        if !existed {
            absent.push(key);
        }
        let fields = json!({"keyspace": keyspace.name(), "existed": existed});
        session.output.record(&with_key(key, fields), "")?;
    }
    if absent.is_empty() || arguments.is_forced {
        return Ok(());
    }
    let names: Vec<String> = absent.iter().map(|key| format!("\"{}\"", key_text(key))).collect();
    let name = keyspace.name();
    Err(Error::not_found(format!("keyspace {name} has no blob {}", names.join(", "))).into())
}
