//! `tyr cp`: copies of blobs inside a store.

use clap::Args;
use serde_json::json;
use tyr::{BlobCopy, ByteRange, Error, Key};

use super::blob::parse_key;
use crate::data::{parse_size, with_key};
use crate::failure::Outcome;
use crate::progress::{self, Unit};
use crate::session::{Access, Session};

/// `tyr cp`
#[derive(Args, Debug)]
#[command(after_help = "\
It is one transaction, whatever the size: readers see the old content of the target or the whole \
copy, and what is copied is the source as it was at one moment. Holes stay holes. In a cluster the \
nodes copy, and the bytes do not come by here. Without --from, --len and --to the target is all \
that the source is, whatever it was before.

Examples:
  tyr cp images disk.img images disk-of-monday.img
  tyr cp logs today archive 2026-11-26
  tyr cp disks vm1 disks vm2 --from 1MiB --len 64KiB --to 0")]
pub struct CopyArguments {
    /// The keyspace of the source
    #[arg(value_name = "KEYSPACE")]
    from_keyspace: String,

    /// The source's key, as UTF-8 text
    #[arg(value_name = "KEY")]
    from_key: String,

    /// The keyspace of the target
    #[arg(value_name = "KEYSPACE")]
    to_keyspace: String,

    /// The target's key
    #[arg(value_name = "KEY")]
    to_key: String,

    /// The keys are given as hexadecimal digits, two a byte
    #[arg(long = "hex-key")]
    is_hex: bool,

    /// The first byte of the source; then the rest of the target stays as it is
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    from: Option<u64>,

    /// How many bytes; fewer are copied where the source ends before. Default: all
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    len: Option<u64>,

    /// Where in the target the first byte goes. Default: where it is in the source
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    to: Option<u64>,
}

impl CopyArguments {
    fn keys(&self) -> tyr::Result<(Key, Key)> {
        Ok((parse_key(&self.from_key, self.is_hex)?, parse_key(&self.to_key, self.is_hex)?))
    }

    /// The range and where it goes; `None` for a whole blob.
    fn part(&self) -> tyr::Result<Option<(ByteRange, u64)>> {
        if self.from.is_none() && self.len.is_none() && self.to.is_none() {
            return Ok(None);
        }
        let start = self.from.unwrap_or(0);
        let range = match self.len {
            Some(len) => ByteRange::at(start, len)?,
            None => ByteRange::at(start, 0).map(|_| ByteRange::from(start))?,
        };
        Ok(Some((range, self.to.unwrap_or(start))))
    }
}

/// Copies a blob, or a range of one, into another.
pub fn copy(session: &mut Session, arguments: &CopyArguments) -> Outcome {
    let (store, to) = session.open_keyspace(&arguments.to_keyspace, Access::Write)?;
    let from = match arguments.from_keyspace == arguments.to_keyspace {
        true => to.clone(),
        false => store.keyspace(&arguments.from_keyspace)?,
    };
    let ((from_key, to_key), part) = (arguments.keys()?, arguments.part()?);
    let all = ByteRange { start: 0, end: from.stat(&from_key)?.size };
    let expected = part.map_or(all, |(range, _)| range.intersection(all)).len();
    let mut copy = BlobCopy::new(&from, &from_key, &to, &to_key)?;
    if let Some((range, offset)) = part {
        copy = copy.range(range, offset);
    }
    let bar = progress::bar(Some(expected), Unit::Bytes, session.output.is_json());
    let interrupt = session.interrupt.clone();
    let copy = copy.on_progress(move |done| {
        bar.set_position(done);
        interrupt.check_io().map_err(|error| Error::io("the copy was stopped", error))
    });
    let copied = store.copy(&copy);
    session.interrupt.check()?;
    let fields = json!({
        "from": with_key(&from_key, json!({ "keyspace": from.name() })),
        "to": with_key(&to_key, json!({ "keyspace": to.name() })),
        "len": copied?,
    });
    session.output.record(&fields, "")
}
